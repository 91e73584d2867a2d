//! Which revision of a set is current, and whether its template changed (ORD-33 … ORD-39).
//!
//! Decides from the listed revisions, the live spec and the key on the leader set. Revisions that somebody else controls are never looked at. What a
//! revision means counts, not how it was serialised: another release or another program may have written it.

use std::sync::Arc;

use lws_api::leaderworkerset::{LeaderWorkerSetSpec, LeaderWorkerTemplate, NetworkConfig};
use serde_json::Value;

use crate::build::revision::PATCH_DIRECTIVE;
use crate::model::{Lws, Revision, Uid};

/// A revision whose data is no spec.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The template is missing.
    #[error("revision {name} stores no template")]
    NoTemplate {
        /// Name of the revision.
        name: String,
    },
    /// A member has another shape than the API gives it.
    #[error("reading revision {name}")]
    Unreadable {
        /// Name of the revision.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// ORD-38: the live spec with template and network of the revision. Restart budget and back-off stay live.
pub fn restore(lws: &Lws, revision: &Revision) -> Result<LeaderWorkerSetSpec, RestoreError> {
    let name = || revision.meta.key.name.to_string();
    let unreadable = |source| RestoreError::Unreadable {
        name: name(),
        source,
    };
    let stored = |member: &str| {
        revision
            .data
            .pointer(&format!("/spec/{member}"))
            .filter(|value| !value.is_null())
            .map(without_directive)
    };
    let template =
        stored("leaderWorkerTemplate").ok_or_else(|| RestoreError::NoTemplate { name: name() })?;
    let template: LeaderWorkerTemplate = serde_json::from_value(template).map_err(unreadable)?;
    let network_config = match stored("networkConfig") {
        Some(network) => {
            Some(serde_json::from_value::<NetworkConfig>(network).map_err(unreadable)?)
        }
        None => lws.spec.network_config.clone(),
    };
    let live = &lws.spec.leader_worker_template;
    let leader_worker_template = LeaderWorkerTemplate {
        max_group_restarts: live.max_group_restarts,
        restart_backoff: live.restart_backoff.clone(),
        ..template
    };
    Ok(LeaderWorkerSetSpec {
        leader_worker_template,
        network_config,
        ..lws.spec.clone()
    })
}

fn without_directive(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.remove(PATCH_DIRECTIVE);
    }
    value
}

/// ORD-34, ORD-35: revisions that this set controls, or nobody.
pub fn eligible<'a>(
    revisions: &'a [Arc<Revision>],
    set: &Uid,
) -> impl Iterator<Item = &'a Arc<Revision>> {
    revisions.iter().filter(move |revision| {
        revision
            .meta
            .owner
            .as_ref()
            .is_none_or(|owner| owner.uid == *set)
    })
}

/// ORD-34: the revision of a key; of several the newest.
pub fn by_key<'a>(
    revisions: &'a [Arc<Revision>],
    set: &Uid,
    key: &str,
) -> Option<&'a Arc<Revision>> {
    if key.is_empty() {
        return None;
    }
    eligible(revisions, set)
        .filter(|revision| revision.key() == key)
        .max_by_key(|revision| revision.number)
}
