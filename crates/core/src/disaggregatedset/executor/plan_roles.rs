//! The roles that the planner counts in (ROL-4, ROL-5).

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::disaggregatedset::DuringRollout;

use super::revisions::{ByRole, Revisions};
use super::{Child, Slice};
use crate::disaggregatedset::planner::{self, Groups, Share};
use crate::disaggregatedset::targets::{Budget, LeafKey, LeafTarget};

/// A role of the plan.
pub(super) struct PlanRole<'a> {
    /// Which one.
    pub key: LeafKey,
    /// ROL-5: groups wanted; none of a role that is not current.
    pub desired: u64,
    /// What a rollout may do.
    pub budget: Budget,
    /// The child of the target revision.
    pub target: Option<&'a Child>,
}

/// ROL-4: the current roles in the order of the spec, then those that only old revisions have, by name.
pub(super) fn plan_roles<'a>(slice: &Slice, revisions: &Revisions<'a>) -> Vec<PlanRole<'a>> {
    let current = slice.roles.iter().flat_map(|role| &role.leaves);
    let current = current.map(|leaf| PlanRole {
        key: leaf.key.clone(),
        desired: wanted(slice, revisions, leaf),
        budget: leaf.budget,
        target: revisions.target.get(&leaf.key.role).copied(),
    });
    let known: BTreeSet<&Arc<str>> = slice.roles.iter().map(|role| &role.role).collect();
    let old = revisions.old.iter().flat_map(|old| old.by_role.keys());
    let gone: BTreeSet<&Arc<str>> = old.copied().filter(|role| !known.contains(role)).collect();
    let gone = gone.into_iter().map(|role| PlanRole {
        key: LeafKey {
            role: role.clone(),
            sub_role: None,
        },
        desired: 0,
        budget: Budget::GONE,
        target: None,
    });
    current.chain(gone).collect()
}

/// ROL-5.
fn wanted(slice: &Slice, revisions: &Revisions<'_>, leaf: &LeafTarget) -> u64 {
    let has = |by_role: &ByRole<'_>| by_role.get(&leaf.key.role).map_or(0, |child| child.spec);
    match slice.policy {
        DuringRollout::RolloutCoupled if leaf.is_external => {
            let old = revisions.old.iter().map(|old| has(&old.by_role)).sum();
            planner::wanted_beside_old(leaf.replicas, has(&revisions.target), old)
        }
        DuringRollout::RolloutCoupled | DuringRollout::AdvanceRollout => leaf.replicas,
    }
}

impl PlanRole<'_> {
    /// What the planner is told of the role; `None` while the observation is pending.
    pub fn planned(&self) -> Option<planner::Role> {
        let target = self.target.map_or(Some(Groups::default()), groups)?;
        let waits = self.target.is_some_and(|child| child.has_unschedulable_pod);
        Some(planner::Role {
            desired: self.desired,
            surge: self.budget.surge,
            unavailable: self.budget.unavailable,
            is_unschedulable: waits && target.spec > target.committed,
            target,
        })
    }

    /// What an old revision has of the role; `None` while the observation is pending.
    pub fn share(&self, by_role: &ByRole<'_>) -> Option<Share> {
        let Some(child) = by_role.get(&self.key.role) else {
            return Some(Share::default());
        };
        Some(Share {
            initial: child.initial.unwrap_or(child.spec),
            groups: groups(child)?,
        })
    }
}

fn groups(child: &Child) -> Option<Groups> {
    let ready = child.ready?;
    Some(Groups {
        spec: child.spec,
        raw: ready.raw,
        committed: ready.committed,
    })
}
