//! Which gated leaders of a Hash set may be scheduled (HASH-40).
//!
//! Decides on all of them at once, from all pods of the set: decisions made one by one from old snapshots could let two leaders go where one may
//! (HASH-44). Says nothing about how a leader is let go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lws_api::leaderworkerset::GroupReplacementPolicy;
use lws_api::names::{annotation, label};

use super::leaders::{Standing, Tally, age};
use crate::model::Pod;

/// What the decision goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    /// All pods of the set.
    pub pods: &'a [Arc<Pod>],
    /// Revision of the Deployment, empty if there is none of ours.
    pub revision: &'a str,
    /// Wanted groups.
    pub replicas: usize,
    /// When a replacement may compete with what it replaces.
    pub policy: GroupReplacementPolicy,
}

/// What is decided about a gated leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be scheduled.
    Admit,
    /// Steps A and B: it is of another revision, or its ReplicaSet has enough groups.
    Hold,
    /// Step C: it waits until groups are gone.
    Defer {
        /// How many groups are in the way.
        groups: usize,
    },
}

/// HASH-40: a verdict on each gated leader, by rank.
pub(super) fn decide<'a>(question: &Question<'a>) -> Vec<(&'a Arc<Pod>, Verdict)> {
    let ranked = ranked(question);
    if ranked.is_empty() {
        return Vec::new();
    }
    let blocking = blocking_groups(question);
    let free = ranked.len().saturating_sub(blocking);
    let verdicts = ranked.into_iter().enumerate();
    verdicts
        .map(|(rank, (leader, passes))| {
            let verdict = if !passes {
                Verdict::Hold
            } else if rank < free {
                Verdict::Admit
            } else {
                Verdict::Defer { groups: blocking }
            };
            (leader, verdict)
        })
        .collect()
}

/// All gated leaders, those first that pass steps A and B, then by age. HASH-55: without the first, leaders that are held anyway could take the
/// ranks of those that need to go.
fn ranked<'a>(question: &Question<'a>) -> Vec<(&'a Arc<Pod>, bool)> {
    let mut tallies: BTreeMap<(&str, &str), Tally> = BTreeMap::new();
    let mut gated = Vec::new();
    for leader in leaders(question.pods) {
        let standing = Standing::of(leader);
        if standing == Standing::Gated {
            gated.push(leader);
        } else {
            tallies.entry(made_by(leader)).or_default().add(standing);
        }
    }
    gated.sort_by_cached_key(|leader| age(leader));
    let mut ranked: Vec<_> = gated
        .into_iter()
        .map(|leader| {
            let tally = tallies.entry(made_by(leader)).or_default();
            let has_place = tally.occupied().saturating_add(tally.gated) < question.replicas;
            tally.gated += 1;
            (leader, is_desired(leader, question.revision) && has_place)
        })
        .collect();
    ranked.sort_by_key(|(_, passes)| !passes);
    ranked
}

fn leaders(pods: &[Arc<Pod>]) -> impl Iterator<Item = &Arc<Pod>> {
    pods.iter().filter(|pod| pod.is_leader())
}

/// HASH-55: the cap holds for each ReplicaSet, of which one revision may have several.
fn made_by(leader: &Pod) -> (&str, &str) {
    (
        leader.meta.label(label::REVISION),
        leader.meta.label(label::POD_TEMPLATE_HASH),
    )
}

fn is_desired(leader: &Pod, revision: &str) -> bool {
    !revision.is_empty() && leader.meta.label(label::REVISION) == revision
}

/// B of HASH-40 step C.
fn blocking_groups(question: &Question<'_>) -> usize {
    match question.policy {
        GroupReplacementPolicy::Immediate => leaders(question.pods)
            .filter(|leader| Standing::of(leader) == Standing::Exhausted)
            .count(),
        GroupReplacementPolicy::PostTermination => torn_down_groups(question.pods),
    }
}

/// Groups that have a pod but no live leader.
fn torn_down_groups(pods: &[Arc<Pod>]) -> usize {
    let by_name: BTreeMap<&str, &str> = leaders(pods)
        .map(|leader| (&*leader.key().name, leader.meta.label(label::GROUP_INDEX)))
        .collect();
    let group = |pod: &'_ Arc<Pod>| -> (String, bool) {
        let index = pod.meta.label(label::GROUP_INDEX);
        if !index.is_empty() {
            return (index.to_owned(), true);
        }
        let leader = leader_name(pod);
        match by_name.get(leader) {
            Some(index) if !index.is_empty() => ((*index).to_owned(), true),
            Some(_) | None => (leader.to_owned(), false),
        }
    };
    let live: BTreeSet<_> = leaders(pods)
        .filter(|leader| Standing::of(leader).is_live())
        .map(group)
        .collect();
    let present: BTreeSet<_> = pods.iter().map(group).collect();
    present.difference(&live).count()
}

/// The leader that a pod names.
fn leader_name(pod: &Pod) -> &str {
    let named = pod.meta.annotation(annotation::LEADER_NAME);
    if pod.is_leader() || named.is_empty() {
        &pod.key().name
    } else {
        named
    }
}
