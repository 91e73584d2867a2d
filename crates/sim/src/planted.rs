//! Known bugs that can be switched on, to show that the checks catch them. Without the feature `planted` none exists, and all of this is nothing.

use jiff::Timestamp;
use lws_core::cache::Wakes;
use lws_core::group::GroupSnapshot;
use lws_core::intent::Step;
use lws_core::run::Request;

use crate::store::Kind;

#[cfg(feature = "planted")]
mod steps;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Deletes carry no UID.
    NoUidOnDelete,
    /// Patches carry neither UID nor version.
    NoFence,
    /// A key is planned before its own writes show.
    NoGuard,
    /// Vanished workers leave no tombstone.
    NoTombstones,
    /// Deletes that a watch tells of are dropped.
    MissDeletes,
    /// What was applied is not remembered.
    ForgetApplied,
    /// A tombstone counts as handled although the run failed.
    JudgeAnyway,
    /// A failed run is not repeated.
    NoRetry,
    /// Nobody looks again after a time.
    NoTimers,
    /// A new leader looks at nothing by itself.
    LeadWithoutLook,
    /// Pod events wake no group.
    DeafToPods,
    /// StatefulSet events wake no set.
    DeafToStatefulSets,
    /// The partition goes to 0 at once.
    PartitionTooLow,
    /// One group too many.
    TooManyGroups,
    /// Surge groups go as soon as they came.
    SurgeDropped,
    /// The status is not written.
    NoStatus,
    /// Recreations are not counted.
    NoCount,
    /// The number of groups is written to the spec.
    WritesSpec,
    /// Old revisions stay.
    KeepRevisions,
    /// Workers get another revision than their leader.
    WrongRevision,
    /// Worker sets have no owner.
    NoOwner,
    /// An exhausted group is deleted without a mark.
    NoMark,
    /// Names of workers count as free (ORD-84).
    NamesNotChecked,
    /// Leftovers of a predecessor count as workers (FAIL-36).
    ChainIgnored,
    /// A leader counts as ready (LeaderReady).
    ReadyIgnored,
    /// A terminating leader counts as live.
    EndIgnored,
    /// The back-off counts as over.
    NoBackoff,
    /// A rollout waits until every leader is ready.
    WaitForReady,
    /// Workers with index 0 count as leaders of ours (ORD-80 step 10).
    WorkersLead,
    /// Worker sets that keep vanishing are made again at once.
    NoPause,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::NoUidOnDelete,
        Self::NoFence,
        Self::NoGuard,
        Self::NoTombstones,
        Self::MissDeletes,
        Self::ForgetApplied,
        Self::JudgeAnyway,
        Self::NoRetry,
        Self::NoTimers,
        Self::LeadWithoutLook,
        Self::DeafToPods,
        Self::DeafToStatefulSets,
        Self::PartitionTooLow,
        Self::TooManyGroups,
        Self::SurgeDropped,
        Self::NoStatus,
        Self::NoCount,
        Self::WritesSpec,
        Self::KeepRevisions,
        Self::WrongRevision,
        Self::NoOwner,
        Self::NoMark,
        Self::NamesNotChecked,
        Self::ChainIgnored,
        Self::ReadyIgnored,
        Self::EndIgnored,
        Self::NoBackoff,
        Self::WaitForReady,
        Self::WorkersLead,
        Self::NoPause,
    ];
}

/// The bug of a run, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "planted")]
    bug: Option<Bug>,
}

#[cfg(not(feature = "planted"))]
#[allow(
    clippy::unused_self,
    reason = "the switches exist with the feature only"
)]
impl Planted {
    /// Whether this bug is there.
    pub fn is(self, _: Bug) -> bool {
        false
    }

    pub(crate) fn steps(self, steps: &[Step], _: bool) -> Vec<Step> {
        steps.to_vec()
    }

    pub(crate) fn request(self, request: Request) -> Request {
        request
    }

    pub(crate) fn blur(self, _: &mut GroupSnapshot) {}

    pub(crate) fn clock(self, at: Timestamp) -> Timestamp {
        at
    }

    pub(crate) fn deafen(self, _: Kind, _: &mut Wakes) {}
}

#[cfg(feature = "planted")]
impl Planted {
    /// With this bug.
    pub fn with(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether this bug is there.
    pub fn is(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The steps of a plan; `all_ready` if it saw every leader ready.
    pub(crate) fn steps(self, steps: &[Step], all_ready: bool) -> Vec<Step> {
        match self.bug {
            Some(Bug::WaitForReady) if all_ready => steps.to_vec(),
            Some(bug) => steps::spoil(bug, steps),
            None => steps.to_vec(),
        }
    }

    pub(crate) fn request(self, mut request: Request) -> Request {
        if let Request::Patch { body, .. } = &mut request
            && self.is(Bug::NoFence)
            && let Some(meta) = body["metadata"].as_object_mut()
        {
            meta.remove("uid");
            meta.remove("resourceVersion");
        }
        request
    }

    pub(crate) fn blur(self, seen: &mut GroupSnapshot) {
        if let Some(bug) = self.bug {
            steps::blur(bug, seen)
        }
    }

    pub(crate) fn clock(self, at: Timestamp) -> Timestamp {
        if self.is(Bug::NoBackoff) {
            at + jiff::SignedDuration::from_hours(1)
        } else {
            at
        }
    }

    pub(crate) fn deafen(self, kind: Kind, wakes: &mut Wakes) {
        match (self.bug, kind) {
            (Some(Bug::DeafToPods), Kind::Pod) => wakes.groups.clear(),
            (Some(Bug::DeafToStatefulSets), Kind::StatefulSet) => wakes.sets.clear(),
            _ => {}
        }
    }
}
