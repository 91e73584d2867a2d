//! The measurements on control planes: which rows share a cluster, and what is done in it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use lws_local_cluster::Component;

use super::audit::{ADMIN, CONTROLLER, Entry, KWOK, Tally};
use super::figure::{Figure, Limit, Unit};
use super::in_process::Growth;
use super::manifest::{self, NAMESPACE};
use super::plant::{Bench, Course, Plant};
use super::row::{Row, Shape};
use super::watch::Workload;

/// How long a settled set is watched.
const IDLE: Duration = Duration::from_secs(60);
/// Between two deletions the cluster is idle.
const PAUSE: Duration = Duration::from_secs(2);
/// Deletions whose median is taken.
const DELETIONS: u32 = 11;

/// What was found.
#[derive(Default)]
pub struct Findings {
    /// Figures in the order of rows.
    pub figures: Vec<Figure>,
    /// Requests of the controller for each row.
    pub requests: Vec<(Row, Tally)>,
    /// Cost by number of groups.
    pub growth: Vec<Growth>,
}

impl Findings {
    fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}

/// What a created set may cost.
struct Costs {
    requests: f64,
    cpu_seconds: Option<f64>,
    peak_mib: f64,
}

/// Measures the rows that need a control plane.
pub fn run(bench: &Bench, rows: &BTreeSet<Row>) -> Result<Findings> {
    let mut findings = Findings::default();
    let any = |wanted: &[Row]| wanted.iter().any(|row| rows.contains(row));
    if any(&[Row::Groups200, Row::Settled, Row::Recreate, Row::Rollout]) {
        groups_200(bench, rows, &mut findings)?;
    }
    let sets_50 = Costs {
        requests: 660.0,
        cpu_seconds: Some(0.6),
        peak_mib: 25.0,
    };
    let groups_500 = Costs {
        requests: 560.0,
        cpu_seconds: Some(2.5),
        peak_mib: 45.0,
    };
    for (row, costs) in [(Row::Sets50, sets_50), (Row::Groups500, groups_500)] {
        if rows.contains(&row) {
            let shape = row.shape(bench.is_small).context("no shape")?;
            bench
                .progress
                .step(&format!("{}: bare StatefulSets", row.name()));
            let bare =
                Plant::bare(bench)?.create(Workload::StatefulSets, &manifest::bare(shape))?;
            bench.progress.step(&format!("{}: controller", row.name()));
            let mut plant = Plant::with_controller(bench)?;
            let course = plant.create(Workload::Sets, &manifest::sets(shape))?;
            created(row, Some(&bare), &course, &plant, &costs, &mut findings)?;
        }
    }
    if any(&[Row::Groups1000, Row::ColdStart]) {
        groups_1000(bench, rows, &mut findings)?;
    }
    Ok(findings)
}

fn groups_200(bench: &Bench, rows: &BTreeSet<Row>, findings: &mut Findings) -> Result<()> {
    let shape = Row::Groups200.shape(bench.is_small).context("no shape")?;
    let needs_bare = rows.contains(&Row::Groups200) || rows.contains(&Row::Rollout);
    let bare = if needs_bare {
        bench.progress.step("groups-200: bare StatefulSets");
        Some(bare_200(bench, shape, rows.contains(&Row::Rollout))?)
    } else {
        None
    };
    bench.progress.step("groups-200: controller");
    let mut plant = Plant::with_controller(bench)?;
    let course = plant.create(Workload::Sets, &manifest::sets(shape))?;
    if rows.contains(&Row::Groups200) {
        let costs = Costs {
            requests: 230.0,
            cpu_seconds: Some(0.6),
            peak_mib: 25.0,
        };
        let bare = bare.as_ref().map(|(created, _)| created);
        created(Row::Groups200, bare, &course, &plant, &costs, findings)?;
    }
    if rows.contains(&Row::Settled) {
        bench.progress.step("settled: a minute of nothing");
        let tally = Tally::of(&plant.pass(IDLE)?);
        findings.add(
            Figure::new(
                Row::Settled,
                "requests in 60 s",
                Unit::Count,
                tally.total().into(),
            )
            .limit(Limit::Exactly(0.0)),
        );
        findings.requests.push((Row::Settled, tally));
    }
    if rows.contains(&Row::Recreate) {
        bench
            .progress
            .step("recreate: workers are deleted one by one");
        findings.add(recreate(&mut plant, shape)?);
    }
    if let (true, Some((created, rolled))) = (rows.contains(&Row::Rollout), &bare) {
        bench.progress.step("rollout");
        rollout(&mut plant, shape, created, rolled.as_ref(), findings)?;
    }
    Ok(())
}

/// Creation, and the rollout of the StatefulSet that has as many pods as there are leaders.
fn bare_200(bench: &Bench, shape: Shape, rolls: bool) -> Result<(Course, Option<Course>)> {
    let mut plant = Plant::bare(bench)?;
    let created = plant.create(Workload::StatefulSets, &manifest::bare(shape))?;
    let update = manifest::update_of_stateful_set();
    let rolled = if rolls {
        Some(plant.update(Workload::StatefulSets, &manifest::name(0), &update)?)
    } else {
        None
    };
    Ok((created, rolled))
}

/// The figures of a row that creates sets.
fn created(
    row: Row,
    bare: Option<&Course>,
    course: &Course,
    plant: &Plant,
    costs: &Costs,
    findings: &mut Findings,
) -> Result<()> {
    let mut wall = Figure::new(row, "wall until all ready", Unit::Seconds, course.seconds);
    if let Some(bare) = bare {
        wall = wall.beside(bare.seconds).limit(Limit::TimesBare(1.25));
    }
    findings.add(wall);
    let tally = course.tally();
    findings.add(
        Figure::new(row, "requests", Unit::Count, tally.total().into())
            .limit(Limit::AtMost(costs.requests)),
    );
    let cpu = Figure::new(row, "controller CPU", Unit::Seconds, course.cpu_seconds);
    findings.add(match costs.cpu_seconds {
        Some(most) => cpu.limit(Limit::AtMost(most)),
        None => cpu,
    });
    findings.add(
        Figure::new(row, "peak RSS", Unit::MiB, plant.peak_mib()?)
            .limit(Limit::AtMost(costs.peak_mib)),
    );
    findings.requests.push((row, tally));
    Ok(())
}

/// From the answer to a forced deletion of a worker until the request that deletes its leader, in the median.
fn recreate(plant: &mut Plant, shape: Shape) -> Result<Figure> {
    let mut latencies = Vec::new();
    for group in 0..DELETIONS.min(shape.groups) {
        plant.settle(PAUSE)?;
        let leader = format!("{}-{group}", manifest::name(0));
        let worker = format!("{leader}-1");
        let is_of = |entry: &Entry, user: &str, name: &str| {
            entry.user == user
                && entry.verb == "delete"
                && entry.resource == "pods"
                && entry.name == name
        };
        let arguments = [
            "delete",
            "pod",
            &worker,
            "-n",
            NAMESPACE,
            "--force",
            "--grace-period=0",
            "--wait=false",
        ];
        let entries = plant.until_answered(
            |plant| Ok(plant.target().kubectl(&arguments).map(drop)?),
            |entry| is_of(entry, CONTROLLER, &leader),
        )?;
        let deleted = entries
            .iter()
            .find(|entry| is_of(entry, ADMIN, &worker))
            .context("no deletion in the audit log")?;
        let asked = entries
            .iter()
            .find(|entry| is_of(entry, CONTROLLER, &leader))
            .context("no deletion of the leader")?;
        latencies.push(
            asked
                .received
                .duration_since(deleted.answered)
                .as_secs_f64()
                * 1000.0,
        );
    }
    let what = "worker deleted → leader delete sent, median";
    Ok(
        Figure::new(Row::Recreate, what, Unit::Milliseconds, median(latencies))
            .limit(Limit::AtMost(10.0)),
    )
}

fn rollout(
    plant: &mut Plant,
    shape: Shape,
    created: &Course,
    rolled: Option<&Course>,
    findings: &mut Findings,
) -> Result<()> {
    let course = plant.update(
        Workload::Sets,
        &manifest::name(0),
        &manifest::update_of_set(),
    )?;
    let figure = |what, unit, value| Figure::new(Row::Rollout, what, unit, value);
    findings.add(
        figure(
            "wall, beside the bare create of the first row",
            Unit::Seconds,
            course.seconds,
        )
        .beside(created.seconds)
        .limit(Limit::TimesBare(4.0)),
    );
    if let Some(rolled) = rolled {
        findings.add(
            figure(
                "wall, beside the rollout of a bare StatefulSet of the leaders",
                Unit::Seconds,
                course.seconds,
            )
            .beside(rolled.seconds),
        );
    }
    let tally = course.tally();
    findings.add(figure("requests", Unit::Count, tally.total().into()).limit(Limit::AtMost(800.0)));
    findings
        .add(figure("controller CPU", Unit::Seconds, course.cpu_seconds).limit(Limit::AtMost(3.0)));
    let leaders = count(
        course
            .entries
            .iter()
            .filter(|entry| is_deletion_of_leader(entry))
            .count(),
    );
    findings.add(
        figure("leader deletions", Unit::Count, leaders).limit(Limit::Exactly(shape.groups.into())),
    );
    let clashes = plant
        .log_of(Component::ControllerManager)
        .matches("object is being deleted")
        .count();
    findings.add(
        figure(
            "\"object is being deleted\" errors",
            Unit::Count,
            count(clashes),
        )
        .limit(Limit::Exactly(0.0)),
    );
    findings.requests.push((Row::Rollout, tally));
    Ok(())
}

/// The fake kubelets end what others have deleted.
fn is_deletion_of_leader(entry: &Entry) -> bool {
    let prefix = format!("{}-", manifest::name(0));
    let is_leader = entry
        .name
        .strip_prefix(&prefix)
        .is_some_and(|rest| rest.parse::<u32>().is_ok());
    entry.verb == "delete"
        && entry.resource == "pods"
        && entry.has_changed()
        && entry.user != KWOK
        && is_leader
}

fn groups_1000(bench: &Bench, rows: &BTreeSet<Row>, findings: &mut Findings) -> Result<()> {
    let shape = Row::Groups1000.shape(bench.is_small).context("no shape")?;
    bench.progress.step("groups-1000: controller");
    let mut plant = Plant::with_controller(bench)?;
    let course = plant.create(Workload::Sets, &manifest::sets(shape))?;
    if rows.contains(&Row::Groups1000) {
        // As many for each group as 500 groups may cost.
        let requests = f64::from(shape.groups) * 560.0 / 500.0;
        let costs = Costs {
            requests,
            cpu_seconds: None,
            peak_mib: 80.0,
        };
        created(Row::Groups1000, None, &course, &plant, &costs, findings)?;
    }
    if rows.contains(&Row::ColdStart) {
        bench.progress.step("cold-start");
        findings.add(cold_start(&mut plant, shape)?);
    }
    Ok(())
}

/// While the controller is down, one group more is asked for; no webhook sees that. Its first write says that it is at work.
fn cold_start(plant: &mut Plant, shape: Shape) -> Result<Figure> {
    let stopped = plant.stop_controller()?;
    let replicas = format!("--replicas={}", shape.groups + 1);
    plant.target().kubectl(&[
        "scale",
        "leaderworkersets",
        &manifest::name(0),
        "-n",
        NAMESPACE,
        &replicas,
    ])?;
    let is_first =
        |entry: &Entry| entry.is_counted() && entry.has_changed() && entry.namespace == NAMESPACE;
    let mut began = Timestamp::now();
    let entries = plant.until_answered(
        |plant| {
            began = Timestamp::now();
            plant.start_controller(stopped)
        },
        is_first,
    )?;
    let first = entries
        .iter()
        .find(|entry| is_first(entry))
        .context("no write")?;
    let seconds = first.received.duration_since(began).as_secs_f64();
    Ok(Figure::new(
        Row::ColdStart,
        "start of the process → first write",
        Unit::Seconds,
        seconds,
    )
    .limit(Limit::AtMost(3.0)))
}

fn count(number: usize) -> f64 {
    u32::try_from(number).unwrap_or(u32::MAX).into()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_odd_number() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(vec![]).is_nan());
    }
}
