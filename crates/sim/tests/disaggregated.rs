//! DisaggregatedSets. `LWS_FULL=1` makes twenty thousand random runs, `LWS_SIM_SEEDS=<n>` so many of each kind from `LWS_SIM_FIRST` on.

use lws_sim::disaggregated::rehearsed::{as_rehearsed, rehearsed};
use lws_sim::disaggregated::seeds::{case, rolling, stack};
use lws_sim::disaggregated::stories::{SEEDS, all};
use lws_sim::disaggregated::tables::tables;
use lws_sim::runner::{Plan, Summary, WHYS_OF_ROLES, conclude, run};
use lws_sim::world::{Crash, Point, Setup, World};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn is_full() -> bool {
    number("LWS_FULL").is_some()
}

fn plan(name: &'static str, ci: u64, full: u64) -> Plan {
    let runs = if is_full() { full } else { ci };
    Plan {
        name,
        first: number("LWS_SIM_FIRST").unwrap_or(0),
        runs: number("LWS_SIM_SEEDS").unwrap_or(runs),
        told: is_full(),
        ..Plan::default()
    }
}

fn make(
    plan: Plan,
    case: impl Fn(u64) -> (&'static str, Setup) + Sync,
    judge: impl Fn(u64, &World) -> Result<(), String> + Sync,
) -> Summary {
    let (mut summary, failures) = run(plan, case, judge);
    summary.whys = &WHYS_OF_ROLES;
    conclude(plan.name, (summary, failures))
}

#[test]
fn no_seed_violates_a_property() {
    make(plan("roles", 250, 20_000), case, |_, _| Ok(()));
}

#[test]
fn a_rollout_keeps_what_the_budgets_keep() {
    make(plan("roles-rolling", 100, 2_000), rolling, |_, _| Ok(()));
}

#[test]
fn a_rollout_takes_the_steps_of_its_table() {
    let plan = plan("roles-rehearsed", 100, 1_500);
    let summary = make(plan, rehearsed, as_rehearsed);
    assert!(summary.dips.dips > 0 || summary.runs < 100);
}

#[test]
fn the_whole_stack_rolls() {
    make(plan("roles-stack", 24, 200), stack, |_, _| Ok(()));
}

#[test]
fn the_tables_of_the_rules_are_followed() {
    let tables = tables();
    let count = u64::try_from(tables.len()).unwrap();
    let of = |number: u64| &tables[usize::try_from(number / 2).unwrap()];
    let plan = Plan {
        name: "roles-tables",
        runs: count * 2,
        ..Plan::default()
    };
    make(
        plan,
        |number| (of(number).name, of(number).setup(number)),
        |number, world| of(number).judge(world),
    );
}

#[test]
fn every_story_ends_well() {
    let stories = all();
    let count = u64::try_from(stories.len()).unwrap();
    let of = |number: u64| &stories[usize::try_from(number / SEEDS).unwrap()];
    let plan = Plan {
        name: "roles-stories",
        runs: count * SEEDS,
        ..Plan::default()
    };
    make(
        plan,
        |number| (of(number).name, of(number).under(number % SEEDS)),
        |number, world| (of(number).judge)(world),
    );
}

/// D-10: wherever a process dies in A→B→C, the next one ends where it would have ended.
#[test]
fn a_crash_anywhere_changes_nothing() {
    let stories = all();
    let story = stories
        .iter()
        .find(|story| story.name == "ds_drain_order_lost")
        .unwrap();
    let mut calm = World::new(story.under(0));
    calm.run().unwrap();
    let points = [
        Point::Unsent,
        Point::Sent,
        Point::Committed,
        Point::Answered,
    ];
    let every = if is_full() { 1 } else { 7 };
    let plan = Plan {
        name: "roles-crashes",
        runs: calm.requests * 4 / every,
        ..Plan::default()
    };
    let of = |number: u64| {
        let number = number * every;
        let point = points[usize::try_from(number % 4).unwrap()];
        let crash = Crash {
            request: number / 4,
            point,
            behind: number % 3,
        };
        Setup {
            crash: Some(crash),
            ..story.under(0)
        }
    };
    make(plan, |number| ("crash", of(number)), |_, _| Ok(()));
}
