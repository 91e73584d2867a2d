//! Which failure, if any, recreates a group now (FAIL-1 … FAIL-4, FAIL-31 … FAIL-36).
//!
//! Decided from the pods of the snapshot and the tombstones, and from the spec as of the group's revision. Says nothing about budget and
//! back-off, and never looks at a leader that is terminating or exhausted: those end the run before (FAIL-42, FAIL-43).

use lws_api::leaderworkerset::{LeaderWorkerSetSpec, RestartPolicy};
use lws_api::names::{annotation, label};

use super::observe::{GroupSnapshot, was_worker_of};
use super::{Group, error};
use crate::cache::{Tombstone, leader_name};
use crate::intent::PlanError;
use crate::model::{Lws, Phase, Pod, Uid};

/// A failed pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Failed<'a> {
    /// The pod, live or as last seen.
    pub pod: &'a Pod,
    /// How it failed.
    pub how: How,
}

/// How a pod failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// FAIL-1: a container restarted.
    Restarted,
    /// FAIL-2: it is terminating or gone.
    Deleted,
    /// FAIL-64: it is a leader whose group is to be recreated since an earlier failure.
    RecreatePending,
}

/// What a look at all pods of a group gave.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Search<'a> {
    /// The first failure that counts, in the order of FAIL-30.
    pub failed: Option<Failed<'a>>,
    /// FAIL-33: a failed pod is there, but the group is still starting.
    pub look_again: bool,
    /// Tombstones that the run is done with; without the failed one.
    pub judged: Vec<Uid>,
}

/// FAIL-30 steps 6–8: leader, workers, tombstones, up to the first failure that counts (FAIL-48).
pub(super) fn search<'a>(group: &Group<'a>) -> Search<'a> {
    let mut search = Search::default();
    let tombstones = &group.snapshot.tombstones;
    if !is_recreating(&group.spec) {
        search.judged = tombstones
            .iter()
            .map(|tombstone| tombstone.pod.meta.uid.clone())
            .collect();
        return search;
    }
    let live = leader_failure(group.leader).into_iter().chain(
        group
            .snapshot
            .workers
            .iter()
            .filter_map(|pod| worker_failure(group, pod)),
    );
    for failed in live {
        if failed.how == How::RecreatePending || !is_held_back(group, failed.pod) {
            search.failed = Some(failed);
            return search;
        }
        search.look_again = true;
    }
    for tombstone in tombstones {
        let pod = tombstone.pod.as_ref();
        if is_recent(group, tombstone) && !is_held_back(group, pod) {
            search.failed = Some(Failed {
                pod,
                how: How::Deleted,
            });
            return search;
        }
        search.judged.push(pod.meta.uid.clone());
    }
    search
}

/// FAIL-34: failed workers that name no leader; each is a group by itself. No controller of ours made them, so they have no
/// revision and the live policy counts.
pub(super) fn without_leader_name(snapshot: &GroupSnapshot, lws: &Lws) -> Vec<PlanError> {
    let failed = snapshot
        .workers
        .iter()
        .filter(|pod| failure(pod).is_some() && leader_name(pod).is_none());
    failed
        .filter(|_| is_recreating(&lws.spec))
        .map(|pod| error(format!("parsing pod name for pod {}", pod.key().name)))
        .collect()
}

/// FAIL-4, FAIL-32.
fn is_recreating(spec: &LeaderWorkerSetSpec) -> bool {
    match spec.leader_worker_template.restart_policy() {
        RestartPolicy::Default | RestartPolicy::None => false,
        RestartPolicy::RecreateGroupOnPodRestart | RestartPolicy::RecreateGroupAfterStart => true,
    }
}

fn leader_failure(leader: &Pod) -> Option<Failed<'_>> {
    let is_pending = leader.meta.annotation(annotation::GROUP_RECREATE_PENDING) == "true";
    let how = if is_pending {
        Some(How::RecreatePending)
    } else {
        failure(leader)
    };
    how.map(|how| Failed { pod: leader, how })
}

/// FAIL-35, FAIL-36: leftovers of an earlier leader never recreate the new group.
fn worker_failure<'a>(group: &Group<'_>, pod: &'a Pod) -> Option<Failed<'a>> {
    let how = failure(pod)?;
    let counts =
        has_same_revision(group, pod) && group.snapshot.is_worker_of(&group.leader.meta, pod);
    counts.then_some(Failed { pod, how })
}

fn is_recent(group: &Group<'_>, tombstone: &Tombstone) -> bool {
    has_same_revision(group, &tombstone.pod) && was_worker_of(&group.leader.meta, tombstone)
}

fn has_same_revision(group: &Group<'_>, pod: &Pod) -> bool {
    pod.meta.label(label::REVISION) == group.leader.meta.label(label::REVISION)
}

fn failure(pod: &Pod) -> Option<How> {
    if pod.meta.is_terminating() {
        Some(How::Deleted)
    } else {
        pod.has_restarted().then_some(How::Restarted)
    }
}

/// FAIL-33: a group that is still starting is not recreated, if the set asks for that.
fn is_held_back(group: &Group<'_>, pod: &Pod) -> bool {
    let waits = match group.spec.leader_worker_template.restart_policy() {
        RestartPolicy::RecreateGroupAfterStart => true,
        RestartPolicy::Default | RestartPolicy::None | RestartPolicy::RecreateGroupOnPodRestart => {
            group
                .lws
                .meta
                .annotations
                .get(annotation::RECREATE_AFTER_START)
                .is_some()
        }
    };
    waits && is_pending(group, pod)
}

/// FAIL-33: not all pods of the group exist, or one is pending.
fn is_pending(group: &Group<'_>, pod: &Pod) -> bool {
    let size = pod
        .meta
        .annotation(annotation::SIZE)
        .parse::<i64>()
        .unwrap_or_else(|_| i64::from(group.size()));
    let peers = &group.snapshot.peers;
    i64::try_from(peers.len()) != Ok(size) || peers.iter().any(|pod| pod.phase == Phase::Pending)
}
