//! The command line, as kubectl's: the same flags, and exit code 1 for everything that went wrong.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::cluster::Connection;
use crate::output::Paint;
use crate::{doctor, preview, recover, rollout, status, validate};

const EXAMPLES: &str = "Examples:
  kubectl lws status llm               what runs, and why something does not
  kubectl lws preview -f llm.yaml      what applying this would do
  kubectl lws rollout status llm       follow a rollout to its end
  kubectl lws recover llm              bring groups back whose restart budget is used up
  kubectl lws validate -f llm.yaml     what the webhook would say, without a cluster
  kubectl lws doctor                   is the installation sound?";

/// Shows, foretells and steers LeaderWorkerSets and DisaggregatedSets.
#[derive(Parser)]
#[command(name = "kubectl-lws", bin_name = "kubectl lws", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show sets as trees of groups and pods, and why something is not ready.
    Status(status::Arguments),
    /// Follow, restart, pause and resume rollouts.
    #[command(subcommand)]
    Rollout(rollout::Command),
    /// Foretell what applying a manifest would do.
    Preview(preview::Arguments),
    /// Bring groups back whose restart budget is used up.
    Recover(recover::Arguments),
    /// Check manifests without a cluster, with the messages of the webhook.
    Validate(validate::Arguments),
    /// Check the installation in the cluster.
    Doctor(doctor::Arguments),
    /// Print the completion script of a shell.
    Completion(Completion),
}

/// Arguments of `kubectl lws completion`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  source <(kubectl-lws completion bash)")]
struct Completion {
    /// The shell.
    shell: Shell,
}

/// What a command found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All is well.
    Good,
    /// Something is wrong with what was looked at; it was printed.
    Bad,
}

/// Runs one command line.
pub async fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match perform(arguments).await {
        Ok(Found::Good) => ExitCode::SUCCESS,
        Ok(Found::Bad) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// kubectl ends with 1 where clap would with 2.
fn refuse(error: &clap::Error) -> ExitCode {
    // Help goes to stdout; a closed one is no failure.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

async fn perform(arguments: Arguments) -> Result<Found> {
    let Arguments {
        connection,
        command,
    } = arguments;
    let paint = Paint::of_stdout();
    match command {
        Command::Status(arguments) => status::run(&connection, &arguments, paint).await,
        Command::Rollout(command) => rollout::run(&connection, &command).await,
        Command::Preview(arguments) => preview::run(&connection, &arguments, paint).await,
        Command::Recover(arguments) => recover::run(&connection, &arguments).await,
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&connection, &arguments, paint).await,
        Command::Completion(Completion { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "kubectl-lws", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(Found::Good)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn kc_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn kc_flags_stand_where_kubectl_users_put_them() {
        for line in [
            "kubectl-lws status llm -n demo",
            "kubectl-lws -n demo status llm -o json",
            "kubectl-lws status lws/llm --context c --kubeconfig k",
            "kubectl-lws status -A -o wide",
            "kubectl-lws rollout status ds/llm --timeout 5m",
            "kubectl-lws rollout pause llm",
            "kubectl-lws rollout resume llm --partition 2",
            "kubectl-lws rollout restart llm",
            "kubectl-lws preview -f x.yaml -o yaml",
            "kubectl-lws preview -f x.yaml --from y.yaml",
            "kubectl-lws recover llm 1",
            "kubectl-lws validate -f -",
            "kubectl-lws doctor --system-namespace x",
            "kubectl-lws completion bash",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in [
            "kubectl-lws",
            "kubectl-lws status llm -A",
            "kubectl-lws status -o xml",
            "kubectl-lws preview",
            "kubectl-lws preview -f x --offline --from y",
            "kubectl-lws rollout undo llm",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn kc_every_command_has_examples() {
        for command in Arguments::command().get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }
}
