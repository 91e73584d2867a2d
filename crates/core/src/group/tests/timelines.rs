//! TL-1 … TL-14, step by step, each on the snapshot that its moment gives.

use lws_api::names::annotation;
use serde_json::{Value, json};

use super::world::{Done, World};
use crate::intent::Kind;

fn template(template: Value) -> World {
    World::new(json!({"leaderWorkerTemplate": template}))
}

#[track_caller]
fn assert_quiet(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

/// The old group is gone and its leader is back; the worker set is made by the run, the workers by the StatefulSet controller.
fn restarted_group(world: &mut World, index: u32) {
    world.end_group(index);
    world.leader(index, "r", 3);
    let leader = format!("x-{index}");
    assert_eq!(
        world.run(&leader).writes(),
        [format!("create StatefulSet {leader}")]
    );
    for ordinal in [1, 2] {
        world.worker(index, ordinal, "r", 3);
    }
}

#[test]
fn fail_tl_1_worker_deleted() {
    let mut world = template(json!({}));
    world.group(0);
    world.group(1);
    world.delete(Kind::Pod, "x-0-1");
    let done = world.run("x-0");
    assert_eq!(
        done.events(),
        [
            "RecreateGroup: Worker pod x-0-1 failed, deleted leader pod x-0 to recreate group 0: Deleted on node n"
        ]
    );
    assert!(world.is_terminating(Kind::Pod, "x-0"));
    world.delete(Kind::StatefulSet, "x-0");
    world.delete(Kind::Pod, "x-0-2");
    world.gone(Kind::Pod, "x-0-1");
    assert_quiet(&world.run("x-0"));
    assert_eq!(
        world.snapshot("x-0").tombstones,
        [],
        "the leader terminates"
    );
    restarted_group(&mut world, 0);
    assert_quiet(&world.run("x-0"));
    assert_quiet(&world.run("x-1"));
}

#[test]
fn fail_tl_2_force_deleted_and_replaced_before_anyone_looked() {
    let mut world = template(json!({}));
    world.group(0);
    world.gone(Kind::Pod, "x-0-1");
    world.worker(0, 1, "r", 3);
    assert_eq!(world.run("x-0").events().len(), 1);
    assert!(world.is_terminating(Kind::Pod, "x-0"));
    assert_quiet(&world.run("x-0"));
}

#[test]
fn fail_tl_3_container_restart() {
    let mut world = template(json!({}));
    world.group(1);
    world.restart("x-1-2");
    assert_eq!(world.run("x-1").writes(), ["delete Pod x-1"]);
    for _ in 0..3 {
        assert_quiet(&world.run("x-1"));
    }
    restarted_group(&mut world, 1);
    assert_quiet(&world.run("x-1"));
}

#[test]
fn fail_tl_4_leader_deleted_by_somebody() {
    for policy in ["Default", "Parallel"] {
        let mut world = World::new(json!({"podTerminationPolicy": policy}));
        world.group(0);
        world.delete(Kind::Pod, "x-0");
        let done = world.run("x-0");
        assert_eq!(done.events(), Vec::<String>::new());
        assert_eq!(done.writes().len(), usize::from(policy == "Parallel"));
        // The leader is gone and back before its workers are collected.
        world.gone(Kind::Pod, "x-0");
        world.leader(0, "r", 3);
        world.delete(Kind::StatefulSet, "x-0");
        for worker in ["x-0-1", "x-0-2"] {
            world.delete(Kind::Pod, worker);
        }
        let done = world.run("x-0");
        assert_quiet(&done);
        assert_eq!(done.wake_seconds(), Some(1));
        world.gone(Kind::StatefulSet, "x-0");
        world.gone(Kind::Pod, "x-0-1");
        assert_quiet(&world.run("x-0"));
        world.gone(Kind::Pod, "x-0-2");
        assert_eq!(world.run("x-0").writes(), ["create StatefulSet x-0"]);
    }
}

#[test]
fn fail_tl_5_after_start() {
    let mut world = template(json!({"restartPolicy": "RecreateGroupAfterStart"}));
    world.group(0);
    world.edit_pod("x-0-2", json!({"status": {"phase": "Pending"}}));
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert_quiet(&done);
    assert_eq!(done.wake_seconds(), Some(10));
    world.edit_pod("x-0-2", json!({"status": {"phase": "Running"}}));
    world.second = 10;
    assert_eq!(world.run("x-0").writes(), ["delete Pod x-0"]);
}

#[test]
fn fail_tl_6_rollout_replaces_the_leader() {
    let mut world = template(json!({}));
    world.group(1);
    world.revision("r2", 2);
    world.leader_set(2, "r2");
    world.delete(Kind::Pod, "x-1");
    assert_quiet(&world.run("x-1"));
    world.gone(Kind::Pod, "x-1");
    world.leader(1, "r2", 3);
    world.delete(Kind::Pod, "x-1-1");
    world.restart("x-1-2");
    assert_quiet(&world.run("x-1"));
    world.gone(Kind::Pod, "x-1-1");
    assert_quiet(&world.run("x-1"));
}

#[test]
fn fail_tl_7_budget_of_two() {
    let mut world = template(json!({"maxGroupRestarts": 2}));
    world.group(0);
    for count in [1, 2] {
        world.restart("x-0-1");
        assert_eq!(
            world.run("x-0").writes(),
            ["patch LeaderWorkerSet x", "delete Pod x-0"]
        );
        assert_eq!(world.counts(), json!(format!(r#"{{"r/0":{count}}}"#)));
        restarted_group(&mut world, 0);
    }
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        [
            "patch Pod x-0",
            "patch Pod x-0-1",
            "patch Pod x-0-2",
            "delete Pod x-0"
        ]
    );
    assert_eq!(done.events().len(), 1);
    world.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 5}}));
    assert_quiet(&world.run("x-0"));
    assert_eq!(world.counts(), json!(r#"{"r/0":2}"#));
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    world.run("x-0");
    assert_eq!(world.counts(), Value::Null);
    assert_eq!(world.pod("x-0")["metadata"]["finalizers"], json!([]));
    restarted_group(&mut world, 0);
    world.restart("x-0-1");
    assert_eq!(
        world.run("x-0").writes(),
        ["patch LeaderWorkerSet x", "delete Pod x-0"]
    );
    assert_eq!(world.counts(), json!(r#"{"r/0":1}"#));
}

#[test]
fn fail_tl_8_crash_loop_with_back_off() {
    let mut world = template(json!({"restartBackoff": {}}));
    world.group(0);
    for (count, failed, delay, recreated) in [
        (0, 2, 10, 10),
        (1, 15, 20, 33),
        (2, 38, 40, 76),
        (3, 81, 80, 159),
        (4, 164, 160, 322),
        (5, 327, 300, 625),
    ] {
        world.second = failed;
        world.restart("x-0-1");
        let done = world.run("x-0");
        let wait = recreated - failed;
        let text = format!(
            "GroupRestartBackoff: Pod x-0-1 failed; recreation of group 0 waits {wait}s (restart backoff, {count} recreations so far): \
             container c exited with code 137 (OOMKilled), restart count 1"
        );
        assert_eq!(
            (done.events(), done.writes()),
            (vec![text], vec!["patch Pod x-0".to_owned()]),
            "delay {delay}"
        );
        assert_eq!(done.wake_seconds(), u64::try_from(wait).ok());
        world.second = recreated;
        let done = world.run("x-0");
        assert_eq!(
            done.events(),
            [
                "RecreateGroup: Worker pod x-0 failed, deleted leader pod x-0 to recreate group 0: restart backoff ended"
            ]
        );
        world.second = recreated + 3;
        restarted_group(&mut world, 0);
    }
    world.second = 2000;
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["patch LeaderWorkerSet x", "delete Pod x-0"]);
    assert_eq!(world.counts(), json!(r#"{"r/0":7}"#));
}

#[test]
fn fail_63_tl_9_budget_before_back_off() {
    let mut world = template(json!({"maxGroupRestarts": 1, "restartBackoff": {}}));
    world.group(0);
    world.second = 2;
    world.restart("x-0-1");
    assert_eq!(world.run("x-0").wake_seconds(), Some(8));
    world.second = 10;
    world.run("x-0");
    assert_eq!(world.counts(), json!(r#"{"r/0":1}"#));
    world.second = 13;
    restarted_group(&mut world, 0);
    world.second = 15;
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert!(done.events()[0].starts_with("ReplicaRestartBudgetExceeded"));
    assert_eq!(done.wake_seconds(), None);
}

#[test]
fn fail_tl_10_controller_restart_during_a_wait() {
    for (back, wait) in [(7, Some(3)), (60, None)] {
        let mut world = template(json!({"restartBackoff": {}}));
        world.group(0);
        world.second = 2;
        world.gone(Kind::Pod, "x-0-1");
        assert_eq!(world.run("x-0").events().len(), 1);
        world.worker(0, 1, "r", 3);
        world.second = back;
        let done = world.run("x-0");
        assert_eq!(done.wake_seconds(), wait);
        if wait.is_some() {
            assert_quiet(&done);
            world.second = 10;
            assert_eq!(
                world.run("x-0").writes(),
                ["patch LeaderWorkerSet x", "delete Pod x-0"]
            );
        } else {
            assert_eq!(done.writes(), ["patch LeaderWorkerSet x", "delete Pod x-0"]);
        }
    }
}

#[test]
fn fail_62_65_one_event_per_wait_and_it_ends_in_a_recreation() {
    let mut world = template(json!({"restartBackoff": {}}));
    world.group(0);
    world.second = 2;
    world.restart("x-0-1");
    assert_eq!(world.run("x-0").events().len(), 1);
    world.restart("x-0-2");
    world.second = 5;
    let done = world.run("x-0");
    assert_quiet(&done);
    assert_eq!(done.wake_seconds(), Some(5));
    for worker in ["x-0-1", "x-0-2"] {
        world.edit_pod(worker, json!({"status": {"containerStatuses": []}}));
    }
    world.second = 10;
    assert_eq!(world.run("x-0").writes().len(), 2);
}

#[test]
fn fail_64_a_leader_replaced_meanwhile_gets_no_marker() {
    let mut world = template(json!({"restartBackoff": {}}));
    world.group(0);
    world.restart("x-0-1");
    let snapshot = world.snapshot("x-0");
    world.leader(0, "r", 3);
    let done = world.run_from(&snapshot, "x-0");
    assert!(done.outcome.conflict && done.events().is_empty());
    assert_eq!(
        world.pod("x-0")["metadata"]["annotations"][annotation::GROUP_RECREATE_PENDING],
        Value::Null
    );
}

#[test]
fn fail_64_back_off_removed_or_policy_not_recreating() {
    let pending = |mut world: World| {
        world.group(0);
        world.edit_pod(
            "x-0",
            json!({"metadata": {"annotations": {annotation::GROUP_RECREATE_PENDING: "true"}}}),
        );
        world
    };
    let mut world = pending(template(json!({"restartBackoff": {"baseSeconds": 100}})));
    assert_eq!(world.run("x-0").wake_seconds(), Some(100));
    world.edit_spec(json!({"leaderWorkerTemplate": {"restartBackoff": {"baseSeconds": 50}}}));
    assert_eq!(world.run("x-0").wake_seconds(), Some(50));
    world.edit_spec(json!({"leaderWorkerTemplate": {"restartBackoff": null}}));
    assert_eq!(world.run("x-0").writes(), ["delete Pod x-0"]);

    let mut world = pending(template(json!({"restartPolicy": "None"})));
    assert_quiet(&world.run("x-0"));
}

#[test]
fn fail_64_the_pending_check_does_not_hold_a_decided_recreation() {
    let mut world =
        template(json!({"restartPolicy": "RecreateGroupAfterStart", "restartBackoff": {}}));
    world.group(0);
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::GROUP_RECREATE_PENDING: "true"}}}),
    );
    world.edit_pod("x-0-1", json!({"status": {"phase": "Pending"}}));
    world.second = 10;
    assert_eq!(world.run("x-0").writes().len(), 2);
}

#[test]
fn fail_60_time_since_creation_is_counted_in_parts_of_a_second() {
    let mut world = template(json!({"restartBackoff": {}}));
    world.group(0);
    world.second = 9;
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert!(done.events()[0].contains("waits 1s"));
}

#[test]
fn fail_tl_11_scale_down_in_parallel() {
    let mut world = World::new(json!({"podTerminationPolicy": "Parallel"}));
    world.group(1);
    world.leader_set(1, "r");
    world.delete(Kind::Pod, "x-1");
    assert_eq!(world.run("x-1").writes(), ["delete StatefulSet x-1"]);
    assert!(world.is_terminating(Kind::StatefulSet, "x-1"));
}

#[test]
fn fail_tl_12_exhausted_group_scaled_away() {
    let mut world = template(json!({"maxGroupRestarts": 0}));
    world.group(0);
    world.restart("x-0-1");
    world.run("x-0");
    world.leader_set(0, "r");
    assert_eq!(
        world.run("x-0").writes(),
        ["patch Pod x-0-1", "patch Pod x-0-2", "patch Pod x-0"]
    );
}

#[test]
fn fail_tl_13_exhausted_group_and_a_new_template() {
    // (exhausted group, partition of the leader set, released)
    for (index, partition, released) in [
        (1, 2, false),
        (1, 1, true),
        (0, 2, false),
        (0, 1, false),
        (0, 0, true),
    ] {
        let mut world = template(json!({"maxGroupRestarts": 0}));
        world.group(index);
        world.restart(&format!("x-{index}-1"));
        world.run(&format!("x-{index}"));
        world.leader_set(2, "r2");
        world.edit(
            Kind::StatefulSet,
            "x",
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}}),
        );
        assert_eq!(
            world.run(&format!("x-{index}")).writes().len(),
            if released { 3 } else { 0 },
            "{index} {partition}"
        );
    }
}

#[test]
fn fail_tl_14_set_deleted_with_retained_pods() {
    let mut world = template(json!({"maxGroupRestarts": 0}));
    world.group(0);
    world.restart("x-0-1");
    world.run("x-0");
    world.gone(Kind::LeaderWorkerSet, "x");
    world.gone(Kind::StatefulSet, "x");
    world.run("x-0");
    for name in ["x-0", "x-0-1", "x-0-2"] {
        assert_eq!(
            world.pod(name)["metadata"]["finalizers"],
            json!([]),
            "{name}"
        );
    }
}
