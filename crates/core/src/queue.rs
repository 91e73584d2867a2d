//! The work queue of one controller: which key is planned next, and when (KRS-46 … KRS-50, CON-1, CON-2).
//!
//! A state machine over the time that it is told; it holds no clock, draws no random number and starts nothing. Each key is in it once. A key is
//! never handed out while it is being worked on, and a trigger that comes meanwhile is kept and served right after. Each key has one time slot:
//! an earlier time replaces a later one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::intent::PlanError;
use crate::run::{Class, Outcome};

/// First delay of the exponential back-off (CON-1).
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// First delay after the API server refused a request for what it says (KRS-50).
const FIRST_DELAY_REJECTED: Duration = Duration::from_secs(30);
/// Longest delay of the exponential back-off (CON-1).
const LONGEST_DELAY: Duration = Duration::from_secs(1000);
/// Delay while a foreign object has the name (KRS-50, ORD-135).
const FOREIGN_DELAY: Duration = Duration::from_secs(30);
/// Delay after 429 without a word on how long (KRS-18).
const THROTTLED_DELAY: Duration = Duration::from_secs(1);
/// Longest wait for a newer cache after a conflict (KRS-36).
const CONFLICT_DELAY: Duration = Duration::from_secs(1);
/// A key rests for so many times what its run has taken, and at most for [`LONGEST_REST`].
const REST_SHARE: u32 = 20;
/// What a burst of events is told by late, at most.
const LONGEST_REST: Duration = Duration::from_millis(250);
/// Most that jitter adds to a back-off (KRS-50).
const JITTER: f64 = 0.1;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Look again after this time, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// Why it must be tried again; `None`: all went well.
    pub retry: Option<Retry>,
}

/// Why a run must be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A request failed, or something is wrong that may pass ([`Class::Unknown`]).
    Failed {
        /// Kind of failure.
        class: Class,
        /// When the server asked to come back.
        after: Option<Duration>,
    },
    /// A finding of the plan that says itself when to look again.
    After(Duration),
    /// A write was refused because the cache was behind.
    Conflict,
}

impl Verdict {
    /// The verdict on a run whose plan had `errors` and wanted to look again after `wake_after`, and whose passes had `outcomes`. A failed
    /// request counts before a refused one, and both before what the plan found wrong by itself.
    pub fn of(wake_after: Option<Duration>, errors: &[PlanError], outcomes: &[&Outcome]) -> Self {
        let failure = outcomes.iter().find_map(|outcome| outcome.failure.as_ref());
        let failed = failure.map(|failure| Retry::Failed {
            class: failure.class,
            after: failure.retry_after,
        });
        let conflict = outcomes
            .iter()
            .any(|outcome| outcome.conflict)
            .then_some(Retry::Conflict);
        let found = errors.first().map(|error| match error.retry_after {
            Some(delay) => Retry::After(delay),
            None => Retry::Failed {
                class: Class::Unknown,
                after: None,
            },
        });
        let wishes = errors.iter().filter_map(|error| error.retry_after);
        Self {
            wake_after: wishes.chain(wake_after).min(),
            retry: failed.or(conflict).or(found),
        }
    }
}

/// A key handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn<K> {
    /// The key.
    pub key: K,
    /// How long it stood ready.
    pub waited: Duration,
}

/// What has been counted since the start (MET-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Keys that became ready.
    pub adds: u64,
    /// Runs that must be repeated.
    pub retries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Ready {
        since: Duration,
    },
    Running {
        since: Duration,
        triggered: Option<Duration>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    phase: Phase,
    due: Option<Duration>,
    attempts: u32,
    /// When the back-off of the last failure ends.
    retry_at: Option<Duration>,
    /// What happens before this time is looked at then.
    rests_until: Option<Duration>,
}

/// Keys that are ready, running or due at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue<K> {
    workers: usize,
    slots: BTreeMap<K, Slot>,
    ready: VecDeque<K>,
    timers: BTreeSet<(Duration, K)>,
    running: usize,
    counts: Counts,
}

impl<K: Ord + Clone> Queue<K> {
    /// A queue that hands out at most `workers` keys at a time, and at least one (KRS-47).
    pub fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            slots: BTreeMap::new(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            running: 0,
            counts: Counts::default(),
        }
    }

    /// Something happened to `key`: it is ready now, or right after its run and its rest.
    pub fn add(&mut self, key: K, now: Duration) {
        let slot = self.slot(&key);
        match slot.phase {
            Phase::Idle => match slot.rests_until.filter(|until| *until > now) {
                Some(until) => self.add_at(key, until),
                None => self.make_ready(key, now),
            },
            Phase::Ready { .. } => {}
            Phase::Running { since, triggered } => {
                let triggered = Some(triggered.unwrap_or(now));
                self.put(
                    key,
                    Slot {
                        phase: Phase::Running { since, triggered },
                        ..slot
                    },
                );
            }
        }
    }

    /// Adds the keys that a replica begins its leadership with (KRS-68).
    pub fn seed(&mut self, keys: impl IntoIterator<Item = K>, now: Duration) {
        for key in keys {
            self.add(key, now);
        }
    }

    /// `key` is to be looked at at `due`, unless it is ready or due before (KRS-48).
    pub fn add_at(&mut self, key: K, due: Duration) {
        let slot = self.slot(&key);
        let is_news = match slot.phase {
            Phase::Ready { .. } => false,
            Phase::Idle | Phase::Running { .. } => slot.due.is_none_or(|planned| due < planned),
        };
        if is_news {
            self.set_due(key, slot, Some(due));
        }
    }

    /// The next key to work on, if there is one and a worker for it.
    pub fn take(&mut self, now: Duration) -> Option<Turn<K>> {
        self.wake(now);
        if self.running >= self.workers {
            return None;
        }
        let key = self.ready.pop_front()?;
        let slot = self.slot(&key);
        let waited = match slot.phase {
            Phase::Ready { since } => now.saturating_sub(since),
            Phase::Idle | Phase::Running { .. } => Duration::ZERO,
        };
        self.running += 1;
        self.put(
            key.clone(),
            Slot {
                phase: Phase::Running {
                    since: now,
                    triggered: None,
                },
                rests_until: None,
                ..slot
            },
        );
        Some(Turn { key, waited })
    }

    /// The run of `key` that is under way has kept a core busy for `busy`: what happens to it after the run waits a while, so that a burst of
    /// events costs a twentieth of a core at most, however large the object is.
    pub fn rest(&mut self, key: &K, busy: Duration, now: Duration) {
        let rest = busy.saturating_mul(REST_SHARE).min(LONGEST_REST);
        let slot = self.slot(key);
        let rests_until = (!rest.is_zero()).then(|| now.saturating_add(rest));
        self.put(
            key.clone(),
            Slot {
                rests_until,
                ..slot
            },
        );
    }

    /// The run of `key` ended. `jitter`, from 0 to 1, is what share of the possible jitter a back-off gets.
    pub fn done(&mut self, key: &K, verdict: &Verdict, now: Duration, jitter: f64) {
        let slot = self.slot(key);
        // A run that an event caused during a back-off leaves it as it is: a burst of events is no row of failures.
        let backing_off = slot.retry_at.filter(|at| *at > now);
        let (attempts, delay) = match (&verdict.retry, backing_off) {
            (None, _) => (0, None),
            (Some(retry), Some(at)) if backs_off(retry) => {
                self.counts.retries += 1;
                (slot.attempts, Some(at.saturating_sub(now)))
            }
            (Some(retry), _) => {
                self.counts.retries += 1;
                after(retry, slot.attempts, jitter)
            }
        };
        let retry = delay.map(|delay| now.saturating_add(delay));
        let wake = verdict.wake_after.map(|delay| now.saturating_add(delay));
        let retry_at = retry.filter(|_| attempts > 0);
        let slot = Slot {
            attempts,
            retry_at,
            ..slot
        };
        self.end(key, slot, earlier(retry, wake));
    }

    /// `key` was taken but cannot be planned yet (KRS-36): it comes again at `until`, or when it is added. This is no run and counts
    /// as none.
    pub fn put_back(&mut self, key: &K, until: Duration) {
        let slot = self.slot(key);
        self.end(key, slot, Some(until));
    }

    /// When [`Queue::take`] may give a key although nothing was added and no run ended.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// The next failure of `key` counts as the first one again (KRS-50: a new generation).
    pub fn reset(&mut self, key: &K) {
        let slot = self.slot(key);
        self.put(
            key.clone(),
            Slot {
                attempts: 0,
                retry_at: None,
                ..slot
            },
        );
    }

    /// The object of `key` is gone: its timer and its back-off go too (KRS-42). A trigger stays, as a run may have to tidy up; that of a key
    /// that rests is its timer.
    pub fn forget(&mut self, key: &K) {
        let slot = self.slot(key);
        let due = slot.rests_until.and(slot.due);
        self.set_due(
            key.clone(),
            Slot {
                attempts: 0,
                retry_at: None,
                rests_until: None,
                ..slot
            },
            due,
        );
    }

    /// Number of keys that are ready.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Keys that are being worked on, with the time at which each was taken.
    pub fn running(&self) -> impl Iterator<Item = (&K, Duration)> {
        self.slots
            .iter()
            .filter_map(|(key, slot)| match slot.phase {
                Phase::Running { since, .. } => Some((key, since)),
                Phase::Idle | Phase::Ready { .. } => None,
            })
    }

    /// No key is ready or running, and none is due at any time.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.running == 0 && self.timers.is_empty()
    }

    /// What has been counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn wake(&mut self, now: Duration) {
        while let Some((due, key)) = self.timers.first().cloned() {
            if due > now {
                return;
            }
            let slot = self.slot(&key);
            self.set_due(key.clone(), slot, None);
            self.add(key, due);
        }
    }

    fn end(&mut self, key: &K, slot: Slot, due: Option<Duration>) {
        let Phase::Running { triggered, .. } = slot.phase else {
            return;
        };
        self.running -= 1;
        let due = earlier(slot.due, due);
        self.set_due(
            key.clone(),
            Slot {
                phase: Phase::Idle,
                ..slot
            },
            due,
        );
        if let Some(since) = triggered {
            self.add(key.clone(), since);
        }
    }

    fn make_ready(&mut self, key: K, since: Duration) {
        let slot = self.slot(&key);
        self.counts.adds += 1;
        self.ready.push_back(key.clone());
        self.set_due(
            key,
            Slot {
                phase: Phase::Ready { since },
                ..slot
            },
            None,
        );
    }

    fn slot(&self, key: &K) -> Slot {
        let absent = Slot {
            phase: Phase::Idle,
            due: None,
            attempts: 0,
            retry_at: None,
            rests_until: None,
        };
        self.slots.get(key).copied().unwrap_or(absent)
    }

    fn set_due(&mut self, key: K, slot: Slot, due: Option<Duration>) {
        if let Some(old) = self.slot(&key).due {
            self.timers.remove(&(old, key.clone()));
        }
        if let Some(new) = due {
            self.timers.insert((new, key.clone()));
        }
        self.put(key, Slot { due, ..slot });
    }

    /// Keeps the slot as long as it says anything.
    fn put(&mut self, key: K, slot: Slot) {
        let says_nothing = slot.phase == Phase::Idle
            && slot.due.is_none()
            && slot.attempts == 0
            && slot.rests_until.is_none();
        if says_nothing {
            self.slots.remove(&key);
        } else {
            self.slots.insert(key, slot);
        }
    }
}

/// Whether the delay grows with each failure.
fn backs_off(retry: &Retry) -> bool {
    match retry {
        Retry::After(_) | Retry::Conflict => false,
        Retry::Failed { class, .. } => matches!(class, Class::Rejected | Class::Unknown),
    }
}

/// KRS-20, KRS-50: failures in a row after this one, and the delay before the next run.
fn after(retry: &Retry, attempts: u32, jitter: f64) -> (u32, Option<Duration>) {
    match retry {
        Retry::After(delay) => (attempts, Some(*delay)),
        Retry::Conflict => (attempts, Some(CONFLICT_DELAY)),
        Retry::Failed { class, after } => match class {
            Class::Gone | Class::Conflict => (attempts, Some(CONFLICT_DELAY)),
            Class::Exists => (attempts, Some(FOREIGN_DELAY)),
            Class::Throttled => (
                attempts,
                Some(
                    after
                        .filter(|after| !after.is_zero())
                        .unwrap_or(THROTTLED_DELAY),
                ),
            ),
            Class::Rejected => (
                attempts.saturating_add(1),
                Some(backoff(FIRST_DELAY_REJECTED, attempts, jitter)),
            ),
            Class::Unknown => (
                attempts.saturating_add(1),
                Some(backoff(FIRST_DELAY, attempts, jitter)),
            ),
            Class::Terminating => (0, None),
        },
    }
}

/// KRS-50: `min(first · 2^attempts, 1000 s)`, and up to a tenth more.
fn backoff(first: Duration, attempts: u32, jitter: f64) -> Duration {
    let factor = 2u32.checked_pow(attempts).unwrap_or(u32::MAX);
    let delay = first.saturating_mul(factor).min(LONGEST_DELAY);
    let share = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        0.0
    };
    delay + delay.mul_f64(JITTER * share)
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests;
