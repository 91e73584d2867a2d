//! What a set costs as its groups become more: time of reconciles without the API, and memory of the cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lws_core::intent::Kind;
use lws_core::model::ObjectKey;
use lws_core::run::Outcome;
use lws_core::{group, leaderworkerset};
use serde_json::{Value, json};

use crate::samples::Samples;
use crate::world::{self, World, now};

/// Reconciles of a set that are timed at most, and for how long.
const RUNS: u32 = 500;
const LONG_ENOUGH: Duration = Duration::from_secs(3);

/// Figures of a settled set.
pub fn measure(groups: u32, size: u32) -> Result<Value> {
    let before = resident_mib()?;
    let mut world = World::default();
    let key = world.create(Kind::LeaderWorkerSet, &world::set("llm", groups, size)?)?;
    world.fill(&key)?;
    let memory = resident_mib()? - before;
    let sets = reconciles_of_set(&world, &key);
    let each = reconciles_of_groups(&world, &key);
    Ok(json!({
        "groups": groups,
        "pods": groups * size,
        "setReconcileMedianMicroseconds": sets.microseconds(0.5),
        "setReconcileP99Microseconds": sets.microseconds(0.99),
        "groupReconcileMedianMicroseconds": each.microseconds(0.5),
        "groupReconcileP99Microseconds": each.microseconds(0.99),
        "onceMilliseconds": (sets.microseconds(0.5) + each.sum()) / 1000.0,
        "memoryMiB": memory,
    }))
}

fn reconciles_of_set(world: &World, key: &ObjectKey) -> Samples {
    let start = Instant::now();
    let mut samples = Samples::default();
    for _ in 0..RUNS {
        let began = Instant::now();
        if let Some(snapshot) = leaderworkerset::observe(key, &world.cache) {
            let plan = leaderworkerset::plan(&snapshot, now());
            let report = leaderworkerset::report(&snapshot, &plan, &Outcome::default(), now());
            black_box(report);
        }
        samples.add(began.elapsed());
        if start.elapsed() > LONG_ENOUGH {
            break;
        }
    }
    samples
}

/// Every group once.
fn reconciles_of_groups(world: &World, key: &ObjectKey) -> Samples {
    let mut samples = Samples::default();
    for leader in world.cache.groups_of(key) {
        let began = Instant::now();
        if let Some(snapshot) = group::observe(leader, &world.cache) {
            black_box(group::plan(&snapshot, now()));
        }
        samples.add(began.elapsed());
    }
    samples
}

/// Memory of this process.
fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("no /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u32 = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?
        .parse()?;
    Ok(f64::from(kib) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_timed() {
        let figures = measure(5, 2).unwrap();
        assert_eq!(figures["pods"], 10);
        assert!(
            figures["groupReconcileMedianMicroseconds"]
                .as_f64()
                .unwrap()
                > 0.0
        );
    }
}
