//! Every order of what can happen in small clusters, up to a depth (tier 4). `LWS_FULL=1` goes deeper.

use lws_sim::actors::user::{Deed, Wanted, delete_pod, force_delete_pod, image, key, scale};
use lws_sim::exhaustive::{Bound, explore};
use lws_sim::store::{Cascade, Kind};
use lws_sim::world::Setup;
use serde_json::json;

fn explore_all(
    name: &str,
    wanted: Option<Wanted>,
    deeds: &[Deed],
    crashes: u8,
    [ci, full]: [u8; 2],
) {
    let setup = Setup {
        deeds: wanted
            .into_iter()
            .map(|w| Deed::Apply(Box::new(w)))
            .collect(),
        ..Setup::default()
    };
    let is_full = std::env::var_os("LWS_FULL").is_some();
    let bound = Bound {
        depth: if is_full { full } else { ci },
        crashes,
    };
    match explore(&setup, deeds, bound) {
        Ok(explored) => println!("{name}, complete to depth {}: {explored}", bound.depth),
        Err(found) => panic!("{name}: {:?} by {:#?}", found.violation, found.way),
    }
}

fn small(replicas: i64, size: i64) -> Wanted {
    Wanted {
        replicas,
        size,
        ..Wanted::default()
    }
}

fn apply(wanted: Wanted) -> Deed {
    Deed::Apply(Box::new(wanted))
}

#[test]
fn a_set_comes_up() {
    explore_all("comes up", None, &[apply(small(1, 2))], 0, [10, 14]);
    explore_all(
        "comes up, one crash",
        None,
        &[apply(small(1, 2))],
        1,
        [8, 11],
    );
}

#[test]
fn a_set_rolls() {
    let alone = Some(small(2, 1));
    explore_all("rolls", alone, &[image("v2")], 0, [10, 14]);
    let surging = Wanted {
        surge: 1,
        unavailable: 0,
        ..small(1, 1)
    };
    explore_all(
        "rolls with surge",
        Some(surging),
        &[image("v2")],
        1,
        [8, 11],
    );
    let back = [image("v2"), image("v1")];
    explore_all("rolls and back", Some(small(1, 2)), &back, 0, [9, 13]);
}

#[test]
fn a_group_is_recreated() {
    let worker = [force_delete_pod("demo-0-1")];
    explore_all("worker gone", Some(small(1, 2)), &worker, 1, [8, 11]);
    let leader = [delete_pod("demo-0")];
    explore_all("leader ends", Some(small(1, 2)), &leader, 0, [10, 13]);
    let waits = Wanted {
        more: json!({"startupPolicy": "LeaderReady"}),
        ..small(1, 2)
    };
    explore_all("leader ready", Some(waits), &leader, 0, [10, 13]);
}

#[test]
fn a_set_scales_and_ends() {
    let scales = [scale(2), scale(1)];
    explore_all("scales", Some(small(1, 2)), &scales, 0, [9, 12]);
    let set = key(Kind::LeaderWorkerSet, "demo");
    let end = [Deed::Delete(set, Cascade::Foreground, None)];
    explore_all("ends", Some(small(1, 2)), &end, 1, [8, 11]);
}
