//! What a leader of a Hash set counts as (reconcile-hash section 1).

use std::sync::Arc;

use lws_api::names::label;

use crate::model::{Pod, Uid};

/// What a leader counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its restart budget is used up; it is retained, mostly terminating.
    Exhausted,
    /// On its way out.
    Terminating,
    /// Held back from scheduling.
    Gated,
    /// Free to run.
    Admitted,
}

impl Standing {
    /// What `leader` counts as.
    pub(crate) fn of(leader: &Pod) -> Self {
        if leader.is_exhausted() {
            Self::Exhausted
        } else if leader.meta.is_terminating() {
            Self::Terminating
        } else if leader.is_gated() {
            Self::Gated
        } else {
            Self::Admitted
        }
    }

    /// The group lives, or will.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Gated | Self::Admitted)
    }

    /// HASH-65: the group keeps its restart count.
    pub(crate) fn owns_count(self) -> bool {
        self != Self::Terminating
    }
}

/// Leaders of one revision by standing, as far as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub exhausted: usize,
    pub gated: usize,
    pub admitted: usize,
}

impl Tally {
    pub fn add(&mut self, standing: Standing) {
        match standing {
            Standing::Exhausted => self.exhausted += 1,
            Standing::Gated => self.gated += 1,
            Standing::Admitted => self.admitted += 1,
            Standing::Terminating => {}
        }
    }

    pub fn of<'a>(leaders: impl Iterator<Item = &'a Arc<Pod>>) -> Self {
        let mut tally = Self::default();
        leaders.for_each(|leader| tally.add(Standing::of(leader)));
        tally
    }

    /// Leaders that take a group's place: A + E of HASH-40.
    pub fn occupied(self) -> usize {
        self.exhausted.saturating_add(self.admitted)
    }
}

/// Leaders of one revision.
pub(super) fn of_revision<'a>(
    leaders: &'a [Arc<Pod>],
    revision: &'a str,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    leaders
        .iter()
        .filter(move |leader| leader.meta.label(label::REVISION) == revision)
}

/// HASH-40, HASH-68: older leaders come first.
pub(super) fn age(leader: &Pod) -> impl Ord {
    (leader.meta.created, leader.key().clone())
}

/// HASH-68 (b): whether the exhausted leader `uid` of `revision` has no place among `replicas` groups, the older ones being served first.
pub(crate) fn surplus(leaders: &[Arc<Pod>], revision: &str, uid: &Uid, replicas: usize) -> bool {
    let allowed = replicas.saturating_sub(Tally::of(of_revision(leaders, revision)).admitted);
    let mut exhausted: Vec<_> = of_revision(leaders, revision)
        .filter(|leader| Standing::of(leader) == Standing::Exhausted)
        .collect();
    exhausted.sort_by_cached_key(|leader| age(leader));
    exhausted
        .iter()
        .skip(allowed)
        .any(|leader| leader.meta.uid == *uid)
}
