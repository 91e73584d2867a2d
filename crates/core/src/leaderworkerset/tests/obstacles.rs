use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{as_stored, bare, demo_with, pass, running, stateful_set};
use crate::leaderworkerset::Snapshot;
use crate::model::StatefulSet;
use crate::ownership::leader_selector;

fn under_our_name(metadata: Value, selector: Value) -> StatefulSet {
    let mut object = json!({
        "metadata": {"name": "demo", "namespace": "ns", "labels": {"leaderworkerset.sigs.k8s.io/name": "demo"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": selector}},
        "status": {"replicas": 2},
    });
    json_patch::merge(&mut object, &json!({"metadata": metadata}));
    stateful_set(as_stored(object))
}

fn with_leader_set(set: StatefulSet) -> Snapshot {
    let mut snapshot = bare(demo_with(
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
    ));
    snapshot.leader_set = Some(Arc::new(set));
    snapshot
}

fn controlled_by(kind: &str, name: &str, uid: &str) -> Value {
    json!({"ownerReferences": [{"apiVersion": "v", "kind": kind, "name": name, "uid": uid, "controller": true}]})
}

fn our_selector() -> Value {
    json!(leader_selector(&crate::model::ObjectKey::new("ns", "demo")))
}

#[test]
fn ord_135_leftover_leader_set_is_waited_for_in_silence() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let mut ours_deleted = controlled_by("LeaderWorkerSet", "demo", "demo-uid");
    json_patch::merge(&mut ours_deleted, &deleted);
    for metadata in [
        deleted,
        ours_deleted,
        controlled_by("LeaderWorkerSet", "demo", "predecessor"),
    ] {
        let pass = pass(&with_leader_set(under_our_name(metadata, our_selector())));
        assert_eq!(pass.plan.plan.wake_after, Some(Duration::from_secs(5)));
        assert!(
            pass.writes().is_empty()
                && pass.follow_up().is_empty()
                && pass.events().is_empty()
                && pass.plan.plan.errors.is_empty()
        );
    }
}

#[test]
fn ord_132_orphaned_leader_set_is_adopted() {
    let pass = pass(&with_leader_set(under_our_name(json!({}), our_selector())));
    assert!(
        pass.writes()
            .contains(&"apply StatefulSet leader_set_differs".to_owned())
    );
    let owner = &pass.body("StatefulSet")["metadata"]["ownerReferences"][0];
    assert_eq!(
        (
            &owner["uid"],
            &owner["controller"],
            &owner["blockOwnerDeletion"]
        ),
        (&json!("demo-uid"), &json!(true), &json!(true))
    );
    let crate::intent::Intent::Apply { uid, .. } = &pass.plan.plan.steps[1].intent else {
        panic!("no apply")
    };
    assert_eq!(uid.as_str(), "demo-set-uid");
}

#[test]
fn ord_135_foreign_leader_set_is_told_and_never_touched() {
    for (metadata, selector) in [
        (json!({}), json!({"app": "x"})),
        (json!({"labels": null}), our_selector()),
        (controlled_by("Deployment", "demo", "other"), our_selector()),
        (
            controlled_by("LeaderWorkerSet", "other", "other"),
            our_selector(),
        ),
    ] {
        let pass = pass(&with_leader_set(under_our_name(metadata, selector)));
        assert_eq!(
            pass.writes(),
            [
                "create ControllerRevision revision_missing",
                "create Service service_missing"
            ]
        );
        let why =
            "statefulset ns/demo already exists and is not controlled by LeaderWorkerSet demo";
        assert_eq!(
            pass.events()[0],
            format!("Warning FailedCreate Failed to create leader statefulset demo: {why}")
        );
        let error = &pass.plan.plan.errors[0];
        assert_eq!(
            (error.message.as_str(), error.retry_after),
            (why, Some(Duration::from_secs(30)))
        );
        let status = pass.status();
        assert_eq!(
            (&status["replicas"], &status["observedGeneration"]),
            (&Value::Null, &json!(1))
        );
    }
}

#[test]
fn ord_58_unreadable_percentage_writes_nothing() {
    let set = demo_with(
        json!({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": "some"}}}}),
    );
    let pass = pass(&bare(set));
    assert!(pass.writes().is_empty() && pass.follow_up().is_empty());
    assert_eq!(
        pass.plan.plan.errors[0].message,
        r#"maxUnavailable: invalid value "some": neither a number nor a percentage"#
    );
}

#[test]
fn fail_92_ord_130_deleted_set() {
    let deleted = |policy: &str| {
        let set = demo_with(json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"podTerminationPolicy": policy},
        }));
        let mut snapshot = running(set, (2, 0), "NNN");
        let label = json!({"labels": {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/role": "worker"}});
        for set in snapshot.stateful_sets.values_mut() {
            Arc::make_mut(set).meta.labels =
                crate::model::Meta::ours(&serde_json::from_value(label.clone()).unwrap()).labels;
        }
        let mut sets = snapshot.stateful_sets.values_mut();
        Arc::make_mut(sets.next().unwrap()).meta.deleted = Some(super::fixture::NOW);
        Arc::make_mut(sets.next().unwrap()).meta.owner = None;
        pass(&snapshot)
    };
    assert!(deleted("Default").writes().is_empty());
    let parallel = deleted("Parallel");
    assert_eq!(
        parallel.writes(),
        ["delete StatefulSet parallel_termination"]
    );
    assert_eq!(
        &*parallel.plan.plan.steps[0].intent.target().key.name,
        "demo-2"
    );
    assert!(parallel.follow_up().is_empty());
}
