//! Traces of the conformance tests: only what does not depend on who is faster can be compared with a real cluster.

use lws_sim::conformance::{Simulated, Trace, differences};

#[test]
fn outcomes_of_traces_do_not_depend_on_the_order_of_steps() {
    for trace in (0..120).map(Trace::of) {
        let mut clusters = [1, 2].map(|seed| Simulated::new(seed, "ns", trace.is_ours));
        for (number, operation) in trace.operations.iter().enumerate() {
            let [first, second] = clusters.each_mut().map(|cluster| {
                let answer = cluster.make(operation);
                let view = cluster.rest();
                let view = view.unwrap_or_else(|error| panic!("trace {}: {error}", trace.seed));
                (answer, view)
            });
            let lines = differences(&first.1, &second.1).join("\n");
            let place = format!("trace {}, {number}. {operation:?}", trace.seed);
            assert_eq!(first.0, second.0, "{place}");
            assert!(lines.is_empty(), "{place}\n{lines}");
        }
    }
}
