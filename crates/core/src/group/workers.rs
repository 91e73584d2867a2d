//! The worker StatefulSet of a group (ORD-80 steps 10–21, ORD-81 … ORD-84).

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_api::leaderworkerset::StartupPolicy;
use lws_api::names::annotation;

use super::names::{Names, names};
use super::{Group, error, foreign, placement, scheduling, wake};
use crate::build::worker_set::{GroupTemplate, worker_set, worker_set_name};
use crate::intent::{Accept, Intent, Kind, Plan, PlanError, Step, Target, Why};
use crate::model::{ObjectKey, Pod, StatefulSet};
use crate::notice::{Action, Note, Notice};
use crate::ownership::{Ownership, judge};

const SOON: Duration = Duration::from_secs(1);
/// Longest pause before a worker StatefulSet that keeps vanishing is made again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// ORD-80 step 10: a worker that passes for a leader would start an endless chain of StatefulSets.
pub(super) fn leader_is_no_worker(group: &Group<'_>, plan: &mut Plan) -> ControlFlow<()> {
    if group
        .leader
        .meta
        .annotation(annotation::LEADER_NAME)
        .is_empty()
    {
        return ControlFlow::Continue(());
    }
    plan.notices.push(group.failed_create(format!(
        "leader pod {} contains mistake annotation '{}': requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature",
        group.leader.key(),
        annotation::LEADER_NAME
    )));
    ControlFlow::Break(())
}

/// ORD-80 steps 15–21. What exists is looked at before anything is built: a set of ours is never changed (ORD-81).
pub(super) fn ensure(group: &Group<'_>, now: Timestamp, plan: &mut Plan) -> ControlFlow<()> {
    if group.size() == 1 || waits_for_leader(group) {
        return ControlFlow::Break(());
    }
    if let Some(set) = &group.snapshot.worker_set {
        return meet(group, set, plan);
    }
    if group.snapshot.revision.is_none() {
        wake(plan, SOON);
        return ControlFlow::Break(());
    }
    if group.leader.hostname.is_empty() || group.leader.subdomain.is_empty() {
        plan.errors.push(no_address(group.leader));
        return ControlFlow::Break(());
    }
    let topology = placement::topology(group, plan)?;
    match names(group) {
        Names::Free => match pause(group, now) {
            Some(left) => wake(plan, left),
            None => plan.steps.push(create(group, topology)),
        },
        Names::Held => {}
        Names::Foreign(pod) => {
            let set = worker_set_name(group.leader);
            refuse(
                group,
                format!("pod {} is not controlled by statefulset {set}", pod.key()),
                plan,
            );
        }
    }
    ControlFlow::Continue(())
}

/// Section 14, "Leader deleted between get and create": what is made for a leader that is gone is collected, and as long as the watch of pods does not tell, that
/// repeats. So the n-th one that vanished must have been made 2^n seconds ago before there is another; one that lived longer makes nobody wait. Nor
/// does a creation time in the future.
fn pause(group: &Group<'_>, now: Timestamp) -> Option<Duration> {
    let lost = group.snapshot.lost?;
    let elapsed = Duration::try_from(now.duration_since(lost.created?)).ok()?;
    let doubled = 1_u64.checked_shl(lost.count).map(Duration::from_secs);
    doubled
        .map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE))
        .checked_sub(elapsed)
        .filter(|left| !left.is_zero())
}

/// ORD-80 step 16.
fn waits_for_leader(group: &Group<'_>) -> bool {
    match group.lws.spec.startup_policy() {
        StartupPolicy::LeaderCreated => false,
        // A Hash leader is Ready only once its workers are (HASH-25).
        StartupPolicy::LeaderReady if group.leader.is_hash() => !group.leader.containers_ready,
        StartupPolicy::LeaderReady => !group.leader.ready,
    }
}

/// ORD-80 step 21: a StatefulSet stands under the name.
fn meet(group: &Group<'_>, set: &StatefulSet, plan: &mut Plan) -> ControlFlow<()> {
    match judge(&set.meta, &group.controller()) {
        Ownership::Ours => scheduling::mend_split(group, set, plan),
        Ownership::Leftover => wake(plan, SOON),
        Ownership::Foreign => refuse(group, foreign_set(group), plan),
    }
    ControlFlow::Break(())
}

/// ORD-135: somebody else's object has the name.
fn refuse(group: &Group<'_>, message: String, plan: &mut Plan) {
    plan.notices.push(failure(group).because(&message));
    plan.errors.push(foreign(message));
}

fn create(group: &Group<'_>, topology: Option<(&str, &str)>) -> Step {
    let Group {
        snapshot: _,
        leader,
        lws,
        spec,
    } = group;
    let membership = scheduling::membership(group);
    let template = GroupTemplate {
        lws,
        spec,
        leader,
        topology,
        membership: membership.as_ref(),
    };
    let intent = Intent::Create {
        target: Target {
            kind: Kind::StatefulSet,
            key: key(group),
        },
        body: Arc::new(worker_set(&template)),
        accept: Accept::Controlled {
            by: group.controller(),
            foreign: foreign_set(group),
        },
        claim: false,
    };
    let created = for_leader(
        "Created worker statefulset for leader pod",
        "Created worker statefulset for leader pods",
        leader,
    );
    let notice = Notice::normal(lws.as_ref(), "GroupsProgressing", Action::Create, created)
        .related(leader.as_ref());
    Step::new(Why::WorkerSetMissing, intent)
        .then(notice)
        .or_else(failure(group))
}

fn key(group: &Group<'_>) -> ObjectKey {
    group.leader.key().sibling(worker_set_name(group.leader))
}

fn failure(group: &Group<'_>) -> Notice {
    let one = "Failed to create worker statefulset for leader pod";
    group.failed_create(for_leader(
        one,
        "Failed to create worker statefulset for leader pods",
        group.leader,
    ))
}

fn foreign_set(group: &Group<'_>) -> String {
    format!(
        "statefulset {} is not controlled by Pod {}",
        key(group),
        group.leader.key().name
    )
}

fn for_leader(one: &'static str, many: &'static str, leader: &Pod) -> Note {
    Note::Named {
        one: Cow::Borrowed(one),
        many: Cow::Borrowed(many),
        name: leader.key().name.clone(),
        tail: String::new(),
    }
}

/// ORD-80 step 18, PT-17.
pub(super) fn no_address(leader: &Pod) -> PlanError {
    error(format!(
        "leader pod {} has no hostname or subdomain",
        leader.key()
    ))
}
