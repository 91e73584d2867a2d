//! Traces of the conformance tests: only what does not depend on who is faster can be compared with a real cluster, and what is compared shows when a
//! rule of API servers is broken.

use lws_sim::conformance::{Break, Simulated, Trace, differences};

/// Traces that are compared with a real cluster in CI.
const CI: u64 = 50;

/// Where two clusters that are given the same trace part ways.
fn difference(trace: &Trace, mut clusters: [Simulated; 2]) -> Option<String> {
    trace
        .operations
        .iter()
        .enumerate()
        .find_map(|(number, operation)| {
            let [first, second] = clusters.each_mut().map(|cluster| {
                let answer = cluster.make(operation);
                (answer, cluster.rest())
            });
            let lines = match (&first.1, &second.1) {
                (Ok(one), Ok(other)) => differences(one, other).join("\n"),
                (Err(error), _) | (_, Err(error)) => error.clone(),
            };
            let is_same = first.0 == second.0 && lines.is_empty();
            let place = format!("trace {}, {number}. {operation:?}", trace.seed);
            (!is_same).then(|| format!("{place}: {} and {}\n{lines}", first.0, second.0))
        })
}

fn cluster(seed: u64, trace: &Trace) -> Simulated {
    Simulated::new(seed, "ns", trace.is_ours)
}

#[test]
fn outcomes_of_traces_do_not_depend_on_the_order_of_steps() {
    for trace in (0..120).map(Trace::of) {
        let clusters = [1, 2].map(|seed| cluster(seed, &trace));
        let found = difference(&trace, clusters);
        assert!(found.is_none(), "{}", found.unwrap_or_default());
    }
}

#[test]
fn every_broken_rule_shows_in_a_trace() {
    for rule in Break::ALL {
        let found = (0..CI).map(Trace::of).find_map(|trace| {
            difference(
                &trace,
                [cluster(1, &trace), cluster(1, &trace).broken(rule)],
            )
        });
        println!("{rule:?}: {}", found.as_deref().unwrap_or("not noticed"));
        assert!(found.is_some(), "{rule:?}");
    }
}
