//! Every planted bug is caught (tier 11): by the story whose guard it takes out, and by random runs. What fails without the bug as well shows nothing.
#![cfg(feature = "planted")]

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

/// Random runs, most of them with all faults that leave no doubt about who did what, some with many failing pods and no edits.
fn by_chance(bug: Bug) -> Option<String> {
    (0..400).find_map(|seed| {
        let (family, setup) = case(seed);
        let rough = Faults {
            crash: 0,
            lost_answer: 0,
            two_leaders: 0,
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
            ..setup
        };
        let found = caught(&setup, bug, None)?;
        Some(format!("seed {seed}, {family}: {found}"))
    })
}

#[test]
fn every_story_fails_without_its_guard() {
    for scenario in all() {
        let Some(bug) = scenario.guard else { continue };
        let found = by_story(&scenario, bug);
        println!("{} without {bug:?}: {found:?}", scenario.name);
        assert!(found.is_some(), "{} does not need {bug:?}", scenario.name);
    }
}

#[test]
fn every_planted_bug_is_caught() {
    let is_full = std::env::var_os("LWS_FULL").is_some();
    let bugs: Vec<Bug> = if is_full {
        Bug::ALL.to_vec()
    } else {
        Bug::ALL.iter().copied().step_by(4).collect()
    };
    let next = AtomicUsize::new(0);
    let missed = std::sync::Mutex::new(Vec::new());
    let work = || {
        while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let stories = all();
            let found = by_chance(*bug).or_else(|| {
                let mut of_bug = stories.iter().filter(|s| s.guard == Some(*bug));
                of_bug.find_map(|s| Some(format!("{}: {}", s.name, by_story(s, *bug)?)))
            });
            println!("{bug:?}: {}", found.as_deref().unwrap_or("NOT CAUGHT"));
            if found.is_none() {
                missed.lock().unwrap().push(*bug);
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner().unwrap();
    println!(
        "{} of {} planted bugs caught",
        bugs.len() - missed.len(),
        bugs.len()
    );
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
