//! FAIL-30 … FAIL-49: which failure recreates a group.

use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use super::world::{Done, World, owner, restarted, uids};
use crate::intent::{Intent, Kind, Propagation};
use crate::model::Uid;

const PENDING: &str = "Pending";

fn policy(policy: &str) -> Value {
    json!({"leaderWorkerTemplate": {"restartPolicy": policy}})
}

fn on_pod_restart() -> World {
    let mut world = World::new(json!({}));
    world.group(0);
    world
}

fn after_start() -> World {
    let mut world = World::new(policy("RecreateGroupAfterStart"));
    world.group(0);
    world
}

/// The group of `x-0` is recreated because of `pod`.
#[track_caller]
fn assert_recreated(done: &Done, pod: &str) {
    assert_eq!(done.writes(), ["delete Pod x-0"]);
    let events = done.events();
    assert_eq!(events.len(), 1, "{events:?}");
    let expected = format!(
        "RecreateGroup: Worker pod {pod} failed, deleted leader pod x-0 to recreate group 0: "
    );
    assert!(events[0].starts_with(&expected), "{events:?}");
}

#[track_caller]
fn assert_nothing(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

#[test]
fn fail_31_45_row_1_worker_deleted() {
    let mut world = on_pod_restart();
    world.delete(Kind::Pod, "x-0-1");
    let done = world.run("x-0");
    assert_recreated(&done, "x-0-1");
    let Intent::Delete {
        uid, propagation, ..
    } = &done.plan.plan.steps[0].intent
    else {
        panic!("a delete")
    };
    assert_eq!(
        (uid.as_str(), *propagation),
        ("x-0#1", Propagation::Foreground)
    );
}

#[test]
fn fail_31_row_2_start_up_of_another_worker_does_not_matter() {
    let mut world = on_pod_restart();
    world.edit_pod("x-0-2", json!({"status": {"phase": PENDING}}));
    world.restart("x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_31_33_row_3_after_start_waits_for_a_pending_worker() {
    let mut world = after_start();
    world.edit_pod("x-0-2", json!({"status": {"phase": PENDING}}));
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(done.wake_seconds(), Some(10));
    world.edit_pod("x-0-2", json!({"status": {"phase": "Running"}}));
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_31_row_4_after_start_counts_a_terminating_worker_as_there() {
    let mut world = after_start();
    world.delete(Kind::Pod, "x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_31_row_5_after_start_misses_a_worker_that_is_gone() {
    let mut world = after_start();
    world.gone(Kind::Pod, "x-0-1");
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(done.wake_seconds(), None, "the failed pod exists no more");
    assert_eq!(done.plan.judged.len(), 1);
    assert_eq!(world.snapshot("x-0").tombstones, []);
}

#[test]
fn fail_31_row_6_annotation_makes_on_pod_restart_wait() {
    for value in ["true", "false", ""] {
        let mut world = on_pod_restart();
        world.edit(
            Kind::LeaderWorkerSet,
            "x",
            json!({"metadata": {"annotations": {annotation::RECREATE_AFTER_START: value}}}),
        );
        world.edit_pod("x-0-2", json!({"status": {"phase": PENDING}}));
        world.restart("x-0-1");
        let done = world.run("x-0");
        assert_nothing(&done);
        assert_eq!(done.wake_seconds(), Some(10), "{value:?}");
    }
}

#[test]
fn fail_31_row_7_the_group_s_own_size_counts() {
    let mut world = World::new(
        json!({"leaderWorkerTemplate": {"restartPolicy": "RecreateGroupAfterStart", "size": 4}}),
    );
    world.group_of(0, "r", 4);
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 2}}));
    world.delete(Kind::Pod, "x-0-3");
    assert_recreated(&world.run("x-0"), "x-0-3");
}

#[test]
fn fail_33_size_of_the_revision_when_the_annotation_is_no_number() {
    let mut world = after_start();
    world.edit_pod(
        "x-0-1",
        json!({"metadata": {"annotations": {annotation::SIZE: "many"}}}),
    );
    world.restart("x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_31_35_row_8_worker_of_an_old_revision() {
    let mut world = on_pod_restart();
    world.revision("r2", 2);
    world.edit_pod(
        "x-0",
        json!({"metadata": {"labels": {label::REVISION: "r2"}}}),
    );
    world.delete(Kind::Pod, "x-0-1");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_31_36_pod_rst_1_row_9_worker_of_a_worker_set_that_is_gone() {
    let mut world = on_pod_restart();
    world.edit_pod(
        "x-0-1",
        json!({"metadata": {"ownerReferences": owner("StatefulSet", "x-0", "gone")}}),
    );
    world.delete(Kind::Pod, "x-0-1");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_31_36_pod_rst_1_row_10_worker_of_the_previous_leader() {
    let mut world = on_pod_restart();
    world.delete(Kind::StatefulSet, "x-0");
    world.delete(Kind::Pod, "x-0-1");
    world.leader(0, "r", 3);
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(
        done.wake_seconds(),
        Some(1),
        "ORD-80 step 21: the old worker set is still there"
    );
}

#[test]
fn fail_31_36_pod_rst_1_row_11_worker_without_controller() {
    let mut world = on_pod_restart();
    world.edit_pod("x-0-1", json!({"metadata": {"ownerReferences": null}}));
    world.delete(Kind::Pod, "x-0-1");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_31_42_row_12_leader_deleted_by_somebody() {
    let mut world = on_pod_restart();
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
    world.delete(Kind::Pod, "x-0-1");
    world.restart("x-0-2");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_31_row_13_leader_alone_restarts() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"size": 1}}));
    world.group_of(0, "r", 1);
    world.restart("x-0");
    assert_recreated(&world.run("x-0"), "x-0");
}

#[test]
fn fail_31_32_row_14_policy_none() {
    for name in ["None", "Default"] {
        let mut world = World::new(policy(name));
        world.group(0);
        world.delete(Kind::Pod, "x-0-1");
        world.restart("x-0-2");
        world.restart("x-0");
        assert_nothing(&world.run("x-0"));
        world.gone(Kind::Pod, "x-0-1");
        let done = world.run("x-0");
        assert_nothing(&done);
        assert_eq!(done.plan.judged.len(), 1, "the tombstone is handled");
    }
}

#[test]
fn fail_31_row_15_policy_of_the_group_s_revision() {
    let mut world = World::new(policy("None"));
    world.group(0);
    world.edit_spec(policy("RecreateGroupOnPodRestart"));
    world.restart("x-0-1");
    assert_nothing(&world.run("x-0"));

    let mut world = on_pod_restart();
    world.edit_spec(policy("None"));
    world.restart("x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_4_live_policy_when_the_revision_is_not_known() {
    let mut world = on_pod_restart();
    world.gone(Kind::ControllerRevision, "x-r-1");
    world.restart("x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
}

#[test]
fn fail_1_2_3_pod_rst_4_what_counts_as_a_failure() {
    let containers = |count: i32| json!({"containerStatuses": [restarted("c", count)]});
    let init = json!({"phase": PENDING, "initContainerStatuses": [restarted("i", 1)]});
    for (pod, status, deleted, recreated) in [
        ("x-0-1", containers(0), false, false),
        ("x-0-1", containers(1), false, true),
        ("x-0-1", init, false, true),
        (
            "x-0-1",
            json!({"phase": "Failed", "containerStatuses": [restarted("c", 3)]}),
            false,
            false,
        ),
        (
            "x-0-1",
            json!({"phase": "Failed", "reason": "Evicted"}),
            false,
            false,
        ),
        (
            "x-0-1",
            json!({"conditions": [{"type": "Ready", "status": "False"}]}),
            false,
            false,
        ),
        ("x-0-1", json!({"phase": "Failed"}), true, true),
        ("x-0-1", containers(0), true, true),
        ("x-0", containers(1), false, true),
        ("x-0", containers(1), true, false),
    ] {
        let mut world = on_pod_restart();
        world.edit_pod(pod, json!({"status": status}));
        if deleted {
            world.delete(Kind::Pod, pod);
        }
        assert_eq!(
            world.run("x-0").writes().len(),
            usize::from(recreated),
            "{pod} {status} {deleted}"
        );
    }
}

#[test]
fn fail_36_pod_rst_1_a_worker_controlled_by_the_leader_itself() {
    for (uid, recreated) in [("x-0#1", true), ("x-0#0", false)] {
        let mut world = on_pod_restart();
        world.edit_pod(
            "x-0-1",
            json!({"metadata": {"ownerReferences": owner("Pod", "x-0", uid)}}),
        );
        world.delete(Kind::Pod, "x-0-1");
        assert_eq!(
            world.run("x-0").writes().len(),
            usize::from(recreated),
            "{uid}"
        );
    }
    let mut world = on_pod_restart();
    world.edit_pod(
        "x-0-1",
        json!({"metadata": {"ownerReferences": owner("ReplicaSet", "x-0", "x-0#1")}}),
    );
    world.delete(Kind::Pod, "x-0-1");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_20_22_a_force_deleted_worker_is_judged_as_recorded() {
    let mut world = on_pod_restart();
    world.gone(Kind::Pod, "x-0-1");
    world.worker(0, 1, "r", 3);
    let done = world.run("x-0");
    assert_recreated(&done, "x-0-1");
    assert_eq!(uids(&done.plan.judged), ["x-0-1#2"]);
    assert_eq!(world.snapshot("x-0").tombstones, []);
}

#[test]
fn fail_22_a_tombstone_is_judged_once() {
    let mut world = on_pod_restart();
    world.edit_pod("x-0-1", json!({"metadata": {"ownerReferences": null}}));
    world.gone(Kind::Pod, "x-0-1");
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(uids(&done.plan.judged), ["x-0-1#2"]);
    assert_eq!(world.run("x-0").plan.judged, Vec::<Uid>::new());
}

#[test]
fn fail_21_a_tombstone_stays_while_its_group_cannot_be_recreated() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 3}}));
    world.group(0);
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: "null"}}}),
    );
    world.gone(Kind::Pod, "x-0-1");
    let done = world.run("x-0");
    assert_eq!((done.writes(), done.plan.judged.len()), (vec![], 0));
    assert_eq!(world.snapshot("x-0").tombstones.len(), 1);
}

#[test]
fn fail_48_one_recreation_for_several_failures() {
    let mut world = on_pod_restart();
    world.restart("x-0-2");
    world.delete(Kind::Pod, "x-0-1");
    assert_recreated(&world.run("x-0"), "x-0-1");
    for _ in 0..3 {
        assert_nothing(&world.run("x-0"));
    }
}

#[test]
fn fail_30_workers_are_walked_by_ordinal() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"size": 12}}));
    world.group_of(0, "r", 12);
    world.restart("x-0-10");
    world.restart("x-0-2");
    assert_recreated(&world.run("x-0"), "x-0-2");
}

#[test]
fn fail_37_a_leader_replaced_after_the_snapshot_is_not_deleted() {
    let mut world = on_pod_restart();
    world.restart("x-0-1");
    let snapshot = world.snapshot("x-0");
    let uid = world.leader(0, "r", 3);
    let done = world.run_from(&snapshot, "x-0");
    assert_eq!(done.events(), Vec::<String>::new());
    assert!(!world.is_terminating(Kind::Pod, "x-0") && world.uid(Kind::Pod, "x-0") == uid);
    world.run("x-0");
    assert!(!world.is_terminating(Kind::Pod, "x-0"));
}

#[test]
fn fail_34_workers_without_leader_wait() {
    let mut world = on_pod_restart();
    world.restart("x-0-1");
    world.gone(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_34_a_failed_worker_that_names_no_leader_is_reported() {
    for (restart, errors) in [
        (
            "RecreateGroupOnPodRestart",
            vec!["parsing pod name for pod x"],
        ),
        ("None", vec![]),
    ] {
        let mut world = World::new(policy(restart));
        world.put(Kind::Pod, json!({"metadata": {"name": "x", "uid": "w", "labels": {label::NAME: "x", label::WORKER_INDEX: "1"}},
            "spec": {"containers": []}, "status": {"phase": "Running"}}));
        assert_nothing(&world.run("x"));
        world.restart("x");
        let done = world.run("x");
        assert_eq!(
            (done.errors(), done.writes()),
            (errors, vec![]),
            "{restart}"
        );
    }
}

#[test]
fn ord_80_step_2_pods_without_our_labels_are_reported() {
    let mut world = on_pod_restart();
    world.edit_pod("x-0-1", json!({"metadata": {"labels": {label::NAME: ""}}}));
    world.edit_pod(
        "x-0-2",
        json!({"metadata": {"labels": {label::WORKER_INDEX: null}}}),
    );
    let done = world.run("x-0");
    assert_eq!(
        done.errors(),
        [
            "leaderworkerset.sigs.k8s.io/name label is unexpected missing",
            "leaderworkerset.sigs.k8s.io/worker-index label is unexpected missing",
        ]
    );
    world.restart("x-0");
    let done = world.run("x-0");
    assert_eq!(
        (done.writes().len(), done.errors().len()),
        (1, 2),
        "the rest of the group goes on"
    );
}

#[test]
fn c35_a_leader_that_is_not_of_the_leader_set_is_left_alone() {
    for owner in [
        Value::Null,
        owner("StatefulSet", "other", "other"),
        owner("StatefulSet", "x", "older leaders"),
    ] {
        let mut world = on_pod_restart();
        world.edit_pod("x-0", json!({"metadata": {"ownerReferences": owner}}));
        world.restart("x-0");
        world.restart("x-0-1");
        assert_nothing(&world.run("x-0"));
        world.gone(Kind::StatefulSet, "x-0");
        assert_nothing(&world.run("x-0"));
    }
}

#[test]
fn ord_132_leaders_of_a_leader_set_that_will_be_adopted_are_ours() {
    for (selector, recreated) in [(label::WORKER_INDEX, true), ("app", false)] {
        let mut world = on_pod_restart();
        let mut wanted = json!({label::NAME: "x"});
        wanted[selector] = json!("0");
        world.edit(
            Kind::StatefulSet,
            "x",
            json!({"metadata": {"ownerReferences": null},
            "spec": {"selector": {"matchLabels": {label::WORKER_INDEX: null}}}}),
        );
        world.edit(
            Kind::StatefulSet,
            "x",
            json!({"spec": {"selector": {"matchLabels": wanted}}}),
        );
        world.restart("x-0-1");
        assert_eq!(
            world.run("x-0").writes().len(),
            usize::from(recreated),
            "{selector}"
        );
    }
}

/// What others change on pods, Kueue above all, is neither a failure nor reverted.
#[test]
fn kue_kq_7_foreign_changes_of_pods_stay() {
    let mut world = on_pod_restart();
    for pod in ["x-0", "x-0-1"] {
        world.edit_pod(
            pod,
            json!({
                "metadata": {"labels": {"kueue.x-k8s.io/managed": "true"}, "annotations": {"kueue.x-k8s.io/role-hash": "1"}, "finalizers": ["kueue.x-k8s.io/managed"]},
                "spec": {"nodeSelector": {"pool": "a"}, "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}], "tolerations": [{"operator": "Exists"}]},
            }),
        );
    }
    assert_nothing(&world.run("x-0"));
}
