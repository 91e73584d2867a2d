//! Status of a DisaggregatedSet and of its scalers (reconcile-disaggregatedset section 15, its API section 6).
//!
//! Decides from the targets, the children and their groups as of the snapshot; conditions also from the stored status and the time.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lws_api::disaggregatedset::{DisaggregatedSetStatus, Role, RoleStatus};
use lws_api::names::{ds_label, label};
use lws_api::rolescaler::DisaggregatedSetRoleScalerStatus;
use serde_json::{Value, json};

use super::children::Child;
use super::observe::Snapshot;
use super::readiness::Group;
use super::targets::{LeafKey, Wanted, unresolved};
use crate::model::{Ds, RoleScaler};

const READY: (&str, &str) = (
    "AllRolesReady",
    "All roles have reached their desired replica count, ready and updated to the current revision",
);
const ROLLING: (&str, &str) = (
    "RolloutInProgress",
    "Not all roles have reached their desired replica count, ready and updated to the current revision",
);
const UNRESOLVED: (&str, &str) = (
    "ReplicaTargetsUnresolved",
    "DisaggregatedSetRoleScaler could not be created or adopted for roles: ",
);
const ASSIGNED: (&str, &str) = (
    "AssignmentsConverged",
    "Every live LWS group has a valid sub-role assignment",
);
const UNASSIGNED: (&str, &str) = (
    "AssignmentsPending",
    "One or more live LWS groups are waiting for a valid sub-role assignment",
);
const SUB_ROLES_ASSIGNED: &str = "SubRolesAssigned";

/// Groups over all slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    replicas: i64,
    ready: i64,
    updated: i64,
}

/// The status that the set shall have.
pub(super) fn decide(
    snapshot: &Snapshot,
    wanted: &[Wanted],
    now: Timestamp,
) -> DisaggregatedSetStatus {
    let set = &*snapshot.set;
    let entries = entries(snapshot, wanted);
    let mut conditions = set.status.conditions.clone();
    let unresolved = unresolved(wanted);
    let is_available = unresolved.is_empty() && entries.iter().all(is_settled);
    let (kind, (reason, message)) = match (is_available, unresolved.is_empty()) {
        (true, _) => ("Available", (READY.0, READY.1.to_owned())),
        (false, true) => ("Progressing", (ROLLING.0, ROLLING.1.to_owned())),
        (false, false) => (
            "Progressing",
            (
                UNRESOLVED.0,
                format!("{}{}", UNRESOLVED.1, unresolved.join(", ")),
            ),
        ),
    };
    let generation = set.meta.generation;
    set_progress(&mut conditions, kind, reason, &message, generation, now);
    set_assignment(&mut conditions, snapshot, now);
    DisaggregatedSetStatus {
        observed_generation: generation,
        role_statuses: entries.into_iter().map(|entry| entry.status).collect(),
        conditions,
    }
}

/// An entry, and what it is wanted to be; `None` while that is not known.
struct Entry {
    status: RoleStatus,
    wanted: Option<i64>,
}

/// STA-4.
fn is_settled(entry: &Entry) -> bool {
    let RoleStatus {
        replicas,
        ready_replicas,
        updated_replicas,
        ..
    } = entry.status;
    [replicas, ready_replicas, updated_replicas]
        .iter()
        .all(|number| Some(i64::from(*number)) == entry.wanted)
}

/// STA-1 … STA-3: one entry for each role, followed by its sub-roles.
fn entries(snapshot: &Snapshot, wanted: &[Wanted]) -> Vec<Entry> {
    let slices = i64::from(snapshot.set.spec.slices());
    let entry = |name: String, desired: Option<u64>, counts: Option<Counts>| {
        let wanted = desired.and_then(|desired| i64::try_from(desired).ok()?.checked_mul(slices));
        let status = match counts {
            Some(counts) => RoleStatus {
                desired_replicas: wanted.map_or(0, api_number),
                replicas: api_number(counts.replicas),
                ready_replicas: api_number(counts.ready),
                updated_replicas: api_number(counts.updated),
                name,
            },
            None => previous(&snapshot.set, name),
        };
        Entry { status, wanted }
    };
    let roles = snapshot.set.spec.roles.iter().zip(wanted);
    roles
        .flat_map(|(role, target)| {
            let whole = entry(
                role.name.clone(),
                target.replicas,
                counts_of_role(snapshot, role),
            );
            let parts = role
                .sub_roles()
                .iter()
                .zip(&target.leaves)
                .map(|(part, leaf)| {
                    let counts = counts_of_groups(snapshot, role, |label| label == part.name);
                    entry(
                        format!("{}/{}", role.name, part.name),
                        leaf.replicas,
                        counts,
                    )
                });
            std::iter::once(whole).chain(parts).collect::<Vec<_>>()
        })
        .collect()
}

fn previous(set: &Ds, name: String) -> RoleStatus {
    let known = set
        .status
        .role_statuses
        .iter()
        .find(|entry| entry.name == name)
        .cloned();
    known.unwrap_or(RoleStatus {
        name,
        ..RoleStatus::default()
    })
}

fn children_of<'a>(snapshot: &'a Snapshot, role: &'a str) -> impl Iterator<Item = &'a Child> {
    snapshot
        .children
        .list
        .iter()
        .filter(move |child| child.role() == role)
}

/// STA-1, STA-2; `None` if the groups of a partitioned role cannot be seen.
fn counts_of_role(snapshot: &Snapshot, role: &Role) -> Option<Counts> {
    if role.is_partitioned() {
        return counts_of_groups(snapshot, role, |_| true);
    }
    let add = |counts: Counts, child: &Child| {
        let status = &child.lws.status;
        let is_current = child.revision() == snapshot.target.revision;
        Counts {
            replicas: counts.replicas + i64::from(status.replicas),
            ready: counts.ready + i64::from(status.ready_replicas),
            updated: counts.updated
                + if is_current {
                    i64::from(status.updated_replicas)
                } else {
                    0
                },
        }
    };
    Some(children_of(snapshot, &role.name).fold(Counts::default(), add))
}

/// STA-2: coherent groups whose sub-role `counts`.
fn counts_of_groups(
    snapshot: &Snapshot,
    role: &Role,
    counts: impl Fn(&str) -> bool,
) -> Option<Counts> {
    let mut sums = Counts::default();
    for child in children_of(snapshot, &role.name) {
        let seen = snapshot.observation(child)?;
        let is_current = child.revision() == snapshot.target.revision;
        for group in seen
            .groups
            .iter()
            .filter(|group| group.sub_role().is_some_and(&counts))
        {
            sums.replicas += 1;
            sums.ready += i64::from(group.is_ready);
            sums.updated += i64::from(is_current);
        }
    }
    Some(sums)
}

fn api_number(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// CND-1, CND-2: of `Available` and `Progressing` one is True and the other, if it is there, False.
fn set_progress(
    conditions: &mut Vec<Condition>,
    kind: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let other = if kind == "Available" {
        "Progressing"
    } else {
        "Available"
    };
    if let Some(other) = conditions
        .iter_mut()
        .find(|condition| condition.type_ == other)
    {
        other.observed_generation = Some(generation);
        if other.status != "False" {
            "False".clone_into(&mut other.status);
            reason.clone_into(&mut other.reason);
            message.clone_into(&mut other.message);
            other.last_transition_time = Time(now);
        }
    }
    put(conditions, kind, "True", (reason, message), generation, now);
}

/// CND-4.
fn set_assignment(conditions: &mut Vec<Condition>, snapshot: &Snapshot, now: Timestamp) {
    let partitioned: Vec<&Role> = snapshot
        .set
        .spec
        .roles
        .iter()
        .filter(|role| role.is_partitioned())
        .collect();
    if partitioned.is_empty() {
        return conditions.retain(|condition| condition.type_ != SUB_ROLES_ASSIGNED);
    }
    let is_assigned = partitioned.iter().all(|role| {
        let is_valid = |group: &Group| {
            let names = role.sub_roles().iter().map(|part| part.name.as_str());
            group
                .sub_role()
                .is_some_and(|label| names.into_iter().any(|name| name == label))
        };
        children_of(snapshot, &role.name).all(|child| {
            snapshot
                .observation(child)
                .is_some_and(|seen| seen.groups.iter().all(is_valid))
        })
    });
    let (status, text) = if is_assigned {
        ("True", ASSIGNED)
    } else {
        ("False", UNASSIGNED)
    };
    put(
        conditions,
        SUB_ROLES_ASSIGNED,
        status,
        text,
        snapshot.set.meta.generation,
        now,
    );
}

fn put(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: &str,
    (reason, message): (&str, &str),
    generation: i64,
    now: Timestamp,
) {
    let mut new = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    };
    match conditions
        .iter_mut()
        .find(|condition| condition.type_ == kind)
    {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// API-19: merge patch that replaces the status; members that are zero or empty are removed.
pub(super) fn patch(status: &DisaggregatedSetStatus) -> Value {
    let DisaggregatedSetStatus {
        observed_generation,
        role_statuses,
        conditions,
    } = status;
    json!({"status": {
        "observedGeneration": (*observed_generation != 0).then_some(observed_generation),
        "roleStatuses": (!role_statuses.is_empty()).then_some(role_statuses),
        "conditions": (!conditions.is_empty()).then_some(conditions),
    }})
}

/// SCL-10: the status of the scaler of a leaf; its number stays as it is while the groups cannot be seen.
pub(super) fn of_scaler(
    snapshot: &Snapshot,
    leaf: &LeafKey,
    scaler: &RoleScaler,
    now: Timestamp,
) -> DisaggregatedSetRoleScalerStatus {
    let role = snapshot
        .set
        .spec
        .roles
        .iter()
        .find(|role| role.name == *leaf.role);
    let counts = role.and_then(|role| match &leaf.sub_role {
        Some(part) => counts_of_groups(snapshot, role, |label| label == &**part),
        None => counts_of_role(snapshot, role),
    });
    let mut conditions = scaler.status.conditions.clone();
    let text = ("Bound", "Scaler bound to a live DisaggregatedSet role");
    put(
        &mut conditions,
        "Ready",
        "True",
        text,
        scaler.meta.generation,
        now,
    );
    DisaggregatedSetRoleScalerStatus {
        replicas: counts.map_or(scaler.status.replicas, |counts| api_number(counts.replicas)),
        selector: selector(&snapshot.set.key().name, leaf),
        observed_generation: scaler.meta.generation,
        conditions,
    }
}

/// SCR-2.
fn selector(set: &str, leaf: &LeafKey) -> String {
    let mut selector = format!(
        "{}={set},{}={},{}=0",
        ds_label::NAME,
        ds_label::ROLE,
        leaf.role,
        label::WORKER_INDEX
    );
    if let Some(part) = &leaf.sub_role {
        selector.push_str(&format!(",{}={part}", ds_label::SUBROLE));
    }
    selector
}

/// As [`patch`].
pub(super) fn scaler_patch(status: &DisaggregatedSetRoleScalerStatus) -> Value {
    let DisaggregatedSetRoleScalerStatus {
        replicas,
        selector,
        observed_generation,
        conditions,
    } = status;
    json!({"status": {
        "replicas": (*replicas != 0).then_some(replicas),
        "selector": selector,
        "observedGeneration": (*observed_generation != 0).then_some(observed_generation),
        "conditions": conditions,
    }})
}

#[cfg(test)]
mod tests;
