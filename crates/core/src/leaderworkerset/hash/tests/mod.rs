//! Leaders of a Hash set in short, and what is decided about them.

mod counts;
mod pass;
mod replacement;
mod status;

use std::sync::Arc;

use lws_api::names::{REPLACEMENT_GATE, annotation, label};
use serde_json::{Value, json};

use crate::model::Pod;

/// Revision and ReplicaSet of pods that a test does not say otherwise about.
const REVISION: &str = "r1";

/// Second `second` of the life of a test.
fn time(second: i64) -> String {
    jiff::Timestamp::from_second(1_800_000_000 + second)
        .expect("a time")
        .to_string()
}

fn with(pod: &Arc<Pod>, patch: &Value) -> Arc<Pod> {
    let mut object = object(&pod.key().name, "0", pod.meta.label(label::GROUP_INDEX), 0);
    json_patch::merge(&mut object, patch);
    parsed(object)
}

fn parsed(object: Value) -> Arc<Pod> {
    let pod = serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object).expect("a pod");
    Arc::new(pod.into())
}

fn object(name: &str, worker_index: &str, group: &str, second: i64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "creationTimestamp": time(second),
            "labels": {
                label::NAME: "demo", label::WORKER_INDEX: worker_index, label::GROUP_INDEX: group,
                label::REVISION: REVISION, label::POD_TEMPLATE_HASH: "rs1",
            },
            "annotations": {annotation::GROUP_IDENTITY: "Hash", annotation::SIZE: "3"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs1", "uid": "rs1", "controller": true}],
        },
        "spec": {"containers": [], "hostname": name, "subdomain": "demo"},
    })
}

/// The leader of group `group`, created in second 0.
fn admitted(group: &str) -> Arc<Pod> {
    parsed(object(group, "0", group, 0))
}

/// A gated leader, created in second `second`.
fn gated(group: &str, second: i64) -> Arc<Pod> {
    let mut object = object(group, "0", group, second);
    object["spec"]["schedulingGates"] = json!([{"name": REPLACEMENT_GATE}]);
    object["metadata"]["annotations"][annotation::POD_DELETION_COST] = json!("-100");
    parsed(object)
}

fn terminating(group: &str) -> Arc<Pod> {
    with(
        &admitted(group),
        &json!({"metadata": {"deletionTimestamp": time(9)}}),
    )
}

/// Retained: exhausted and terminating.
fn exhausted(group: &str, second: i64) -> Arc<Pod> {
    with(
        &admitted(group),
        &json!({"metadata": {
            "creationTimestamp": time(second), "deletionTimestamp": time(99),
            "annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"},
        }}),
    )
}

/// Worker 1 of a group, terminating or not.
fn worker(group: &str, is_terminating: bool) -> Arc<Pod> {
    let mut object = object(&format!("{group}-1"), "1", group, 0);
    if is_terminating {
        object["metadata"]["deletionTimestamp"] = json!(time(9));
    }
    parsed(object)
}

/// The same leader with a label changed; a gated one stays gated.
fn labelled(pod: Arc<Pod>, key: &str, value: &str) -> Arc<Pod> {
    let is_gated = pod.is_gated();
    let mut object = object(&pod.key().name, "0", pod.meta.label(label::GROUP_INDEX), 0);
    object["metadata"]["creationTimestamp"] = json!(pod.meta.created);
    object["metadata"]["labels"][key] = json!(value);
    if is_gated {
        object["spec"]["schedulingGates"] = json!([{"name": REPLACEMENT_GATE}]);
    }
    parsed(object)
}
