//! `cargo xtask soak` and `cargo xtask replay`: the simulated cluster by the hour, and one run of it again.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::repository::{self, cargo};

/// Arguments of `cargo xtask soak`.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask soak --minutes 60 --first 100000")]
pub struct Soak {
    /// For how long.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
}

/// Arguments of `cargo xtask replay`.
#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask replay seeds:347
  cargo xtask replay stories:12 --trace
  cargo xtask replay roles:41")]
pub struct Replay {
    /// The run, as a report names it: a plan and a number.
    case: String,
    /// Print every step.
    #[arg(long)]
    trace: bool,
}

/// Tests of the simulated cluster. All of them use all cores and print what they came to, so they run one after the other.
pub fn tests(selection: &[&str]) -> Command {
    let mut command = cargo(&["test", "--profile", "sim", "--package", "lws-sim"]);
    command.args(["--features", "planted", "--no-fail-fast"]);
    command.args(selection);
    command.args(["--", "--nocapture", "--test-threads", "1"]);
    command
}

/// Runs `cargo xtask soak`.
pub fn soak(arguments: &Soak) -> Result<()> {
    let mut command = tests(&["--test", "seeds", "no_seed"]);
    command.env("LWS_SIM_MINUTES", arguments.minutes.to_string());
    command.env("LWS_SIM_FIRST", arguments.first.to_string());
    repository::run(&mut command)
}

/// Runs `cargo xtask replay`.
pub fn replay(arguments: &Replay) -> Result<()> {
    let mut command = tests(&[
        "--test",
        "seeds",
        "--test",
        "scenarios",
        "--test",
        "crashes",
        "--test",
        "disaggregated",
    ]);
    command.env("LWS_SIM_CASE", &arguments.case);
    command.env("LWS_FULL", "1");
    if arguments.trace {
        command.env("LWS_SIM_TRACE", "1");
    }
    repository::run(&mut command)
}
