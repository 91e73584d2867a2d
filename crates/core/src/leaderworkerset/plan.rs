//! What is to be written for a set, in the order of ORD-20 and HASH-12.
//!
//! Decides from one snapshot; the status follows in `report`, from the same snapshot and what became of these steps. Nothing that the set does not
//! control is written to, but for an orphaned leader workload, which is adopted (ORD-132).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_api::leaderworkerset::{GroupIdentity, PodTerminationPolicy};
use lws_api::names::{label, role};

use super::observe::Snapshot;
use super::rollout::BudgetError;
use super::scheduling::Prepared;
use super::{hash, ordinal};
use crate::intent::{IfFailed, Intent, Kind, Plan, PlanError, Propagation, Step, Target, Why};
use crate::model::{StatefulSet, Uid};

/// ORD-20 step 5, ORD-135: when something of a predecessor stands in the way.
pub(super) const LEFTOVER_WAIT: Duration = Duration::from_secs(5);

/// A plan, and what the status is made from afterwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetPlan {
    /// What is to be done.
    pub plan: Plan,
    /// What `report` goes by; `None` if the pass ends without a status.
    pub(super) basis: Option<Basis>,
    /// PodGroups of the set that nothing needs (NAT-44).
    pub unneeded: Vec<Uid>,
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
    /// The leader workload; `None` if it was not to be written.
    pub workload: Option<Written>,
    /// What a gang scheduler needs, if `spec.scheduling` is set.
    pub prepared: Option<Prepared>,
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

impl SetPlan {
    pub(super) fn new(plan: Plan, basis: Basis) -> Self {
        let prepared = basis.prepared.as_ref();
        Self {
            plan,
            unneeded: prepared.map_or_else(Vec::new, |prepared| prepared.unneeded.clone()),
            basis: Some(basis),
        }
    }
}

impl From<Plan> for SetPlan {
    fn from(plan: Plan) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }
}

/// ORD-20 steps 2 to 13, HASH-12 steps 1 to 6.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> SetPlan {
    let lws = &*snapshot.lws;
    if lws.meta.is_terminating() {
        return Plan {
            steps: end_in_parallel(snapshot),
            ..Plan::default()
        }
        .into();
    }
    let planned = match lws.spec.group_identity() {
        GroupIdentity::Ordinal => ordinal::plan(snapshot, now),
        GroupIdentity::Hash => hash::plan(snapshot, now),
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
        resource_version: None,
        propagation: Propagation::Foreground,
    };
    Step::new(Why::ParallelTermination, intent).if_failed(IfFailed::Continue)
}
