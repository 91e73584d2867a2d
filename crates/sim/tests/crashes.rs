//! Every request of a scenario, at each of its four crash points, with fresh and with stale first lists afterwards (tier 3, L-4).

use lws_sim::actors::user::{
    Deed, Wanted, delete_pod, force_delete_pod, hold_unready, image, key, let_go, scale,
};
use lws_sim::faults::Faults;
use lws_sim::runner::{Plan, conclude, run};
use lws_sim::seeds;
use lws_sim::store::{Cascade, Kind};
use lws_sim::world::{Crash, Point, Setup, World};
use serde_json::{Value, json};

const POINTS: [Point; 4] = [
    Point::Unsent,
    Point::Sent,
    Point::Committed,
    Point::Answered,
];
const BEHIND: [u64; 3] = [0, 1, 3];
/// Runs without a crash that those with one are compared with.
const CRASH_FREE: u64 = 24;

fn crash_everywhere(name: &'static str, wanted: Wanted, deeds: &[Deed]) {
    let first = [Deed::Apply(Box::new(wanted)), Deed::Settle];
    let setup = Setup {
        deeds: first.into_iter().chain(deeds.iter().cloned()).collect(),
        ..Setup::default()
    };
    let (reference, result) = seeds::run(&setup);
    result.unwrap_or_else(|v| panic!("without a crash: {v:?}"));
    let most = most_ends(&setup);
    let crash = |number: u64| {
        let pick = |list_len: usize, number: u64| usize::try_from(number).unwrap() % list_len;
        Crash {
            request: number / 12,
            point: POINTS[pick(4, number / 3)],
            behind: BEHIND[pick(3, number)],
        }
    };
    let plan = Plan {
        name,
        runs: reference.requests * 12,
        ..Plan::default()
    };
    let outcome = run(
        plan,
        |number| {
            let setup = Setup {
                crash: Some(crash(number)),
                ..setup.clone()
            };
            (name, setup)
        },
        |_, world| no_more_ends(world, most),
    );
    let summary = conclude(name, outcome);
    assert_eq!(summary.crash_points, summary.runs, "every crash happened");
}

/// Most groups that end without a crash, in every second run under watches that lag as first lists do: what people do in the middle of something meets
/// it where chance has it, and a pod may be seen to go before its StatefulSet is.
fn most_ends(setup: &Setup) -> u64 {
    let ends = (1..=CRASH_FREE).map(|seed| {
        let lags = seed % 2 == 1;
        let lag = Faults {
            lag: if lags { 40 } else { 0 },
            ..Faults::default()
        };
        let setup = Setup {
            seed,
            faults: lag,
            fault_steps: if lags { 1500 } else { 0 },
            ..setup.clone()
        };
        seeds::run(&setup).0.group_ends()
    });
    ends.max().unwrap_or_default()
}

fn no_more_ends(world: &World, most: u64) -> Result<(), String> {
    let ends = world.group_ends();
    if ends > most {
        return Err(format!("L-4: {ends} groups ended instead of {most}"));
    }
    Ok(())
}

fn small(more: Value) -> Wanted {
    Wanted {
        size: 2,
        more,
        ..Wanted::default()
    }
}

fn surging(replicas: i64) -> Wanted {
    Wanted {
        replicas,
        surge: 1,
        unavailable: 0,
        ..small(json!({}))
    }
}

fn template(more: Value) -> Wanted {
    small(json!({"leaderWorkerTemplate": more}))
}

/// These run only with `LWS_FULL=1`.
fn is_full() -> bool {
    std::env::var_os("LWS_FULL").is_some()
}

#[test]
fn a_set_comes_up() {
    crash_everywhere("comes up", Wanted::default(), &[]);
}

#[test]
fn a_set_rolls() {
    crash_everywhere("rolls", small(json!({})), &[image("v2")]);
}

#[test]
fn a_set_scales() {
    crash_everywhere(
        "scales",
        small(json!({})),
        &[scale(3), Deed::Settle, scale(1)],
    );
}

#[test]
fn a_group_is_recreated() {
    crash_everywhere("recreated", Wanted::default(), &[delete_pod("demo-0-1")]);
}

#[test]
fn rollouts_of_other_sets() {
    if !is_full() {
        return;
    }
    crash_everywhere("rolls with surge", surging(2), &[image("v2")]);
    crash_everywhere("rolls alone with surge", surging(1), &[image("v2")]);
    let kept = Wanted {
        replicas: 3,
        partition: 1,
        ..small(json!({}))
    };
    crash_everywhere("rolls to a partition", kept, &[image("v2")]);
    crash_everywhere(
        "rolls there and back",
        small(json!({})),
        &[image("v2"), image("v1")],
    );
    crash_everywhere(
        "rolls on and on",
        small(json!({})),
        &[image("v2"), image("v3")],
    );
    let broken = Wanted {
        image: "broken",
        ..small(json!({}))
    };
    crash_everywhere(
        "rolls to a broken image and away",
        small(json!({})),
        &[image("broken"), Deed::Wait(60), image("v3")],
    );
    crash_everywhere("comes up broken", broken, &[]);
    let [held, flap] = hold_unready("demo-0");
    crash_everywhere(
        "rolls with a group down",
        small(json!({})),
        &[held, flap, image("v2"), Deed::Wait(60), let_go("demo-0")],
    );
    let size = |n: i64| Deed::Edit(json!({"leaderWorkerTemplate": {"size": n}}));
    crash_everywhere(
        "shrinks its groups",
        small(json!({})),
        &[size(1), Deed::Settle, size(3)],
    );
    crash_everywhere(
        "scales while it rolls",
        surging(2),
        &[image("v2"), scale(3)],
    );
}

#[test]
fn incidents_of_other_sets() {
    if !is_full() {
        return;
    }
    let unique = small(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    crash_everywhere("unique subdomains", unique, &[delete_pod("demo-0")]);
    let waits = small(json!({"startupPolicy": "LeaderReady"}));
    crash_everywhere("leader ready", waits, &[force_delete_pod("demo-0-1")]);
    let parallel = small(json!({"podTerminationPolicy": "Parallel"}));
    crash_everywhere("parallel", parallel, &[delete_pod("demo-0")]);
    let budget = template(json!({"maxGroupRestarts": 1}));
    let again = [delete_pod("demo-0-1"), Deed::Settle, delete_pod("demo-0-1")];
    crash_everywhere("budget", budget, &again);
    let backoff = template(json!({"restartBackoff": {"baseSeconds": 20, "capSeconds": 80}}));
    let again = [
        delete_pod("demo-0-1"),
        Deed::Wait(25),
        delete_pod("demo-0-1"),
    ];
    crash_everywhere("back-off", backoff, &again);
    let set = Deed::Delete(key(Kind::StatefulSet, "demo-0"), Cascade::Background, None);
    crash_everywhere("worker set deleted", small(json!({})), &[set]);
    let set = Deed::Delete(key(Kind::StatefulSet, "demo"), Cascade::Orphan, None);
    crash_everywhere("leader set orphaned", small(json!({})), &[set]);
    for cascade in [Cascade::Background, Cascade::Foreground] {
        let end = Deed::Delete(key(Kind::LeaderWorkerSet, "demo"), cascade, None);
        crash_everywhere("set deleted", small(json!({})), &[end]);
    }
    let nothing = small(json!({"replicas": 0}));
    crash_everywhere("from nothing", nothing, &[scale(2), Deed::Settle, scale(0)]);
}
