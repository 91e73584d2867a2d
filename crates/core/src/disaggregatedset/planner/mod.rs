//! The rollout planner (reconcile-disaggregatedset sections 8.1 and 9): which counts the old revisions and the target have next.
//!
//! Decides for one slice, from the numbers in a [`Rollout`] alone; names, objects and time are the caller's. Every vector has one entry per plan role
//! (ROL-4); a role without a child counts as zero. Old counts never rise; target counts fall only under `AdvanceRollout`.

mod check;
mod drain;
mod growth;
mod rehearsal;
mod selection;
mod shrink;
mod step;
mod view;
mod window;

use lws_api::disaggregatedset::DuringRollout;

pub use check::{Violation, check};
pub use rehearsal::{Rehearsal, Scene, rehearse};
pub use selection::{Decision, decide};

/// What is wanted of one plan role in one slice, and what the target revision has of it.
///
/// Counts are wider than the `int32` of the API, so that sums over revisions do not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Groups wanted (`d`), after the clamp of ROL-5; 0 for a role that is not current.
    pub desired: u64,
    /// Groups that may run in addition (`s`, API-4).
    pub surge: u64,
    /// Groups that may be missing (`u`, API-4).
    pub unavailable: u64,
    /// ROL-13: a pod of the target waits for room since long.
    pub is_unschedulable: bool,
    /// Groups of the target revision (`N`).
    pub target: Groups,
}

/// Groups of one role in one revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Wanted groups of the child.
    pub spec: u64,
    /// RDY-4: groups that are Ready now.
    pub raw: u64,
    /// RDY-5: groups that are Ready and stay.
    pub committed: u64,
}

/// What an old revision has of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Annotation `initial-replicas`.
    pub initial: u64,
    /// Its groups.
    pub groups: Groups,
}

impl Share {
    /// Intended size of the role in that revision (`I`).
    pub fn baseline(self) -> u64 {
        self.initial.max(self.groups.spec)
    }
}

/// One slice in a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// How changes of the target are taken while old revisions exist.
    pub policy: DuringRollout,
    /// The roles, in plan order.
    pub roles: Vec<Role>,
    /// Old revisions, newest first (ROL-9), with their shares per role.
    pub old: Vec<Vec<Share>>,
}

/// ROL-5: what is wanted of a role with an External leaf under `RolloutCoupled`, which does not shrink beside old groups.
pub fn wanted_beside_old(desired: u64, target_spec: u64, old_spec: u64) -> u64 {
    if old_spec > 0 {
        desired.max(target_spec)
    } else {
        desired
    }
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PLN-18: within the budgets.
    Ordinary,
    /// PLN-19: one group more than the budget, since a role has none yet.
    Bootstrap,
    /// PLN-20: one group less than the floor, since new pods find no room.
    Fallback,
    /// ROL-10: nothing old is left, the target gets all it lacks.
    GrowOnly,
}

/// The next counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Why.
    pub kind: Kind,
    /// Position in [`Rollout::old`] of the one old revision that may change.
    pub active: Option<usize>,
    /// Counts of the active revision (`Q`), per role; empty without one.
    pub old: Vec<u64>,
    /// Counts of the target (`G`), per role.
    pub target: Vec<u64>,
}

#[cfg(test)]
mod tests;
