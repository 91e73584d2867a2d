//! The groups of a set as its leaders show them (ORD-45, ORD-46, ORD-103).
//!
//! A group is judged by its leader pod and by the worker set that this very leader controls: a worker set of a predecessor says nothing about it.

use lws_api::names::{annotation, label};

use super::observe::Snapshot;
use super::rollout::{GroupState, GroupStates};
use crate::build::group_size;
use crate::model::{Pod, StatefulSet};

/// One leader pod, and what it says about its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Label `lws/group-index`.
    pub index: u32,
    /// Leader and worker set are named after set and index, and carry that index.
    pub is_in_place: bool,
    /// The worker set exists, or the group is of size 1.
    pub is_complete: bool,
    /// The leader is Running and Ready, and so are all workers.
    pub is_ready: bool,
    /// Leader and worker set carry the current revision.
    pub is_updated: bool,
    /// The restart budget is used up.
    pub is_exhausted: bool,
}

/// ORD-103: the groups of all leaders with an index.
pub(super) fn groups(snapshot: &Snapshot, revision_key: &str) -> Vec<Group> {
    snapshot
        .leaders
        .iter()
        .filter_map(|leader| group(snapshot, leader, revision_key))
        .collect()
}

/// ORD-103: leaders without a usable index, for the log.
pub(super) fn misfits(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let misfits = snapshot
        .leaders
        .iter()
        .filter(|leader| leader.meta.group_index().is_none());
    misfits.map(|leader| {
        format!(
            "leader pod {} has group index {:?}",
            leader.key(),
            leader.meta.label(label::GROUP_INDEX)
        )
    })
}

/// ORD-45: states of the groups below `replicas`. A group that is not complete or not in place counts as neither ready nor updated.
pub(super) fn states(groups: &[Group], replicas: u32) -> GroupStates {
    let counted = groups
        .iter()
        .filter(|group| group.index < replicas && group.is_in_place);
    counted
        .map(|group| {
            let state = GroupState {
                is_ready: group.is_ready,
                is_updated: group.is_updated,
            };
            (group.index, state)
        })
        .collect()
}

fn group(snapshot: &Snapshot, leader: &Pod, revision_key: &str) -> Option<Group> {
    let index = leader.meta.group_index()?;
    let has_workers = size_of(snapshot, leader) > 1;
    let worker_set = worker_set(snapshot, leader);
    let name = format!("{}-{index}", snapshot.lws.key().name);
    let is_in_place = *name == *leader.key().name
        && (!has_workers || worker_set.is_none_or(|set| set.meta.group_index() == Some(index)));
    let is_complete = !has_workers || worker_set.is_some();
    let workers_hold = |holds: fn(&StatefulSet, &str) -> bool| {
        !has_workers || worker_set.is_some_and(|set| holds(set, revision_key))
    };
    Some(Group {
        index,
        is_in_place,
        is_complete,
        is_ready: leader.is_running_and_ready() && workers_hold(|set, _| set.is_ready()),
        is_updated: leader.meta.label(label::REVISION) == revision_key
            && workers_hold(|set, key| set.meta.label(label::REVISION) == key),
        is_exhausted: leader.meta.annotation(annotation::RESTART_BUDGET_EXHAUSTED) == "true",
    })
}

/// ORD-45: a group has the size that its leader was made with, which is not the live one while a rollout changes it.
fn size_of(snapshot: &Snapshot, leader: &Pod) -> i64 {
    leader
        .meta
        .annotation(annotation::SIZE)
        .parse()
        .unwrap_or_else(|_| group_size(&snapshot.lws.spec).into())
}

fn worker_set<'a>(snapshot: &'a Snapshot, leader: &Pod) -> Option<&'a StatefulSet> {
    let set = snapshot.stateful_sets.get(&leader.key().name)?;
    set.meta.is_controlled_by(&leader.meta.uid).then_some(set)
}
