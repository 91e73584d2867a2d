//! Known bugs that can be switched on, to show that the checks catch them. Without the feature `planted` none exists, and all of this is nothing.

use jiff::Timestamp;
use lws_core::cache::Wakes;
use lws_core::disaggregatedset;
use lws_core::group::GroupSnapshot;
use lws_core::intent::Step;
use lws_core::leaderworkerset::Snapshot;
use lws_core::run::Request;

use crate::store::Kind;

mod roles;
#[cfg(feature = "planted")]
mod steps;

pub use roles::Flaw;

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
    /// Edits of a set wake nobody.
    DeafToSets,
    /// Service events wake nobody.
    DeafToServices,
    /// The pod watch tells of no changes.
    MissUpdates,
    /// No Service is made.
    NoService,
    /// No revision is made.
    NoRevision,
    /// What waits for the end of its back-off is not written down.
    NoPendingMark,
    /// Worker sets are one pod too big.
    OneWorkerMore,
    /// The partition goes up again.
    PartitionRises,
    /// Surge groups stay.
    SurgeKept,
    /// The status claims a generation to come.
    StaleGeneration,
    /// Every status write moves all transition times.
    TimesMove,
    /// The set is said to be available.
    AvailableEarly,
    /// A label of ours is written to the set.
    WritesLabels,
    /// Every leader set is taken for ours (ORD-135).
    AdoptsAnything,
    /// A terminating set counts as live.
    SetEndIgnored,
    /// Rollouts take every leader for ready (ORD-45).
    LeadersServe,
    /// Rollouts take every worker set for available (ORD-45).
    WorkersServe,
    /// Rollouts see no revisions (ORD-34).
    RevisionsForgotten,
    /// Containers that were restarted count for nothing (FAIL-1).
    RestartsIgnored,
    /// Pods that have not started count as started (FAIL-9).
    PendingIgnored,
    /// A process that lost its lease goes on writing (LE-7).
    WritesOn,
    /// A candidate takes the lease while its holder lives (LE-6).
    TakesLease,
    /// A process that ends in good order keeps the lease (LE-8).
    KeepsLease,
    /// It gives the lease back before its work is done (SHD-1).
    LeavesInHaste,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 54] = [
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
        Self::DeafToSets,
        Self::DeafToServices,
        Self::MissUpdates,
        Self::NoService,
        Self::NoRevision,
        Self::NoPendingMark,
        Self::OneWorkerMore,
        Self::PartitionRises,
        Self::SurgeKept,
        Self::StaleGeneration,
        Self::TimesMove,
        Self::AvailableEarly,
        Self::WritesLabels,
        Self::AdoptsAnything,
        Self::SetEndIgnored,
        Self::LeadersServe,
        Self::WorkersServe,
        Self::RevisionsForgotten,
        Self::RestartsIgnored,
        Self::PendingIgnored,
        Self::WritesOn,
        Self::TakesLease,
        Self::KeepsLease,
        Self::LeavesInHaste,
    ];
}

/// The bug of a run, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "planted")]
    bug: Option<Bug>,
    #[cfg(feature = "planted")]
    flaw: Option<Flaw>,
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

    pub(crate) fn steps(self, steps: &[Step], _: bool, _: Timestamp) -> Vec<Step> {
        steps.to_vec()
    }

    pub(crate) fn request(self, request: Request) -> Request {
        request
    }

    pub(crate) fn blur(self, _: &mut GroupSnapshot) {}

    pub(crate) fn blur_set(self, _: &mut Snapshot) {}

    pub(crate) fn clock(self, at: Timestamp) -> Timestamp {
        at
    }

    pub(crate) fn deafen(self, _: Kind, _: &mut Wakes) {}

    pub(crate) fn blur_roles(self, _: &mut disaggregatedset::Snapshot) {}

    pub(crate) fn role_steps(self, _: &disaggregatedset::Snapshot, steps: &[Step]) -> Vec<Step> {
        steps.to_vec()
    }
}

#[cfg(feature = "planted")]
impl Planted {
    /// With this bug.
    pub fn with(bug: Bug) -> Self {
        Self {
            bug: Some(bug),
            flaw: None,
        }
    }

    /// With this bug of DisaggregatedSets.
    pub fn flawed(flaw: Flaw) -> Self {
        Self {
            bug: None,
            flaw: Some(flaw),
        }
    }

    pub(crate) fn blur_roles(self, seen: &mut disaggregatedset::Snapshot) {
        if let Some(flaw) = self.flaw {
            roles::blur(flaw, seen);
        }
    }

    pub(crate) fn role_steps(self, seen: &disaggregatedset::Snapshot, steps: &[Step]) -> Vec<Step> {
        match self.flaw {
            Some(flaw) => roles::spoil(flaw, seen, steps),
            None => steps.to_vec(),
        }
    }

    /// Whether this bug is there.
    pub fn is(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The steps of a plan; `all_ready` if it saw every leader ready.
    pub(crate) fn steps(self, steps: &[Step], all_ready: bool, at: Timestamp) -> Vec<Step> {
        match self.bug {
            Some(Bug::WaitForReady) if all_ready => steps.to_vec(),
            Some(bug) => steps::spoil(bug, steps, at),
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

    pub(crate) fn blur_set(self, seen: &mut Snapshot) {
        if let Some(bug) = self.bug {
            steps::blur_set(bug, seen)
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
        match (self.flaw, kind) {
            (Some(Flaw::DeafToScalers), Kind::RoleScaler)
            | (Some(Flaw::DeafToChildren), Kind::LeaderWorkerSet) => {
                wakes.disaggregated_sets.clear();
            }
            _ => {}
        }
        match (self.bug, kind) {
            (Some(Bug::DeafToPods), Kind::Pod) => wakes.groups.clear(),
            (Some(Bug::DeafToStatefulSets), Kind::StatefulSet) => wakes.sets.clear(),
            (Some(Bug::DeafToSets), Kind::LeaderWorkerSet)
            | (Some(Bug::DeafToServices), Kind::Service) => *wakes = Wakes::default(),
            _ => {}
        }
    }
}
