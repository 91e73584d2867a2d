//! What one slice needs in a pass (reconcile-disaggregatedset sections 7 and 8): children to create, to scale and to delete.
//!
//! Decides from the owned children of the slice, what is wanted of its roles, and how ready the children are. Names no objects but by child name, and
//! writes nothing: the plan of the set turns [`Act`]s into requests. A child is updated at most once a pass, since its resource version guards the
//! write (OWS-4); so its baseline and its replicas change together. Not called while a target is unresolved (REC-6).

mod current;
mod plan_roles;
mod revisions;
mod routing;
mod transition;

use std::sync::Arc;

use jiff::Timestamp;
use lws_api::disaggregatedset::DuringRollout;

use super::planner::Violation;
use super::sub_roles::{CountsError, Move, Routing};
use super::targets::RoleTarget;
pub(super) use transition::rollout_of;

/// One slice as it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// How changed targets meet a running rollout.
    pub policy: DuringRollout,
    /// The target revision, as the children's label shows it.
    pub revision: Arc<str>,
    /// The current roles, in the order of the spec.
    pub roles: Vec<RoleTarget>,
    /// The owned children of the slice, of all revisions.
    pub children: Vec<Child>,
}

/// An owned child set of the slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub name: Arc<str>,
    /// Its role.
    pub role: Arc<str>,
    /// Its revision.
    pub revision: Arc<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// It has a deletion timestamp.
    pub is_terminating: bool,
    /// Its wanted groups.
    pub spec: u64,
    /// Annotation `initial-replicas`; `None` when missing or invalid.
    pub initial: Option<u64>,
    /// Its Ready groups; `None` while the observation is pending (RDY-2).
    pub ready: Option<Ready>,
    /// ROL-13: one of its pods could not be scheduled for too long.
    pub has_unschedulable_pod: bool,
    /// How its groups are divided: given where its role is partitioned or one of the annotations is there.
    pub routing: Option<Result<Routing, CountsError>>,
}

/// Ready groups of a child (RDY-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Those that are Ready now.
    pub raw: u64,
    /// Those of them that stay.
    pub committed: u64,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// CHL-3: a child of the target revision for a role that has none.
    Create {
        /// The role.
        role: Arc<str>,
        /// `spec.replicas` to start with.
        starting: u64,
        /// Annotation `initial-replicas`.
        intended: u64,
    },
    /// One guarded patch of a child; at least one member is set.
    Update {
        /// Name of the child.
        child: Arc<str>,
        /// Annotation `initial-replicas`, where it changes.
        initial: Option<u64>,
        /// `spec.replicas`, where it changes.
        replicas: Option<Scale>,
    },
    /// Section 12: a step of a child whose groups are divided.
    Route {
        /// Name of the child.
        child: Arc<str>,
        /// What is done.
        step: Move,
        /// EVT-1: whether `ScalingUp` or `ScalingDown` is told if `spec.replicas` changes.
        is_told: bool,
    },
    /// A drained child goes (OWS-5).
    Delete {
        /// Name of the child.
        child: Arc<str>,
    },
}

/// A change of `spec.replicas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// What the child has.
    pub from: u64,
    /// What it gets.
    pub to: u64,
    /// EVT-1: whether `ScalingUp` or `ScalingDown` is told.
    pub is_told: bool,
}

/// What is told about the slice apart from its writes (section 16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// ROL-3: the first child of the target revision is about to be made.
    Started,
    /// ROL-8: the transition is over.
    Completed,
    /// ROL-2: a child has no usable baseline.
    InitialReplicasMissing {
        /// Name of the child.
        child: Arc<str>,
        /// The baseline it gets.
        replicas: u64,
    },
    /// A bootstrap step is taken for these roles.
    BootstrapSurge {
        /// Keys of the roles.
        roles: Vec<String>,
    },
    /// A fallback step is taken.
    AvailabilityFallback {
        /// The old revision that gives room.
        revision: Arc<str>,
        /// Keys of its roles that shrink.
        roles: Vec<String>,
    },
    /// ROL-11: no step is possible.
    DrainBlocked {
        /// What is waited for.
        reason: String,
    },
}

/// What a failed write means for the rest of the slice. Other slices go on in any case (REC-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// CUR-8: the other roles go on.
    GoesOn,
    /// ROL-12: the rest is planned anew from what is really there.
    IsLeft,
}

/// What one slice needs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The writes, in order.
    pub acts: Vec<Act>,
    /// What a failed one means.
    pub on_failure: Rest,
    /// What is told.
    pub events: Vec<Event>,
    /// WCH-3: look again in a second.
    pub is_unfinished: bool,
    /// What is wrong although nothing failed.
    pub faults: Vec<Fault>,
}

/// Something that is left as it is, since it should not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// ROL-17: the planner's step breaks a rule.
    #[error("step of the rollout refused: {0}")]
    Step(#[from] Violation),
    /// Section 12.2: nothing is planned for a child with such counts.
    #[error("sub-role counts of {child}: {error}")]
    Counts {
        /// Name of the child.
        child: Arc<str>,
        /// What is wrong with them.
        error: CountsError,
    },
}

/// REC-7: a transition while an old child exists, otherwise the current revision path.
pub fn pass(slice: &Slice) -> Pass {
    let is_old = |child: &&Child| child.revision != slice.revision && !child.is_terminating;
    if slice.children.iter().any(|child| is_old(&child)) {
        transition::pass(slice)
    } else {
        current::pass(slice)
    }
}

#[cfg(test)]
mod tests;
