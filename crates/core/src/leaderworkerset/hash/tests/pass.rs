//! Whole passes over a Hash set (HASH-12).

use std::sync::Arc;

use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use super::*;
use crate::build::leader_deployment::{LeaderDeployment, leader_deployment};
use crate::build::service::shared_service;
use crate::intent::Kind;
use crate::leaderworkerset::Snapshot;
use crate::leaderworkerset::tests::fixture::{
    as_stored, bare, body, demo_with, key_of, pass, pass_with, revision, service,
};
use crate::model::{Deployment, Lws};
use crate::run::{Class, Failure};

fn hash_set(patch: Value) -> Lws {
    let mut object = json!({"spec": {"groupIdentity": "Hash"}});
    json_patch::merge(&mut object, &patch);
    demo_with(object)
}

fn parsed_deployment(object: Value) -> Deployment {
    serde_json::from_value::<k8s_openapi::api::apps::v1::Deployment>(object)
        .expect("a deployment")
        .into()
}

fn stored_deployment(lws: &Lws) -> Value {
    let mut object = as_stored(leader_deployment(&LeaderDeployment {
        lws,
        revision_key: &key_of(lws),
        replicas: u32::try_from(lws.spec.replicas()).unwrap(),
        parallel_hint: false,
        membership: None,
    }));
    object["status"] =
        json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1});
    object
}

/// A set with revision, Service, Deployment, and these pods of the current revision.
fn running(lws: Lws, pods: Vec<Arc<Pod>>) -> Snapshot {
    let mut snapshot = bare(lws);
    let lws = snapshot.lws.clone();
    let key = key_of(&lws);
    let pods: Vec<_> = pods
        .into_iter()
        .map(|pod| {
            if pod.meta.label(label::REVISION) == REVISION {
                Arc::new(with_revision(&pod, &key))
            } else {
                pod
            }
        })
        .collect();
    snapshot.deployment = Some(Arc::new(parsed_deployment(stored_deployment(&lws))));
    snapshot.service = Some(Arc::new(service(shared_service(&lws))));
    snapshot.revisions = vec![revision(&lws, &key, 1)];
    snapshot.replica_sets = [crate::model::Uid::from("rs1")].into();
    snapshot.leaders = pods.iter().filter(|pod| pod.is_leader()).cloned().collect();
    snapshot.pods = pods;
    snapshot
}

fn with_revision(pod: &Pod, key: &str) -> Pod {
    let mut labels: std::collections::BTreeMap<String, String> = pod
        .meta
        .labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    labels.insert(label::REVISION.to_owned(), key.to_owned());
    let mut pod = pod.clone();
    pod.meta.labels = crate::model::Pairs::all(Some(&labels));
    pod
}

#[test]
fn hash_12_a_new_set_gets_revision_deployment_and_service() {
    let pass = pass(&bare(hash_set(json!({}))));
    assert_eq!(
        pass.writes(),
        [
            "create ControllerRevision revision_missing",
            "create+claim Deployment leader_set_missing",
            "create Service service_missing"
        ]
    );
    assert_eq!(pass.follow_up(), ["patch LeaderWorkerSet status_differs"]);
    let created = "Normal GroupsProgressing Created leader deployment demo".to_owned();
    assert!(pass.events().contains(&created), "{:?}", pass.events());
    assert_eq!(
        pass.status()["hpaPodSelector"],
        "leaderworkerset.sigs.k8s.io/name=demo,leaderworkerset.sigs.k8s.io/worker-index=0"
    );
}

#[test]
fn hash_13_no_shared_service_with_a_subdomain_for_each_group() {
    let spec = json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}});
    let pass = pass(&bare(hash_set(json!({"spec": spec}))));
    assert!(pass.writes().iter().all(|write| !write.contains("Service")));
}

#[test]
fn hash_12_a_settled_set_costs_no_write() {
    let mut snapshot = running(hash_set(json!({})), vec![admitted("a"), admitted("b")]);
    let first = pass(&snapshot);
    assert_eq!(first.writes(), ["apply Deployment leader_set_differs"]);
    snapshot.applied = first.report.applied.clone();
    let again = pass(&snapshot);
    assert_eq!(again.writes(), Vec::<String>::new());
}

#[test]
fn hash_12_a_leftover_is_waited_for() {
    for change in [
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        json!({"ownerReferences": [{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "demo", "uid": "old", "controller": true}]}),
    ] {
        let mut snapshot = running(hash_set(json!({})), vec![gated("g", 10)]);
        let mut object = stored_deployment(&snapshot.lws);
        json_patch::merge(&mut object["metadata"], &change);
        snapshot.deployment = Some(Arc::new(parsed_deployment(object)));
        let pass = pass(&snapshot);
        assert_eq!(pass.writes(), Vec::<String>::new());
        assert_eq!(pass.plan.plan.wake_after.unwrap().as_secs(), 5);
    }
}

#[test]
fn hash_15_a_foreign_deployment_is_never_taken_over() {
    let mut snapshot = running(hash_set(json!({})), vec![gated("g", 10)]);
    let mut object = stored_deployment(&snapshot.lws);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v", "kind": "Other", "name": "o", "uid": "o", "controller": true}]);
    snapshot.deployment = Some(Arc::new(parsed_deployment(object)));
    let pass = pass(&snapshot);
    assert_eq!(pass.writes(), Vec::<String>::new(), "nobody is let go");
    let told = "Warning FailedCreate Failed to create leader deployment demo: deployment ns/demo already exists and is not controlled by LeaderWorkerSet demo";
    assert_eq!(pass.events(), [told]);
}

#[test]
fn hash_15_an_orphan_is_adopted() {
    let mut snapshot = running(hash_set(json!({})), vec![gated("g", 10)]);
    let mut object = stored_deployment(&snapshot.lws);
    object["metadata"]["ownerReferences"] = json!([]);
    snapshot.deployment = Some(Arc::new(parsed_deployment(object)));
    assert_eq!(
        pass(&snapshot).writes(),
        [
            "patch Pod gate_lifted",
            "apply Deployment leader_set_differs"
        ]
    );
}

#[test]
fn hash_12_failures_of_the_deployment_are_told() {
    let refused = |_: &_| {
        Some(Failure {
            class: Class::Rejected,
            message: "no".to_owned(),
            retry_after: None,
        })
    };
    let settled = running(hash_set(json!({})), Vec::new());
    let updated = pass_with(&settled, refused);
    assert_eq!(
        updated.events()[0],
        "Warning FailedUpdate Failed to update leader deployment demo: no"
    );
    let mut new = settled;
    new.deployment = None;
    let created = pass_with(&new, refused);
    assert_eq!(
        created.events()[0],
        "Warning FailedCreate Failed to create leader deployment demo: no"
    );
}

#[test]
fn hash_41_an_admitted_leader_loses_gate_and_deletion_cost() {
    let snapshot = running(hash_set(json!({})), vec![admitted("a"), gated("g", 10)]);
    let pass = pass(&snapshot);
    assert_eq!(pass.writes()[0], "patch Pod gate_lifted");
    assert_eq!(
        pass.body("Pod"),
        json!({"metadata": {"annotations": {annotation::POD_DELETION_COST: null}}, "spec": {"schedulingGates": []}})
    );
    let told = "Normal GroupReplacementAdmitted Leader pod g admitted for scheduling".to_owned();
    assert!(pass.events().contains(&told));
    assert_eq!(pass.plan.plan.wake_after, None);
}

#[test]
fn hash_42_a_deferred_leader_is_told_about_and_looked_at_again() {
    let pods = vec![admitted("a"), terminating("d"), gated("g", 10)];
    let pass = pass(&running(hash_set(json!({})), pods));
    assert_eq!(pass.writes(), ["apply Deployment leader_set_differs"]);
    let told = "Normal GroupReplacementDeferred Leader pod g waits for 1 terminating group(s) to be removed before scheduling";
    assert_eq!(pass.events()[0], told);
    assert_eq!(pass.plan.plan.wake_after.unwrap().as_secs(), 10);
}

#[test]
fn hash_42_a_held_leader_is_not_told_about() {
    let pods = vec![admitted("a"), admitted("b"), gated("g", 10)];
    let pass = pass(&running(hash_set(json!({})), pods));
    assert_eq!(pass.writes(), ["apply Deployment leader_set_differs"]);
    assert!(pass.plan.plan.notices.is_empty());
    assert_eq!(pass.plan.plan.wake_after.unwrap().as_secs(), 10);
}

#[test]
fn pod_gate_4_a_leader_waits_for_its_own_service_and_for_its_owner() {
    let unique = with(
        &gated("g", 10),
        &json!({
            "metadata": {"annotations": {annotation::SUBDOMAIN_POLICY: "UniquePerReplica"}},
            "spec": {"schedulingGates": [{"name": lws_api::names::REPLACEMENT_GATE}]},
        }),
    );
    let mut snapshot = running(hash_set(json!({})), vec![unique]);
    let lifts = |snapshot: &Snapshot| {
        pass(snapshot)
            .writes()
            .contains(&"patch Pod gate_lifted".to_owned())
    };
    assert!(!lifts(&snapshot), "there is no Service");
    snapshot.served = [crate::model::Uid::from("g")].into();
    assert!(lifts(&snapshot));
    snapshot.replica_sets.clear();
    assert!(!lifts(&snapshot), "its ReplicaSet is none of ours");
}

#[test]
fn hash_41_the_count_is_stored_before_the_leader_goes() {
    let lws = |counts: String| {
        hash_set(json!({
            "metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: counts}},
            "spec": {"leaderWorkerTemplate": {"maxGroupRestarts": 3}},
        }))
    };
    let key = key_of(&lws(String::new()));
    let counts = json!({format!("{key}/gone"): 2}).to_string();
    let snapshot = running(lws(counts), vec![admitted("a"), gated("g", 10)]);
    let handed_over = pass(&snapshot);
    assert_eq!(
        handed_over.writes()[..2],
        [
            "patch LeaderWorkerSet count_handed_over",
            "patch Pod gate_lifted"
        ]
    );
    let stored = json!({format!("{key}/g"): 2}).to_string();
    assert_eq!(
        handed_over.body("LeaderWorkerSet")["metadata"]["annotations"]
            [annotation::GROUP_RESTART_COUNTS],
        stored
    );
    let refused = pass_with(&snapshot, |request| {
        (request.target().kind == Kind::LeaderWorkerSet).then(|| Failure {
            class: Class::Rejected,
            message: "no".to_owned(),
            retry_after: None,
        })
    });
    assert!(
        refused.outcome.written.is_empty(),
        "a leader whose count is not stored does not go"
    );
}

#[test]
fn hash_69_counts_without_a_place_go_without_a_budget_too() {
    let key = key_of(&hash_set(json!({})));
    let counts = json!({format!("{key}/gone"): 2}).to_string();
    let lws =
        hash_set(json!({"metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: counts}}}));
    let pass = pass(&running(lws, vec![admitted("a"), admitted("b")]));
    assert_eq!(pass.writes()[0], "patch LeaderWorkerSet counts_obsolete");
    assert_eq!(
        pass.body("LeaderWorkerSet")["metadata"]["annotations"][annotation::GROUP_RESTART_COUNTS],
        Value::Null
    );
}

#[test]
fn fail_76_unreadable_counts_hold_nobody_back() {
    let lws = hash_set(json!({
        "metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: "x"}},
        "spec": {"leaderWorkerTemplate": {"maxGroupRestarts": 3}},
    }));
    let pass = pass(&running(lws, vec![gated("g", 10)]));
    assert_eq!(pass.writes()[0], "patch Pod gate_lifted");
    assert_eq!(pass.plan.plan.remarks.len(), 1);
}

#[test]
fn hash_12_what_is_obsolete_goes_once_the_set_is_available() {
    let mut snapshot = running(hash_set(json!({})), vec![admitted("a"), admitted("b")]);
    let old = revision(&snapshot.lws, "old", 0);
    snapshot.revisions.insert(0, old);
    let follow_up = pass(&snapshot).follow_up();
    assert_eq!(
        follow_up,
        [
            "patch LeaderWorkerSet status_differs",
            "delete ControllerRevision revision_obsolete"
        ]
    );
}

#[test]
fn hash_55_numbers_outside_the_revision_change_the_deployment_in_place() {
    let before = running(hash_set(json!({})), vec![admitted("a"), admitted("b")]);
    let mut snapshot = before;
    let changed = hash_set(json!({"spec": {
        "replicas": 5,
        "groupReplacementPolicy": "Immediate",
        "rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": "50%", "maxSurge": 1}},
        "leaderWorkerTemplate": {"maxGroupRestarts": 3, "restartBackoff": {}},
    }}));
    snapshot.lws = Arc::new(changed);
    let pass = pass(&snapshot);
    assert_eq!(pass.writes(), ["apply Deployment leader_set_differs"]);
    let step = &pass.plan.plan.steps[0];
    let applied = body(&step.intent);
    assert_eq!(
        applied["metadata"]["labels"][label::REVISION],
        key_of(&hash_set(json!({})))
    );
    assert_eq!(applied["spec"]["replicas"], 5);
    assert_eq!(
        applied["metadata"]["annotations"][annotation::REPLICAS],
        "5"
    );
    assert_eq!(
        applied["spec"]["strategy"]["rollingUpdate"],
        json!({"maxUnavailable": "50%", "maxSurge": 1})
    );
}
