//! Objects for the tests of the cache, as small as the rules allow.

mod hash;
mod reads;
mod sequences;
mod tombstones;
mod wakes;

use lws_api::names::{BUDGET_FINALIZER, REPLACEMENT_GATE, annotation, label};
use serde_json::{Value, json};

use super::{Cache, Change};
use crate::model::{Lws, Meta, Node, ObjectKey, Pod, Revision, Service, StatefulSet};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

/// A change to the JSON of an object.
type Edit<'a> = (&'a str, Value);

fn edited(mut object: Value, edits: &[Edit<'_>]) -> Value {
    for (pointer, value) in edits {
        let parent = pointer.rsplit_once('/').expect("a pointer");
        let place = object.pointer_mut(parent.0).expect("a place");
        place[parent.1.replace("~1", "/")] = value.clone();
    }
    object
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = match kind {
        "Pod" => "v1",
        "LeaderWorkerSet" => "leaderworkerset.x-k8s.io/v1",
        _ => "apps/v1",
    };
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

fn metadata(name: &str, uid: &str) -> Value {
    json!({"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1", "generation": 1,
        "labels": {label::NAME: "x"}, "annotations": {}})
}

fn set(edits: &[Edit<'_>]) -> Lws {
    let spec = json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}});
    let object = json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": metadata("x", "x-uid"), "spec": spec});
    let object = edited(object, edits);
    serde_json::from_value::<lws_api::leaderworkerset::LeaderWorkerSet>(object)
        .expect("a set")
        .into()
}

fn pod(name: &str, uid: &str, worker_index: &str, group_index: &str, edits: &[Edit<'_>]) -> Pod {
    let mut object =
        json!({"metadata": metadata(name, uid), "spec": {"containers": []}, "status": {}});
    object["metadata"]["labels"][label::WORKER_INDEX] = worker_index.into();
    object["metadata"]["labels"][label::GROUP_INDEX] = group_index.into();
    let object = edited(object, edits);
    serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object)
        .expect("a pod")
        .into()
}

/// Leader of group `index` of `x`, of UID `uid`.
fn leader(index: &str, uid: &str, edits: &[Edit<'_>]) -> Pod {
    pod(&format!("x-{index}"), uid, "0", index, edits)
}

/// Worker 1 of group `index` of `x`, controlled by the StatefulSet of UID `set`.
fn worker(index: &str, uid: &str, set: &str, edits: &[Edit<'_>]) -> Pod {
    let owner = owner("StatefulSet", &format!("x-{index}"), set);
    let mut all = vec![("/metadata/ownerReferences", owner)];
    all.extend_from_slice(edits);
    pod(&format!("x-{index}-1"), uid, "1", index, &all)
}

fn stateful_set(name: &str, uid: &str, owners: Value, edits: &[Edit<'_>]) -> StatefulSet {
    let object = json!({"metadata": metadata(name, uid), "spec": {}, "status": {}});
    let object = edited(
        edited(object, &[("/metadata/ownerReferences", owners)]),
        edits,
    );
    serde_json::from_value::<k8s_openapi::api::apps::v1::StatefulSet>(object)
        .expect("a statefulset")
        .into()
}

/// Worker set of group `index`, controlled by the leader of UID `leader`.
fn worker_set(index: &str, uid: &str, leader: &str) -> StatefulSet {
    let name = format!("x-{index}");
    stateful_set(&name, uid, owner("Pod", &name, leader), &[])
}

fn leader_set(edits: &[Edit<'_>]) -> StatefulSet {
    stateful_set(
        "x",
        "leader-set",
        owner("LeaderWorkerSet", "x", "x-uid"),
        edits,
    )
}

fn service(name: &str, owners: Value) -> Service {
    let object = json!({"metadata": metadata(name, "service")});
    let object = edited(object, &[("/metadata/ownerReferences", owners)]);
    serde_json::from_value::<k8s_openapi::api::core::v1::Service>(object)
        .expect("a service")
        .into()
}

fn revision(name: &str) -> Revision {
    let object = json!({"metadata": metadata(name, name), "revision": 1});
    serde_json::from_value::<k8s_openapi::api::apps::v1::ControllerRevision>(object)
        .expect("a revision")
        .into()
}

fn node(labels: Value, version: &str) -> Node {
    let object = json!({"name": "n1", "uid": "n1", "resourceVersion": version, "labels": labels});
    Node::new(&serde_json::from_value(object).expect("metadata"))
}

fn version(version: &str) -> Edit<'static> {
    ("/metadata/resourceVersion", version.into())
}

fn terminating() -> Edit<'static> {
    ("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z".into())
}

fn gated() -> Edit<'static> {
    ("/spec/schedulingGates", json!([{"name": REPLACEMENT_GATE}]))
}

fn retained() -> Edit<'static> {
    ("/metadata/finalizers", json!([BUDGET_FINALIZER]))
}

fn annotated(key: &'static str, value: &str) -> Edit<'static> {
    (
        Box::leak(format!("/metadata/annotations/{}", key.replace('/', "~1")).into_boxed_str()),
        value.into(),
    )
}

fn labelled(key: &'static str, value: &str) -> Edit<'static> {
    (
        Box::leak(format!("/metadata/labels/{}", key.replace('/', "~1")).into_boxed_str()),
        value.into(),
    )
}

/// Leader and worker of group 0 with their StatefulSets.
fn one_group() -> Cache {
    let mut cache = Cache::default();
    cache.apply_sets(Change::Applied(set(&[])));
    cache.apply_stateful_sets(Change::Relisted(vec![
        leader_set(&[]),
        worker_set("0", "s0", "l0"),
    ]));
    cache.apply_pods(Change::Relisted(vec![
        leader("0", "l0", &[]),
        worker("0", "w0", "s0", &[]),
    ]));
    cache
}

fn names<'a>(metas: impl Iterator<Item = &'a Meta>) -> Vec<String> {
    metas.map(|meta| meta.key.name.to_string()).collect()
}
