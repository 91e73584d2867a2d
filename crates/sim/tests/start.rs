//! From nothing to serving, and then silence.

use lws_sim::actors::user::{Deed, Wanted};
use lws_sim::runner::Summary;
use lws_sim::seeds::check;
use lws_sim::store::Kind;
use lws_sim::world::Setup;

fn apply(wanted: Wanted) -> Setup {
    Setup {
        deeds: vec![Deed::Apply(Box::new(wanted))],
        ..Setup::default()
    }
}

#[test]
fn two_groups_of_three_become_available_and_then_nothing_is_written() {
    for seed in 0..20 {
        let setup = Setup {
            seed,
            ..apply(Wanted::default())
        };
        let world =
            check("plain", &setup, &mut Summary::default()).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(world.store.list(Kind::Pod).count(), 6);
        assert!(
            world.facts.writes <= 6 + 2 * 4 + 6,
            "S-20: {} writes",
            world.facts.writes
        );
        assert_eq!(world.pod_ends(), 0);
    }
}
