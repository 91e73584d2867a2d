//! Events about a DisaggregatedSet (reconcile-disaggregatedset section 16).

use lws_api::names::ds_annotation;

use super::children::Child;
use super::targets::LeafKey;
use crate::intent::{Kind, Target};
use crate::model::Ds;
use crate::notice::{Action, Notice, Reference};

impl From<&Ds> for Reference {
    fn from(set: &Ds) -> Self {
        Self {
            target: Target {
                kind: Kind::DisaggregatedSet,
                key: set.key().clone(),
            },
            uid: set.meta.uid.clone(),
        }
    }
}

/// A rollout to `revision` begins in a slice.
pub(super) fn rollout_started(set: &Ds, slice: u32, revision: &str) -> Notice {
    let note = format!("Started rolling update of slice {slice} to revision {revision}");
    Notice::normal(set, "RollingUpdateStarted", Action::Update, note)
}

/// A rollout to `revision` ended in a slice.
pub(super) fn rollout_completed(set: &Ds, slice: u32, revision: &str) -> Notice {
    let note = format!("Completed rolling update of slice {slice} to revision {revision}");
    Notice::normal(set, "RollingUpdateCompleted", Action::Update, note)
}

/// A rollout step changes the size of a child.
pub(super) fn scaling(set: &Ds, child: &Child, replicas: u64) -> Notice {
    let from = u64::from(child.replicas());
    let (reason, word) = if replicas > from {
        ("ScalingUp", "up")
    } else {
        ("ScalingDown", "down")
    };
    let note = format!(
        "Scaling {word} role {} in LeaderWorkerSet {} from {from} to {replicas}",
        child.role(),
        child.name()
    );
    Notice::normal(set, reason, Action::Update, note).routine()
}

/// PLN-19.
pub(super) fn bootstrap_surge(set: &Ds, slice: u32, roles: &[String]) -> Notice {
    let note = format!(
        "Slice {slice}: one group above the surge limit for roles without a first one: {}",
        roles.join(", ")
    );
    Notice::warning(set, "BootstrapSurge", Action::Bootstrap, note)
}

/// PLN-20.
pub(super) fn availability_fallback(
    set: &Ds,
    slice: u32,
    revision: &str,
    roles: &[String],
) -> Notice {
    let note = format!(
        "Slice {slice}: new pods find no room, so one group below the availability limit of revision {revision} is released for roles: {}",
        roles.join(", ")
    );
    Notice::warning(set, "AvailabilityFallback", Action::ReleaseCapacity, note)
}

/// ROL-11: no step is possible; `why` says what is waited for.
pub(super) fn drain_blocked(set: &Ds, slice: u32, why: &str) -> Notice {
    let note = format!("Slice {slice}: {why}");
    Notice::normal(set, "RevisionDrainBlocked", Action::Wait, note).routine()
}

/// ROL-2: `found` stands where the intended size of the child should.
pub(super) fn initial_replicas_missing(
    set: &Ds,
    child: &str,
    found: Option<&str>,
    replicas: u64,
) -> Notice {
    let found = found.map_or_else(|| "missing".to_owned(), |found| format!("{found:?}"));
    let note = format!(
        "Annotation {} of LeaderWorkerSet {child} is {found}; its current size {replicas} is taken",
        ds_annotation::INITIAL_REPLICAS
    );
    Notice::warning(set, "InitialReplicasMissing", Action::Recover, note)
}

/// SLC-3.
pub(super) fn deleted_with_slice(set: &Ds, child: &Child) -> Notice {
    let note = format!(
        "Deleted LeaderWorkerSet {} of removed slice {}",
        child.name(),
        child.slice
    );
    Notice::normal(set, "LWSDeleted", Action::Delete, note)
}

/// CLN-2, CLN-3.
pub(super) fn deleted_drained(set: &Ds, child: &Child) -> Notice {
    let note = format!("Deleted drained LeaderWorkerSet {}", child.name());
    Notice::normal(set, "LWSDeleted", Action::Delete, note)
}

/// SCL-5.
pub(super) fn scaler_created(set: &Ds, name: &str, leaf: &LeafKey) -> Notice {
    let note = format!("Created DisaggregatedSetRoleScaler {name} for role {leaf}");
    Notice::normal(set, "ScalerCreated", Action::Create, note)
}

/// SCL-3.
pub(super) fn scaler_deleted(set: &Ds, name: &str, leaf: &LeafKey) -> Notice {
    let note = format!("Deleted DisaggregatedSetRoleScaler {name} of role {leaf}");
    Notice::normal(set, "ScalerDeleted", Action::Delete, note)
}

/// SCL-6.
pub(super) fn scaler_conflict(set: &Ds, name: &str) -> Notice {
    Notice::warning(
        set,
        "ScalerConflict",
        Action::Conflict,
        foreign_scaler(set, name),
    )
}

/// SCL-6: why no scaler of that name can be made.
pub(super) fn foreign_scaler(set: &Ds, name: &str) -> String {
    format!(
        "DisaggregatedSetRoleScaler {name} already exists and does not belong to DisaggregatedSet {}",
        set.key().name
    )
}

/// OWS-3.
pub(super) fn child_conflict(set: &Ds, name: &str) -> Notice {
    Notice::warning(
        set,
        "LWSConflict",
        Action::Conflict,
        foreign_child(set, name),
    )
}

/// OWS-3: why no child of that name can be made.
pub(super) fn foreign_child(set: &Ds, name: &str) -> String {
    format!(
        "LeaderWorkerSet {name} already exists and is not controlled by DisaggregatedSet {}",
        set.key().name
    )
}

/// A child could not be created; the reason is appended.
pub(super) fn child_not_created(set: &Ds, name: &str) -> Notice {
    let note = format!("Failed to create LeaderWorkerSet {name}");
    Notice::warning(set, "LWSCreateFailed", Action::Create, note)
}

/// SLC-5.
pub(super) fn children_ignored(set: &Ds, names: &[std::sync::Arc<str>]) -> Notice {
    let note = format!(
        "LeaderWorkerSets without a slice are left alone until they are deleted: {}",
        names.join(", ")
    );
    Notice::warning(set, "LegacyChildIgnored", Action::Ignore, note)
}
