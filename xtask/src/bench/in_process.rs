//! The rows that need no control plane: `lws-bench` is built as the manager is released, and asked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::figure::{Figure, Limit, Unit};
use super::plant::Bench;
use super::row::Row;
use super::sessions::Findings;
use crate::repository;

/// Groups of 8 pods, doubled; the last of a small run is the third.
const GROUPS: [u32; 7] = [50, 100, 200, 400, 800, 1600, 3200];
const SMALL: usize = 3;
/// 8,000 pods.
const MANY: u32 = 1000;
/// Cost of a group may grow so much over the whole range and still count as the same.
const SAME: f64 = 1.5;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Admission {
    median_microseconds: f64,
    paced_p99_microseconds: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DisaggregatedSet {
    settled_milliseconds: f64,
    rolling_milliseconds: f64,
}

/// Cost of one set of so many groups.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    /// Groups of 8 pods.
    pub groups: u32,
    /// Memory of all objects in the cache.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: f64,
    /// One reconcile of the set and one of each group.
    pub once_milliseconds: f64,
    set_reconcile_p99_microseconds: f64,
    group_reconcile_p99_microseconds: f64,
}

/// Measures the chosen rows.
pub fn run(bench: &Bench, rows: &BTreeSet<Row>, findings: &mut Findings) -> Result<()> {
    if ![Row::Admission, Row::Plans, Row::Growth]
        .iter()
        .any(|row| rows.contains(row))
    {
        return Ok(());
    }
    bench.progress.step("in process: building");
    let program = repository::build_release("lws-bench", "lws-bench")?;
    bench.progress.step("in process: measuring");
    if rows.contains(&Row::Admission) {
        findings
            .figures
            .extend(admission(&ask(&program, &["admission"])?));
    }
    if rows.contains(&Row::Plans) {
        findings.figures.extend(plans(&program)?);
    }
    if rows.contains(&Row::Growth) {
        let end = if bench.is_small { SMALL } else { GROUPS.len() };
        for groups in GROUPS.iter().take(end) {
            findings.growth.push(growth_of(&program, *groups)?);
        }
        findings.figures.extend(growth(&findings.growth));
    }
    Ok(())
}

fn ask<T: DeserializeOwned>(program: &Path, arguments: &[&str]) -> Result<T> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context("cannot start lws-bench")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "lws-bench {} failed: {message}",
        arguments.join(" ")
    );
    serde_json::from_slice(&output.stdout).context("lws-bench printed something else")
}

fn growth_of(program: &Path, groups: u32) -> Result<Growth> {
    ask(program, &["growth", "--groups", &groups.to_string()])
}

fn admission(answer: &Admission) -> [Figure; 2] {
    let figure = |what, value| Figure::new(Row::Admission, what, Unit::Microseconds, value);
    [
        figure("median", answer.median_microseconds).limit(Limit::AtMost(50.0)),
        figure("p99 at 2,000/s", answer.paced_p99_microseconds).limit(Limit::AtMost(1000.0)),
    ]
}

fn plans(program: &Path) -> Result<Vec<Figure>> {
    let set: DisaggregatedSet = ask(program, &["disaggregated-set"])?;
    let many = growth_of(program, MANY)?;
    let figure = |what: &str, value| Figure::new(Row::Plans, what, Unit::Milliseconds, value);
    let shape = "DisaggregatedSet of 4 roles × 100 groups × 10 slices";
    Ok(vec![
        figure(&format!("{shape}, settled"), set.settled_milliseconds).limit(Limit::AtMost(5.0)),
        figure(&format!("{shape}, in a rollout"), set.rolling_milliseconds)
            .limit(Limit::AtMost(5.0)),
        figure(
            "reconcile of a set of 8,000 pods, p99",
            many.set_reconcile_p99_microseconds / 1000.0,
        )
        .limit(Limit::AtMost(10.0)),
        figure(
            "reconcile of a group of it, p99",
            many.group_reconcile_p99_microseconds / 1000.0,
        )
        .limit(Limit::AtMost(10.0)),
    ])
}

/// Growth is linear if a group costs the same among many as among few. The smallest sets say little: their memory is a few pages.
fn growth(points: &[Growth]) -> Vec<Figure> {
    let middle = points.len() / 2;
    let (Some(few), Some(many)) = (points.get(middle), points.last()) else {
        return Vec::new();
    };
    let of_group = |point: &Growth, value: f64| value / f64::from(point.groups);
    let quotient =
        |value: fn(&Growth) -> f64| of_group(many, value(many)) / of_group(few, value(few));
    let what = |cost: &str| {
        format!(
            "{cost} of a group among {}, by that among {}",
            many.groups, few.groups
        )
    };
    let time = quotient(|point| point.once_milliseconds);
    let memory = quotient(|point| point.memory_mib);
    vec![
        Figure::new(Row::Growth, &what("reconcile time"), Unit::Ratio, time)
            .limit(Limit::AtMost(SAME)),
        Figure::new(Row::Growth, &what("memory"), Unit::Ratio, memory).limit(Limit::AtMost(SAME)),
        Figure::new(
            Row::Growth,
            "memory of all objects of the largest set",
            Unit::MiB,
            many.memory_mib,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(groups: u32, cost: f64) -> Growth {
        Growth {
            groups,
            memory_mib: cost,
            once_milliseconds: cost,
            set_reconcile_p99_microseconds: 1.0,
            group_reconcile_p99_microseconds: 1.0,
        }
    }

    #[test]
    fn linear_growth_is_told_from_quadratic() {
        let kept =
            |points: &[Growth]| -> Vec<_> { growth(points).iter().map(Figure::is_kept).collect() };
        let linear = [point(100, 1.0), point(200, 2.0), point(400, 4.0)];
        assert_eq!(kept(&linear), [Some(true), Some(true), None]);
        let quadratic = [point(100, 1.0), point(200, 4.0), point(400, 16.0)];
        assert_eq!(kept(&quadratic), [Some(false), Some(false), None]);
        assert!(growth(&[]).is_empty());
    }
}
