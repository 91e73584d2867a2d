//! FAIL-90 … FAIL-97: parallel termination and the replacement gate.

use lws_api::names::{REPLACEMENT_GATE, annotation};
use serde_json::{Value, json};

use super::world::{Done, World, owner};
use crate::intent::{Intent, Kind, Propagation, Why};

#[track_caller]
fn assert_nothing(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

fn group(policy: &str) -> World {
    let mut world = World::new(json!({"podTerminationPolicy": policy}));
    world.group(0);
    world
}

fn hint(world: &mut World, value: &str) {
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::POD_TERMINATION_POLICY: value}}}),
    );
}

#[test]
fn fail_91_lws_api_17_workers_of_a_terminating_leader_end_with_it() {
    let mut world = group("Parallel");
    assert_nothing(&world.run("x-0"));
    world.delete(Kind::Pod, "x-0");
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["delete StatefulSet x-0"]);
    let step = &done.plan.plan.steps[0];
    let Intent::Delete {
        uid, propagation, ..
    } = &step.intent
    else {
        panic!("a delete")
    };
    assert_eq!(
        (uid.as_str(), *propagation, step.why),
        (
            "workers of x-0#1",
            Propagation::Foreground,
            Why::ParallelTermination
        )
    );
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_90_default_leaves_it_to_garbage_collection() {
    let mut world = group("Default");
    hint(&mut world, "Parallel");
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_91_a_worker_set_of_another_leader_is_left_alone() {
    let mut world = group("Parallel");
    world.edit(
        Kind::StatefulSet,
        "x-0",
        json!({"metadata": {"ownerReferences": owner("Pod", "x-0", "another")}}),
    );
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_90_set_gone_the_hint_decides() {
    for (value, parallel) in [("Parallel", true), ("Default", false), ("", false)] {
        let mut world = group("Default");
        hint(&mut world, value);
        world.delete(Kind::Pod, "x-0");
        world.gone(Kind::LeaderWorkerSet, "x");
        assert_eq!(
            world.run("x-0").writes().len(),
            usize::from(parallel),
            "{value}"
        );
    }
}

#[test]
fn fail_30_step_3_set_being_deleted_spec_or_hint() {
    for (policy, value, parallel) in [
        ("Parallel", "", true),
        ("Default", "Parallel", true),
        ("Parallel", "Parallel", true),
        ("Default", "", false),
    ] {
        let mut world = group(policy);
        hint(&mut world, value);
        world.delete(Kind::LeaderWorkerSet, "x");
        assert_nothing(&world.run("x-0"));
        world.delete(Kind::Pod, "x-0");
        assert_eq!(
            world.run("x-0").writes().len(),
            usize::from(parallel),
            "{policy} {value}"
        );
    }
}

#[test]
fn fail_91_not_for_an_exhausted_leader() {
    let mut world = group("Parallel");
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}}}),
    );
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
    hint(&mut world, "Parallel");
    world.gone(Kind::LeaderWorkerSet, "x");
    assert_nothing(&world.run("x-0"));
}

fn gated() -> World {
    let mut world = World::new(json!({}));
    world.group(0);
    world.leader(2, "r", 3);
    world.edit_pod("x-2", json!({"spec": {"nodeName": null, "schedulingGates": [{"name": "theirs"}, {"name": REPLACEMENT_GATE}]}}));
    world
}

#[test]
fn fail_96_gate_4_gate_7_kue_chk_2_lifted_as_soon_as_no_other_pod_has_the_index() {
    let mut world = gated();
    world.delete(Kind::Pod, "x-0");
    let done = world.run("x-2");
    assert_eq!(
        done.writes(),
        ["patch Pod x-2", "create StatefulSet x-2"],
        "groups of other indexes do not matter"
    );
    assert_eq!(
        done.events()[0],
        "GroupReplacementAdmitted: Leader pod x-2 admitted for scheduling"
    );
    assert_eq!(
        world.pod("x-2")["spec"]["schedulingGates"],
        json!([{"name": "theirs"}])
    );
    let Intent::Patch {
        resource_version, ..
    } = &done.plan.plan.steps[0].intent
    else {
        panic!("a patch")
    };
    assert!(resource_version.is_some());
}

#[test]
fn fail_96_gate_5_gate_7_held_while_the_old_group_ends() {
    let mut world = gated();
    world.worker_set(2);
    world.worker(2, 1, "r", 3);
    world.edit_pod(
        "x-2-1",
        json!({"metadata": {"ownerReferences": owner("StatefulSet", "x-2", "older")}}),
    );
    world.delete(Kind::Pod, "x-2-1");
    world.second += 2;
    world.gone(Kind::StatefulSet, "x-2");
    let done = world.run("x-2");
    assert_eq!(done.writes(), Vec::<String>::new());
    assert_eq!(
        done.events(),
        [
            "GroupReplacementDeferred: Leader pod x-2 waits for 1 terminating group(s) to be removed before scheduling"
        ]
    );
    assert_eq!(done.wake_seconds(), Some(10));
    world.gone(Kind::Pod, "x-2-1");
    assert_eq!(
        world.run("x-2").writes(),
        ["patch Pod x-2", "create StatefulSet x-2"]
    );
}

#[test]
fn pod_gate_5_a_stale_gate_list_is_not_written() {
    let mut world = gated();
    let snapshot = world.snapshot("x-2");
    world.edit_pod(
        "x-2",
        json!({"spec": {"schedulingGates": [{"name": REPLACEMENT_GATE}]}}),
    );
    let done = world.run_from(&snapshot, "x-2");
    assert!(done.outcome.conflict && done.events().is_empty());
    world.run("x-2");
    assert_eq!(world.pod("x-2")["spec"]["schedulingGates"], json!([]));
    assert_ne!(world.object(Kind::StatefulSet, "x-2"), None::<&Value>);
}

/// What holds the leader back has the group's index, but none of the names that its workers will have.
#[test]
fn pod_gate_3_a_gated_leader_gets_its_service_and_no_workers() {
    let mut world = World::new(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    world.leader(0, "r", 3);
    world.edit_pod(
        "x-0",
        json!({"spec": {"subdomain": "x-0", "schedulingGates": [{"name": REPLACEMENT_GATE}]}}),
    );
    world.worker_set(0);
    world.worker(0, 7, "r", 3);
    world.second += 2;
    world.gone(Kind::StatefulSet, "x-0");
    assert_eq!(world.run("x-0").writes(), ["create Service x-0"]);
    assert_eq!(world.run("x-0").wake_seconds(), Some(10));
    world.gone(Kind::Pod, "x-0-7");
    assert_eq!(
        world.run("x-0").writes(),
        ["patch Pod x-0", "create StatefulSet x-0"]
    );
}

#[test]
fn pod_gate_7_a_retained_group_of_another_index_holds_nothing_up() {
    let mut world = gated();
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}}}),
    );
    world.delete(Kind::Pod, "x-0");
    assert_eq!(
        world.run("x-2").writes(),
        ["patch Pod x-2", "create StatefulSet x-2"]
    );
}
