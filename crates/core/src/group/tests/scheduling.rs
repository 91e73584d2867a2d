//! NAT-47 … NAT-51: PodGroups of a group, its gate, and workers that do not join.

use lws_api::names::{REPLACEMENT_GATE, annotation, label};
use serde_json::{Value, json};

use super::world::{REVISION, World, owner};
use crate::admission::fixture::native;
use crate::admission::{Environment, ServedKinds};
use crate::intent::Kind;

const WORKLOAD: &str = "w";
const GROUP: &str = "w.x7k2p-0-r";

/// A set that asks for `scheduling`, its Workload, and a gated leader of group 0 as admission leaves it.
fn asked(scheduling: Value, template: Value) -> World {
    let mut world = World::new(json!({"scheduling": scheduling}));
    world.cache.set_environment(native());
    world.put(
        Kind::Workload,
        json!({
            "metadata": {"name": WORKLOAD, "uid": "workload", "ownerReferences": owner("LeaderWorkerSet", "x", "set")},
            "spec": {
                "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "x"},
                "podGroupTemplates": template,
            },
        }),
    );
    world.leader(0, REVISION, 3);
    world.edit_pod(
        "x-0",
        json!({
            "metadata": {"annotations": {
                annotation::WORKLOAD_AWARE_SCHEDULING: "replica", annotation::WORKLOAD_NAME: "w.x7k2p",
            }},
            "spec": {
                "nodeName": null, "schedulingGates": [{"name": REPLACEMENT_GATE}],
                "schedulingGroup": {"podGroupName": GROUP},
            },
            "status": {"phase": "Pending", "conditions": null},
        }),
    );
    world
}

fn replica() -> World {
    asked(
        json!({}),
        json!([{"name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}}]),
    )
}

#[test]
fn pod_pt_16_gang_nat_47_nat_48_nat_49_pod_group_then_gate_then_workers() {
    let mut world = replica();
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        [
            "create PodGroup w.x7k2p-0-r",
            "patch Pod x-0",
            "create StatefulSet x-0"
        ]
    );
    let group = world.object(Kind::PodGroup, GROUP).expect("a group");
    assert_eq!(
        group["spec"]["schedulingPolicy"],
        json!({"gang": {"minCount": 3}})
    );
    assert_eq!(group["metadata"]["labels"][label::GROUP_INDEX], "0");
    let workers = world.object(Kind::StatefulSet, "x-0").expect("workers");
    let annotations = &workers["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations[annotation::WORKLOAD_NAME], "w.x7k2p");
    assert_eq!(
        annotations[annotation::WORKLOAD_AWARE_SCHEDULING],
        "replica"
    );
    assert!(world.run("x-0").writes().is_empty());
}

#[test]
fn gang_nat_48_pod_gate_4_the_pod_group_comes_while_the_gate_is_held() {
    let mut world = replica();
    world.put(
        Kind::Pod,
        json!({
            "metadata": {"name": "x-0-2", "uid": "old", "labels":
                {label::NAME: "x", label::WORKER_INDEX: "2", label::GROUP_INDEX: "0"}},
            "spec": {"containers": []}, "status": {"phase": "Running"},
        }),
    );
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["create PodGroup w.x7k2p-0-r"]);
    assert_eq!(done.wake_seconds(), Some(10));
    world.gone(Kind::Pod, "x-0-2");
    assert_eq!(
        world.run("x-0").writes(),
        ["patch Pod x-0", "create StatefulSet x-0"]
    );
}

#[test]
fn gang_nat_47_a_group_of_an_older_size_keeps_its_own_count() {
    let mut world = replica();
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 5}}));
    world.edit(
        Kind::Workload,
        WORKLOAD,
        json!({"spec": {"podGroupTemplates": [{"name": "replica", "schedulingPolicy": {"gang": {"minCount": 5}}}]}}),
    );
    world.run("x-0");
    let group = world.object(Kind::PodGroup, GROUP).expect("a group");
    assert_eq!(
        group["spec"]["schedulingPolicy"],
        json!({"gang": {"minCount": 3}})
    );
}

#[test]
fn gang_nat_51_a_missing_workload_is_waited_for() {
    let mut world = replica();
    world.gone(Kind::Workload, WORKLOAD);
    let done = world.run("x-0");
    assert_eq!(done.writes(), [""; 0]);
    assert_eq!(
        done.errors(),
        ["the Workload of the set does not exist yet"]
    );
    assert_eq!(done.events(), [""; 0]);
}

#[test]
fn gang_nat_30_nat_41_nat_59_nat_60_a_group_that_cannot_be_a_gang_gets_no_place() {
    let unserved = Environment {
        served: ServedKinds::default(),
        ..native()
    };
    let with = |environment| {
        let mut world = replica();
        world.cache.set_environment(environment);
        world
    };
    let mut dropped_by_pod = replica();
    dropped_by_pod.edit_pod("x-0", json!({"spec": {"schedulingGroup": null}}));
    let dropped_by_workload = asked(
        json!({"replica": {"schedulingConstraints": {"topology": [{"key": "rack"}]}}}),
        json!([{"name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}}]),
    );
    let mut terminating = replica();
    terminating.run("x-0");
    terminating.delete(Kind::PodGroup, GROUP);
    for (mut world, reason) in [
        (
            with(Environment::default()),
            "UnsupportedProviderCapability",
        ),
        (with(unserved), "APINotAvailable"),
        (dropped_by_pod, "APINotAvailable"),
        (dropped_by_workload, "InvalidSchedulingConfiguration"),
        (terminating, "PodGroupCleanupBlocked"),
    ] {
        let done = world.run("x-0");
        assert_eq!(done.writes(), [""; 0], "{reason}");
        assert_eq!(done.errors().len(), 1, "{reason}");
        let events = done.events();
        assert!(events[0].starts_with(reason), "{reason}: {events:?}");
    }
}

/// A group whose worker set was made for the plain name of the Workload.
fn split(node: &str) -> World {
    let mut world = replica();
    world.run("x-0");
    world.gone(Kind::StatefulSet, "x-0");
    world.worker_set(0);
    let template = json!({"metadata": {"annotations": {annotation::WORKLOAD_NAME: WORKLOAD}}});
    world.edit(
        Kind::StatefulSet,
        "x-0",
        json!({"spec": {"template": template}}),
    );
    world.worker(0, 1, REVISION, 3);
    world.edit_pod("x-0-1", json!({"spec": {"nodeName": node}}));
    world
}

#[test]
fn fail_98_gang_nat_50_a_group_whose_workers_do_not_join_starts_over() {
    let mut world = split("");
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["delete Pod x-0"]);
    assert_eq!(
        done.events(),
        [
            "RecreateGroup: Worker statefulset x-0 was created by a previous LWS version and its workers do not join the PodGroups of leader pod x-0, deleted the leader pod to recreate group 0"
        ]
    );
    assert!(
        split("n").run("x-0").writes().is_empty(),
        "a worker has a place"
    );
    let mut whole = replica();
    whole.run("x-0");
    assert!(whole.run("x-0").writes().is_empty());
}
