//! Status of a Hash set (HASH-71, HASH-72): the Deployment's numbers, which count whole groups, and what its leaders say.

use std::sync::Arc;

use lws_api::names::label;

use super::leaders::{Standing, of_revision};
use super::pass::Counted;
use crate::leaderworkerset::observe::Snapshot;
use crate::leaderworkerset::status::{
    AVAILABLE, DEGRADED, NOT_AVAILABLE, NOT_DEGRADED, NOT_PROGRESSING, NOT_UPDATING, PROGRESSING,
    State, UPDATING, Wanted,
};
use crate::model::{Deployment, DeploymentStatus, Pod};

/// The state of a Hash set; `written` is the Deployment as this pass wrote it.
pub(in crate::leaderworkerset) fn state(
    snapshot: &Snapshot,
    counted: &Counted,
    written: Option<Deployment>,
) -> State {
    let stored = snapshot
        .deployment
        .as_deref()
        .filter(|_| counted.is_deployment_ours);
    let deployment = written.as_ref().or(stored);
    let facts = Facts::of(deployment, &snapshot.leaders, counted.replicas);
    let numbers = deployment.map_or_else(DeploymentStatus::default, |found| found.status);
    State {
        replicas: numbers.replicas,
        ready: numbers.ready,
        updated: numbers.updated,
        desired: counted.replicas,
        is_degraded: facts.is_degraded(),
        conditions: facts.conditions(),
        is_update_done: facts.is_available(),
    }
}

/// HASH-71.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    /// Wanted groups (R).
    wanted: i64,
    numbers: DeploymentStatus,
    /// Exhausted leaders (X).
    exhausted: i64,
    /// … that count as ready all the same (Xr).
    exhausted_ready: i64,
    /// Leaders of another revision or template are there.
    is_rolling: bool,
    /// The numbers are about what is wanted now.
    is_current: bool,
}

impl Facts {
    fn of(deployment: Option<&Deployment>, leaders: &[Arc<Pod>], wanted: u32) -> Self {
        let exhausted = || {
            leaders
                .iter()
                .filter(|leader| Standing::of(leader) == Standing::Exhausted)
        };
        let still_ready = |leader: &&Arc<Pod>| leader.ready && !leader.meta.is_terminating();
        let numbers = deployment.map_or_else(DeploymentStatus::default, |found| found.status);
        let revision = deployment.map_or("", |found| found.meta.label(label::REVISION));
        let is_rolling = numbers.updated < numbers.replicas
            || (!revision.is_empty() && leaders.iter().any(|leader| is_older(leader, revision)));
        let is_complete = leaders.is_empty()
            || number(of_revision(leaders, revision).count()) >= i64::from(wanted);
        let is_observed =
            deployment.is_some_and(|found| numbers.observed_generation >= found.meta.generation);
        Self {
            wanted: wanted.into(),
            numbers,
            exhausted: number(exhausted().count()),
            exhausted_ready: number(exhausted().filter(still_ready).count()),
            is_rolling,
            is_current: is_observed && !is_rolling && is_complete,
        }
    }

    fn is_degraded(&self) -> bool {
        self.exhausted > 0
    }

    /// Ready groups that are not given up.
    fn ready(&self) -> i64 {
        i64::from(self.numbers.ready) - self.exhausted_ready
    }

    fn is_available(&self) -> bool {
        let counts = [
            i64::from(self.numbers.replicas),
            self.ready(),
            self.numbers.updated.into(),
        ];
        self.is_current
            && !self.is_degraded()
            && counts.into_iter().all(|count| count == self.wanted)
    }

    fn is_progressing(&self) -> bool {
        (self.is_rolling && !self.is_degraded())
            || self.ready() + self.exhausted < self.wanted.max(self.numbers.replicas.into())
    }

    /// HASH-72: conditions to set, in order; `Degraded` is the last one.
    fn conditions(&self) -> Vec<Wanted> {
        let progressing = if self.is_progressing() {
            PROGRESSING
        } else {
            NOT_PROGRESSING
        };
        let mut list = match (self.is_rolling, self.is_degraded()) {
            (true, false) => vec![UPDATING, PROGRESSING],
            (true, true) => vec![NOT_AVAILABLE, progressing, UPDATING],
            (false, false) if self.is_available() => vec![AVAILABLE],
            (false, false) => vec![PROGRESSING],
            (false, true) => vec![NOT_AVAILABLE, progressing, NOT_UPDATING],
        };
        list.push(if self.is_degraded() {
            DEGRADED
        } else {
            NOT_DEGRADED
        });
        list
    }
}

fn is_older(leader: &Pod, revision: &str) -> bool {
    !leader.meta.is_terminating() && leader.meta.label(label::REVISION) != revision
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
