//! Events about a set, word for word (ORD-115, ORD-135).

use super::revision::Occasion;
use super::rollout::{Current, Parameters};
use crate::intent::Kind;
use crate::model::Lws;
use crate::notice::{Action, Notice, Reference};

/// A revision was created.
pub(super) fn creating_revision(
    lws: &Lws,
    occasion: Occasion,
    key: &str,
    revision: Reference,
) -> Notice {
    let text = match occasion {
        Occasion::NewSet => {
            format!("Creating revision with key {key} for a newly created LeaderWorkerSet")
        }
        Occasion::Missing => {
            format!("Creating missing revision with key {key} for existing LeaderWorkerSet")
        }
        Occasion::Changed => format!("Creating revision with key {key} for updated LWS"),
    };
    Notice::normal(lws, "CreatingRevision", Action::Create, text).related(revision)
}

/// The leader workload was created.
pub(super) fn created_leaders(lws: &Lws, kind: Kind, revision: Reference) -> Notice {
    let text = format!("Created leader {} {}", word(kind), lws.key().name);
    Notice::normal(lws, "GroupsProgressing", Action::Create, text).related(revision)
}

/// The leader workload could not be created; the reason is appended.
pub(super) fn leaders_not_created(lws: &Lws, kind: Kind) -> Notice {
    Notice::warning(
        lws,
        "FailedCreate",
        Action::Create,
        format!("Failed to create leader {} {}", word(kind), lws.key().name),
    )
}

/// The leader workload could not be updated; the reason is appended.
pub(super) fn leaders_not_updated(lws: &Lws, kind: Kind) -> Notice {
    Notice::warning(
        lws,
        "FailedUpdate",
        Action::Update,
        format!("Failed to update leader {} {}", word(kind), lws.key().name),
    )
}

/// The kind as events write it.
fn word(kind: Kind) -> String {
    kind.name().to_lowercase()
}

/// A Service could not be created; the reason is appended.
pub(super) fn service_not_created(lws: &Lws) -> Notice {
    Notice::warning(
        lws,
        "FailedCreate",
        Action::Create,
        "Failed to create headless service for error",
    )
}

/// ORD-135: why a foreign leader workload stands in the way.
pub(super) fn foreign_leaders(lws: &Lws, kind: Kind) -> String {
    let key = lws.key();
    format!(
        "{} {key} already exists and is not controlled by LeaderWorkerSet {}",
        word(kind),
        key.name
    )
}

/// ORD-135: why a foreign Service stands in the way.
pub(super) fn foreign_service(lws: &Lws) -> String {
    let key = lws.key();
    format!(
        "service {key} is not controlled by LeaderWorkerSet {}",
        key.name
    )
}

/// The next groups are updated. A partition that rises, because the user raised his, updates nothing and is not told.
pub(super) fn updating(
    lws: &Lws,
    current: Current,
    new: Parameters,
    revision: Reference,
) -> Option<Notice> {
    let last = current
        .partition
        .checked_sub(1)
        .filter(|last| new.partition <= *last)?;
    let text = if new.partition == last {
        format!("Updating replica {last}")
    } else {
        format!("Updating replicas {} to {last} (inclusive)", new.partition)
    };
    Some(Notice::normal(lws, "GroupsUpdating", Action::Update, text).related(revision))
}

/// ORD-56: groups from the top are not wanted any more.
pub(super) fn reclaiming(lws: &Lws, current: Current, new: Parameters) -> Option<Notice> {
    let name = &lws.key().name;
    let last = current
        .replicas
        .checked_sub(1)
        .filter(|last| new.replicas <= *last)?;
    let text = if new.replicas == last {
        format!("deleting surge replica {name}-{last}")
    } else {
        format!(
            "deleting surge replicas from {name}-{} to {name}-{last}",
            new.replicas
        )
    };
    Some(Notice::normal(
        lws,
        "GroupsProgressing",
        Action::Delete,
        text,
    ))
}

/// ORD-108: conditions changed.
pub(super) fn conditions_changed(lws: &Lws, reason: &'static str, text: String) -> Notice {
    Notice::normal(lws, reason, Action::Update, text)
}
