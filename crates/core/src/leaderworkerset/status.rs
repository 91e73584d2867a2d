//! Status of a set (ORD-100 … ORD-110): numbers, conditions, and what a change of them is called.
//!
//! Decides from what was counted, the stored status and the time. Conditions are processed in one pass, in their order; nothing is taken from objects
//! that are not the set's own. What is counted differs by identity: here the groups of an Ordinal set, in `hash` those of a Hash set.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lws_api::leaderworkerset::LeaderWorkerSetStatus;
use lws_api::names::label;
use serde_json::{Value, json};

use super::groups::Group;
use super::rollout::Budget;
use crate::model::Lws;

/// Condition types that exclude each other when True (ORD-107).
const EXCLUSIVE: [(&str, &str); 2] = [
    ("Available", "Progressing"),
    ("Available", "UpdateInProgress"),
];

const EXHAUSTED: &str = "ReplicaRestartBudgetExceeded";
const RECOVERY_STOPPED: &str = "Automatic recovery is stopped for one or more replicas";

/// ORD-103: sums over the groups of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Sums {
    /// Exhausted groups (D).
    exhausted: u32,
    /// … below the wanted replicas (Dd).
    exhausted_wanted: u32,
    /// Ready groups, surge included.
    ready: u32,
    /// Updated groups, surge included.
    updated: u32,
    /// Wanted groups that are ready and not exhausted (Rn).
    serving: u32,
    /// Wanted groups from the user's partition on (C).
    to_update: u32,
    /// … of the current revision (N).
    to_update_updated: u32,
    /// … that are ready as well (NR).
    to_update_done: u32,
}

impl Sums {
    fn of(groups: &[Group], budget: Budget) -> Self {
        groups
            .iter()
            .fold(Self::default(), |sums, group| sums.with(group, budget))
    }

    fn with(mut self, group: &Group, budget: Budget) -> Self {
        let is_wanted = group.index < budget.desired_replicas;
        self.exhausted += u32::from(group.is_exhausted);
        self.exhausted_wanted += u32::from(group.is_exhausted && is_wanted);
        if !group.is_complete {
            return self;
        }
        let rolls = is_wanted && group.index >= budget.user_partition;
        self.ready += u32::from(group.is_ready);
        self.updated += u32::from(group.is_updated);
        self.serving += u32::from(is_wanted && group.is_ready && !group.is_exhausted);
        self.to_update += u32::from(rolls);
        self.to_update_updated += u32::from(rolls && group.is_updated);
        self.to_update_done += u32::from(rolls && group.is_updated && group.is_ready);
        self
    }

    /// ORD-105: a group is to be replaced.
    fn is_rolling(self) -> bool {
        self.to_update_updated < self.to_update
    }

    /// ORD-105: every wanted group serves, in the revision that it shall have.
    fn is_all_ready(self, budget: Budget) -> bool {
        self.serving == budget.desired_replicas && self.to_update_done == self.to_update
    }

    /// ORD-105: something is still on its way.
    fn is_progressing(self, budget: Budget) -> bool {
        self.is_rolling()
            || self.serving.saturating_add(self.exhausted_wanted) < budget.desired_replicas
    }

    /// ORD-106: older revisions are of no use any more.
    fn is_update_done(self, budget: Budget) -> bool {
        budget.user_partition == 0 && self.to_update_done == budget.desired_replicas
    }
}

/// A condition as it is to be, without its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: &'static str,
}

const fn holds(kind: &'static str, reason: &'static str, message: &'static str) -> Wanted {
    Wanted {
        kind,
        is_true: true,
        reason,
        message,
    }
}

const fn fails(kind: &'static str, reason: &'static str, message: &'static str) -> Wanted {
    Wanted {
        kind,
        is_true: false,
        reason,
        message,
    }
}

pub(super) const AVAILABLE: Wanted = holds("Available", "AllGroupsReady", "All replicas are ready");
pub(super) const PROGRESSING: Wanted = holds(
    "Progressing",
    "GroupsProgressing",
    "Replicas are progressing",
);
pub(super) const UPDATING: Wanted = holds(
    "UpdateInProgress",
    "GroupsUpdating",
    "Rolling Upgrade is in progress",
);
pub(super) const DEGRADED: Wanted = holds("Degraded", EXHAUSTED, RECOVERY_STOPPED);
pub(super) const NOT_DEGRADED: Wanted = fails(
    "Degraded",
    "AsExpected",
    "No replica has exhausted its restart budget",
);
pub(super) const NOT_AVAILABLE: Wanted =
    fails("Available", EXHAUSTED, "Not all replicas are ready");
pub(super) const NOT_PROGRESSING: Wanted = fails("Progressing", EXHAUSTED, RECOVERY_STOPPED);
pub(super) const NOT_UPDATING: Wanted = fails(
    "UpdateInProgress",
    EXHAUSTED,
    "No rolling update is in progress",
);

/// ORD-105: conditions to set, in order; `Degraded` is the last one.
fn wanted(sums: Sums, budget: Budget) -> Vec<Wanted> {
    let mut list = if sums.is_rolling() {
        vec![UPDATING, PROGRESSING]
    } else if sums.is_all_ready(budget) {
        vec![AVAILABLE]
    } else if sums.exhausted > 0 {
        let progressing = if sums.is_progressing(budget) {
            PROGRESSING
        } else {
            NOT_PROGRESSING
        };
        vec![NOT_AVAILABLE, progressing, NOT_UPDATING]
    } else {
        vec![PROGRESSING]
    };
    list.push(if sums.exhausted > 0 {
        DEGRADED
    } else {
        NOT_DEGRADED
    });
    list
}

/// ORD-107: sets one condition; tells whether that changed anything.
fn set(conditions: &mut Vec<Condition>, wanted: Wanted, generation: i64, now: Timestamp) -> bool {
    if wanted.is_true {
        exclude(conditions, wanted.kind, generation, now);
    }
    let new = Condition {
        type_: wanted.kind.to_owned(),
        status: if wanted.is_true { "True" } else { "False" }.to_owned(),
        reason: wanted.reason.to_owned(),
        message: wanted.message.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    };
    put(conditions, new)
}

/// Puts a condition in the place of the one of its type, whose time it keeps if the status stays; tells whether that changed anything.
pub(super) fn put(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions
        .iter_mut()
        .find(|condition| condition.type_ == new.type_)
    else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// ORD-107: what cannot be True together with `kind` becomes False and keeps its reason and message.
fn exclude(conditions: &mut [Condition], kind: &str, generation: i64, now: Timestamp) {
    let excluded = |other: &str| {
        EXCLUSIVE
            .iter()
            .any(|(a, b)| (*a == kind && *b == other) || (*b == kind && *a == other))
    };
    for other in conditions
        .iter_mut()
        .filter(|other| other.status == "True" && excluded(&other.type_))
    {
        "False".clone_into(&mut other.status);
        other.observed_generation = Some(generation);
        other.last_transition_time = Time(now);
    }
}

/// What was counted, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// Groups that exist.
    pub replicas: i32,
    /// Groups that are ready.
    pub ready: i32,
    /// Groups of the current revision.
    pub updated: i32,
    /// Groups that are wanted.
    pub desired: u32,
    /// A group has used up its restart budget.
    pub is_degraded: bool,
    /// Conditions to set, in order; `Degraded` is the last one.
    pub conditions: Vec<Wanted>,
    /// ORD-106: older revisions are of no use any more.
    pub is_update_done: bool,
}

/// ORD-100 … ORD-106: the state of an Ordinal set. `replicas` are those that the leader set reports.
pub(super) fn of_groups(groups: &[Group], budget: Budget, replicas: i32) -> State {
    let sums = Sums::of(groups, budget);
    State {
        replicas,
        ready: api_number(sums.ready),
        updated: api_number(sums.updated),
        desired: budget.desired_replicas,
        is_degraded: sums.exhausted > 0,
        conditions: wanted(sums, budget),
        is_update_done: sums.is_update_done(budget),
    }
}

/// The status that a set shall have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decided {
    /// The whole status.
    pub status: LeaderWorkerSetStatus,
    /// ORD-108: reason and text of the event about changed conditions.
    pub event: Option<(&'static str, String)>,
}

/// ORD-107, ORD-108, HASH-73. After a failure (`is_clean` false) the generation does not count as observed (ORD-23).
pub(super) fn decide(lws: &Lws, state: &State, is_clean: bool, now: Timestamp) -> Decided {
    let generation = lws.meta.generation;
    let mut conditions = lws.status.conditions.clone();
    let mut changed = false;
    for condition in &state.conditions {
        changed |= set(&mut conditions, *condition, generation, now);
    }
    for condition in &mut conditions {
        condition.observed_generation = Some(generation);
    }
    let told = if state.is_degraded {
        state.conditions.last()
    } else {
        state.conditions.first()
    };
    let suffix = format!(
        ", with {} groups ready of total {} groups",
        state.ready, state.desired
    );
    let event = told
        .filter(|_| changed)
        .map(|condition| (condition.reason, format!("{}{suffix}", condition.message)));
    let status = LeaderWorkerSetStatus {
        conditions,
        ready_replicas: state.ready,
        updated_replicas: state.updated,
        replicas: state.replicas,
        hpa_pod_selector: selector(lws),
        observed_generation: if is_clean {
            generation
        } else {
            lws.status.observed_generation
        },
    };
    Decided { status, event }
}

/// Whether nothing changes but how many groups are in which state.
pub(super) fn differs_in_numbers_only(
    old: &LeaderWorkerSetStatus,
    new: &LeaderWorkerSetStatus,
) -> bool {
    let LeaderWorkerSetStatus {
        conditions,
        ready_replicas: _,
        updated_replicas: _,
        replicas: _,
        hpa_pod_selector,
        observed_generation,
    } = old;
    old != new
        && *conditions == new.conditions
        && *hpa_pod_selector == new.hpa_pod_selector
        && *observed_generation == new.observed_generation
}

/// ORD-102: set once, so that a selector that somebody relies on never changes.
fn selector(lws: &Lws) -> String {
    let stored = &lws.status.hpa_pod_selector;
    if stored.is_empty() {
        format!(
            "{}={},{}=0",
            label::NAME,
            lws.key().name,
            label::WORKER_INDEX
        )
    } else {
        stored.clone()
    }
}

fn api_number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// API-19: merge patch that replaces the status; members that are zero or empty are removed.
pub(super) fn patch(status: &LeaderWorkerSetStatus) -> Value {
    let LeaderWorkerSetStatus {
        conditions,
        ready_replicas,
        updated_replicas,
        replicas,
        hpa_pod_selector,
        observed_generation,
    } = status;
    let number = |number: i64| (number != 0).then_some(number);
    json!({"status": {
        "conditions": (!conditions.is_empty()).then_some(conditions),
        "readyReplicas": number((*ready_replicas).into()),
        "updatedReplicas": number((*updated_replicas).into()),
        "replicas": number((*replicas).into()),
        "hpaPodSelector": (!hpa_pod_selector.is_empty()).then_some(hpa_pod_selector),
        "observedGeneration": number(*observed_generation),
    }})
}

#[cfg(test)]
mod tests;
