//! How many groups are wanted of every role (reconcile-disaggregatedset section 6), and what a rollout may do with them (API-4).
//!
//! Decides from the spec and from what the scalers say. A role with a number that is not known is unresolved, and then nothing of the set is changed.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lws_api::disaggregatedset::{DisaggregatedSetSpec, Role, ScalingMode};
use lws_api::leaderworkerset::LeaderWorkerSetSpec;

use super::sub_roles::Counts;
use crate::leaderworkerset::rollout::{Round, resolved};

/// SCL-1: a role without sub-roles, or one sub-role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafKey {
    /// The role.
    pub role: Arc<str>,
    /// Its sub-role; `None` if the role is not partitioned.
    pub sub_role: Option<Arc<str>>,
}

impl fmt::Display for LeafKey {
    /// SUB-4.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sub_role {
            Some(sub_role) => write!(to, "{}/{sub_role}", self.role),
            None => self.role.fmt(to),
        }
    }
}

/// Groups wanted of a role per slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The role.
    pub role: Arc<str>,
    /// SCL-8: its groups; `None` while they are not known (SCL-9).
    pub replicas: Option<u64>,
    /// Its leaves, in the order of the spec.
    pub leaves: Vec<WantedLeaf>,
}

/// Groups wanted of a leaf per slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedLeaf {
    /// Which one.
    pub key: LeafKey,
    /// Its groups; `None` while they are not known.
    pub replicas: Option<u64>,
    /// They come from a scaler.
    pub is_external: bool,
}

/// A role all of whose numbers are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleTarget {
    /// The role.
    pub role: Arc<str>,
    /// Groups per slice: the sum over its leaves.
    pub replicas: u64,
    /// Its leaves, in the order of the spec; one without sub-role if it is not partitioned.
    pub leaves: Vec<LeafTarget>,
}

impl RoleTarget {
    /// Groups per sub-role; empty if the role is not partitioned.
    pub fn counts(&self) -> Counts {
        let leaves = self.leaves.iter();
        let counts = leaves.filter_map(|leaf| Some((leaf.key.sub_role.clone()?, leaf.replicas)));
        counts.collect()
    }
}

/// A leaf with its effective budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafTarget {
    /// Which one.
    pub key: LeafKey,
    /// Groups per slice.
    pub replicas: u64,
    /// They come from a scaler.
    pub is_external: bool,
    /// What a rollout may do.
    pub budget: Budget,
}

/// API-4: what a rollout may do with a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Groups that may run in addition.
    pub surge: u64,
    /// Groups that may be missing.
    pub unavailable: u64,
}

impl Budget {
    /// PLN 9.1: of a role that is no longer current.
    pub const GONE: Self = Self {
        surge: 1,
        unavailable: 0,
    };

    /// API-4, SRL-2: percentages count of `replicas`. What is no number counts as 0, since validation lets none through.
    pub fn of(spec: Option<&LeaderWorkerSetSpec>, replicas: u64) -> Self {
        let strategy = spec.and_then(|spec| spec.rollout_strategy.as_ref());
        let limits = strategy.and_then(|strategy| strategy.rolling_update_configuration.as_ref());
        let of = u32::try_from(replicas).unwrap_or(u32::MAX);
        let number = |value: Option<&IntOrString>, default, round| {
            value.map_or(default, |value| {
                u64::from(resolved(value, of, round).unwrap_or_default())
            })
        };
        let surge = number(limits.and_then(|of| of.max_surge.as_ref()), 0, Round::Up);
        let unavailable = limits.and_then(|of| of.max_unavailable.as_ref());
        let unavailable = number(unavailable, 1, Round::Down);
        if surge == 0 && unavailable == 0 {
            return Self::GONE;
        }
        Self { surge, unavailable }
    }
}

/// SCL-1: the leaves whose numbers come from a scaler, in the order of the spec.
pub fn external_leaves(spec: &DisaggregatedSetSpec) -> Vec<LeafKey> {
    let leaves = spec.roles.iter().flat_map(leaves);
    let external = leaves.filter(|(_, source)| *source == Source::Scaler);
    external.map(|(key, _)| key).collect()
}

/// SCL-8, SCL-9: `scaler` gives the value of the usable scaler of a leaf.
pub fn wanted(
    spec: &DisaggregatedSetSpec,
    scaler: impl Fn(&LeafKey) -> Option<i32>,
) -> Vec<Wanted> {
    let of_leaf = |(key, source): (LeafKey, Source)| {
        let replicas = match source {
            Source::Spec(replicas) => Some(replicas),
            Source::Scaler => scaler(&key),
        };
        WantedLeaf {
            key,
            replicas: replicas.and_then(|replicas| u64::try_from(replicas).ok()),
            is_external: source == Source::Scaler,
        }
    };
    let of_role = |role: &Role| {
        let leaves: Vec<WantedLeaf> = leaves(role).map(of_leaf).collect();
        let sum: Option<u64> = leaves.iter().map(|leaf| leaf.replicas).sum();
        Wanted {
            role: role.name.as_str().into(),
            replicas: sum.filter(|sum| i32::try_from(*sum).is_ok()),
            leaves,
        }
    };
    spec.roles.iter().map(of_role).collect()
}

/// SCL-9: roles whose groups are not known.
pub fn unresolved(wanted: &[Wanted]) -> Vec<Arc<str>> {
    let unresolved = wanted.iter().filter(|role| role.replicas.is_none());
    unresolved.map(|role| role.role.clone()).collect()
}

/// The roles with their budgets; `None` while one is unresolved (REC-6).
pub fn targets(spec: &DisaggregatedSetSpec, wanted: &[Wanted]) -> Option<Vec<RoleTarget>> {
    let roles = spec.roles.iter().zip(wanted);
    let roles = roles.map(|(role, wanted)| {
        let leaves = wanted.leaves.iter().map(|leaf| {
            let replicas = leaf.replicas?;
            Some(LeafTarget {
                key: leaf.key.clone(),
                replicas,
                is_external: leaf.is_external,
                budget: Budget::of(role.spec.as_ref(), replicas),
            })
        });
        Some(RoleTarget {
            role: wanted.role.clone(),
            replicas: wanted.replicas?,
            leaves: leaves.collect::<Option<_>>()?,
        })
    });
    roles.collect()
}

/// Where the number of a leaf comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Spec(i32),
    Scaler,
}

impl Source {
    fn of(mode: ScalingMode, replicas: i32) -> Self {
        match mode {
            ScalingMode::Static => Self::Spec(replicas),
            ScalingMode::External => Self::Scaler,
        }
    }
}

fn leaves(role: &Role) -> impl Iterator<Item = (LeafKey, Source)> {
    let name: Arc<str> = role.name.as_str().into();
    let of_role = name.clone();
    let whole = (!role.is_partitioned()).then(move || {
        let replicas = role.spec.as_ref().map_or(1, LeaderWorkerSetSpec::replicas);
        let key = LeafKey {
            role: of_role,
            sub_role: None,
        };
        (key, Source::of(role.scaling_mode(), replicas))
    });
    let shares = role.sub_roles().iter().map(move |sub_role| {
        let key = LeafKey {
            role: name.clone(),
            sub_role: Some(sub_role.name.as_str().into()),
        };
        (
            key,
            Source::of(sub_role.scaling_mode(), sub_role.replicas()),
        )
    });
    whole.into_iter().chain(shares)
}

#[cfg(test)]
mod tests;
