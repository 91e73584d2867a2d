//! Stories that users of such controllers have told (section 3 of the test program), under many interleavings.

use lws_sim::runner::{Plan, conclude, run};
use lws_sim::scenarios::{SEEDS, all};

#[test]
fn every_story_ends_well() {
    let scenarios = all();
    let count = u64::try_from(scenarios.len()).unwrap();
    let of = |number: u64| &scenarios[usize::try_from(number / SEEDS).unwrap()];
    let plan = Plan {
        name: "stories",
        runs: count * SEEDS,
        ..Plan::default()
    };
    let outcome = run(
        plan,
        |number| (of(number).name, of(number).under(number % SEEDS)),
        |number, world| (of(number).judge)(world),
    );
    conclude(&format!("{count} scenarios"), outcome);
}
