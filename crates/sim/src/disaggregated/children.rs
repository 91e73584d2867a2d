//! What is below a child LeaderWorkerSet, as it looks from outside: a StatefulSet, leaders of groups of one pod, and the status of the child.
//!
//! Each of them lags behind the other by itself. Nothing here is a rollout: the template of a child is never edited.

use std::sync::Arc;

use jiff::Timestamp;
use lws_api::names::{annotation as names, label as labels};
use serde_json::{Value, json};

use crate::actors::kubelet::{self, Event};
use crate::actors::{controller, is_ready, label, number, owners, uid};
use crate::store::{Cascade, Deletion, Key, Kind, Store, is_terminating, text};

const BY: &str = "child-controller";

/// One write.
#[derive(Clone, Debug)]
pub enum Move {
    /// The StatefulSet is created.
    Make,
    /// One that nobody owns any more is taken over.
    Adopt,
    /// It gets the replicas of the child.
    Scale,
    /// It has seen its spec.
    Observe,
    /// The child's status.
    Report(Value),
    /// A leader is created.
    Raise(i64),
    /// A leader is deleted.
    End(Key),
    /// A pod finds no place.
    Refuse(Key),
}

fn below(child: &Key, kind: Kind, suffix: &str) -> Key {
    let name = format!("{}{suffix}", child.name);
    Key::new(kind, &child.namespace, &name)
}

/// The number of a leader of `child`.
fn ordinal(child: &Key, pod: &Key) -> Option<i64> {
    let number = pod.name.strip_prefix(&*child.name)?.strip_prefix('-')?;
    number.parse().ok()
}

/// The leaders of a child with their numbers, those of its StatefulSet only.
pub fn leaders<'a>(
    store: &'a Store,
    child: &'a Key,
) -> impl Iterator<Item = (i64, &'a Key, &'a Arc<Value>)> {
    let set = store.get(&below(child, Kind::StatefulSet, ""));
    let owner = set.map(|set| uid(set)).unwrap_or_default();
    let pods = store.list(Kind::Pod);
    pods.filter_map(move |(key, pod)| Some((ordinal(child, key)?, key, pod)))
        .filter(move |(_, _, pod)| controller(pod).is_some_and(|by| by["uid"] == owner))
}

/// What could be written next below the child `key`.
pub fn moves(store: &Store, key: &Key, child: &Value) -> Vec<Move> {
    let set = store.get(&below(key, Kind::StatefulSet, ""));
    let Some(set) = set.filter(|_| !is_terminating(child)) else {
        let is_missing = set.is_none() && !is_terminating(child);
        return is_missing.then_some(Move::Make).into_iter().collect();
    };
    match controller(set) {
        _ if is_terminating(set) => return Vec::new(),
        None => return vec![Move::Adopt],
        Some(owner) if owner["uid"] != uid(child) => return Vec::new(),
        Some(_) => {}
    }
    let mut moves = of_workload(key, child, set, store);
    let replicas = number(set, "/spec/replicas");
    for (ordinal, pod, object) in leaders(store, key) {
        let is_over = text(object, "/status/phase") == Some("Failed");
        if !is_terminating(object) && (is_over || ordinal >= replicas) {
            moves.push(Move::End(pod.clone()));
        }
    }
    let name = |ordinal: &i64| below(key, Kind::Pod, &format!("-{ordinal}"));
    let missing = (0..replicas).filter(|ordinal| store.get(&name(ordinal)).is_none());
    moves.extend(missing.map(Move::Raise));
    moves
}

fn of_workload(key: &Key, child: &Value, set: &Value, store: &Store) -> Vec<Move> {
    let mut moves = Vec::new();
    if number(set, "/status/observedGeneration") != number(set, "/metadata/generation") {
        moves.push(Move::Observe);
    }
    if number(set, "/spec/replicas") != number(child, "/spec/replicas") {
        moves.push(Move::Scale);
        return moves;
    }
    let (mut all, mut ready) = (0, 0);
    for (_, _, pod) in leaders(store, key) {
        all += 1;
        ready += i64::from(is_ready(pod));
    }
    let status = json!({"observedGeneration": number(child, "/metadata/generation"),
        "replicas": all, "readyReplicas": ready, "updatedReplicas": ready});
    if child.get("status") != Some(&status) {
        moves.push(Move::Report(status));
    }
    moves
}

/// What the kubelet does with a leader next. `has_room`: another pod finds a place.
pub fn kubelet(key: &Key, pod: &Value, has_room: bool) -> Result<Option<Event>, Move> {
    match kubelet::next(pod) {
        Some(Event::Bind) if !has_room => {
            let is_known = pod.pointer("/status/conditions/0/reason").is_some();
            if is_known {
                Ok(None)
            } else {
                Err(Move::Refuse(key.clone()))
            }
        }
        // The moment between is of no interest here.
        Some(Event::Start) if text(pod, "/spec/containers/0/image") != Some(kubelet::BROKEN) => {
            Ok(Some(Event::Ready))
        }
        other => Ok(other),
    }
}

/// Pods that have a place.
pub fn placed(store: &Store) -> usize {
    let pods = store.list(Kind::Pod).map(|(_, pod)| pod);
    let has_place = |pod: &&Arc<Value>| {
        pod["spec"].get("nodeName").is_some() && text(pod, "/status/phase") != Some("Failed")
    };
    pods.filter(has_place).count()
}

/// Makes a move. `bound`: new pods have a place at once.
pub fn perform(store: &mut Store, key: &Key, step: Move, bound: bool, now: Timestamp) {
    let set = below(key, Kind::StatefulSet, "");
    let Some(child) = store.get(key).cloned() else {
        return;
    };
    // What came in between makes a move void; the next one is made from what is there then.
    let _ = match step {
        Move::Make => store.create(BY, set, workload(key, &child)),
        Move::Adopt => {
            let patch = json!({"metadata": {"ownerReferences": [owner(key, &child)]}});
            store.patch(BY, &set, false, &patch)
        }
        Move::Scale => {
            let patch = json!({"spec": {"replicas": child["spec"]["replicas"]}});
            store.patch(BY, &set, false, &patch)
        }
        Move::Observe => {
            let seen = store
                .get(&set)
                .map(|set| number(set, "/metadata/generation"));
            let patch = json!({"status": {"observedGeneration": seen}});
            store.patch(BY, &set, true, &patch)
        }
        Move::Report(status) => store.patch(BY, key, true, &json!({"status": status})),
        Move::Raise(ordinal) => {
            let Some(workload) = store.get(&set).cloned() else {
                return;
            };
            let pod = leader(key, &child, &workload, ordinal, bound);
            let name = below(key, Kind::Pod, &format!("-{ordinal}"));
            store.create(BY, name, pod)
        }
        Move::End(pod) => {
            let deletion = Deletion {
                uid: None,
                version: None,
                cascade: Cascade::Background,
                grace: None,
            };
            store.delete(BY, &pod, &deletion)
        }
        Move::Refuse(pod) => {
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "lastTransitionTime": now.to_string()});
            let patch = json!({"status": {"phase": "Pending", "conditions": [condition]}});
            store.patch(BY, &pod, true, &patch)
        }
    };
}

fn owner(child: &Key, object: &Value) -> Value {
    json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": &*child.name,
        "uid": uid(object), "controller": true, "blockOwnerDeletion": true})
}

fn workload(key: &Key, child: &Value) -> Value {
    let labels = json!({labels::NAME: &*key.name, labels::WORKER_INDEX: "0"});
    json!({
        "metadata": {"labels": labels, "ownerReferences": [owner(key, child)]},
        "spec": {"replicas": child["spec"]["replicas"], "serviceName": &*key.name,
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
    })
}

fn leader(key: &Key, child: &Value, workload: &Value, ordinal: i64, bound: bool) -> Value {
    let template = &child["spec"]["leaderWorkerTemplate"]["workerTemplate"];
    let mut all = template["metadata"]["labels"].clone();
    all[labels::NAME] = json!(&*key.name);
    all[labels::WORKER_INDEX] = json!("0");
    all[labels::GROUP_INDEX] = json!(ordinal.to_string());
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": &*key.name, "uid": uid(workload),
        "controller": true, "blockOwnerDeletion": true});
    let mut spec = json!({"containers": template["spec"]["containers"], "hostname": format!("{}-{ordinal}", key.name)});
    if bound {
        spec["nodeName"] = json!("node-a");
    }
    json!({
        "metadata": {"labels": all, "annotations": {names::SIZE: "1"}, "ownerReferences": [owner]},
        "spec": spec,
    })
}

/// Whether the object is a child of a DisaggregatedSet, or below one.
pub fn is_below(object: &Value) -> bool {
    !label(object, lws_api::names::ds_label::NAME).is_empty()
        || owners(object).any(|owner| owner["kind"] == "LeaderWorkerSet")
}
