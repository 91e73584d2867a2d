//! Measures the pure decisions of `lws-core` in this process and prints the figures as one JSON object; `cargo xtask bench` shows them.
//!
//! No cluster and no network: objects are made by the builders of `lws-core` and admitted by its admission, as a control plane would.

use anyhow::Result;
use clap::{Parser, Subcommand};

mod admission;
mod disaggregated;
mod growth;
mod samples;
mod world;

/// What is measured.
#[derive(Parser)]
#[command(name = "lws-bench")]
struct Arguments {
    #[command(subcommand)]
    measure: Measure,
}

#[derive(Subcommand)]
enum Measure {
    /// Admission of single pods.
    Admission,
    /// Plans of a DisaggregatedSet.
    DisaggregatedSet {
        /// Roles.
        #[arg(long, default_value_t = 4)]
        roles: u32,
        /// Groups of each role in each slice.
        #[arg(long, default_value_t = 100)]
        groups: u32,
        /// Slices.
        #[arg(long, default_value_t = 10)]
        slices: u32,
    },
    /// Reconciles of a LeaderWorkerSet, and the memory that its objects take. Memory is that of the process, so each number of groups wants one of its
    /// own.
    Growth {
        /// Groups.
        #[arg(long)]
        groups: u32,
        /// Pods of a group.
        #[arg(long, default_value_t = 8)]
        size: u32,
    },
}

fn main() -> Result<()> {
    let figures = match Arguments::parse().measure {
        Measure::Admission => admission::measure()?,
        Measure::DisaggregatedSet {
            roles,
            groups,
            slices,
        } => disaggregated::measure(roles, groups, slices)?,
        Measure::Growth { groups, size } => growth::measure(groups, size)?,
    };
    println!("{figures}");
    Ok(())
}
