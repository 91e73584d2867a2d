//! Every planted bug is caught by random runs (tier 11).
#![cfg(feature = "planted")]

use lws_sim::faults::Faults;
use lws_sim::planted::{Bug, Planted};
use lws_sim::seeds::{case, run};
use lws_sim::world::Setup;

/// The property that catches the bug, and the seed.
fn caught(bug: Bug) -> Option<(u64, &'static str)> {
    (0..400).find_map(|seed| {
        let (_, setup) = case(seed);
        let setup = Setup {
            planted: Planted::with(bug),
            faults: Faults {
                crash: 0,
                lost_answer: 0,
                two_leaders: 0,
                ..Faults::rough()
            },
            ..setup
        };
        let violation = run(&setup).1.err()?;
        let sound = Setup {
            planted: Planted::default(),
            ..setup
        };
        // What fails without the bug as well shows nothing about it.
        run(&sound).1.ok()?;
        Some((seed, violation.property))
    })
}

#[test]
fn every_planted_bug_is_caught() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        match caught(bug) {
            Some((seed, property)) => println!("{bug:?}: {property}, seed {seed}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
