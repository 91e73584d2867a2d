//! Random runs. `LWS_SIM_SEED=<n>` replays one (with `LWS_SIM_TRACE=1` every step of it), `LWS_SIM_SEEDS=<n>` runs so many, `LWS_FULL=1` runs ten thousand.

use std::time::Instant;

use lws_sim::seeds::{Summary, case, check};

const CI: u64 = 600;
const FULL: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_seed_violates_a_property() {
    let seeds: Vec<u64> = match number("LWS_SIM_SEED") {
        Some(seed) => vec![seed],
        None => {
            let full = if number("LWS_FULL").is_some() {
                FULL
            } else {
                CI
            };
            (0..number("LWS_SIM_SEEDS").unwrap_or(full)).collect()
        }
    };
    let started = Instant::now();
    let mut summary = Summary::default();
    let mut failures = Vec::new();
    for seed in &seeds {
        let (family, mut setup) = case(*seed);
        setup.trace = number("LWS_SIM_TRACE").is_some();
        if let Err(failed) = check(family, &setup, &mut summary) {
            failures.push(failed);
            if failures.len() == 5 {
                break;
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64().max(0.001);
    println!(
        "{} runs, {} steps, {} writes of ours, {:.0} runs/s; faults met: {:?}",
        summary.runs,
        summary.steps,
        summary.writes,
        summary.runs as f64 / seconds,
        summary.coverage
    );
    for failed in &failures {
        println!("---\n{failed}");
    }
    assert!(failures.is_empty(), "{} seeds failed", failures.len());
}
