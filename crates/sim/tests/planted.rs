//! Every planted bug is caught (tier 11): by the story whose guard it takes out, and by random runs. What fails without the bug as well shows nothing.
#![cfg(feature = "planted")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lws_sim::faults::Faults;
use lws_sim::planted::{Bug, Planted};
use lws_sim::scenarios::{SEEDS, Scenario, all};
use lws_sim::seeds::{case, run};
use lws_sim::world::Setup;

/// What catches a bug in a run that is clean without it.
fn caught(setup: &Setup, bug: Bug, judge: Option<&Scenario>) -> Option<String> {
    let verdict = |planted: Planted| {
        let (world, result) = run(&Setup {
            planted,
            ..setup.clone()
        });
        match (result, judge) {
            (Err(violation), _) => Err(format!("{}: {}", violation.property, violation.text)),
            (Ok(()), Some(scenario)) => (scenario.judge)(&world),
            (Ok(()), None) => Ok(()),
        }
    };
    let found = verdict(Planted::with(bug)).err()?;
    verdict(Planted::default()).ok()?;
    Some(found)
}

fn by_story(scenario: &Scenario, bug: Bug) -> Option<String> {
    (0..SEEDS).find_map(|seed| caught(&scenario.under(seed), bug, Some(scenario)))
}

/// Random runs, most of them with all faults that leave no doubt about who did what, some with many failing pods and no edits. What concerns the
/// election needs one.
fn by_chance(bug: Bug) -> Option<String> {
    let election = matches!(
        bug,
        Bug::WritesOn | Bug::TakesLease | Bug::KeepsLease | Bug::LeavesInHaste
    );
    (0..400).find_map(|seed| {
        let (family, setup) = case(seed);
        let rough = Faults {
            crash: 0,
            lost_answer: 0,
            two_leaders: if election { 10 } else { 0 },
            server_restart: 0,
            clock: 0,
            ..Faults::rough()
        };
        let failing = Faults {
            mishap: 60,
            ..Faults::default()
        };
        let setup = Setup {
            faults: if seed % 4 == 3 { failing } else { rough },
            processes: if election { 2 } else { setup.processes },
            election,
            ..setup
        };
        let found = caught(&setup, bug, None)?;
        Some(format!("seed {seed}, {family}: {found}"))
    })
}

#[test]
fn every_story_fails_without_its_guard() {
    let mut needless = Vec::new();
    for scenario in all() {
        let Some(bug) = scenario.guard else { continue };
        let found = by_story(&scenario, bug);
        println!("{} without {bug:?}: {found:?}", scenario.name);
        if found.is_none() {
            needless.push((scenario.name, bug));
        }
    }
    assert!(needless.is_empty(), "these need no guard: {needless:?}");
}

#[test]
fn every_planted_bug_is_caught() {
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let work = || {
        while let Some(bug) = Bug::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let stories = all();
            let told =
                |story: &Scenario| Some(format!("{}: {}", story.name, by_story(story, *bug)?));
            let (own, others): (Vec<_>, Vec<_>) =
                stories.iter().partition(|story| story.guard == Some(*bug));
            let found = own.into_iter().find_map(told);
            let found = found.or_else(|| by_chance(*bug));
            let found = found.or_else(|| others.into_iter().find_map(told));
            println!("{bug:?}: {}", found.as_deref().unwrap_or("NOT CAUGHT"));
            if found.is_none() {
                missed.lock().unwrap().push(*bug);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner().unwrap();
    println!(
        "{} of {} planted bugs caught",
        Bug::ALL.len() - missed.len(),
        Bug::ALL.len()
    );
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
