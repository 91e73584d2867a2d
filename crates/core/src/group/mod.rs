//! The controller of groups: one leader pod, its workers, and what they need.
//!
//! [`observe`] takes a group and its surroundings from the cache, [`plan`] decides. It makes the group's Service and worker StatefulSet
//! (reconcile-ordinal section 8) and ends groups that failed (failure-handling). It never changes a worker StatefulSet, never touches what is
//! not controlled by the set or its leader, and leaves leaders to the leader StatefulSet.

mod backoff;
mod budget;
mod cause;
mod failure;
mod gate;
mod names;
mod observe;
mod placement;
mod plan;
mod readiness;
mod restart;
mod scheduling;
mod service;
mod steps;
mod workers;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use lws_api::leaderworkerset::LeaderWorkerSetSpec;
use lws_api::names::label;

pub use self::backoff::remaining as backoff_left;
pub use self::cause::{Cause, CauseEvent};
pub use self::observe::{GroupSnapshot, observe};
pub use self::plan::{GroupPlan, plan};

use crate::build::group_size;
use crate::intent::{Plan, PlanError};
use crate::model::{Lws, Pod};
use crate::notice::{Action, Note, Notice};
use crate::ownership::Expected;

/// A live group: its leader is ours, neither terminating nor exhausted, and its set wants it.
struct Group<'a> {
    snapshot: &'a GroupSnapshot,
    leader: &'a Arc<Pod>,
    /// The live set.
    lws: &'a Arc<Lws>,
    /// Spec as of the leader's revision, or the live one if that revision is not known (FAIL-4, ORD-80 step 7).
    spec: Cow<'a, LeaderWorkerSetSpec>,
}

impl Group<'_> {
    /// Pods of a group of this revision.
    fn size(&self) -> u32 {
        group_size(&self.spec)
    }

    /// The group's index as events name it.
    fn index(&self) -> &str {
        self.leader.meta.label(label::GROUP_INDEX)
    }

    /// The controller that objects of this group have.
    fn controller(&self) -> Expected {
        Expected {
            kind: "Pod",
            name: self.leader.key().name.to_string(),
            uid: self.leader.meta.uid.clone(),
        }
    }

    /// An event about a failed create, on the set, with the leader as related object.
    fn failed_create(&self, note: impl Into<Note>) -> Notice {
        Notice::warning(self.lws.as_ref(), "FailedCreate", Action::Create, note)
            .related(self.leader.as_ref())
    }
}

/// Looks again after `delay` at the latest.
fn wake(plan: &mut Plan, delay: Duration) {
    plan.wake_after = Some(plan.wake_after.map_or(delay, |earlier| earlier.min(delay)));
}

/// ORD-135: somebody else's object is in the way; look again when it may be gone.
fn foreign(message: String) -> PlanError {
    PlanError {
        message,
        retry_after: Some(Duration::from_secs(30)),
    }
}

/// An error that is retried by the queue's back-off.
fn error(message: String) -> PlanError {
    PlanError {
        message,
        retry_after: None,
    }
}
