//! What runs the leaders of a child set: whether it has taken up the wanted number of groups, and which ones it is going to end (RDY-5).

use std::sync::Arc;

use lws_api::leaderworkerset::GroupIdentity;

use super::{Group, has_observed};
use crate::cache::Cache;
use crate::model::{Deployment, Lws, Phase, Pod, ReplicaSet, StatefulSet};

/// The leader workload of a child set.
pub(super) enum Workload<'a> {
    /// Ordinal identity.
    Ordinal(&'a StatefulSet),
    /// Hash identity, with the ReplicaSets of the Deployment.
    Hash(&'a Deployment, Vec<&'a Arc<ReplicaSet>>),
}

impl<'a> Workload<'a> {
    /// RDY-2: that of `child`, if it is there and the child's own.
    pub fn of(child: &Lws, cache: &'a Cache) -> Option<Self> {
        match child.spec.group_identity() {
            GroupIdentity::Ordinal => {
                let set = cache.stateful_set(child.key())?;
                let is_own = set.meta.is_controlled_by(&child.meta.uid);
                is_own.then_some(Self::Ordinal(set))
            }
            GroupIdentity::Hash => {
                let deployment = cache.deployment(child.key())?;
                let sets = cache
                    .replica_sets_of(deployment.key())
                    .filter(|set| set.meta.is_controlled_by(&deployment.meta.uid))
                    .collect();
                let is_own = deployment.meta.is_controlled_by(&child.meta.uid);
                is_own.then_some(Self::Hash(deployment, sets))
            }
        }
    }

    /// Whether this leader is one of its own.
    pub fn controls(&self, leader: &Pod) -> bool {
        match self {
            Self::Ordinal(set) => leader.meta.is_controlled_by(&set.meta.uid),
            Self::Hash(_, sets) => sets
                .iter()
                .any(|set| leader.meta.is_controlled_by(&set.meta.uid)),
        }
    }

    /// Whether it wants `replicas` leaders and has acted on that.
    pub fn has_taken_up(&self, replicas: u32) -> bool {
        let is_wanted = |number: i64| number == i64::from(replicas);
        match self {
            Self::Ordinal(set) => {
                !set.meta.is_terminating() && is_wanted(set.replicas.into()) && has_observed(set)
            }
            Self::Hash(deployment, sets) => {
                let has_observed =
                    |set: &&Arc<ReplicaSet>| set.observed_generation >= set.meta.generation;
                let sum = sets.iter().map(|set| i64::from(set.replicas)).sum();
                !deployment.meta.is_terminating()
                    && is_wanted(deployment.replicas.into())
                    && deployment.status.observed_generation >= deployment.meta.generation
                    && sets.iter().all(has_observed)
                    && is_wanted(sum)
            }
        }
    }

    /// Marks the groups that an issued reduction takes. StatefulSets end the highest ordinals. Which leaders a ReplicaSet ends is its own choice,
    /// so as many Ready groups count as leaving as it has leaders too many.
    pub fn mark_leaving(&self, groups: &mut [Group], replicas: u32) {
        match self {
            Self::Ordinal(_) => {
                for group in groups {
                    group.is_staying &= group.ordinal.is_some_and(|ordinal| ordinal < replicas);
                }
            }
            Self::Hash(_, sets) => {
                for set in sets {
                    mark_excess(set, groups);
                }
            }
        }
    }
}

fn mark_excess(set: &ReplicaSet, groups: &mut [Group]) {
    let is_of_set = |group: &Group| group.leader.meta.is_controlled_by(&set.meta.uid);
    let is_counted = |group: &&Group| is_of_set(group) && is_active(&group.leader);
    let active = groups.iter().filter(is_counted).count();
    let excess = active.saturating_sub(usize::try_from(set.replicas).unwrap_or_default());
    let relied_on = groups
        .iter_mut()
        .filter(|group| is_of_set(group) && group.is_ready && group.is_staying);
    for group in relied_on.take(excess) {
        group.is_staying = false;
    }
}

/// Counted by a ReplicaSet: neither over nor on its way out.
fn is_active(leader: &Pod) -> bool {
    let is_over = match leader.phase {
        Phase::Succeeded | Phase::Failed => true,
        Phase::Pending | Phase::Running | Phase::Unknown => false,
    };
    !is_over && !leader.meta.is_terminating()
}
