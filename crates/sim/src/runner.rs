//! Many runs on all cores, and what they came to: who takes which run is chance, what a run does is not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lws_core::intent::Why;

use crate::disaggregated::Dips;
use crate::seeds::{Failed, check};
use crate::world::{Setup, World};

/// So many failures are enough.
const ENOUGH: usize = 5;

/// Faults that can meet a request, in the order of their models.
const FAULTS: [&str; 7] = [
    "crash",
    "conflict",
    "error",
    "throttled",
    "lost answer",
    "server restart",
    "slow",
];

/// Why something is written.
const WHYS: [Why; 15] = [
    Why::RevisionMissing,
    Why::RevisionObsolete,
    Why::LeaderSetMissing,
    Why::LeaderSetDiffers,
    Why::ServiceMissing,
    Why::ServiceDiffers,
    Why::WorkerSetMissing,
    Why::GroupFailed,
    Why::BudgetExhausted,
    Why::BackoffStarted,
    Why::ParallelTermination,
    Why::GroupReleased,
    Why::CountsObsolete,
    Why::GateLifted,
    Why::StatusDiffers,
];

/// Why something is written for a DisaggregatedSet.
pub const WHYS_OF_ROLES: [Why; 11] = [
    Why::ChildMissing,
    Why::ChildDiffers,
    Why::ChildRolled,
    Why::ChildAdopted,
    Why::SliceRemoved,
    Why::RevisionDrained,
    Why::SetUnmarked,
    Why::ScalerMissing,
    Why::ScalerObsolete,
    Why::GroupReassigned,
    Why::StatusDiffers,
];

/// What runs have come to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// Steps of all runs.
    pub steps: u64,
    /// Writes of ours.
    pub writes: u64,
    /// Runs with a crash at a chosen place.
    pub crash_points: u64,
    /// How long it took.
    pub time: Duration,
    /// Faults that met a request, by fault and reason of the request.
    pub coverage: BTreeMap<(&'static str, &'static str), u64>,
    /// Reasons of requests that faults are to meet.
    pub whys: &'static [Why],
    /// Dips of DisaggregatedSets.
    pub dips: Dips,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            runs: 0,
            steps: 0,
            writes: 0,
            crash_points: 0,
            time: Duration::ZERO,
            coverage: BTreeMap::new(),
            whys: &WHYS,
            dips: Dips::default(),
        }
    }
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, world: &World) {
        self.runs += 1;
        self.steps += world.steps;
        self.writes += world.facts.writes;
        self.crash_points += u64::from(world.crashed_as_told);
        self.dips.add(world.roles.dips);
        for (pair, count) in &world.coverage {
            *self.coverage.entry(*pair).or_default() += count;
        }
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.writes += other.writes;
        self.crash_points += other.crash_points;
        self.dips.add(other.dips);
        for (pair, count) in other.coverage {
            *self.coverage.entry(pair).or_default() += count;
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.whys.iter().flat_map(move |why| {
            FAULTS.into_iter().map(move |fault| {
                let met = self.coverage.get(&(fault, why.as_str()));
                (fault, why.as_str(), met.copied().unwrap_or_default())
            })
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = self.runs as f64 / self.time.as_secs_f64().max(0.001);
        let met = self.pairs().filter(|(_, _, count)| *count > 0).count();
        writeln!(
            f,
            "{} runs, {} steps, {} crash points, {} writes of ours, {per_second:.0} runs/s; faults met requests in {met} of {} pairs",
            self.runs,
            self.steps,
            self.crash_points,
            self.writes,
            FAULTS.len() * self.whys.len()
        )?;
        if self.dips.drains > 0 {
            let Dips {
                drains,
                dips,
                deepest,
            } = self.dips;
            writeln!(
                f,
                "{dips} of {drains} drains go below what a role alone keeps, by {deepest} at most"
            )?;
        }
        if met == 0 {
            return Ok(());
        }
        write!(f, "{:>20}", "")?;
        for fault in FAULTS {
            write!(f, " {fault:>14}")?;
        }
        for (position, (_, why, count)) in self.pairs().enumerate() {
            if position % FAULTS.len() == 0 {
                write!(f, "\n{why:>20}")?;
            }
            let cell = if count == 0 {
                "-".to_owned()
            } else {
                count.to_string()
            };
            write!(f, " {cell:>14}")?;
        }
        let missing: BTreeSet<String> = self
            .pairs()
            .filter(|(_, _, count)| *count == 0)
            .map(|(fault, why, _)| format!("{fault} × {why}"))
            .collect();
        let missing: Vec<String> = missing.into_iter().collect();
        write!(f, "\nnot met: {}", missing.join(", "))
    }
}

/// One run of one plan is asked for: `<plan>:<number>`.
pub const CASE: &str = "LWS_SIM_CASE";
/// Every step is printed.
const TRACE: &str = "LWS_SIM_TRACE";

/// Runs to make, and when to stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Its name, for replays.
    pub name: &'static str,
    /// First number.
    pub first: u64,
    /// How many at most.
    pub runs: u64,
    /// For how long at most.
    pub limit: Option<Duration>,
    /// Progress is printed.
    pub told: bool,
}

impl Plan {
    /// All of it, or what `case` asks for.
    fn narrowed(self, case: Option<&str>) -> Self {
        let Some(case) = case else { return self };
        let asked = case.rsplit_once(':').filter(|(name, _)| *name == self.name);
        match asked.and_then(|(_, number)| number.parse().ok()) {
            Some(first) => Self {
                first,
                runs: 1,
                ..self
            },
            None => Self { runs: 0, ..self },
        }
    }
}

/// Makes the runs of a plan on all cores. `case` says what a number stands for; `judge` looks at what ended well.
pub fn run(
    plan: Plan,
    case: impl Fn(u64) -> (&'static str, Setup) + Sync,
    judge: impl Fn(u64, &World) -> Result<(), String> + Sync,
) -> (Summary, Vec<Failed>) {
    let started = Instant::now();
    let plan = plan.narrowed(std::env::var(CASE).ok().as_deref());
    let trace = std::env::var_os(TRACE).is_some();
    let next = AtomicU64::new(0);
    let failures: Mutex<Vec<Failed>> = Mutex::new(Vec::new());
    let is_over = || {
        let is_late = plan.limit.is_some_and(|limit| started.elapsed() >= limit);
        is_late || failures.lock().is_ok_and(|all| all.len() >= ENOUGH)
    };
    let work = || {
        let mut summary = Summary::default();
        while !is_over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.runs {
                break;
            }
            let seed = plan.first + number;
            let (family, mut setup) = case(seed);
            setup.trace |= trace;
            let outcome = check(family, &setup, &mut summary);
            let failed = outcome.and_then(|world| {
                judge(seed, &world).map_err(|text| Box::new(Failed::judged(family, &world, text)))
            });
            if let (Err(mut failed), Ok(mut failures)) = (failed, failures.lock()) {
                failed.replay = format!("{}:{seed}", plan.name);
                failures.push(*failed);
            }
            if plan.told && number % 1000 == 999 {
                println!("{} runs after {:.0?}", number + 1, started.elapsed());
            }
        }
        summary
    };
    let mut summary = Summary::default();
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            summary.merge(
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
    });
    summary.time = started.elapsed();
    (summary, failures.into_inner().unwrap_or_default())
}

/// Prints what a plan came to, and fails if a run did.
///
/// # Panics
/// If a run failed.
pub fn conclude(what: &str, (summary, failures): (Summary, Vec<Failed>)) -> Summary {
    println!("{what}: {summary}");
    for failed in &failures {
        println!("---\n{failed}");
    }
    assert!(
        failures.is_empty(),
        "{what}: {} runs failed",
        failures.len()
    );
    summary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::case;

    #[test]
    fn one_run_can_be_asked_for() {
        let plan = Plan {
            name: "seeds",
            runs: 9,
            ..Plan::default()
        };
        let of = |case| {
            let Plan { first, runs, .. } = plan.narrowed(case);
            (first, runs)
        };
        assert_eq!(of(None), (0, 9));
        assert_eq!(of(Some("seeds:4")), (4, 1));
        assert_eq!(of(Some("stories:4")), (0, 0));
    }

    #[test]
    fn every_number_is_run_once_and_failures_are_kept() {
        let plan = Plan {
            first: 5,
            runs: 6,
            ..Plan::default()
        };
        let seen = Mutex::new(Vec::new());
        let (summary, failures) = run(
            plan,
            |seed| (case(seed).0, Setup::default()),
            |seed, _| {
                seen.lock().unwrap().push(seed);
                if seed == 7 {
                    Err("seven".to_owned())
                } else {
                    Ok(())
                }
            },
        );
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [5, 6, 7, 8, 9, 10]);
        assert_eq!(summary.runs, 6);
        assert_eq!(failures.len(), 1);
        assert!(failures[0].to_string().contains("seven"));
    }

    #[test]
    fn pairs_that_were_not_met_are_told() {
        let mut summary = Summary::default();
        summary.coverage.insert(("crash", "group_failed"), 2);
        let text = summary.to_string();
        assert!(text.contains("in 1 of 105 pairs"), "{text}");
        assert!(text.contains("crash × status_differs"), "{text}");
        assert!(!text.contains("crash × group_failed"), "{text}");
    }
}
