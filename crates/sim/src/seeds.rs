//! Many worlds from many seeds: families of sets and operations, replay of one seed, and the smallest case that still fails.

use std::fmt;

use serde_json::json;

use crate::actors::user::{Deed, Wanted};
use crate::faults::Faults;
use crate::properties::{Violation, violated};
use crate::random::Random;
use crate::runner::Summary;
use crate::world::{Setup, World};

/// Families of sets that random runs use.
pub const FAMILIES: [&str; 12] = [
    "plain",
    "rollout",
    "surge",
    "partition",
    "budget",
    "backoff",
    "after-start",
    "leader-ready",
    "parallel",
    "unique",
    "alone",
    "none",
];

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// How it was set up, as small as it could be made.
    pub setup: Setup,
    /// What is wrong.
    pub violation: Violation,
    /// The last commits.
    pub commits: String,
    /// Family.
    pub family: &'static str,
    /// Plan and number that it is replayed by.
    pub replay: String,
}

impl Failed {
    /// A run that ended well, but not as it should have.
    pub fn judged(family: &'static str, world: &World, text: String) -> Self {
        Self {
            setup: world.setup().clone(),
            violation: violated("judged", text),
            commits: world.last_commits(40),
            family,
            replay: String::new(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup {
            deeds,
            faults,
            fault_steps,
            processes,
            crash,
            ..
        } = &self.setup;
        writeln!(f, "{}: {}", self.violation.property, self.violation.text)?;
        writeln!(
            f,
            "family {}, {processes} processes, crash {crash:?}, faults for {fault_steps} steps: {faults:?}",
            self.family
        )?;
        writeln!(f, "deeds: {deeds:?}")?;
        writeln!(f, "{}", self.commits)?;
        write!(f, "replay: cargo xtask replay {:?}", self.replay)
    }
}

/// The set of a family.
pub fn wanted(family: &str) -> Wanted {
    let base = Wanted::default();
    let template = |more| json!({"leaderWorkerTemplate": more});
    match family {
        "rollout" => Wanted {
            replicas: 3,
            size: 2,
            ..base
        },
        "surge" => Wanted {
            surge: 1,
            unavailable: 0,
            ..base
        },
        "partition" => Wanted {
            replicas: 3,
            size: 2,
            partition: 1,
            ..base
        },
        "budget" => Wanted {
            more: template(json!({"maxGroupRestarts": 2})),
            ..base
        },
        "backoff" => Wanted {
            more: template(json!({"restartBackoff": {"baseSeconds": 2, "capSeconds": 8}})),
            ..base
        },
        "after-start" => Wanted {
            more: template(json!({"restartPolicy": "RecreateGroupAfterStart"})),
            ..base
        },
        "leader-ready" => Wanted {
            more: json!({"startupPolicy": "LeaderReady"}),
            ..base
        },
        "parallel" => Wanted {
            more: json!({"podTerminationPolicy": "Parallel"}),
            ..base
        },
        "unique" => Wanted {
            more: json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}),
            ..base
        },
        "alone" => Wanted { size: 1, ..base },
        "none" => Wanted {
            more: template(json!({"restartPolicy": "None"})),
            ..base
        },
        _ => base,
    }
}

/// The case of a seed.
pub fn case(seed: u64) -> (&'static str, Setup) {
    let mut random = Random::new(seed.wrapping_mul(7919));
    let family = random.pick(&FAMILIES).copied().unwrap_or("plain");
    let faults = Faults::some(&mut random);
    let setup = Setup {
        seed,
        deeds: vec![Deed::Apply(Box::new(wanted(family)))],
        faults,
        fault_steps: 300 + random.below(1200),
        processes: 1 + usize::from(random.chance(400)),
        gate: random.chance(700),
        ..Setup::default()
    };
    let election = setup.processes > 1 && random.chance(500);
    (family, Setup { election, ..setup })
}

/// Runs one world to its end, and judges it at rest.
pub fn run(setup: &Setup) -> (World, Result<(), Violation>) {
    let mut world = World::new(setup.clone());
    let result = world.run().and_then(|()| world.check_rest());
    if setup.trace {
        println!("{}\n{result:?}", world.last_commits(usize::MAX));
    }
    (world, result)
}

/// Runs a case; a failure is made small.
pub fn check(
    family: &'static str,
    setup: &Setup,
    summary: &mut Summary,
) -> Result<World, Box<Failed>> {
    let (world, result) = run(setup);
    summary.add(&world);
    match result {
        Ok(()) => Ok(world),
        Err(violation) => Err(Box::new(shrink(family, setup, violation))),
    }
}

/// Drops faults, then people, then steps, as long as the same property fails.
fn shrink(family: &'static str, setup: &Setup, violation: Violation) -> Failed {
    let mut best = setup.clone();
    let still = |setup: &Setup| {
        let (_, result) = run(setup);
        result
            .err()
            .is_some_and(|v| v.property == violation.property)
    };
    let drops: [fn(&mut Faults); 19] = [
        |f| f.crash = 0,
        |f| f.lag = 0,
        |f| f.old_lists = 0,
        |f| f.coalesce = 0,
        |f| f.cut = 0,
        |f| f.hang = 0,
        |f| f.conflict = 0,
        |f| f.error = 0,
        |f| f.lost_answer = 0,
        |f| f.two_leaders = 0,
        |f| f.slow = false,
        |f| f.mishap = 0,
        |f| f.monkey = 0,
        |f| f.edit = 0,
        |f| f.server_restart = 0,
        |f| f.refuse_pods = 0,
        |f| f.clock = 0,
        |f| f.pause = 0,
        |f| f.latency = 0,
    ];
    for drop in drops {
        let mut smaller = best.clone();
        drop(&mut smaller.faults);
        if still(&smaller) {
            best = smaller;
        }
    }
    for _ in 0..8 {
        let smaller = Setup {
            fault_steps: best.fault_steps * 3 / 4,
            ..best.clone()
        };
        if still(&smaller) {
            best = smaller;
        }
    }
    let (world, result) = run(&best);
    Failed {
        setup: best,
        violation: result.err().unwrap_or(violation),
        commits: world.last_commits(40),
        family,
        replay: String::new(),
    }
}
