//! Restart counts of a Hash set: they follow the slot, not the name of a group (HASH-65, HASH-66, HASH-69).

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::names::label;

use super::leaders::{Standing, Tally, of_revision};
use crate::leaderworkerset::rollout::Budget;
use crate::model::Pod;
use crate::restart_counts::RestartCounts;

/// HASH-65: keys whose count belongs to a group that is there.
pub(super) fn owned(leaders: &[Arc<Pod>]) -> BTreeSet<String> {
    let owners = leaders
        .iter()
        .filter(|leader| Standing::of(leader).owns_count());
    owners.map(|leader| key(leader)).collect()
}

fn key(leader: &Pod) -> String {
    RestartCounts::key(
        leader.meta.label(label::REVISION),
        leader.meta.label(label::GROUP_INDEX),
    )
}

/// HASH-69: forgets counts that no replacement can take over any more; tells whether anything changed.
pub(super) fn prune(
    counts: &mut RestartCounts,
    leaders: &[Arc<Pod>],
    revision: &str,
    budget: Budget,
) -> bool {
    let keep = kept(Tally::of(of_revision(leaders, revision)), budget);
    counts.keep_highest(revision, &owned(leaders), keep)
}

/// HASH-69: places that a replacement may still come to.
fn kept(tally: Tally, budget: Budget) -> usize {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let (wanted, most) = (
        number(budget.desired_replicas),
        number(budget.burst_replicas()),
    );
    let pending = tally.gated.saturating_sub(tally.exhausted);
    let limit = wanted.max(most.min(tally.occupied().saturating_add(pending)));
    limit.saturating_sub(tally.occupied())
}

/// HASH-65: `leader` takes over the highest count that no group of its revision has; tells whether anything changed.
pub(super) fn hand_over(counts: &mut RestartCounts, leaders: &[Arc<Pod>], leader: &Pod) -> bool {
    let revision = leader.meta.label(label::REVISION);
    counts.hand_over(
        revision,
        leader.meta.label(label::GROUP_INDEX),
        &owned(leaders),
    )
}
