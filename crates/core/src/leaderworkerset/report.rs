//! What follows a plan: the status of the set, and once a rollout is over, the end of what it left behind (ORD-20 steps 14 and 15).
//!
//! Decides from the snapshot of the plan and from what became of its steps. The status is written only if it changed, also after a failure (ORD-23);
//! nothing is removed after one. A burst of changes that are mere numbers is one write.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1 as apps;
use lws_api::leaderworkerset::LeaderWorkerSetStatus;
use serde::Deserialize;
use serde_json::Value;

use super::observe::Snapshot;
use super::pass::write_counts;
use super::plan::{Basis, Counted, SetPlan};
use super::workload::Workload;
use super::{events, hash, status};
use crate::cache::Applied;
use crate::intent::{Intent, Kind, Propagation, Step, Subresource, Target, Why};
use crate::model::{Deployment, Revision, StatefulSet};
use crate::notice::Notice;
use crate::restart_counts::RestartCounts;
use crate::run::Outcome;

/// Shortest time between two statuses that differ in nothing but numbers.
pub(super) const NUMBERS_PERIOD: Duration = Duration::from_secs(1);

/// What is to be done after a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The status, then what is obsolete.
    pub steps: Vec<Step>,
    /// KRS-57: what the leader set is known to be after the pass.
    pub applied: Option<Applied>,
    /// When the status is written, if it is.
    pub reported: Option<Timestamp>,
    /// Numbers that are held back are written after this time.
    pub wake_after: Option<Duration>,
}

/// ORD-20 steps 14 and 15, after the steps of `plan` came to `outcome`.
pub fn report(snapshot: &Snapshot, plan: &SetPlan, outcome: &Outcome, now: Timestamp) -> Report {
    let Some(basis) = &plan.basis else {
        return Report::default();
    };
    let answer = basis
        .workload
        .as_ref()
        .and_then(|workload| outcome.answers.get(workload.step?)?.as_ref());
    let is_clean = plan.plan.errors.is_empty() && outcome.is_complete();
    let state = match &basis.counted {
        Counted::Ordinal(counted) => {
            let replicas = answer.map_or(counted.replicas, replicas);
            status::of_groups(&counted.groups, counted.budget, replicas)
        }
        Counted::Hash(counted) => hash::state(snapshot, counted, answer.and_then(deployment)),
    };
    let mut decided = status::decide(&snapshot.lws, &state, is_clean, now);
    let conditions = &mut decided.status.conditions;
    let prepared = basis.prepared.as_ref();
    let fault = prepared.and_then(|of| of.tell(&snapshot.lws, outcome, conditions, now));
    let is_update_done = is_clean && state.is_update_done;
    let wake_after = hold(snapshot, &decided.status, now);
    let mut steps = Vec::new();
    if wake_after.is_none() {
        steps.extend(write_status(snapshot, basis, outcome, decided, fault));
    }
    let reported = (!steps.is_empty()).then_some(now);
    if is_update_done {
        // A write of the status changes the version that the counts were read from; they go in the pass that it wakes.
        let counts = if steps.is_empty() {
            obsolete_counts(snapshot, basis)
        } else {
            None
        };
        if no_leader_is_made_of_an_old_template(snapshot, basis, answer) {
            steps.extend(obsolete_revisions(snapshot, basis));
        }
        steps.extend(counts);
    }
    Report {
        steps,
        applied: known(snapshot, plan, basis, outcome),
        reported,
        wake_after,
    }
}

/// How long a change of mere numbers waits, so that a burst of them is one write: while many groups get ready, each of them changes the status. What
/// conditions say is never held back, nor is the first status that this process writes.
fn hold(snapshot: &Snapshot, status: &LeaderWorkerSetStatus, now: Timestamp) -> Option<Duration> {
    if !status::differs_in_numbers_only(&snapshot.lws.status, status) {
        return None;
    }
    // A clock that was set back has no say.
    let passed = Duration::try_from(now.duration_since(snapshot.reported?)).ok()?;
    NUMBERS_PERIOD
        .checked_sub(passed)
        .filter(|rest| !rest.is_zero())
}

/// ORD-109.
fn write_status(
    snapshot: &Snapshot,
    basis: &Basis,
    outcome: &Outcome,
    decided: status::Decided,
    fault: Option<Notice>,
) -> Option<Step> {
    let lws = &*snapshot.lws;
    if decided.status == lws.status {
        return None;
    }
    let written = basis
        .set_step
        .and_then(|step| outcome.answers.get(step)?.as_ref());
    let version = written.and_then(|set| set.pointer("/metadata/resourceVersion")?.as_str());
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::LeaderWorkerSet,
            key: lws.key().clone(),
        },
        uid: lws.meta.uid.clone(),
        resource_version: Some(
            version.map_or_else(|| lws.meta.resource_version.clone(), Into::into),
        ),
        subresource: Subresource::Status,
        body: status::patch(&decided.status),
    };
    let mut step = Step::new(Why::StatusDiffers, intent);
    step.on_success.extend(
        decided
            .event
            .map(|(reason, text)| events::conditions_changed(lws, reason, text)),
    );
    step.on_success.extend(fault);
    Some(step)
}

/// ORD-40: below a partition, which the next change of the set may bring, Kubernetes makes pods of the StatefulSet's `currentRevision`. It moves only
/// some time after the last leader is updated, and until then a leader of the old template would find its revision gone and get no workers.
fn no_leader_is_made_of_an_old_template(
    snapshot: &Snapshot,
    basis: &Basis,
    answer: Option<&Value>,
) -> bool {
    match basis.counted {
        Counted::Hash(_) => true,
        Counted::Ordinal(_) => match answer {
            Some(answer) => stateful_set(answer).is_some_and(|set| set.has_rolled()),
            None => snapshot
                .leader_set
                .as_ref()
                .is_some_and(|set| set.has_rolled()),
        },
    }
}

/// ORD-40.
fn obsolete_revisions(snapshot: &Snapshot, basis: &Basis) -> impl Iterator<Item = Step> {
    let set = &snapshot.lws.meta.uid;
    let obsolete = move |revision: &&Revision| {
        revision.meta.is_controlled_by(set) && revision.key() != basis.revision_key
    };
    snapshot
        .revisions
        .iter()
        .map(|revision| &**revision)
        .filter(obsolete)
        .map(|revision| {
            let target = Target {
                kind: Kind::ControllerRevision,
                key: revision.meta.key.clone(),
            };
            let intent = Intent::Delete {
                target,
                uid: revision.meta.uid.clone(),
                resource_version: None,
                propagation: Propagation::Background,
            };
            Step::new(Why::RevisionObsolete, intent)
        })
}

/// FAIL-77.
fn obsolete_counts(snapshot: &Snapshot, basis: &Basis) -> Option<Step> {
    let mut counts = RestartCounts::of(&snapshot.lws).ok()?;
    counts
        .keep_revision(&basis.revision_key)
        .then(|| write_counts(&snapshot.lws, &counts, Why::CountsObsolete))
}

/// ORD-100.
fn replicas(leader_set: &Value) -> i32 {
    let replicas = leader_set
        .pointer("/status/replicas")
        .and_then(Value::as_i64);
    replicas
        .and_then(|replicas| i32::try_from(replicas).ok())
        .unwrap_or(0)
}

/// What was applied before, if this pass wrote nothing. A write without an answer may have been done: nothing is known then, and the next one
/// goes only where the cache shows what is there.
fn known(snapshot: &Snapshot, plan: &SetPlan, basis: &Basis, outcome: &Outcome) -> Option<Applied> {
    let Some(step) = basis.workload.as_ref().and_then(|workload| workload.step) else {
        return snapshot.applied.clone();
    };
    let answer = outcome.answers.get(step)?.as_ref()?;
    was_written(plan, basis, outcome)
        .then(|| applied(answer, basis))
        .flatten()
}

/// Whether the answer is that to a write of this pass. A create that found the object there tells no success, and what it found may differ.
fn was_written(plan: &SetPlan, basis: &Basis, outcome: &Outcome) -> bool {
    let workload = basis.workload.as_ref();
    let step = workload.and_then(|workload| plan.plan.steps.get(workload.step?));
    step.is_some_and(|step| {
        step.on_success
            .iter()
            .all(|notice| outcome.notices.contains(notice))
    })
}

fn applied(answer: &Value, basis: &Basis) -> Option<Applied> {
    let hash = basis.workload.as_ref()?.desired_hash;
    match basis.counted {
        Counted::Ordinal(_) => stateful_set(answer).map(|set| Workload::from(&set).applied(hash)),
        Counted::Hash(_) => {
            deployment(answer).map(|deployment| Workload::from(&deployment).applied(hash))
        }
    }
}

fn stateful_set(answer: &Value) -> Option<StatefulSet> {
    apps::StatefulSet::deserialize(answer).ok().map(Into::into)
}

fn deployment(answer: &Value) -> Option<Deployment> {
    apps::Deployment::deserialize(answer).ok().map(Into::into)
}
