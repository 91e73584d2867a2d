//! Random runs. `LWS_SIM_SEEDS=<n>` makes so many from `LWS_SIM_FIRST` on, `LWS_SIM_MINUTES=<n>` as many as fit, `LWS_FULL=1` twenty thousand.

use std::time::Duration;

use lws_sim::actors::user::{Deed, image};
use lws_sim::faults::Faults;
use lws_sim::runner::{Plan, conclude, run};
use lws_sim::seeds::case;
use lws_sim::world::{Setup, World};

const CI: u64 = 2_000;
const FULL: u64 = 20_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn runs(ci: u64, full: u64) -> u64 {
    if number("LWS_FULL").is_some() {
        full
    } else {
        ci
    }
}

#[test]
fn no_seed_violates_a_property() {
    let minutes = number("LWS_SIM_MINUTES");
    let plan = Plan {
        name: "seeds",
        first: number("LWS_SIM_FIRST").unwrap_or(0),
        runs: match minutes {
            Some(_) => u64::MAX,
            None => number("LWS_SIM_SEEDS").unwrap_or_else(|| runs(CI, FULL)),
        },
        limit: minutes.map(|minutes| Duration::from_secs(60 * minutes)),
        told: minutes.is_some() || number("LWS_FULL").is_some(),
    };
    conclude("seeds", run(plan, case, |_, _| Ok(())));
}

/// A rollout of N groups ends N leaders, and a surge group once, however bad our view is and whatever becomes of our writes.
#[test]
fn a_rollout_ends_every_leader_once() {
    let plan = Plan {
        name: "rollouts",
        runs: runs(200, 2_000),
        ..Plan::default()
    };
    let outcome = run(plan, rolling, |_, world| ends_once(world));
    conclude("rollouts", outcome);
}

fn rolling(seed: u64) -> (&'static str, Setup) {
    let (family, mut setup) = case(seed);
    setup.deeds.extend([Deed::Wait(2), image("v2")]);
    let setup = Setup {
        faults: Faults::view(),
        ..setup
    };
    (family, setup)
}

fn ends_once(world: &World) -> Result<(), String> {
    let leaders = world.facts.pod_ends.iter();
    let twice = leaders
        .filter(|(name, _)| name.matches('-').count() == 1)
        .find(|(_, ends)| **ends > 1);
    twice.map_or(Ok(()), |(name, ends)| {
        Err(format!("{name} ended {ends} times"))
    })
}
