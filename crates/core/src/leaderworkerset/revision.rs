//! Which revision of a set is current, and whether its template changed (ORD-33 … ORD-39).
//!
//! Decides from the listed revisions, the live spec and the key on the leader set. Revisions that somebody else controls are never looked at. What a
//! revision means counts, not how it was serialised: another release or another program may have written it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::leaderworkerset::{LeaderWorkerSetSpec, LeaderWorkerTemplate, NetworkConfig};
use serde_json::Value;

use super::meaning::meaning;
use crate::build::revision::{
    PATCH_DIRECTIVE, canonical, revision_data, revision_hash, revision_name,
};
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

/// ORD-34, ORD-35: revisions that this set controls, or nobody. A StatefulSet that was deleted with `--cascade=orphan` leaves its own revisions
/// behind, with our labels from its pod template: they store no template of a set and are none of ours.
pub fn eligible<'a>(
    revisions: &'a [Arc<Revision>],
    set: &Uid,
) -> impl Iterator<Item = &'a Arc<Revision>> {
    revisions.iter().filter(move |revision| {
        revision.meta.owner.as_ref().map_or_else(
            || {
                revision
                    .data
                    .pointer("/spec/leaderWorkerTemplate")
                    .is_some()
            },
            |owner| owner.uid == *set,
        )
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

/// ORD-34: keys that several revisions have, for the log.
pub fn ambiguous_keys(revisions: &[Arc<Revision>], set: &Uid) -> Vec<String> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for revision in eligible(revisions, set) {
        let of_key = names.entry(revision.key()).or_default();
        of_key.push(&revision.meta.key.name);
    }
    names
        .into_iter()
        .filter(|(key, names)| !key.is_empty() && names.len() > 1)
        .map(|(key, names)| format!("several revisions have key {key}: {}", names.join(", ")))
        .collect()
}

/// Why a revision is created; the text of event `CreatingRevision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The leader set names no key yet.
    NewSet,
    /// The leader set names a key that has no revision.
    Missing,
    /// The template changed.
    Changed,
}

/// A revision to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRevision {
    /// Name of the object.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// What it stores.
    pub data: Value,
    /// Why it is made.
    pub occasion: Occasion,
}

/// The object of a revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// It exists.
    Existing(Arc<Revision>),
    /// It is to be created.
    New(NewRevision),
}

/// The revision that counts in this pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Current {
    /// Its key.
    pub key: String,
    /// It differs from the one that the leader set carries, because the template changed (ORD-36).
    pub template_changed: bool,
    /// The object.
    pub object: Stored,
}

/// Steps 6 and 7 of ORD-20. `named` is the key on the leader set, `None` without one; `is_live` tells whether its leaders are made of the live spec,
/// as far as their template shows. It is asked only when the named revision is missing.
pub fn current(
    lws: &Lws,
    revisions: &[Arc<Revision>],
    named: Option<&str>,
    is_live: impl FnOnce() -> bool,
) -> Current {
    let wanted = Wanted::of(&lws.spec);
    let key = named.unwrap_or_default();
    let Some(stored) = by_key(revisions, &lws.meta.uid, key) else {
        return wanted.instead_of_missing(lws, revisions, key, is_live);
    };
    if wanted.means_the_same_as(lws, stored) {
        return Current {
            key: key.to_owned(),
            template_changed: false,
            object: Stored::Existing(stored.clone()),
        };
    }
    wanted.get_or_create(lws, revisions, &wanted.hash, Occasion::Changed, true)
}

/// The would-be revision of the live spec.
struct Wanted {
    data: Value,
    canonical: String,
    hash: String,
}

impl Wanted {
    fn of(spec: &LeaderWorkerSetSpec) -> Self {
        let data = revision_data(spec);
        let canonical = canonical(&data);
        Self {
            hash: revision_hash(&canonical),
            data,
            canonical,
        }
    }

    /// ORD-36, ORD-37.
    fn means_the_same_as(&self, lws: &Lws, stored: &Revision) -> bool {
        canonical(&stored.data) == self.canonical
            || restore(lws, stored)
                .is_ok_and(|restored| meaning(&revision_data(&restored)) == meaning(&self.data))
    }

    /// ORD-33, UPG-3: a revision that is gone or never was is made under the key that the leaders carry, so that nothing is rolled out. But it may only
    /// not be seen yet, and the set changed meanwhile: its key would then stand for two templates, and Kubernetes would roll leaders that count as
    /// updated. So leaders that are plainly made of something else take part in a rollout, as after any change (ORD-36).
    fn instead_of_missing(
        &self,
        lws: &Lws,
        revisions: &[Arc<Revision>],
        named: &str,
        is_live: impl FnOnce() -> bool,
    ) -> Current {
        let (key, occasion, is_changed) = if named.is_empty() {
            (self.hash.as_str(), Occasion::NewSet, false)
        } else if named == self.hash || is_live() {
            (named, Occasion::Missing, false)
        } else {
            (self.hash.as_str(), Occasion::Changed, true)
        };
        self.get_or_create(lws, revisions, key, occasion, is_changed)
    }

    /// ORD-39: an identical revision of this set is used again; else one is created.
    fn get_or_create(
        &self,
        lws: &Lws,
        revisions: &[Arc<Revision>],
        key: &str,
        occasion: Occasion,
        template_changed: bool,
    ) -> Current {
        let identical = revisions.iter().find(|revision| {
            revision.meta.is_controlled_by(&lws.meta.uid)
                && revision.key() == key
                && canonical(&revision.data) == self.canonical
        });
        let object = match identical {
            Some(revision) => Stored::Existing(revision.clone()),
            None => Stored::New(self.next(lws, revisions, occasion)),
        };
        Current {
            key: key.to_owned(),
            template_changed,
            object,
        }
    }

    /// ORD-32: one more than the newest.
    fn next(&self, lws: &Lws, revisions: &[Arc<Revision>], occasion: Occasion) -> NewRevision {
        let numbers = eligible(revisions, &lws.meta.uid).map(|revision| revision.number);
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        NewRevision {
            name: revision_name(&lws.key().name, &self.hash, number),
            number,
            data: self.data.clone(),
            occasion,
        }
    }
}

#[cfg(test)]
mod tests;
