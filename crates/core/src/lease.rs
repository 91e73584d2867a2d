//! Leader election over one Lease (LE-2 … LE-8, KRS-67).
//!
//! [`Elector::decide`] says what to do with the Lease now, from the record as last seen, from when it was last seen to change, and from the
//! local monotonic clock alone: the times in the record are never compared with it. Every write replaces the record that was read, by its
//! resourceVersion. It sends nothing and draws no random number.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::version;

/// Longest random wait before a candidate goes for a Lease without holder (LE-6).
pub const LONGEST_HESITATION: Duration = Duration::from_millis(200);
/// How much longer than retryPeriod the wait between two reads gets at most, when the watch is broken (LE-6).
const READ_SPREAD: f64 = 1.2;

/// LE-4: settings of the election that hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

/// LE-4: why settings do not hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The next holder could take over before this one gives up.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseTooShort,
    /// A single failed renewal would end leadership.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    DeadlineTooShort,
    /// A time is zero.
    #[error("{0} must be greater than zero")]
    Zero(&'static str),
}

impl Timings {
    /// LE-4.
    ///
    /// # Errors
    /// The first constraint that does not hold.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        if lease_duration <= renew_deadline {
            return Err(TimingError::LeaseTooShort);
        }
        // The jitter factor 1.2, in whole numbers.
        if renew_deadline.as_nanos() * 10 <= retry_period.as_nanos() * 12 {
            return Err(TimingError::DeadlineTooShort);
        }
        if retry_period.is_zero() {
            return Err(TimingError::Zero("retryPeriod"));
        }
        Ok(Self {
            lease: lease_duration,
            renew: renew_deadline,
            retry: retry_period,
        })
    }

    /// LE-6: time limit of each request of the elector.
    pub fn request_limit(&self) -> Duration {
        (self.renew / 2).max(Duration::from_secs(1))
    }
}

/// What the Lease says, and the version that says it (LE-2).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// `metadata.resourceVersion`; empty: the Lease does not exist and is to be created.
    pub version: Arc<str>,
    /// `holderIdentity`; empty: nobody.
    pub holder: Arc<str>,
    /// `leaseDurationSeconds`.
    pub duration_seconds: Option<i32>,
    /// `acquireTime`.
    pub acquired: Option<Timestamp>,
    /// `renewTime`.
    pub renewed: Option<Timestamp>,
    /// `leaseTransitions`.
    pub transitions: i32,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read the Lease and tell [`Elector::observe`], or [`Elector::read_failed`].
    Read,
    /// Write [`Elector::claim`] to become the leader, and tell [`Elector::succeeded`] or [`Elector::failed`].
    Acquire,
    /// Write [`Elector::claim`] to stay the leader; tell as above.
    Renew,
    /// Nothing before this time, unless something is observed.
    Wait(Duration),
    /// Leadership is lost: the process ends (LE-7).
    Lost,
}

/// How a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The Lease is not in the version that was read: read it again.
    Conflict,
    /// Anything else, unknown outcomes included.
    Otherwise,
}

/// LE-7: until when the leader may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// A write starts before this time only.
    pub until: Duration,
    /// A write has ended by this time.
    pub hard: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Candidate,
    Holder {
        /// When the last successful renewal was sent.
        renewed: Duration,
    },
    Lost,
}

/// One replica's part in the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elector {
    me: Arc<str>,
    timings: Timings,
    role: Role,
    /// The Lease as last seen; `None`: it does not exist.
    seen: Option<Record>,
    /// When a candidate may take the Lease over.
    free_at: Duration,
    /// No write before this time.
    write_at: Duration,
    /// The Lease must be read before the next write: it was not seen yet, or a write found another version.
    is_stale: bool,
    /// When the Lease is to be read.
    read_at: Option<Duration>,
    is_watched: bool,
}

impl Elector {
    /// A candidate that has seen nothing yet. `me` is new for each process (LE-2).
    pub fn new(me: &str, timings: Timings) -> Self {
        Self {
            me: me.into(),
            timings,
            role: Role::Candidate,
            seen: None,
            free_at: Duration::ZERO,
            write_at: Duration::ZERO,
            is_stale: true,
            read_at: Some(Duration::ZERO),
            is_watched: false,
        }
    }

    /// What to do at `now`.
    pub fn decide(&self, now: Duration) -> Decision {
        let (write_at, write, end) = match self.role {
            Role::Lost => return Decision::Lost,
            Role::Holder { renewed } => (
                self.write_at,
                Decision::Renew,
                Some(renewed + self.timings.renew),
            ),
            Role::Candidate => (self.write_at.max(self.free_at), Decision::Acquire, None),
        };
        let write_at = (!self.is_stale).then_some(write_at);
        let is_due = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        if is_due(end) {
            Decision::Lost
        } else if is_due(write_at) {
            write
        } else if is_due(self.read_at) {
            Decision::Read
        } else {
            // One of them is set: without a version to replace, a read is planned.
            let times = [end, write_at, self.read_at];
            Decision::Wait(
                times
                    .into_iter()
                    .flatten()
                    .min()
                    .unwrap_or(now + self.timings.retry),
            )
        }
    }

    /// The Lease was read, or its watch showed it; `None`: it does not exist. What is older than what was seen before is ignored, as
    /// the watch may be behind a read. `random` is from 0 to 1.
    pub fn observe(&mut self, record: Option<Record>, now: Duration, random: f64) {
        if let (Some(old), Some(new)) = (&self.seen, &record)
            && version::compare(&new.version, &old.version).is_some_and(std::cmp::Ordering::is_lt)
        {
            return;
        }
        let is_first = self.is_stale && self.seen.is_none();
        let is_news = is_first || record != self.seen;
        self.is_stale = false;
        self.read_at = (!self.is_watched).then(|| now + self.read_interval(random));
        if is_news {
            self.free_at = now + self.remaining(record.as_ref(), random);
            self.seen = record;
            self.follow(now);
        }
    }

    /// LE-6: how long a candidate leaves a record alone that it just saw change.
    fn remaining(&self, record: Option<&Record>, random: f64) -> Duration {
        match record {
            None => Duration::ZERO,
            Some(record) if record.holder == self.me => Duration::ZERO,
            Some(record) if record.holder.is_empty() => LONGEST_HESITATION.mul_f64(share(random)),
            Some(record) => {
                let stated = record
                    .duration_seconds
                    .and_then(|seconds| u64::try_from(seconds).ok());
                stated
                    .filter(|seconds| *seconds > 0)
                    .map_or(self.timings.lease, Duration::from_secs)
            }
        }
    }

    /// LE-6: a holder that sees another one has lost; one that sees none writes itself in again at once.
    fn follow(&mut self, now: Duration) {
        let Role::Holder { .. } = self.role else {
            return;
        };
        match self.seen.as_ref().map(|record| &record.holder) {
            Some(holder) if *holder == self.me => {}
            Some(holder) if !holder.is_empty() => self.role = Role::Lost,
            Some(_) | None => self.write_at = now,
        }
    }

    /// The watch of the Lease works, or does not. A candidate without it reads every retryPeriod × (1 … 2.2).
    pub fn watching(&mut self, is_watched: bool, now: Duration, random: f64) {
        if self.is_watched == is_watched {
            return;
        }
        self.is_watched = is_watched;
        if !self.is_stale {
            self.read_at = (!is_watched).then(|| now + self.read_interval(random));
        }
    }

    fn read_interval(&self, random: f64) -> Duration {
        self.timings.retry + self.timings.retry.mul_f64(READ_SPREAD * share(random))
    }

    /// The write that was sent at `sent` succeeded, and the Lease is now `record`.
    pub fn succeeded(&mut self, record: Record, sent: Duration) {
        match self.role {
            Role::Lost => return,
            Role::Candidate | Role::Holder { .. } => self.role = Role::Holder { renewed: sent },
        }
        self.seen = Some(record);
        self.is_stale = false;
        self.read_at = None;
        self.write_at = sent + self.timings.retry;
    }

    /// The write that was sent at `sent` failed: it is tried again after retryPeriod, and if it met another version, the Lease is read
    /// at once before (LE-6).
    pub fn failed(&mut self, failure: Failed, sent: Duration) {
        self.write_at = sent + self.timings.retry;
        match failure {
            Failed::Conflict => {
                self.is_stale = true;
                self.read_at = Some(sent);
            }
            Failed::Otherwise => {}
        }
    }

    /// The read that was sent at `sent` failed: it is tried again after retryPeriod.
    pub fn read_failed(&mut self, sent: Duration) {
        self.read_at = Some(sent + self.timings.retry);
    }

    /// Whether this replica leads, as far as it knows without looking at a clock; see [`Elector::fence`].
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Holder { .. })
    }

    /// LE-7: until when this replica may write, if it leads.
    pub fn fence(&self) -> Option<Fence> {
        match self.role {
            Role::Holder { renewed } => Some(Fence {
                until: renewed + self.timings.renew,
                hard: renewed + self.timings.lease,
            }),
            Role::Candidate | Role::Lost => None,
        }
    }

    /// LE-2: the Lease with which this replica becomes or stays the holder, in place of the one last seen.
    pub fn claim(&self, wall: Timestamp) -> Record {
        let old = self.seen.clone().unwrap_or_default();
        let is_mine = old.holder == self.me;
        let is_new = self.seen.is_none();
        Record {
            holder: self.me.clone(),
            duration_seconds: Some(i32::try_from(self.timings.lease.as_secs()).unwrap_or(i32::MAX)),
            acquired: if is_mine { old.acquired } else { Some(wall) },
            renewed: Some(wall),
            transitions: if is_mine || is_new {
                old.transitions
            } else {
                old.transitions.saturating_add(1)
            },
            version: old.version,
        }
    }

    /// LE-8: the Lease that lets a standby take over at once.
    pub fn release(&self, wall: Timestamp) -> Option<Record> {
        let old = self.seen.as_ref().filter(|_| self.is_leader())?;
        Some(Record {
            holder: "".into(),
            duration_seconds: Some(1),
            acquired: Some(wall),
            renewed: Some(wall),
            ..old.clone()
        })
    }
}

/// A random number as a share from 0 to 1, whatever was passed in.
fn share(random: f64) -> f64 {
    if random.is_finite() {
        random.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
