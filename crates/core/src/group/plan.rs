//! What is to be done about one group, in the order of FAIL-30 and ORD-80.

use std::borrow::Cow;
use std::error::Error as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_api::leaderworkerset::PodTerminationPolicy;
use lws_api::names::{annotation, label};

use super::budget::{self, Retained};
use super::failure::{self, Search};
use super::observe::GroupSnapshot;
use super::{Group, error, gate, readiness, restart, scheduling, service, steps, wake, workers};
use crate::intent::{Plan, PlanError, Step, Why};
use crate::leaderworkerset::revision::{RestoreError, restore};
use crate::model::{Lws, Pod, Uid};

/// FAIL-33: when a failed pod of a starting group is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What was decided about a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupPlan {
    /// Writes and notices.
    pub plan: Plan,
    /// FAIL-21: tombstones that are handled once the run is complete.
    pub judged: Vec<Uid>,
}

/// Decides on one snapshot of a group.
pub fn plan(snapshot: &GroupSnapshot, now: Timestamp) -> GroupPlan {
    let mut plan = Plan {
        errors: unlabelled(snapshot),
        ..Plan::default()
    };
    let judged = decide(snapshot, now, &mut plan);
    GroupPlan { plan, judged }
}

/// ORD-80 step 2: pods that did not come through admission. They take no part in the run.
fn unlabelled(snapshot: &GroupSnapshot) -> Vec<PlanError> {
    let pods = snapshot.leader.iter().chain(&snapshot.workers);
    let missing = pods.filter_map(|pod| {
        if pod.meta.label(label::NAME).is_empty() {
            Some(label::NAME)
        } else {
            pod.meta
                .labels
                .get(label::WORKER_INDEX)
                .is_none()
                .then_some(label::WORKER_INDEX)
        }
    });
    missing
        .map(|key| error(format!("{key} label is unexpected missing")))
        .collect()
}

/// FAIL-30; returns the tombstones that the run is done with.
fn decide(snapshot: &GroupSnapshot, now: Timestamp, plan: &mut Plan) -> Vec<Uid> {
    let all = || tombstones(snapshot).cloned().collect();
    let Some(lws) = snapshot.set().filter(|lws| !lws.meta.is_terminating()) else {
        plan.steps = tear_down(snapshot);
        return all();
    };
    // FAIL-34, ORD-80 step 9: workers without a leader are leftovers, or a leader will come and find them.
    let Some(leader) = &snapshot.leader else {
        plan.errors
            .extend(failure::without_leader_name(snapshot, lws));
        return all();
    };
    if leader.is_exhausted() {
        retain(snapshot, lws, leader, plan);
        return all();
    }
    // FAIL-42, ORD-80 step 11: the group ends already.
    if leader.meta.is_terminating() {
        plan.steps
            .extend(end_in_parallel(snapshot, is_parallel(lws)));
        return all();
    }
    if !snapshot.is_leader_ours(lws) {
        return Vec::new();
    }
    match group(snapshot, lws, leader) {
        Ok(group) => run(&group, now, plan),
        Err(error) => {
            plan.errors.push(error);
            Vec::new()
        }
    }
}

fn tombstones(snapshot: &GroupSnapshot) -> impl Iterator<Item = &Uid> {
    snapshot
        .tombstones
        .iter()
        .map(|tombstone| &tombstone.pod.meta.uid)
}

/// ORD-80 step 7: the group with the spec as of its leader's revision.
fn group<'a>(
    snapshot: &'a GroupSnapshot,
    lws: &'a Arc<Lws>,
    leader: &'a Arc<Pod>,
) -> Result<Group<'a>, PlanError> {
    let spec = match &snapshot.revision {
        Some(revision) => Cow::Owned(restore(lws, revision).map_err(|e| error(told(&e)))?),
        None => Cow::Borrowed(&lws.spec),
    };
    Ok(Group {
        snapshot,
        leader,
        lws,
        spec,
    })
}

fn told(error: &RestoreError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// FAIL-30 steps 6–8, then ORD-80 steps 10–21.
fn run(group: &Group<'_>, now: Timestamp, plan: &mut Plan) -> Vec<Uid> {
    let Search {
        failed,
        look_again,
        mut judged,
    } = failure::search(group);
    if let Some(failed) = failed {
        match restart::respond(group, &failed, now, plan) {
            Ok(()) => judged.extend(
                tombstones(group.snapshot)
                    .filter(|uid| **uid == failed.pod.meta.uid)
                    .cloned(),
            ),
            Err(error) => plan.errors.push(error),
        }
        return judged;
    }
    if look_again {
        wake(plan, LOOK_AGAIN);
    }
    // Whether the construction ended early makes no difference here.
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = construct(group, now, plan);
    judged
}

/// ORD-80 steps 10–21: each step may end the run.
fn construct(group: &Group<'_>, now: Timestamp, plan: &mut Plan) -> ControlFlow<()> {
    workers::leader_is_no_worker(group, plan)?;
    service::ensure(group, plan)?;
    scheduling::ensure(group, plan)?;
    gate::lift(group, plan)?;
    let built = workers::ensure(group, now, plan);
    readiness::sync(group, now, plan);
    built
}

/// FAIL-30 steps 2 and 3: the set is gone or going.
fn tear_down(snapshot: &GroupSnapshot) -> Vec<Step> {
    let Some(leader) = &snapshot.leader else {
        return budget::release(snapshot);
    };
    let by_spec = snapshot.set().is_some_and(|lws| is_parallel(lws));
    let by_hint = leader.meta.annotation(annotation::POD_TERMINATION_POLICY) == "Parallel";
    let ends = leader.meta.is_terminating() && !leader.is_exhausted();
    let delete = end_in_parallel(snapshot, ends && (by_spec || by_hint));
    delete
        .into_iter()
        .chain(budget::release(snapshot))
        .collect()
}

/// FAIL-90, while the set is there.
fn is_parallel(lws: &Lws) -> bool {
    match lws.spec.pod_termination_policy() {
        PodTerminationPolicy::Default => false,
        PodTerminationPolicy::Parallel => true,
    }
}

/// FAIL-91: the workers end together with their terminating leader.
fn end_in_parallel(snapshot: &GroupSnapshot, parallel: bool) -> Option<Step> {
    let leader = snapshot.leader.as_ref().filter(|_| parallel)?;
    let set = snapshot.worker_set.as_ref()?;
    let is_wanted = !set.meta.is_terminating() && set.meta.is_controlled_by(&leader.meta.uid);
    is_wanted.then(|| steps::delete_stateful_set(set, Why::ParallelTermination))
}

/// FAIL-30 step 4. A group that lost its leader set is only ever let go.
fn retain(snapshot: &GroupSnapshot, lws: &Arc<Lws>, leader: &Arc<Pod>, plan: &mut Plan) {
    match budget::retained(snapshot, lws, leader) {
        Ok(Retained::Release(steps)) => plan.steps = steps,
        Ok(Retained::Stay) => {}
        Ok(Retained::Terminate) if snapshot.is_leader_ours(lws) => {
            let group = Group {
                snapshot,
                leader,
                lws,
                spec: Cow::Borrowed(&lws.spec),
            };
            plan.steps = budget::exhaust(&group, None);
        }
        Ok(Retained::Terminate) => {}
        Err(error) => plan.errors.push(error),
    }
}
