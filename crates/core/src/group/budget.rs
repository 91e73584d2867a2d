//! Groups whose restart budget is used up: they are ended, retained, recovered and released (FAIL-70 … FAIL-78).
//!
//! Retained pods are held by a finalizer of ours. Only that finalizer and our two annotations are ever taken away here.

use lws_api::leaderworkerset::GroupIdentity;
use lws_api::names::{BUDGET_FINALIZER, annotation, label};
use serde_json::json;

use super::cause::Cause;
use super::observe::GroupSnapshot;
use super::{Group, steps};
use crate::intent::{PlanError, Step, Why};
use crate::leaderworkerset::hash::surplus;
use crate::model::{Deployment, Lws, Pod, StatefulSet};
use crate::notice::{Action, Notice};
use crate::restart_counts::RestartCounts;

/// FAIL-51: the counts of the set, read for the group of `leader`.
pub(super) fn counts(lws: &Lws, leader: &Pod) -> Result<RestartCounts, PlanError> {
    RestartCounts::of(lws).map_err(|error| PlanError {
        message: format!(
            "reading persisted group restart count for {}: {error}",
            leader.key().name
        ),
        retry_after: None,
    })
}

/// FAIL-72: marks the leader, retains the pods, deletes the leader. Every step may be repeated.
pub(super) fn exhaust(group: &Group<'_>, cause: Option<Cause>) -> Vec<Step> {
    let leader = group.leader;
    let mut steps: Vec<_> = mark(leader).into_iter().collect();
    steps.extend(
        members(group.snapshot, leader)
            .filter(|pod| is_retainable(group, pod))
            .map(|pod| {
                let body = json!({"metadata": {"finalizers": steps::with_budget_finalizer(pod)}});
                steps::patch_pod(pod, body, Why::BudgetExhausted)
            }),
    );
    let note = format!(
        "Restart budget exhausted; terminated group {} and stopped automatic recovery",
        group.index()
    );
    let notice = Notice::warning(
        group.lws.as_ref(),
        "ReplicaRestartBudgetExceeded",
        Action::Delete,
        note,
    )
    .related(leader.as_ref());
    steps.push(
        steps::delete_pod(leader, Why::BudgetExhausted)
            .then(notice)
            .caused_by(cause),
    );
    steps
}

/// FAIL-72 step 1. A recovery that was asked for before does not count.
fn mark(leader: &Pod) -> Option<Step> {
    let is_marked = leader.is_exhausted();
    if is_marked && leader.meta.has_finalizer(BUDGET_FINALIZER) {
        return None;
    }
    let annotations = if is_marked {
        json!({annotation::RESTART_BUDGET_EXHAUSTED: "true"})
    } else {
        json!({annotation::RESTART_BUDGET_EXHAUSTED: "true", annotation::RECOVER: null})
    };
    let body = json!({"metadata": {"annotations": annotations, "finalizers": steps::with_budget_finalizer(leader)}});
    Some(steps::patch_pod(leader, body, Why::BudgetExhausted))
}

/// FAIL-72 step 2: a terminating pod takes no finalizer, and a pod of another leader none of ours.
fn is_retainable(group: &Group<'_>, pod: &Pod) -> bool {
    pod.meta.uid != group.leader.meta.uid
        && !pod.meta.is_terminating()
        && !pod.meta.has_finalizer(BUDGET_FINALIZER)
        && group.snapshot.is_worker_of(&group.leader.meta, pod)
}

/// FAIL-72 step 2: the pods of the leader's group and revision, the leader included.
fn members<'a>(snapshot: &'a GroupSnapshot, leader: &'a Pod) -> impl Iterator<Item = &'a Pod> {
    let revision = leader.meta.label(label::REVISION);
    snapshot
        .peers
        .iter()
        .map(AsRef::as_ref)
        .filter(move |pod: &&Pod| pod.meta.label(label::REVISION) == revision)
}

/// FAIL-75: lets the pods go, workers first: a leader that goes first would free its name while its workers still hold theirs.
pub(super) fn release(snapshot: &GroupSnapshot) -> Vec<Step> {
    let Some(leader) = &snapshot.leader else {
        return snapshot
            .workers
            .iter()
            .filter_map(|pod| release_pod(pod))
            .collect();
    };
    let workers = members(snapshot, leader).filter(|pod| pod.meta.uid != leader.meta.uid);
    workers
        .filter_map(release_pod)
        .chain(release_pod(leader))
        .collect()
}

fn release_pod(pod: &Pod) -> Option<Step> {
    let body = json!({"metadata": {
        "finalizers": steps::without_budget_finalizer(pod),
        "annotations": {annotation::RESTART_BUDGET_EXHAUSTED: null, annotation::RECOVER: null},
    }});
    pod.meta
        .has_finalizer(BUDGET_FINALIZER)
        .then(|| steps::patch_pod(pod, body, Why::GroupReleased))
}

/// FAIL-78: what is done about a group that is given up.
pub(super) fn retained(
    snapshot: &GroupSnapshot,
    lws: &Lws,
    leader: &Pod,
) -> Result<Retained, PlanError> {
    if is_torn_down(snapshot, lws, leader)? {
        return Ok(Retained::Release(release(snapshot)));
    }
    Ok(
        match (
            leader.meta.is_terminating(),
            leader.meta.annotation(annotation::RECOVER) == "true",
        ) {
            (true, true) => Retained::Release(recover(snapshot, lws, leader)?),
            (true, false) => Retained::Stay,
            (false, _) => Retained::Terminate,
        },
    )
}

/// What is done about a group that is given up.
pub(super) enum Retained {
    /// The pods go, with these steps.
    Release(Vec<Step>),
    /// They stay.
    Stay,
    /// The end of the group was not completed.
    Terminate,
}

/// FAIL-74: the counter goes first, so that the new group begins at 0.
fn recover(snapshot: &GroupSnapshot, lws: &Lws, leader: &Pod) -> Result<Vec<Step>, PlanError> {
    let mut counts = counts(lws, leader)?;
    let cleared = counts.clear(
        leader.meta.label(label::REVISION),
        leader.meta.label(label::GROUP_INDEX),
    );
    let clear = cleared.then(|| steps::patch_set(lws, counts.patch(), Why::GroupReleased));
    Ok(clear.into_iter().chain(release(snapshot)).collect())
}

/// FAIL-78 step 1: the group is scaled away, or its replacement by a newer revision is due.
fn is_torn_down(snapshot: &GroupSnapshot, lws: &Lws, leader: &Pod) -> Result<bool, PlanError> {
    match lws.spec.group_identity() {
        GroupIdentity::Ordinal => match snapshot.our_leader_set(lws) {
            Some(leader_set) => is_ordinal_torn_down(leader_set, leader),
            None => Ok(false),
        },
        GroupIdentity::Hash => Ok(snapshot
            .our_deployment(lws)
            .is_some_and(|deployment| is_hash_torn_down(snapshot, lws, deployment, leader))),
    }
}

/// HASH-68. The count of the group is left to the set, which prunes it.
fn is_hash_torn_down(
    snapshot: &GroupSnapshot,
    lws: &Lws,
    deployment: &Deployment,
    leader: &Pod,
) -> bool {
    let wanted = deployment.meta.label(label::REVISION);
    let revision = leader.meta.label(label::REVISION);
    let replicas = usize::try_from(lws.spec.replicas()).unwrap_or_default();
    (!wanted.is_empty() && wanted != revision)
        || surplus(&snapshot.leaders, revision, &leader.meta.uid, replicas)
}

fn is_ordinal_torn_down(leader_set: &StatefulSet, leader: &Pod) -> Result<bool, PlanError> {
    let index = leader.meta.group_index().ok_or_else(|| PlanError {
        message: format!(
            "parsing group index for pod {}: {:?} is no index",
            leader.key().name,
            leader.meta.label(label::GROUP_INDEX)
        ),
        retry_after: None,
    })?;
    let index = i64::from(index);
    let revision = leader_set.meta.label(label::REVISION);
    let is_replaced = !revision.is_empty() && revision != leader.meta.label(label::REVISION);
    Ok(index >= i64::from(leader_set.replicas)
        || (is_replaced && index >= i64::from(leader_set.partition)))
}
