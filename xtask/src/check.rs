//! `cargo xtask check`: the checks that need no cluster.

use anyhow::Result;
use clap::Args;

use crate::coverage;
use crate::crds;
use crate::docs;
use crate::manifests;
use crate::repository::{self, cargo};

/// Arguments of `cargo xtask check`.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask check")]
pub struct Arguments {}

/// A check: its heading and what it runs.
pub type Check = (&'static str, fn() -> Result<()>);

/// All checks, quickest first.
pub const CHECKS: [Check; 7] = [
    ("format", format),
    ("documentation", docs::check),
    ("spec coverage", coverage::check_committed),
    ("crds", crds::check_committed),
    ("manifests", manifests::check_committed),
    ("clippy", clippy),
    ("clippy with planted bugs", clippy_planted),
];

/// Runs the command.
pub fn run(_: &Arguments) -> Result<()> {
    for (heading, check) in CHECKS {
        println!("== {heading}");
        check()?;
    }
    Ok(())
}

fn format() -> Result<()> {
    repository::run(&mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ];
    repository::run(&mut cargo(&arguments))
}

/// The planted bugs of the simulated cluster exist with a feature only.
fn clippy_planted() -> Result<()> {
    let arguments = [
        "clippy",
        "--package",
        "lws-sim",
        "--features",
        "planted",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ];
    repository::run(&mut cargo(&arguments))
}
