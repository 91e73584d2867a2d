//! What is to be written for a set, in the order of ORD-20 and HASH-12.
//!
//! Decides from one snapshot; the status follows in `report`, from the same snapshot and what became of these steps. Nothing that the set does not
//! control is written to, but for an orphaned leader workload, which is adopted (ORD-132).

use std::sync::Arc;
use std::time::Duration;

use lws_api::leaderworkerset::{GroupIdentity, PodTerminationPolicy};
use lws_api::names::{label, role};

use super::observe::Snapshot;
use super::pass::FOREIGN_WAIT;
use super::rollout::BudgetError;
use super::{events, hash, ordinal};
use crate::intent::{IfFailed, Intent, Kind, Plan, PlanError, Propagation, Step, Target, Why};
use crate::model::{Lws, StatefulSet};

/// ORD-20 step 5, ORD-135: when something of a predecessor stands in the way.
pub(super) const LEFTOVER_WAIT: Duration = Duration::from_secs(5);

/// A plan, and what the status is made from afterwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetPlan {
    /// What is to be done.
    pub plan: Plan,
    /// What `report` goes by; `None` if the pass ends without a status.
    pub(super) basis: Option<Basis>,
}

/// What `report` goes by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    /// Key of the current revision.
    pub revision_key: String,
    /// What the status counts.
    pub counted: Counted,
    /// Position of the step that writes the set itself, after which its version is another one.
    pub set_step: Option<usize>,
    /// The leader workload.
    pub workload: Written,
}

/// What the status counts, by identity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Counted {
    Ordinal(ordinal::Counted),
    Hash(hash::Counted),
}

/// What became of the leader workload in a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    /// Position of the step that writes it.
    pub step: Option<usize>,
    /// Hash of it as it is wanted.
    pub desired_hash: u64,
}

impl From<Plan> for SetPlan {
    fn from(plan: Plan) -> Self {
        Self { plan, basis: None }
    }
}

/// ORD-20 steps 2 to 13, HASH-12 steps 1 to 6.
pub fn plan(snapshot: &Snapshot) -> SetPlan {
    let lws = &*snapshot.lws;
    if lws.meta.is_terminating() {
        return Plan {
            steps: end_in_parallel(snapshot),
            ..Plan::default()
        }
        .into();
    }
    if let Some(what) = not_served(lws) {
        return refuse(lws, what).into();
    }
    let planned = match lws.spec.group_identity() {
        GroupIdentity::Ordinal => ordinal::plan(snapshot),
        GroupIdentity::Hash => hash::plan(snapshot),
    };
    planned.unwrap_or_else(|obstacle| match obstacle {
        Obstacle::Leftover => Plan {
            wake_after: Some(LEFTOVER_WAIT),
            ..Plan::default()
        }
        .into(),
        // ORD-58: no write.
        Obstacle::Budget(error) => Plan {
            errors: vec![PlanError {
                message: error.to_string(),
                retry_after: None,
            }],
            ..Plan::default()
        }
        .into(),
    })
}

/// Why nothing can be planned.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The leader workload will be collected.
    Leftover,
    /// The rollout numbers are none.
    Budget(BudgetError),
}

impl From<BudgetError> for Obstacle {
    fn from(error: BudgetError) -> Self {
        Self::Budget(error)
    }
}

/// FAIL-92: worker sets of a set that is being deleted end at once.
fn end_in_parallel(snapshot: &Snapshot) -> Vec<Step> {
    match snapshot.lws.spec.pod_termination_policy() {
        PodTerminationPolicy::Default => Vec::new(),
        PodTerminationPolicy::Parallel => {
            let ends = |set: &&Arc<StatefulSet>| {
                let is_of_a_leader = set
                    .meta
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.kind == Kind::Pod.name());
                set.meta.label(label::ROLE) == role::WORKER
                    && is_of_a_leader
                    && !set.meta.is_terminating()
            };
            snapshot
                .stateful_sets
                .values()
                .filter(ends)
                .map(|set| end(set))
                .collect()
        }
    }
}

fn end(set: &StatefulSet) -> Step {
    let target = Target {
        kind: Kind::StatefulSet,
        key: set.key().clone(),
    };
    let intent = Intent::Delete {
        target,
        uid: set.meta.uid.clone(),
        propagation: Propagation::Foreground,
    };
    Step::new(Why::ParallelTermination, intent).if_failed(IfFailed::Continue)
}

/// Sets that only a bypassed webhook lets through. Running them without their scheduler would be wrong, so nothing is written.
fn not_served(lws: &Lws) -> Option<&'static str> {
    lws.spec
        .scheduling
        .as_ref()
        .map(|_| "spec.scheduling needs a scheduler provider, and none is configured")
}

fn refuse(lws: &Lws, what: &str) -> Plan {
    Plan {
        notices: vec![events::leaders_not_created(lws, leaders(lws)).because(what)],
        errors: vec![PlanError {
            message: what.to_owned(),
            retry_after: Some(FOREIGN_WAIT),
        }],
        ..Plan::default()
    }
}

/// Kind of the leader workload.
fn leaders(lws: &Lws) -> Kind {
    match lws.spec.group_identity() {
        GroupIdentity::Ordinal => Kind::StatefulSet,
        GroupIdentity::Hash => Kind::Deployment,
    }
}
