//! The table of section 11, and what else keeps a group from counting.

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::label;
use serde_json::{Value, json};

use super::*;
use crate::cache::Change;

/// A child `c` with its leader set, and pods as they come.
struct World {
    cache: Cache,
    child: Lws,
}

fn metadata(name: &str, owner: &str) -> Value {
    json!({"namespace": "ns", "name": name, "uid": format!("{name}-uid"), "resourceVersion": "1", "generation": 3,
        "labels": {label::NAME: "c", label::WORKER_INDEX: "0"},
        "annotations": {annotation::SIZE: "1"},
        "ownerReferences": [{"apiVersion": "v", "kind": "k", "name": owner, "uid": format!("{owner}-uid"), "controller": true}]})
}

impl World {
    /// Wanted groups, and those that the leader set has taken up.
    fn new(replicas: i32, taken: i32) -> Self {
        Self::with(replicas, taken, json!({}), json!({}))
    }

    fn with(replicas: i32, taken: i32, child: Value, leader_set: Value) -> Self {
        let mut set = json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": metadata("c", "ds"), "status": {"observedGeneration": 3},
            "spec": {"replicas": replicas, "leaderWorkerTemplate": {"workerTemplate": {}}}});
        json_patch::merge(&mut set, &child);
        let child: Lws = serde_json::from_value::<LeaderWorkerSet>(set)
            .unwrap()
            .into();
        let mut world = Self {
            cache: Cache::default(),
            child,
        };
        world.add_set("c", "c", taken, taken, leader_set);
        world
    }

    fn add_set(&mut self, name: &str, owner: &str, replicas: i32, available: i32, patch: Value) {
        let mut metadata = metadata(name, owner);
        if name == "c" {
            metadata["uid"] = json!("leaders-uid");
        } else {
            metadata["uid"] = json!(format!("{name}-set-uid"));
        }
        let mut set = json!({"metadata": metadata, "spec": {"replicas": replicas},
            "status": {"observedGeneration": 3, "availableReplicas": available, "replicas": replicas}});
        json_patch::merge(&mut set, &patch);
        let set: apps::StatefulSet = serde_json::from_value(set).unwrap();
        self.cache.apply_stateful_sets(Change::Applied(set.into()));
    }

    fn add_pod(&mut self, name: &str, owner: &str, is_ready: bool, patch: Value) {
        let ready = if is_ready { "True" } else { "False" };
        let mut pod = json!({"metadata": metadata(name, owner), "spec": {"containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        json_patch::merge(&mut pod, &patch);
        let pod: core::Pod = serde_json::from_value(pod).unwrap();
        self.cache.apply_pods(Change::Applied(pod.into()));
    }

    /// Leaders by letter: `R` Ready, `r` not Ready, `T` Ready and terminating.
    fn leaders(mut self, states: &str) -> Self {
        for (index, state) in states.chars().enumerate() {
            let patch = match state {
                'T' => json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                _ => json!({}),
            };
            self.add_pod(&format!("c-{index}"), "leaders", state != 'r', patch);
        }
        self
    }

    fn counts(&self) -> (u32, u32) {
        let seen = observe(&self.child, &self.cache).unwrap();
        (seen.raw(), seen.committed())
    }
}

#[test]
fn dsr_rdy_5_table() {
    for (what, wanted, taken, leaders, counts) in [
        ("at rest", 4, 4, "RRRR", (4, 4)),
        ("lowered, not acknowledged", 3, 4, "RRRR", (4, 0)),
        ("lowered, the last one goes", 3, 3, "RRRT", (4, 3)),
        (
            "lowered, two too many, one not Ready",
            3,
            3,
            "RRRRr",
            (4, 3),
        ),
        ("lowered, a lower one not Ready", 3, 3, "RrRRR", (4, 2)),
        ("growing", 5, 5, "RRr", (2, 2)),
        ("nothing wanted", 0, 0, "TT", (2, 0)),
    ] {
        assert_eq!(
            World::new(wanted, taken).leaders(leaders).counts(),
            counts,
            "{what}"
        );
    }
}

#[test]
fn dsr_rdy_5_every_reason_why_nothing_is_acknowledged() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let behind = json!({"status": {"observedGeneration": 2}});
    for (child, leader_set) in [
        (gone.clone(), json!({})),
        (behind.clone(), json!({})),
        (json!({}), gone),
        (json!({}), behind),
    ] {
        let world = World::with(2, 2, child.clone(), leader_set.clone()).leaders("RR");
        assert_eq!(world.counts(), (2, 0), "{child} {leader_set}");
    }
}

#[test]
fn dsr_rdy_6_fewer_than_the_status_tells_of_is_an_old_view() {
    for (what, wanted, replicas, ready, leaders, is_behind) in [
        ("as told", 3, 3, 3, "RRR", false),
        ("no pod seen yet", 3, 3, 3, "", true),
        ("one seen before it was Ready", 3, 3, 3, "RRr", true),
        ("not told yet", 3, 0, 0, "RRR", false),
        ("lowered since", 2, 3, 3, "RR", false),
        ("lowered to nothing", 0, 3, 3, "", false),
        ("raised since", 5, 3, 2, "R", true),
        ("one too many that may be a Ready one", 3, 4, 3, "RR", false),
    ] {
        let status = json!({"status": {"replicas": replicas, "readyReplicas": ready}});
        let world = World::with(wanted, wanted, status, json!({})).leaders(leaders);
        let seen = observe(&world.child, &world.cache).unwrap();
        assert_eq!(seen.is_behind, is_behind, "{what}");
    }
}

#[test]
fn dsr_rdy_6_a_leader_set_that_is_not_seen_is_an_old_view() {
    let behind = |ready: i32| {
        let mut child = World::new(2, 2).child;
        child.status.replicas = 2;
        child.status.ready_replicas = ready;
        observe(&child, &Cache::default()).unwrap().is_behind
    };
    assert_eq!((behind(0), behind(2)), (false, true));
}

#[test]
fn dsr_rdy_2_what_is_not_owned_does_not_count() {
    let foreign = json!({"metadata": {"ownerReferences": [{"apiVersion": "v", "kind": "k", "name": "x", "uid": "x", "controller": true}]}});
    assert_eq!(
        World::with(2, 2, json!({}), foreign.clone())
            .leaders("RR")
            .counts(),
        (0, 0)
    );
    let mut world = World::new(2, 2).leaders("R");
    world.add_pod("c-1", "leaders", true, foreign);
    assert_eq!(world.counts(), (1, 1));
}

#[test]
fn dsr_rdy_2_a_leader_without_a_size_is_an_error() {
    for size in [json!(null), json!("0"), json!("x")] {
        let mut world = World::new(1, 1);
        world.add_pod(
            "c-0",
            "leaders",
            true,
            json!({"metadata": {"annotations": {annotation::SIZE: size}}}),
        );
        let error = observe(&world.child, &world.cache).unwrap_err();
        assert_eq!(error, "leader pod ns/c-0 has no usable size");
    }
}

/// A group of three with a patch of its worker set, and whether the last worker is Ready.
fn group_of_three(worker_set: Value, is_last_ready: bool) -> World {
    let mut world = World::new(1, 1);
    world.add_pod(
        "c-0",
        "leaders",
        true,
        json!({"metadata": {"annotations": {annotation::SIZE: "3"}}}),
    );
    world.add_set("c-0", "c-0", 2, 2, worker_set);
    for (name, is_ready) in [("c-0-1", true), ("c-0-2", is_last_ready)] {
        world.add_pod(
            name,
            "c-0-set",
            is_ready,
            json!({"metadata": {"labels": {label::WORKER_INDEX: "1"}}}),
        );
    }
    world
}

#[test]
fn dsr_rdy_3_a_group_is_ready_with_all_of_its_workers() {
    assert_eq!(group_of_three(json!({}), true).counts(), (1, 1));
    assert_eq!(group_of_three(json!({}), false).counts(), (0, 0));
    for (patch, counts) in [
        (json!({"spec": {"replicas": 1}}), (0, 0)),
        (json!({"status": {"availableReplicas": 1}}), (0, 0)),
        (
            json!({"status": {"currentRevision": "a", "updateRevision": "b"}}),
            (0, 0),
        ),
        (
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            (1, 0),
        ),
        (json!({"status": {"observedGeneration": 2}}), (1, 0)),
    ] {
        assert_eq!(
            group_of_three(patch.clone(), true).counts(),
            counts,
            "{patch}"
        );
    }
}

#[test]
fn dsr_rdy_5_an_exhausted_group_does_not_stay() {
    let mut world = World::new(1, 1);
    let exhausted =
        json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}}});
    world.add_pod("c-0", "leaders", true, exhausted);
    assert_eq!(world.counts(), (1, 0));
}

#[test]
fn dsr_rol_13_since_when_a_pod_finds_no_place() {
    let waiting = |reason: &str, phase: &str, patch: Value| {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut pod = json!({"status": {"phase": phase, "conditions": [condition]}});
        json_patch::merge(&mut pod, &patch);
        let mut world = World::new(1, 1);
        world.add_pod("c-0", "leaders", false, pod);
        observe(&world.child, &world.cache)
            .unwrap()
            .unschedulable_since
            .is_some()
    };
    assert!(waiting("Unschedulable", "Pending", json!({})));
    assert!(!waiting("SchedulingGated", "Pending", json!({})));
    assert!(!waiting("Unschedulable", "Running", json!({})));
    assert!(!waiting(
        "Unschedulable",
        "Pending",
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    ));
}

#[test]
fn dsr_srl_4_a_group_belongs_to_the_sub_role_that_all_of_its_pods_name() {
    let world = |leader: &str, workers: [&str; 2]| {
        let mut world = group_of_three(json!({}), true);
        for (name, owner, sub_role) in [
            ("c-0", "leaders", leader),
            ("c-0-1", "c-0-set", workers[0]),
            ("c-0-2", "c-0-set", workers[1]),
        ] {
            let index = if name == "c-0" { "0" } else { "1" };
            let patch = json!({"metadata": {
                "annotations": {annotation::SIZE: "3"},
                "labels": {ds_label::SUBROLE: sub_role, label::WORKER_INDEX: index},
            }});
            world.add_pod(name, owner, true, patch);
        }
        let seen = observe(&world.child, &world.cache).unwrap();
        seen.groups[0].sub_role().map(str::to_owned)
    };
    assert_eq!(world("a", ["a", "a"]).as_deref(), Some("a"));
    assert_eq!(world("a", ["a", "b"]), None);
    assert_eq!(world("", ["", ""]), None);
}

/// A child with Hash identity whose Deployment wants `replicas`, and ReplicaSets with the groups that each wants.
fn hash(replicas: i32, deployment: Value, sets: &[(&str, i32)]) -> World {
    let identity = json!({"spec": {"groupIdentity": "Hash"}});
    let mut world = World::with(replicas, replicas, identity, json!({}));
    let mut object = json!({"metadata": metadata("c", "c"),
        "spec": {"replicas": replicas, "selector": {}, "template": {}}, "status": {"observedGeneration": 3}});
    object["metadata"]["uid"] = json!("deployment-uid");
    json_patch::merge(&mut object, &deployment);
    let deployment: apps::Deployment = serde_json::from_value(object).unwrap();
    let change = Change::Applied(deployment.into());
    world.cache.apply_deployments(change);
    for (name, replicas) in sets {
        world.add_replica_set(name, *replicas, json!({}));
    }
    world
}

impl World {
    fn add_replica_set(&mut self, name: &str, replicas: i32, patch: Value) {
        let mut object = json!({"metadata": metadata(name, "deployment"), "spec": {"replicas": replicas, "selector": {}},
            "status": {"observedGeneration": 3, "replicas": replicas}});
        json_patch::merge(&mut object, &patch);
        let set: apps::ReplicaSet = serde_json::from_value(object).unwrap();
        self.cache.apply_replica_sets(Change::Applied(set.into()));
    }

    /// Leaders of a ReplicaSet by letter: `F` has failed, the others are as for [`World::leaders`].
    fn leaders_of(mut self, set: &str, states: &str) -> Self {
        for (index, state) in states.chars().enumerate() {
            let patch = match state {
                'T' => json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                'F' => json!({"status": {"phase": "Failed"}}),
                _ => json!({}),
            };
            let is_ready = !matches!(state, 'r' | 'F');
            self.add_pod(&format!("{set}-{index}"), set, is_ready, patch);
        }
        self
    }
}

#[test]
fn dsr_rdy_5_hash_groups_count_by_replica_set() {
    for (what, replicas, sets, counts) in [
        ("at rest", 3, vec![("c-a", 3, "RRR")], (3, 3)),
        ("one is not Ready", 3, vec![("c-a", 3, "RRr")], (2, 2)),
        ("one too many", 2, vec![("c-a", 2, "RRR")], (3, 2)),
        (
            "too many, one not Ready",
            2,
            vec![("c-a", 2, "RRr")],
            (2, 1),
        ),
        ("one is going", 2, vec![("c-a", 2, "RRT")], (3, 2)),
        ("one is over", 2, vec![("c-a", 2, "RRF")], (2, 2)),
        (
            "two templates",
            3,
            vec![("c-a", 1, "RR"), ("c-b", 2, "Rr")],
            (3, 2),
        ),
        ("not acknowledged", 2, vec![("c-a", 3, "RRR")], (3, 0)),
    ] {
        let sizes: Vec<_> = sets.iter().map(|(set, size, _)| (*set, *size)).collect();
        let mut world = hash(replicas, json!({}), &sizes);
        for (set, _, states) in sets {
            world = world.leaders_of(set, states);
        }
        assert_eq!(world.counts(), counts, "{what}");
    }
}

#[test]
fn dsr_rdy_5_every_reason_why_hash_groups_are_not_acknowledged() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let behind = json!({"status": {"observedGeneration": 2}});
    let fewer = json!({"spec": {"replicas": 1}});
    for deployment in [gone, behind.clone(), fewer] {
        let world = hash(2, deployment.clone(), &[("c-a", 2)]).leaders_of("c-a", "RR");
        assert_eq!(world.counts(), (2, 0), "{deployment}");
    }
    let mut world = hash(2, json!({}), &[]);
    world.add_replica_set("c-a", 2, behind);
    assert_eq!(world.leaders_of("c-a", "RR").counts(), (2, 0));
}

#[test]
fn dsr_rdy_2_hash_groups_of_others_do_not_count() {
    let foreign = json!({"metadata": {"ownerReferences": [{"apiVersion": "v", "kind": "k", "name": "x", "uid": "x", "controller": true}]}});
    let world = hash(1, foreign.clone(), &[("c-a", 1)]).leaders_of("c-a", "R");
    assert_eq!(world.counts(), (0, 0));
    let mut world = hash(1, json!({}), &[("c-a", 1)]);
    world.add_replica_set("c-b", 1, foreign);
    let world = world.leaders_of("c-a", "R").leaders_of("c-b", "R");
    assert_eq!(world.counts(), (1, 1));
}
