//! What planted bugs do to plans and to what they are made from.

use std::sync::Arc;

use jiff::Timestamp;
use lws_api::names::label;
use lws_core::group::GroupSnapshot;
use lws_core::intent::{Intent, Kind, Step, Why};
use lws_core::leaderworkerset::Snapshot;
use lws_core::model::{Owner, Pairs, Phase};
use serde_json::{Value, json};

use super::Bug;

/// The steps of a plan as the bug has them.
pub(super) fn spoil(bug: Bug, steps: &[Step], at: Timestamp) -> Vec<Step> {
    steps
        .iter()
        .filter(|step| !is_left_out(bug, step))
        .cloned()
        .map(|mut step| {
            spoil_step(bug, &mut step, at);
            step
        })
        .collect()
}

fn is_left_out(bug: Bug, step: &Step) -> bool {
    let is_patch = matches!(step.intent, Intent::Patch { .. });
    match bug {
        Bug::NoStatus => step.why == Why::StatusDiffers,
        Bug::NoCount => step.why == Why::GroupFailed && is_patch,
        Bug::NoMark => step.why == Why::BudgetExhausted && is_patch,
        Bug::WaitForReady => step.why == Why::LeaderSetDiffers,
        Bug::KeepRevisions => step.why == Why::RevisionObsolete,
        Bug::NoService => step.why == Why::ServiceMissing,
        Bug::NoRevision => step.why == Why::RevisionMissing,
        Bug::NoPendingMark => step.why == Why::BackoffStarted,
        _ => false,
    }
}

fn spoil_step(bug: Bug, step: &mut Step, at: Timestamp) {
    let why = step.why;
    match &mut step.intent {
        Intent::Apply { body, .. } | Intent::Create { body, .. } => {
            let mut new = (**body).clone();
            spoil_body(bug, why, &mut new);
            *body = Arc::new(new);
        }
        Intent::Patch { target, body, .. } => {
            let is_set = target.kind == Kind::LeaderWorkerSet;
            if bug == Bug::WritesLabels && is_set && why != Why::StatusDiffers {
                body["metadata"] = json!({"labels": {"lws": "was here"}});
            }
            if bug == Bug::WritesSpec && target.kind == Kind::LeaderWorkerSet {
                body["spec"] = json!({"replicas": 1});
                if let Intent::Patch { subresource, .. } = &mut step.intent {
                    *subresource = lws_core::intent::Subresource::None;
                }
            } else if why == Why::StatusDiffers {
                spoil_status(bug, body, at);
            }
        }
        Intent::SetCondition { .. } | Intent::Delete { .. } => {}
    }
}

fn spoil_status(bug: Bug, body: &mut Value, at: Timestamp) {
    if bug == Bug::StaleGeneration {
        body["status"]["observedGeneration"] = json!(99);
    }
    let conditions = body
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if bug == Bug::TimesMove {
            condition["lastTransitionTime"] = json!(at.to_string());
        }
        if bug == Bug::AvailableEarly {
            let is_available = condition["type"] == "Available";
            condition["status"] = json!(if is_available { "True" } else { "False" });
        }
    }
}

fn spoil_body(bug: Bug, why: Why, body: &mut Value) {
    let rollout = "/spec/updateStrategy/rollingUpdate/partition";
    let wanted = body["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/replicas"]
        .as_str()
        .and_then(|n| n.parse::<i64>().ok());
    match (bug, why) {
        (Bug::PartitionTooLow, Why::LeaderSetDiffers) => {
            if let Some(partition) = body.pointer_mut(rollout) {
                *partition = json!(0);
            }
        }
        (Bug::TooManyGroups, Why::LeaderSetDiffers | Why::LeaderSetMissing) => {
            body["spec"]["replicas"] = json!(wanted.unwrap_or(0) + 9);
        }
        (Bug::PartitionRises, Why::LeaderSetDiffers) => {
            if let Some(partition) = body.pointer_mut(rollout) {
                *partition = json!(wanted);
            }
        }
        (Bug::SurgeKept, Why::LeaderSetDiffers) => {
            body["spec"]["replicas"] = json!(wanted.unwrap_or(0) + 1);
        }
        (Bug::OneWorkerMore, Why::WorkerSetMissing) => {
            let size = body["spec"]["replicas"].as_i64().unwrap_or(0);
            body["spec"]["replicas"] = json!(size + 1);
        }
        (Bug::SurgeDropped, Why::LeaderSetDiffers) => {
            body["spec"]["replicas"] = json!(wanted);
        }
        (Bug::WrongRevision, Why::WorkerSetMissing) => {
            body["metadata"]["labels"][label::REVISION] = json!("other");
        }
        (Bug::NoOwner, Why::WorkerSetMissing) => {
            if let Some(meta) = body["metadata"].as_object_mut() {
                meta.remove("ownerReferences");
            }
        }
        _ => {}
    }
}

/// What a group is decided from, as the bug sees it.
pub(super) fn blur(bug: Bug, seen: &mut GroupSnapshot) {
    let Some(leader) = seen.leader.clone() else {
        return;
    };
    let owner = Owner {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: leader.key().name.clone(),
        uid: leader.meta.uid.clone(),
    };
    match bug {
        Bug::NoPause => seen.lost = None,
        Bug::RestartsIgnored => {
            for pod in seen.workers.iter_mut().chain(&mut seen.leader) {
                Arc::make_mut(pod).restart = None;
            }
        }
        Bug::PendingIgnored => {
            for pod in &mut seen.peers {
                Arc::make_mut(pod).phase = Phase::Running;
            }
        }
        Bug::WorkersLead => {
            let owner = seen.leader_set.as_ref().map(|set| Owner {
                api_version: "apps/v1".into(),
                kind: "StatefulSet".into(),
                name: set.key().name.clone(),
                uid: set.meta.uid.clone(),
            });
            let pod = Arc::make_mut(seen.leader.get_or_insert(leader));
            pod.meta.owner = owner;
            pod.meta.annotations = Pairs::default();
        }
        Bug::NamesNotChecked => seen.holders.clear(),
        Bug::ChainIgnored => {
            for worker in &mut seen.workers {
                Arc::make_mut(worker).meta.owner = Some(owner.clone());
            }
            for tombstone in &mut seen.tombstones {
                tombstone.set_owner = Some(owner.clone());
            }
        }
        Bug::ReadyIgnored => Arc::make_mut(seen.leader.get_or_insert(leader)).ready = true,
        Bug::EndIgnored => {
            Arc::make_mut(seen.leader.get_or_insert(leader))
                .meta
                .deleted = None;
        }
        _ => {}
    }
}

/// What a set is decided from, as the bug sees it.
pub(super) fn blur_set(bug: Bug, seen: &mut Snapshot) {
    match bug {
        Bug::ForgetApplied => seen.applied = None,
        Bug::RevisionsForgotten => seen.revisions.clear(),
        Bug::SetEndIgnored => Arc::make_mut(&mut seen.lws).meta.deleted = None,
        Bug::LeadersServe => {
            for leader in &mut seen.leaders {
                let leader = Arc::make_mut(leader);
                leader.ready = true;
                leader.phase = Phase::Running;
            }
        }
        Bug::WorkersServe => {
            for set in seen.stateful_sets.values_mut() {
                let set = Arc::make_mut(set);
                set.status.available = set.replicas;
            }
        }
        Bug::AdoptsAnything => {
            let owner = Owner {
                api_version: "leaderworkerset.x-k8s.io/v1".into(),
                kind: "LeaderWorkerSet".into(),
                name: seen.lws.meta.key.name.clone(),
                uid: seen.lws.meta.uid.clone(),
            };
            if let Some(set) = &mut seen.leader_set {
                Arc::make_mut(set).meta.owner = Some(owner);
            }
        }
        _ => {}
    }
}
