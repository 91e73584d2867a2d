//! `cargo xtask bench`: what the controller costs, beside bare StatefulSets of the same shape.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use lws_local_cluster::Progress;
use serde_json::{Value, json};

use self::audit::Tally;
use self::figure::{Figure, table};
use self::in_process::Growth;
use self::plant::Bench;
use self::row::Row;
use self::sessions::Findings;
use crate::{interrupt, repository};

mod audit;
mod docs;
mod figure;
mod in_process;
mod manifest;
mod plant;
mod plot;
mod process;
mod row;
mod sessions;
mod watch;

const EXAMPLES: &str = "Examples:
  cargo xtask bench                             all rows; about a quarter of an hour on a quiet machine
  cargo xtask bench --small --row groups-200    a tenth of the groups: to try it, not to judge by it
  cargo xtask bench --row rollout --json out.json
  cargo xtask bench --write-docs                all rows, into docs/performance.md
  cargo xtask bench --command './other-manager --zap-log-level=error'

Every row has a local cluster of its own, with fake nodes (KWOK) and request limits lifted. Requests are counted in the
API server's audit log, without watches and the Lease; CPU and memory come from /proc. The same work is done with bare
StatefulSets in the same run. What is given with --command is started with --config=FILE and --kubeconfig=FILE after its
own arguments, and finds the CRDs and webhook configurations of this checkout; the rows in process are left out then.";

/// Arguments of `cargo xtask bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Measure this row only; may be given several times.
    #[arg(long = "row", value_name = "ROW")]
    rows: Vec<Row>,
    /// A tenth of the groups. Limits are not judged.
    #[arg(long)]
    small: bool,
    /// Measure another controller in place of ours.
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Also write the figures, with all requests by verb and resource, into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the table and the plot into docs/performance.md.
    #[arg(long, conflicts_with_all = ["rows", "small", "command"])]
    write_docs: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let rows: BTreeSet<Row> = if arguments.rows.is_empty() {
        Row::all().into_iter().collect()
    } else {
        arguments.rows.iter().copied().collect()
    };
    let bench = bench(arguments)?;
    let mut findings = sessions::run(&bench, &rows)?;
    if arguments.command.is_none() {
        in_process::run(&bench, &rows, &mut findings)?;
    }
    findings.figures.sort_by_key(|figure| figure.row);
    if arguments.small {
        findings
            .figures
            .iter_mut()
            .for_each(|figure| figure.limit = None);
    }
    println!("\n{}", table(&findings.figures, arguments.small));
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    if let Some(file) = &arguments.json {
        write_json(file, arguments, &findings)?;
    }
    if arguments.write_docs {
        docs::write(&findings, &machine(start))?;
    }
    judge(&findings.figures)
}

/// Where and how long it was measured.
fn machine(start: Instant) -> String {
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    format!(
        "Measured on {} cores in {minutes:.0} minutes, one run.",
        cores()
    )
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
}

fn bench(arguments: &Arguments) -> Result<Bench> {
    let (binary, more) = match &arguments.command {
        None => (repository::build_release("lws", "lws-manager")?, Vec::new()),
        Some(command) => split(command)?,
    };
    Ok(Bench {
        binary,
        arguments: more,
        is_small: arguments.small,
        progress: Progress::stderr(),
        interrupt: interrupt::on_signal()?,
    })
}

/// Program and arguments; the program is looked for from here, since it is started elsewhere.
fn split(command: &str) -> Result<(PathBuf, Vec<String>)> {
    let mut words = command.split_whitespace().map(str::to_owned);
    let program = words.next().context("--command is empty")?;
    let binary = Path::new(&program)
        .canonicalize()
        .with_context(|| format!("no program {program}"))?;
    Ok((binary, words.collect()))
}

fn judge(figures: &[Figure]) -> Result<()> {
    let over = figures
        .iter()
        .filter(|figure| figure.is_kept() == Some(false))
        .count();
    if over > 0 {
        bail!("{over} figures are over their limits");
    }
    Ok(())
}

fn write_json(file: &Path, arguments: &Arguments, findings: &Findings) -> Result<()> {
    let text = serde_json::to_string_pretty(&document(arguments, findings))?;
    std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

fn document(arguments: &Arguments, findings: &Findings) -> Value {
    let requests = findings
        .requests
        .iter()
        .map(|(row, tally)| (row.name(), requests(tally)));
    json!({
        "controller": arguments.command.as_deref().unwrap_or("lws-manager"),
        "cores": cores(),
        "small": arguments.small,
        "figures": findings.figures.iter().map(|figure| figure.json(arguments.small)).collect::<Vec<_>>(),
        "requests": requests.collect::<serde_json::Map<_, _>>(),
        "growth": findings.growth.iter().map(growth).collect::<Vec<_>>(),
    })
}

fn requests(tally: &Tally) -> Value {
    let Tally(counts) = tally;
    let rows = counts.iter().map(
        |((verb, resource), count)| json!({"verb": verb, "resource": resource, "count": count}),
    );
    rows.collect()
}

fn growth(point: &Growth) -> Value {
    json!({"groups": point.groups, "memoryMiB": point.memory_mib, "onceMilliseconds": point.once_milliseconds})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_program_and_arguments() {
        let (program, arguments) = split("/bin/sh -c --x=1").unwrap();
        assert!(program.is_absolute());
        assert_eq!(arguments, ["-c", "--x=1"]);
        assert!(split("  ").is_err());
        assert!(split("/no/such/program").is_err());
    }
}
