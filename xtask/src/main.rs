//! The commands of this repository: `cargo xtask <command>`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod check;
mod cluster;
mod coverage;
mod crds;
mod demo;
mod docs;
mod interrupt;
mod manifests;
mod release;
mod repository;
mod simulate;
mod test;

/// Commands of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows a LeaderWorkerSet at work on a control plane of its own.
    Demo(demo::Arguments),
    /// Runs all checks and tests; `.ci/run` calls exactly this.
    Test(test::Arguments),
    /// Measures what the controller costs, beside bare StatefulSets.
    Bench(bench::Arguments),
    /// Starts, stops and shows local clusters.
    Cluster(cluster::Arguments),
    /// Writes the CRDs into crds/, or checks that they are up to date.
    Crds(crds::Arguments),
    /// Renders manifests.yaml, the single file that installs everything, or checks that it is up to date.
    Manifests(manifests::Arguments),
    /// Writes into docs/spec-coverage.md which tests show which rule, or checks that every rule has a test or a reason.
    Coverage(coverage::Arguments),
    /// Sets a version, and makes manifests, chart archive, binaries, checksums and notes of it.
    Release(release::Arguments),
    /// Runs the quick checks: format, clippy, generated files.
    Check(check::Arguments),
    /// Runs the simulated cluster from ever new seeds, for a time.
    Soak(simulate::Soak),
    /// Runs one run of the simulated cluster again.
    Replay(simulate::Replay),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Manifests(arguments) => manifests::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::Release(arguments) => release::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Soak(arguments) => simulate::soak(&arguments),
        Command::Replay(arguments) => simulate::replay(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
