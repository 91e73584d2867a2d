//! `cargo xtask test`: everything that must hold before a change is landed. `.ci/run` calls exactly this.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use lws_local_cluster::{Cluster, Error, Options, Progress, name_in_checkout, prepare_real_node};

use crate::check::CHECKS;
use crate::interrupt;
use crate::repository::{self, cargo};
use crate::simulate;

const EXAMPLES: &str = "Examples:
  cargo xtask test          what a change must pass
  cargo xtask test --full   with the long parts, what a release must pass; prints their figures

Runs format, clippy, drift of generated files, unit tests, and the tests on a local control plane. What it needs beside
Rust and Go it builds itself, once (see `cargo xtask cluster --help`).";

const TEST_THREADS: &str = "4";
/// The cluster that most tests share, one a checkout.
const CLUSTER: &str = "e2e";

/// Arguments of `cargo xtask test`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Also run the long parts.
    #[arg(long)]
    full: bool,
}

/// How a step ended.
struct Report {
    heading: &'static str,
    time: Duration,
    passed: bool,
}

/// Runs the command. A failed step does not keep the others from running, except that nothing runs on a cluster
/// without a manager.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut reports = Vec::new();
    for (heading, check) in CHECKS {
        step(&mut reports, heading, check);
    }
    step(&mut reports, "unit tests", || unit_tests(arguments.full));
    step(&mut reports, "simulated cluster", || {
        simulations(arguments.full)
    });
    if step(&mut reports, "manager", || {
        repository::build_manager().map(drop)
    }) {
        step(&mut reports, "tests on a local control plane", || {
            cluster_tests(arguments.full)
        });
    }
    print!("{}", summary(&reports));
    if reports.iter().any(|report| !report.passed) {
        bail!("not all steps passed");
    }
    Ok(())
}

/// Runs one step and notes how it ended; true if it passed.
fn step(
    reports: &mut Vec<Report>,
    heading: &'static str,
    action: impl FnOnce() -> Result<()>,
) -> bool {
    println!("\n== {heading}");
    let start = Instant::now();
    let outcome = action();
    if let Err(error) = &outcome {
        println!("FAILED: {error:#}");
    }
    let passed = outcome.is_ok();
    reports.push(Report {
        heading,
        time: start.elapsed(),
        passed,
    });
    passed
}

fn unit_tests(full: bool) -> Result<()> {
    cargo_test(
        &[
            "--workspace",
            "--exclude",
            "lws-e2e",
            "--exclude",
            "lws-sim",
        ],
        full,
    )
}

fn simulations(full: bool) -> Result<()> {
    let mut command = simulate::tests(&[]);
    if full {
        command.env("LWS_FULL", "1");
    }
    repository::run(&mut command)
}

/// Builds the tests before the cluster starts, so that it does not compete with a compiler for the machine.
fn cluster_tests(full: bool) -> Result<()> {
    repository::run(&mut cargo(&["test", "--package", "lws-e2e", "--no-run"]))?;
    let mut options = Options::new(&name_in_checkout(CLUSTER));
    options.progress = Progress::stderr();
    options.interrupt = interrupt::on_signal()?;
    stop_leftover(&options.name)?;
    match prepare_real_node(options.progress) {
        Err(Error::NoContainers(reason)) => {
            println!("  tests on a real node are skipped: {reason}")
        }
        outcome => outcome?,
    }
    let cluster = Cluster::temporary(&options)?;
    let outcome = cargo_test(&["--package", "lws-e2e"], full);
    cluster.down()?;
    outcome
}

/// Stops the cluster that single test programs left for their next run: here every run starts on a new one.
fn stop_leftover(name: &str) -> Result<()> {
    match Cluster::find(name) {
        Ok(cluster) if cluster.is_in_use()? => {
            bail!("`cargo xtask test` runs already in this checkout")
        }
        Ok(cluster) => Ok(cluster.down()?),
        Err(Error::NoCluster(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn cargo_test(arguments: &[&str], full: bool) -> Result<()> {
    let mut command = cargo(&["test"]);
    command.args(arguments).arg("--no-fail-fast");
    // Tests of a cluster mostly wait for it: more of them at a time than there are cores.
    command.env("RUST_TEST_THREADS", TEST_THREADS);
    if full {
        command.env("LWS_FULL", "1");
    }
    repository::run(&mut command)
}

fn summary(reports: &[Report]) -> String {
    let mut lines = vec![String::new(), "== summary".to_owned()];
    for Report {
        heading,
        time,
        passed,
    } in reports
    {
        let outcome = if *passed { "passed" } else { "FAILED" };
        lines.push(format!(
            "{outcome}  {:>6.1} s  {heading}",
            time.as_secs_f64()
        ));
    }
    let total: Duration = reports.iter().map(|report| report.time).sum();
    lines.push(format!("        {:>6.1} s  total\n", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_step_is_told_and_noted() {
        let mut reports = Vec::new();
        assert!(step(&mut reports, "good", || Ok(())));
        assert!(!step(&mut reports, "bad", || bail!("no")));
        let text = summary(&reports);
        assert!(text.contains("passed     0.0 s  good"), "{text}");
        assert!(text.contains("FAILED     0.0 s  bad"), "{text}");
    }
}
