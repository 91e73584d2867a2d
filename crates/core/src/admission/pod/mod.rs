//! What is added to a pod of a LeaderWorkerSet when it is created (pods.md section 3), from that pod alone.
//!
//! The pod itself is never copied: decisions are collected in a [`Draft`] over it and turned into a patch of exactly the
//! paths that change. Once admitted, a pod is never changed here again (PA-8).

mod draft;
mod env;
mod gang;
mod patch;
mod place;
mod tpu;

use json_patch::Patch;
use lws_api::names::{annotation, label};
use serde_json::Value;
use thiserror::Error;

use super::Environment;
use crate::identity::{
    group_key, hash_group_key, parse_ordinal, short_key, subgroup_index, subgroup_key,
};
use draft::{Draft, Level, Role};

/// The part of a CREATE request for a pod that is decided on.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The pod as sent.
    pub pod: &'a Value,
    /// Namespace of the request.
    pub namespace: &'a str,
    /// Fresh random number: keys and names of new incarnations are drawn from it (GK-3, NAT-35).
    pub random: u128,
}

/// Why a pod is refused (PW-4).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Denial {
    /// The object has no `spec`, so it is no pod.
    #[error("the pod has no spec")]
    NoSpec,
    /// A value that the controllers always write is missing.
    #[error("{kind} {key} is missing on pod {pod:?}")]
    Missing {
        /// `label` or `annotation`.
        kind: &'static str,
        /// Its key.
        key: &'static str,
        /// Name of the pod.
        pod: String,
    },
    /// A value that must be a number is none, or is one that leads nowhere.
    #[error("{kind} {key} of pod {pod:?} must be a usable integer, is {value:?}")]
    NotANumber {
        /// `label` or `annotation`.
        kind: &'static str,
        /// Its key.
        key: &'static str,
        /// Name of the pod.
        pod: String,
        /// The value found.
        value: String,
    },
    /// The name of the pod does not say which member of which group it is.
    #[error("name {pod:?} of a {role} pod does not end in a dash and an ordinal")]
    NoOrdinal {
        /// `leader` or `worker`.
        role: &'static str,
        /// Name of the pod.
        pod: String,
    },
    /// The lists of TPU members would exceed what a pod can hold.
    #[error("the TPU slice of pod {pod:?} has too many members: {members}")]
    TooManyMembers {
        /// Name of the pod.
        pod: String,
        /// Entries that each list would have.
        members: i64,
    },
    /// NAT-29.
    #[error(
        "unsupported workload-aware scheduling mode {0:?}: supported are lws, replica, role and true"
    )]
    SchedulingMode(String),
    /// NAT-30.
    #[error(
        "pod {0:?} asks for workload-aware scheduling, but no scheduler provider is configured"
    )]
    NoSchedulerProvider(String),
}

/// PA-1 … PA-8: the patch for a new pod, or `None` when it stays as it is.
pub fn mutate(request: &Request<'_>, environment: &Environment) -> Result<Option<Patch>, Denial> {
    let Some(mut draft) = Draft::of(request) else {
        return Ok(None);
    };
    if !draft.has_spec() {
        return Err(Denial::NoSpec);
    }
    let size = draft.annotation_number(annotation::SIZE)?;
    match draft.role() {
        Role::Leader => identify_leader(&mut draft, request.random)?,
        Role::Worker => identify_worker(&mut draft, size)?,
    }
    gang::join(&mut draft, environment, request.random)?;
    let tpu = tpu::variables(&draft, size)?;
    let front = env::group_variables(&draft)?;
    let patch = patch::build(&draft, &front, &tpu);
    Ok(Some(patch).filter(|patch| !patch.is_empty()))
}

/// PA-3: group, host name, subdomain, exclusive placement and subgroup of a leader.
fn identify_leader(draft: &mut Draft<'_>, random: u128) -> Result<(), Denial> {
    let key = if draft.is_hash() {
        name_hash_leader(draft, random)
    } else {
        name_ordinal_leader(draft)?
    };
    if draft.annotation(annotation::SUBDOMAIN_POLICY) == Some("UniquePerReplica") {
        let own = if draft.is_hash() {
            draft.hostname()
        } else {
            draft.name()
        };
        draft.set_subdomain(own.to_owned());
    }
    draft.place(Level::Group, &key);
    let excluded = draft.annotation(annotation::SUBGROUP_POLICY_TYPE) == Some("LeaderExcluded");
    if draft.wants_subgroup() && !excluded {
        let group = if draft.is_hash() {
            key
        } else {
            draft.name().to_owned()
        };
        join_subgroup(draft, &group, 0);
    }
    Ok(())
}

/// The index and the key of an Ordinal group follow from the leader's name.
fn name_ordinal_leader(draft: &mut Draft<'_>) -> Result<String, Denial> {
    let name = draft.name();
    let Some((_, ordinal)) = parse_ordinal(name) else {
        return Err(Denial::NoOrdinal {
            role: "leader",
            pod: name.to_owned(),
        });
    };
    let key = group_key(draft.namespace(), name);
    draft.set_label(label::GROUP_INDEX, ordinal.to_string());
    draft.set_label(label::GROUP_KEY, key.clone());
    Ok(key)
}

/// The key of a Hash group is drawn anew for every leader; its host name follows from it (GATE-1 gates it too).
fn name_hash_leader(draft: &mut Draft<'_>, random: u128) -> String {
    let key = hash_group_key(draft.namespace(), random);
    draft.set_label(label::GROUP_INDEX, key.clone());
    draft.set_label(label::GROUP_KEY, key.clone());
    if draft.hostname().is_empty() {
        let set = draft.label(label::NAME).unwrap_or_default();
        draft.set_hostname(format!("{set}-{}", short_key(&key)));
    }
    draft.gate();
    if draft.annotation(annotation::POD_DELETION_COST).is_none() {
        draft.set_annotation(annotation::POD_DELETION_COST, "-100".to_owned());
    }
    key
}

/// PA-4: position and subgroup of a worker. Workers never get the affinity of the group: they follow the leader.
fn identify_worker(draft: &mut Draft<'_>, size: i64) -> Result<(), Denial> {
    let name = draft.name();
    let Some((parent, ordinal)) = parse_ordinal(name) else {
        return Err(Denial::NoOrdinal {
            role: "worker",
            pod: name.to_owned(),
        });
    };
    draft.set_label(label::WORKER_INDEX, ordinal.to_string());
    if draft.wants_subgroup() {
        let subgroup_size = draft.annotation_number(annotation::SUBGROUP_SIZE)?;
        let index = subgroup_index(size, subgroup_size, ordinal.into())
            .ok_or_else(|| draft.not_a_number("annotation", annotation::SUBGROUP_SIZE))?;
        let group = if draft.is_hash() {
            draft.label(label::GROUP_KEY).unwrap_or_default()
        } else {
            draft.annotation(annotation::LEADER_NAME).unwrap_or(parent)
        };
        let group = group.to_owned();
        join_subgroup(draft, &group, index);
    }
    Ok(())
}

/// SG-4, and exclusive placement of the subgroup.
fn join_subgroup(draft: &mut Draft<'_>, group: &str, index: i64) {
    let index = index.to_string();
    let key = subgroup_key(group, &index);
    draft.set_label(label::SUBGROUP_INDEX, index);
    draft.set_label(label::SUBGROUP_KEY, key.clone());
    draft.place(Level::Subgroup, &key);
}

#[cfg(test)]
mod tests;
