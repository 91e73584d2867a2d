//! The roles that the planner counts in (ROL-4, ROL-5).

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::disaggregatedset::DuringRollout;

use super::revisions::{ByRole, Revisions};
use super::{Child, Slice};
use crate::disaggregatedset::planner::{self, Groups, Share};
use crate::disaggregatedset::sub_roles::{Counts, Routing};
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

/// ROL-4, SRL-1: the current roles in the order of the spec, then those that only old revisions have, by name. Sub-roles that only children know
/// follow those of the spec.
pub(super) fn plan_roles<'a>(slice: &Slice, revisions: &Revisions<'a>) -> Vec<PlanRole<'a>> {
    let mut roles = Vec::new();
    for role in &slice.roles {
        let target = revisions.target.get(&role.role).copied();
        roles.extend(role.leaves.iter().map(|leaf| PlanRole {
            key: leaf.key.clone(),
            desired: wanted(slice, revisions, leaf),
            budget: leaf.budget,
            target,
        }));
        let counts = role.counts();
        if !counts.is_empty() {
            let known: BTreeSet<&Arc<str>> = counts.iter().map(|(name, _)| name).collect();
            let gone = sub_roles(revisions, &role.role).into_iter();
            let gone = gone.filter(|name| !known.contains(name));
            roles.extend(gone.map(|name| PlanRole::gone(&role.role, Some(name), target)));
            if has_undivided(revisions, &role.role) {
                roles.push(PlanRole::gone(&role.role, None, None));
            }
        }
    }
    let known: BTreeSet<&Arc<str>> = slice.roles.iter().map(|role| &role.role).collect();
    let old = revisions.old.iter().flat_map(|old| old.by_role.keys());
    let gone: BTreeSet<&Arc<str>> = old.copied().filter(|role| !known.contains(role)).collect();
    for role in gone {
        if has_undivided(revisions, role) {
            roles.push(PlanRole::gone(role, None, None));
        }
        let shares = sub_roles(revisions, role).into_iter();
        roles.extend(shares.map(|name| PlanRole::gone(role, Some(name), None)));
    }
    roles
}

/// Whether an old child of a role is not divided: its groups are none of any sub-role, and go as those of a role of their own.
fn has_undivided(revisions: &Revisions<'_>, role: &Arc<str>) -> bool {
    let old = revisions.old.iter();
    let mut children = old.filter_map(|old| old.by_role.get(role));
    children.any(|child| child.routing.is_none())
}

/// Sub-roles that the children of a role have groups of.
fn sub_roles(revisions: &Revisions<'_>, role: &Arc<str>) -> BTreeSet<Arc<str>> {
    let all = revisions.old.iter().map(|old| &old.by_role);
    let children = all
        .chain([&revisions.target])
        .filter_map(|by_role| by_role.get(role));
    let issued = children.filter_map(|child| child.issued());
    issued
        .flat_map(|counts| counts.iter().map(|(name, _)| name.clone()))
        .collect()
}

/// ROL-5.
fn wanted(slice: &Slice, revisions: &Revisions<'_>, leaf: &LeafTarget) -> u64 {
    let has = |by_role: &ByRole<'_>| {
        let child = by_role.get(&leaf.key.role);
        child.map_or(0, |child| child.spec_of(leaf.key.sub_role.as_ref()))
    };
    match slice.policy {
        DuringRollout::RolloutCoupled if leaf.is_external => {
            let old = revisions.old.iter().map(|old| has(&old.by_role)).sum();
            planner::wanted_beside_old(leaf.replicas, has(&revisions.target), old)
        }
        DuringRollout::RolloutCoupled | DuringRollout::AdvanceRollout => leaf.replicas,
    }
}

impl<'a> PlanRole<'a> {
    /// A role or sub-role that is no longer wanted.
    fn gone(role: &Arc<str>, sub_role: Option<Arc<str>>, target: Option<&'a Child>) -> Self {
        Self {
            key: LeafKey {
                role: role.clone(),
                sub_role,
            },
            desired: 0,
            budget: Budget::GONE,
            target,
        }
    }

    /// What the planner is told of the role; `None` while the observation is pending.
    pub fn planned(&self) -> Option<planner::Role> {
        let target = match self.target {
            Some(child) => child.groups_of(self.key.sub_role.as_ref())?,
            None => Groups::default(),
        };
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
        let sub_role = self.key.sub_role.as_ref();
        Some(Share {
            initial: child.initial_of(sub_role),
            groups: child.groups_of(sub_role)?,
        })
    }
}

/// A child or one of its sub-roles.
impl Child {
    fn divided(&self) -> Option<&Routing> {
        self.routing.as_ref()?.as_ref().ok()
    }

    fn issued(&self) -> Option<&Counts> {
        self.divided()?.issued.as_ref()
    }

    /// Wanted groups.
    pub(super) fn spec_of(&self, sub_role: Option<&Arc<str>>) -> u64 {
        match (sub_role, self.issued()) {
            (Some(name), Some(counts)) => counts.get(name),
            (None, None) => self.spec,
            (Some(_), None) | (None, Some(_)) => 0,
        }
    }

    /// The baseline.
    fn initial_of(&self, sub_role: Option<&Arc<str>>) -> u64 {
        let baseline = self.divided().and_then(|routing| routing.baseline.as_ref());
        match (sub_role, baseline) {
            (Some(name), Some(counts)) => counts.get(name),
            (None, None) => self.initial.unwrap_or(self.spec),
            (Some(_), None) | (None, Some(_)) => 0,
        }
    }

    /// Wanted and Ready groups; `None` while the observation is pending.
    fn groups_of(&self, sub_role: Option<&Arc<str>>) -> Option<Groups> {
        let ready = self.ready?;
        let (raw, committed) = match (sub_role, self.divided()) {
            (Some(name), Some(routing)) => routing.ready(name),
            (None, None) => (ready.raw, ready.committed),
            (Some(_), None) | (None, Some(_)) => (0, 0),
        };
        let spec = self.spec_of(sub_role);
        Some(Groups {
            spec,
            raw,
            committed: committed.min(spec),
        })
    }
}
