//! What users of such controllers have reported, each as a scenario under many interleavings (section 3 of the test program).

use lws_sim::actors::user::{Deed, Wanted, delete_pod, force_delete_pod, image, key, scale};
use lws_sim::actors::{controller, uid};
use lws_sim::faults::Faults;
use lws_sim::seeds::{Summary, check};
use lws_sim::store::{Cascade, Kind};
use lws_sim::world::{Setup, World};
use serde_json::json;

/// Runs a scenario under twelve seeds: half of them undisturbed, half with lagging and broken watches.
fn scenario(wanted: Wanted, deeds: &[Deed], judge: impl Fn(&World)) {
    for seed in 0..12 {
        let mut all = vec![Deed::Apply(Box::new(wanted.clone())), Deed::Settle];
        all.extend(deeds.iter().cloned());
        let is_calm = seed % 2 == 0;
        let lag = Faults {
            lag: 20,
            cut: 5,
            coalesce: 300,
            ..Faults::default()
        };
        let setup = Setup {
            seed,
            deeds: all,
            faults: if is_calm { Faults::default() } else { lag },
            fault_steps: if is_calm { 0 } else { 1500 },
            gate: seed % 4 < 2,
            ..Setup::default()
        };
        match check("scenario", &setup, &mut Summary::default()) {
            Ok(world) => judge(&world),
            Err(failed) => panic!("seed {seed}: {failed}"),
        }
    }
}

fn ends(world: &World, pod: &str) -> u32 {
    world.facts.pod_ends.get(pod).copied().unwrap_or(0)
}

#[test]
fn worker_back_before_we_look() {
    scenario(
        Wanted::default(),
        &[force_delete_pod("demo-0-1")],
        |world| {
            assert_eq!(ends(world, "demo-0"), 1, "the group is recreated once");
            assert_eq!(ends(world, "demo-1"), 0, "S-5");
        },
    );
}

#[test]
fn leader_recreated_twice() {
    scenario(Wanted::default(), &[delete_pod("demo-0")], |world| {
        assert_eq!(ends(world, "demo-0"), 1, "no second time for old workers");
        assert_eq!(ends(world, "demo-1"), 0, "S-5");
    });
}

#[test]
fn leader_deleted_with_force_while_its_workers_run() {
    scenario(Wanted::default(), &[force_delete_pod("demo-0")], |world| {
        assert_eq!(ends(world, "demo-0"), 1);
    });
}

#[test]
fn workers_taken_for_leaders() {
    scenario(Wanted::default(), &[delete_pod("demo-1-1")], |world| {
        assert_eq!(world.store.list(Kind::StatefulSet).count(), 3, "S-4");
    });
}

#[test]
fn all_old_unready() {
    let broken = Wanted {
        image: "broken",
        ..Wanted::default()
    };
    for surge in [0, 1] {
        let wanted = Wanted {
            surge,
            ..broken.clone()
        };
        let setup = Setup {
            deeds: vec![Deed::Apply(Box::new(wanted)), Deed::Settle, image("v2")],
            ..Setup::default()
        };
        check("scenario", &setup, &mut Summary::default()).unwrap_or_else(|f| panic!("{f}"));
    }
}

#[test]
fn single_replica_surge() {
    let wanted = Wanted {
        replicas: 1,
        surge: 1,
        unavailable: 0,
        ..Wanted::default()
    };
    scenario(wanted, &[image("v2")], |world| {
        assert_eq!(ends(world, "demo-0"), 1);
    });
}

#[test]
fn two_replicas_one_down() {
    let deeds = [
        Deed::Patch(
            key(Kind::Pod, "demo-0"),
            json!({"metadata": {"labels": {"seen": "yes"}}}),
        ),
        image("v2"),
    ];
    scenario(Wanted::default(), &deeds, |world| {
        assert_eq!(ends(world, "demo-0"), 1);
        assert_eq!(ends(world, "demo-1"), 1);
    });
}

#[test]
fn surge_reclaimed_early() {
    let wanted = Wanted {
        surge: 1,
        unavailable: 0,
        ..Wanted::default()
    };
    scenario(wanted, &[image("v2")], |world| {
        assert_eq!(ends(world, "demo-2"), 1, "one surge group, once");
    });
}

#[test]
fn terminating_name_taken() {
    let wanted = Wanted {
        replicas: 3,
        ..Wanted::default()
    };
    scenario(wanted, &[image("v2"), Deed::Settle, image("v1")], |world| {
        assert_eq!(ends(world, "demo-0-1"), 2);
    });
}

#[test]
fn a_new_template_in_the_middle_of_a_rollout_and_back() {
    scenario(Wanted::default(), &[image("v2"), image("v1")], |_| {});
    scenario(
        Wanted::default(),
        &[image("v2"), image("v3"), scale(3)],
        |_| {},
    );
}

#[test]
fn scale_to_zero_and_back_and_delete() {
    let set = key(Kind::LeaderWorkerSet, "demo");
    let deeds = [
        scale(0),
        Deed::Settle,
        scale(3),
        Deed::Settle,
        Deed::Delete(set, Cascade::Foreground, None),
    ];
    scenario(Wanted::default(), &deeds, |world| {
        assert_eq!(world.store.list(Kind::Pod).count(), 0, "L-5");
    });
}

#[test]
fn size_crosses_one() {
    let size = |n: i64| Deed::Edit(json!({"leaderWorkerTemplate": {"size": n}}));
    scenario(Wanted::default(), &[size(1), Deed::Settle, size(2)], |_| {});
}

#[test]
fn an_orphaned_leader_set_is_made_anew_and_nothing_restarts() {
    let leader_set = key(Kind::StatefulSet, "demo");
    let deeds = [Deed::Delete(leader_set, Cascade::Orphan, None)];
    scenario(Wanted::default(), &deeds, |world| {
        assert_eq!(world.pod_ends(), 0);
    });
}

#[test]
fn a_foreign_stateful_set_under_our_name_is_left_alone_until_it_goes() {
    let foreign = key(Kind::StatefulSet, "demo-0");
    let body = json!({"metadata": {"labels": {"app": "other"}},
        "spec": {"replicas": 0, "serviceName": "x", "selector": {"matchLabels": {"app": "other"}}, "template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": []}}}});
    for seed in 0..6 {
        let setup = Setup {
            seed,
            deeds: vec![
                Deed::Create(foreign.clone(), body.clone()),
                Deed::Apply(Box::default()),
                Deed::Wait(120),
                Deed::Delete(foreign.clone(), Cascade::Background, None),
            ],
            ..Setup::default()
        };
        let world = check("scenario", &setup, &mut Summary::default())
            .unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        let set = world.store.get(&foreign).unwrap();
        let leader = world.store.get(&key(Kind::Pod, "demo-0")).unwrap();
        assert_eq!(controller(set).unwrap()["uid"], uid(leader), "L-9");
    }
}
