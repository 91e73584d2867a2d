//! Groups of Hash sets: how they are built, when they count as ready, and how they fail (reconcile-hash sections 7, 8 and 12).

use k8s_openapi::api::apps::v1 as apps;
use lws_api::names::{BUDGET_FINALIZER, GROUP_READY, REPLACEMENT_GATE, annotation, label};
use serde_json::{Value, json};

use super::world::{Done, REVISION, World, key, owner, time};
use crate::cache::Change;
use crate::intent::{Intent, Kind, Propagation};

/// Leader pod, host name and group key of the group that tests are about.
const LEADER: &str = "x-rs-aaaaa";
const HOST: &str = "x-c6da7bcc";
const KEY: &str = "c6da7bcc";

#[track_caller]
fn assert_nothing(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

/// Set `x` with Hash identity, its Deployment and ReplicaSet, and no group.
fn hash(spec: Value) -> World {
    let mut full = json!({"groupIdentity": "Hash"});
    json_patch::merge(&mut full, &spec);
    let mut world = World::new(full);
    world.gone(Kind::StatefulSet, "x");
    deploy(&mut world, REVISION);
    let mut object =
        json!({"name": "x-rs", "namespace": "ns", "uid": "rs", "labels": {label::NAME: "x"}});
    object["ownerReferences"] = owner("Deployment", "x", "deployment");
    let object = json!({"metadata": object, "spec": {"selector": {}}});
    let replica_set: apps::ReplicaSet = serde_json::from_value(object).expect("a ReplicaSet");
    world
        .cache
        .apply_replica_sets(Change::Applied(replica_set.into()));
    world
}

fn deploy(world: &mut World, revision: &str) {
    world.put(
        Kind::Deployment,
        json!({
            "metadata": {"name": "x", "uid": "deployment", "ownerReferences": owner("LeaderWorkerSet", "x", "set"),
                "labels": {label::NAME: "x", label::REVISION: revision}},
            "spec": {"selector": {}, "template": {}},
        }),
    );
}

fn labels(group: &str, worker_index: &str) -> Value {
    json!({label::NAME: "x", label::WORKER_INDEX: worker_index, label::GROUP_INDEX: group,
        label::GROUP_KEY: group, label::REVISION: REVISION})
}

/// A leader that the ReplicaSet made, running but not Ready.
fn leader(world: &mut World, name: &str, group: &str, size: u32) {
    world.put(
        Kind::Pod,
        json!({
            "metadata": {"name": name, "uid": name, "labels": labels(group, "0"),
                "annotations": {annotation::SIZE: size.to_string(), annotation::GROUP_IDENTITY: "Hash"},
                "ownerReferences": owner("ReplicaSet", "x-rs", "rs")},
            "spec": {"containers": [], "hostname": format!("x-{group}"), "subdomain": "x", "nodeName": "n"},
            "status": {"phase": "Running", "conditions": [{"type": "ContainersReady", "status": "True"}]},
        }),
    );
}

/// A group of three whose workers exist; as many of them are available.
fn group(world: &mut World, name: &str, group: &str, available: u32) {
    leader(world, name, group, 3);
    worker_set(world, name, &format!("x-{group}"), available);
    for ordinal in 1..3 {
        let pod = format!("x-{group}-{ordinal}");
        world.put(
            Kind::Pod,
            json!({
                "metadata": {"name": pod, "uid": pod, "labels": labels(group, &ordinal.to_string()),
                    "annotations": {annotation::SIZE: "3", annotation::GROUP_IDENTITY: "Hash", annotation::LEADER_NAME: name},
                    "ownerReferences": owner("StatefulSet", &format!("x-{group}"), &format!("workers of {name}"))},
                "spec": {"containers": []}, "status": {"phase": "Running"},
            }),
        );
    }
}

fn worker_set(world: &mut World, leader: &str, name: &str, available: u32) {
    world.put(
        Kind::StatefulSet,
        json!({
            "metadata": {"name": name, "uid": format!("workers of {leader}"), "labels": {label::NAME: "x"},
                "ownerReferences": owner("Pod", leader, leader)},
            "spec": {"replicas": 2, "selector": {"matchLabels": {}}, "template": {}},
            "status": {"replicas": 2, "availableReplicas": available},
        }),
    );
}

/// Condition `group-ready` of the leader: status and reason.
fn group_ready(world: &World) -> Option<(String, String)> {
    let conditions = world.pod(LEADER)["status"]["conditions"].clone();
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == GROUP_READY)?;
    let text = |member: &str| found[member].as_str().expect("a text").to_owned();
    Some((text("status"), text("reason")))
}

fn not_ready() -> Option<(String, String)> {
    Some(("False".to_owned(), "WorkerStatefulSetNotReady".to_owned()))
}

fn ready() -> Option<(String, String)> {
    Some(("True".to_owned(), "WorkerStatefulSetReady".to_owned()))
}

#[test]
fn hash_25_a_gated_leader_gets_its_service_and_no_workers() {
    let mut world = hash(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    leader(&mut world, LEADER, KEY, 3);
    world.edit_pod(
        LEADER,
        json!({"spec": {"subdomain": HOST, "schedulingGates": [{"name": REPLACEMENT_GATE}]}}),
    );
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [format!("create Service {HOST}")]);
    assert_nothing(&world.run(LEADER));
    assert_eq!(group_ready(&world), None);
}

#[test]
fn pod_pt_14_hash_27_hash_35_an_admitted_leader_gets_workers_named_after_its_host() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    let done = world.run(LEADER);
    assert_eq!(
        done.writes(),
        [
            format!("create StatefulSet {HOST}"),
            format!("condition Pod {LEADER}")
        ]
    );
    assert_eq!(group_ready(&world), not_ready());
    let mut built = world.object(Kind::StatefulSet, HOST).expect("it").clone();
    built.sort_all_objects();
    for member in ["creationTimestamp", "resourceVersion", "uid"] {
        built["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(member);
    }
    insta::assert_yaml_snapshot!(built);
}

#[test]
fn pod_gate_6_hash_35_table_of_conditions() {
    for (available, expected) in [(0, not_ready()), (1, not_ready()), (2, ready())] {
        let mut world = hash(json!({}));
        group(&mut world, LEADER, KEY, available);
        world.run(LEADER);
        assert_eq!(group_ready(&world), expected, "{available} of 2");
        assert_nothing(&world.run(LEADER));
    }
}

#[test]
fn hash_38_a_worker_that_turns_unready_turns_its_leader_unready() {
    let mut world = hash(json!({}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    worker_set(&mut world, LEADER, HOST, 1);
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [format!("condition Pod {LEADER}")]);
    assert_eq!(group_ready(&world), not_ready());
}

#[test]
fn hash_36_one_condition_is_written_with_the_uid_and_the_time() {
    let mut world = hash(json!({}));
    group(&mut world, LEADER, KEY, 2);
    world.second = 7;
    let done = world.run(LEADER);
    let Intent::SetCondition { uid, condition, .. } = &done.plan.plan.steps[0].intent else {
        panic!("a condition")
    };
    assert_eq!(uid.as_str(), LEADER);
    assert_eq!(condition["lastTransitionTime"], time(7).to_string());
    let others = &world.pod(LEADER)["status"]["conditions"];
    assert_eq!(others[0]["type"], "ContainersReady", "it stays");
}

#[test]
fn hash_37_a_group_of_one_has_no_condition() {
    let mut world = hash(json!({"leaderWorkerTemplate": {"size": 1}}));
    leader(&mut world, LEADER, KEY, 1);
    assert_nothing(&world.run(LEADER));
}

#[test]
fn hash_79_a_group_that_loses_its_worker_set_is_not_ready() {
    let mut world = hash(json!({"leaderWorkerTemplate": {"restartPolicy": "None"}}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.delete(Kind::Pod, "x-c6da7bcc-1");
    world.gone(Kind::StatefulSet, HOST);
    let done = world.run(LEADER);
    assert_eq!(
        done.writes(),
        [format!("condition Pod {LEADER}")],
        "a worker name is still held"
    );
    assert_eq!(group_ready(&world), not_ready());
}

#[test]
fn hash_25_leader_ready_waits_for_the_containers() {
    let mut world = hash(json!({"startupPolicy": "LeaderReady"}));
    leader(&mut world, LEADER, KEY, 3);
    world.edit_pod(LEADER, json!({"status": {"conditions": []}}));
    assert_nothing(&world.run(LEADER));
    world.edit_pod(
        LEADER,
        json!({"status": {"conditions": [{"type": "ContainersReady", "status": "True"}]}}),
    );
    assert_eq!(
        world.run(LEADER).writes()[0],
        format!("create StatefulSet {HOST}")
    );
}

#[test]
fn hash_31_a_worker_set_named_after_the_pod_is_used_on() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    worker_set(&mut world, LEADER, LEADER, 2);
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [format!("condition Pod {LEADER}")]);
    assert_eq!(group_ready(&world), ready());
}

#[test]
fn hash_33_a_worker_set_of_another_leader_is_never_adopted() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    worker_set(&mut world, "x-rs-bbbbb", HOST, 2);
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [""; 0]);
    assert_eq!(
        done.errors(),
        [format!(
            "statefulset ns/{HOST} is not controlled by Pod {LEADER}"
        )]
    );
}

#[test]
fn hash_28_a_leader_without_host_name_is_an_error() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    world.edit_pod(LEADER, json!({"spec": {"hostname": null}}));
    let done = world.run(LEADER);
    assert_eq!(
        done.errors(),
        [format!(
            "leader pod ns/{LEADER} has no hostname or subdomain"
        )]
    );
}

#[test]
fn hash_53_workers_are_those_of_the_leaders_revision() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 7}}));
    deploy(&mut world, "r2");
    world.run(LEADER);
    let built = world.object(Kind::StatefulSet, HOST).expect("it");
    assert_eq!(built["spec"]["replicas"], 2);
    assert_eq!(built["metadata"]["labels"][label::REVISION], REVISION);
}

#[test]
fn hash_84_without_its_revision_a_group_waits() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    world.gone(Kind::ControllerRevision, "x-r-1");
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [""; 0]);
    assert_eq!(done.wake_seconds(), Some(1));
}

#[test]
fn a_leader_counts_only_with_its_whole_chain() {
    type Break = fn(&mut World);
    let breaks: [(&str, Break); 3] = [
        ("another ReplicaSet", |world| {
            world.edit_pod(
                LEADER,
                json!({"metadata": {"ownerReferences": owner("ReplicaSet", "x-rs", "another")}}),
            );
        }),
        ("none", |world| {
            world.edit_pod(LEADER, json!({"metadata": {"ownerReferences": null}}));
        }),
        ("the Deployment is gone", |world| {
            world.gone(Kind::Deployment, "x")
        }),
    ];
    for (what, breaks) in breaks {
        let mut world = hash(json!({}));
        leader(&mut world, LEADER, KEY, 3);
        breaks(&mut world);
        let done = world.run(LEADER);
        assert_eq!(done.writes(), [""; 0], "{what}");
    }
}

#[test]
fn hash_59_a_failed_worker_ends_its_group_and_no_other() {
    let mut world = hash(json!({}));
    group(&mut world, LEADER, KEY, 2);
    group(&mut world, "x-rs-bbbbb", "bb", 2);
    world.run(LEADER);
    world.run("x-rs-bbbbb");
    world.restart("x-c6da7bcc-2");
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [format!("delete Pod {LEADER}")]);
    let Intent::Delete { propagation, .. } = &done.plan.plan.steps[0].intent else {
        panic!("a delete")
    };
    assert_eq!(*propagation, Propagation::Foreground);
    let told = format!(
        "RecreateGroup: Worker pod x-c6da7bcc-2 failed, deleted leader pod {LEADER} to recreate group {KEY}: "
    );
    assert!(done.events()[0].starts_with(&told), "{:?}", done.events());
    assert_nothing(&world.run("x-rs-bbbbb"));
}

#[test]
fn hash_59_a_vanished_worker_is_found_by_the_leader_that_it_names() {
    let mut world = hash(json!({}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.gone(Kind::Pod, "x-c6da7bcc-1");
    assert_eq!(world.run(LEADER).writes(), [format!("delete Pod {LEADER}")]);
}

#[test]
fn hash_60_a_starting_group_is_not_ended() {
    let policy = json!({"leaderWorkerTemplate": {"restartPolicy": "RecreateGroupAfterStart"}});
    let mut world = hash(policy);
    group(&mut world, LEADER, KEY, 1);
    world.run(LEADER);
    world.edit_pod("x-c6da7bcc-2", json!({"status": {"phase": "Pending"}}));
    world.restart("x-c6da7bcc-1");
    assert_nothing(&world.run(LEADER));
    world.edit_pod("x-c6da7bcc-2", json!({"status": {"phase": "Running"}}));
    assert_eq!(world.run(LEADER).writes(), [format!("delete Pod {LEADER}")]);
}

#[test]
fn hash_61_without_a_policy_a_lost_worker_is_left_to_its_statefulset() {
    let mut world = hash(json!({"leaderWorkerTemplate": {"restartPolicy": "None"}}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.gone(Kind::Pod, "x-c6da7bcc-1");
    assert_nothing(&world.run(LEADER));
}

#[test]
fn hash_62_counts_are_stored_under_revision_and_group_key() {
    let mut world = hash(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 2}}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.restart("x-c6da7bcc-1");
    let done = world.run(LEADER);
    assert_eq!(
        done.writes(),
        [
            "patch LeaderWorkerSet x".to_owned(),
            format!("delete Pod {LEADER}")
        ]
    );
    assert_eq!(world.counts(), r#"{"r/c6da7bcc":1}"#);
}

#[test]
fn hash_67_backoff_counts_from_the_leaders_creation() {
    let mut world = hash(json!({"leaderWorkerTemplate": {"restartBackoff": {}}}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.second = 2;
    world.restart("x-c6da7bcc-1");
    let done = world.run(LEADER);
    assert_eq!(done.writes(), [format!("patch Pod {LEADER}")]);
    assert_eq!(done.wake_seconds(), Some(8));
    world.second = 10;
    assert_eq!(
        world.run(LEADER).writes(),
        [
            "patch LeaderWorkerSet x".to_owned(),
            format!("delete Pod {LEADER}")
        ]
    );
}

/// A group that has just used up its budget of none.
fn exhausted(replicas: u32) -> World {
    let template = json!({"maxGroupRestarts": 0});
    let mut world = hash(json!({"replicas": replicas, "leaderWorkerTemplate": template}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.restart("x-c6da7bcc-1");
    let done = world.run(LEADER);
    assert_eq!(
        done.writes(),
        [
            format!("patch Pod {LEADER}"),
            "patch Pod x-c6da7bcc-1".to_owned(),
            "patch Pod x-c6da7bcc-2".to_owned(),
            format!("delete Pod {LEADER}")
        ]
    );
    assert_eq!(
        done.events(),
        [format!(
            "ReplicaRestartBudgetExceeded: Restart budget exhausted; terminated group {KEY} and stopped automatic recovery"
        )]
    );
    world
}

fn is_retained(world: &World) -> bool {
    let finalizers = &world.pod(LEADER)["metadata"]["finalizers"];
    finalizers
        .as_array()
        .expect("a list")
        .contains(&json!(BUDGET_FINALIZER))
}

#[test]
fn hash_63_an_exhausted_group_is_retained() {
    let mut world = exhausted(2);
    assert_nothing(&world.run(LEADER));
    assert!(is_retained(&world));
}

#[test]
fn hash_64_recovery_lets_it_go() {
    let mut world = exhausted(2);
    world.edit_pod(
        LEADER,
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    world.run(LEADER);
    assert!(!is_retained(&world));
}

#[test]
fn hash_68_a_newer_revision_or_a_surplus_lets_it_go() {
    let mut rolled = exhausted(2);
    deploy(&mut rolled, "r2");
    rolled.run(LEADER);
    assert!(!is_retained(&rolled), "of an older revision");

    let mut full = exhausted(2);
    leader(&mut full, "x-rs-bbbbb", "bb", 3);
    full.run(LEADER);
    assert!(is_retained(&full), "one of two places is taken");
    leader(&mut full, "x-rs-ccccc", "cc", 3);
    full.run(LEADER);
    assert!(!is_retained(&full), "both places are taken");

    let mut gone = exhausted(0);
    gone.gone(Kind::Deployment, "x");
    gone.run(LEADER);
    assert!(is_retained(&gone), "without Deployment nothing is due");
}

#[test]
fn hash_70_the_end_of_the_set_lets_everything_go() {
    let mut world = exhausted(2);
    world.delete(Kind::LeaderWorkerSet, "x");
    world.run(LEADER);
    assert!(!is_retained(&world));
    assert_eq!(
        world.pod("x-c6da7bcc-1")["metadata"]["finalizers"],
        json!([])
    );
}

#[test]
fn hash_50_workers_end_with_their_leader_if_the_set_asks_for_it() {
    let mut world = hash(json!({"podTerminationPolicy": "Parallel"}));
    group(&mut world, LEADER, KEY, 2);
    world.run(LEADER);
    world.delete(Kind::Pod, LEADER);
    assert_eq!(
        world.run(LEADER).writes(),
        [format!("delete StatefulSet {HOST}")]
    );
}

#[test]
fn hash_16_a_group_is_observed_with_its_chain() {
    let mut world = hash(json!({}));
    leader(&mut world, LEADER, KEY, 3);
    let snapshot = world.snapshot(LEADER);
    assert_eq!(snapshot.replica_set.expect("it").key(), &key("x-rs"));
    assert_eq!(snapshot.deployment.expect("it").key(), &key("x"));
    assert_eq!(snapshot.leaders, [], "looked for only when it is exhausted");
}
