//! One process's part in the election: the real elector, whose requests are sent, committed and answered in steps of their own, and which a watch of
//! the Lease that may lag tells of the others (LE-2 … LE-8).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_core::lease::{Decision, Elector, Failed, Fence, Record, Timings};
use lws_core::run::{Class, Failure};
use serde_json::{Value, json};

use crate::planted::{Bug, Planted};
use crate::store::{Change, Commit, Key, Kind, Store, text};

#[derive(Clone, Debug)]
enum Ask {
    Read,
    Write(Record),
}

#[derive(Clone, Debug)]
enum Flight {
    Idle,
    Sent(Ask, Duration),
    Committed(Ask, Duration, Result<Option<Record>, Failed>),
}

/// LE-8: how far a process is that ends in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// It does not end.
    Stays,
    /// It reads the Lease: a renewal may have been cut off.
    Reads,
    /// It gives the Lease back.
    GivesBack,
    /// It has given it back, or tried to.
    Gone,
}

/// A process that stands for election.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What the Lease calls it.
    pub me: String,
    elector: Elector,
    flight: Flight,
    leave: Leave,
    /// Writes of the Lease that its watch has told of; nothing without a watch.
    watched: Option<u64>,
    bugs: Planted,
}

/// The Lease.
pub fn key() -> Key {
    Key::new(Kind::Lease, "lws-system", "lws")
}

/// Who holds it.
pub fn holder(store: &Store) -> Option<&str> {
    text(store.get(&key())?, "/spec/holderIdentity")
}

impl Candidate {
    /// A new process, with the times that are the default.
    ///
    /// # Panics
    /// Never: the default times hold together.
    pub fn new(me: String, bugs: Planted) -> Self {
        let [lease, renew, retry] = [15, 10, 2].map(Duration::from_secs);
        let timings = Timings::new(lease, renew, retry).expect("the default times hold together");
        Self {
            elector: Elector::new(&me, timings),
            me,
            flight: Flight::Idle,
            leave: Leave::Stays,
            watched: None,
            bugs,
        }
    }

    fn decide(&self, now: Duration) -> Decision {
        let is_candidate = !self.elector.is_leader();
        let hasty = Duration::from_secs(if is_candidate { 3600 } else { 0 });
        match self.elector.decide(now) {
            Decision::Wait(_) if self.bugs.is(Bug::TakesLease) => self.elector.decide(now + hasty),
            Decision::Lost if self.bugs.is(Bug::WritesOn) => {
                Decision::Wait(now + hasty.max(QUIETLY))
            }
            decision => decision,
        }
    }

    /// Whether it has something to do now.
    pub fn is_due(&self, now: Duration) -> bool {
        match self.flight {
            Flight::Idle if self.leave != Leave::Stays => true,
            Flight::Idle => !matches!(self.decide(now), Decision::Wait(_)),
            Flight::Sent(..) | Flight::Committed(..) => true,
        }
    }

    /// It waits for the API server.
    pub fn needs_server(&self) -> bool {
        matches!(self.flight, Flight::Sent(..))
    }

    /// When it has something to do.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        match self.decide(now) {
            Decision::Wait(until) => Some(until),
            _ => None,
        }
    }

    /// LE-7: it has lost, and its process ends.
    pub fn has_lost(&self, now: Duration) -> bool {
        let stays = matches!(self.flight, Flight::Idle) && self.leave == Leave::Stays;
        stays && self.decide(now) == Decision::Lost
    }

    /// SHD-1: its process has finished its work, and ends. A renewal that is on its way is cut off.
    pub fn begin_to_leave(&mut self) {
        self.flight = Flight::Idle;
        self.leave = Leave::Reads;
    }

    /// It gives the Lease back, or has done so.
    pub fn is_leaving(&self) -> bool {
        self.leave != Leave::Stays
    }

    /// It has given the Lease back, or learnt that it could not.
    pub fn has_left(&self) -> bool {
        self.leave == Leave::Gone && matches!(self.flight, Flight::Idle)
    }

    /// Whether the watch of the Lease is to begin, or has something to tell.
    pub fn has_news(&self, store: &Store) -> bool {
        self.watched
            .is_none_or(|told| told < store.writes(Kind::Lease))
    }

    /// The watch begins with what is there, and then tells of one write after the other.
    pub fn see(&mut self, store: &Store, now: Duration) {
        let (told, record) = match self.watched {
            None => (store.writes(Kind::Lease), store.get(&key()).cloned()),
            Some(told) => (told + 1, lease_at(store, told + 1)),
        };
        self.watched = Some(told);
        self.elector
            .observe(record.map(|lease| read(&lease)), now, 0.5);
        self.elector.watching(true, now, 0.5);
    }

    /// The watch breaks.
    pub fn lose_sight(&mut self, now: Duration) {
        self.watched = None;
        self.elector.watching(false, now, 0.5);
    }

    /// It leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.elector.is_leader()
    }

    /// LE-7: between which times it may write.
    pub fn fence(&self) -> Option<Fence> {
        let is_closed = self.is_leaving() && !self.bugs.is(Bug::LeavesInHaste);
        if is_closed {
            None
        } else {
            self.elector.fence()
        }
    }

    /// The next stage of its request. `failure` befalls a request that is committed now.
    pub fn step(
        &mut self,
        store: &mut Store,
        by: &'static str,
        (now, wall): (Duration, Timestamp),
        failure: Option<Fate>,
    ) {
        let flight = std::mem::replace(&mut self.flight, Flight::Idle);
        match flight {
            Flight::Idle if self.is_leaving() => self.go(now, wall),
            Flight::Idle => match self.decide(now) {
                Decision::Read => self.flight = Flight::Sent(Ask::Read, now),
                Decision::Acquire | Decision::Renew => {
                    self.flight = Flight::Sent(Ask::Write(self.elector.claim(wall)), now);
                }
                Decision::Wait(_) | Decision::Lost => {}
            },
            Flight::Sent(ask, sent) => {
                let done = if failure == Some(Fate::NotTaken) {
                    Err(Failed::Otherwise)
                } else {
                    perform(store, by, &ask)
                };
                let answer = if failure == Some(Fate::NotAnswered) {
                    Err(Failed::Otherwise)
                } else {
                    done
                };
                self.flight = Flight::Committed(ask, sent, answer);
            }
            Flight::Committed(ask, sent, answer) => self.answered(&ask, sent, answer, now),
        }
    }

    /// LE-8.
    fn go(&mut self, now: Duration, wall: Timestamp) {
        let keeps = self.bugs.is(Bug::KeepsLease);
        let release = self.elector.release(wall).filter(|_| !keeps);
        match (self.leave, release) {
            (Leave::Reads, Some(_)) => {
                self.leave = Leave::GivesBack;
                self.flight = Flight::Sent(Ask::Read, now);
            }
            (Leave::GivesBack, Some(record)) => {
                self.leave = Leave::Gone;
                self.flight = Flight::Sent(Ask::Write(record), now);
            }
            (_, None) | (Leave::Stays | Leave::Gone, _) => self.leave = Leave::Gone,
        }
    }

    fn answered(
        &mut self,
        ask: &Ask,
        sent: Duration,
        answer: Result<Option<Record>, Failed>,
        now: Duration,
    ) {
        match (ask, answer) {
            (Ask::Read, Ok(record)) => self.elector.observe(record, now, 0.5),
            (Ask::Read, Err(_)) => self.elector.read_failed(sent),
            (Ask::Write(_), Ok(Some(record))) => self.elector.succeeded(record, sent),
            (Ask::Write(_), Ok(None)) => self.elector.failed(Failed::Otherwise, sent),
            (Ask::Write(_), Err(failed)) => self.elector.failed(failed, sent),
        }
    }
}

/// What befalls a request of the elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It fails before it is taken.
    NotTaken,
    /// It is taken, and the answer is lost.
    NotAnswered,
}

/// How long a planted process that has lost says nothing.
const QUIETLY: Duration = Duration::from_secs(3600);

fn perform(store: &mut Store, by: &'static str, ask: &Ask) -> Result<Option<Record>, Failed> {
    let key = key();
    let Ask::Write(record) = ask else {
        return Ok(store.get(&key).map(|lease| read(lease)));
    };
    let spec = json!({"holderIdentity": &*record.holder, "leaseDurationSeconds": record.duration_seconds,
        "acquireTime": record.acquired.map(|time| time.to_string()), "renewTime": record.renewed.map(|time| time.to_string()),
        "leaseTransitions": record.transitions});
    let answer = if record.version.is_empty() {
        store.create(by, key, json!({"spec": spec}))
    } else {
        let body = json!({"metadata": {"resourceVersion": &*record.version}, "spec": spec});
        store.patch(by, &key, false, &body)
    };
    match answer {
        Ok(lease) => Ok(Some(read(&lease))),
        Err(Failure {
            class: Class::Conflict | Class::Exists | Class::Gone,
            ..
        }) => Err(Failed::Conflict),
        Err(_) => Err(Failed::Otherwise),
    }
}

/// The Lease after its write of this number.
fn lease_at(store: &Store, number: u64) -> Option<Arc<Value>> {
    let number = number.to_string();
    let of_lease = |commit: &&Commit| {
        commit.key == key() && text(&commit.object, "/metadata/resourceVersion") == Some(&number)
    };
    let commit = store.log().iter().rev().find(of_lease)?;
    (commit.change != Change::Deleted).then(|| commit.object.clone())
}

fn read(lease: &Value) -> Record {
    let time = |path| text(lease, path).and_then(|time| time.parse().ok());
    let number = |path| {
        let number = lease.pointer(path).and_then(Value::as_i64);
        number.and_then(|number| i32::try_from(number).ok())
    };
    Record {
        version: text(lease, "/metadata/resourceVersion")
            .unwrap_or_default()
            .into(),
        holder: text(lease, "/spec/holderIdentity")
            .unwrap_or_default()
            .into(),
        duration_seconds: number("/spec/leaseDurationSeconds"),
        acquired: time("/spec/acquireTime"),
        renewed: time("/spec/renewTime"),
        transitions: number("/spec/leaseTransitions").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps one candidate for a time, and says when it led.
    fn until(candidate: &mut Candidate, store: &mut Store, from: u64, to: u64) -> Option<Duration> {
        let mut now = Duration::from_secs(from);
        while now < Duration::from_secs(to) {
            if candidate.is_due(now) && !candidate.has_lost(now) {
                candidate.step(store, "lws", (now, Timestamp::UNIX_EPOCH), None);
            }
            if candidate.is_leader() {
                return Some(now);
            }
            now += Duration::from_millis(10);
        }
        None
    }

    #[test]
    fn a_second_candidate_waits_until_the_lease_is_over() {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        let mut first = Candidate::new("a".to_owned(), Planted::default());
        assert!(until(&mut first, &mut store, 0, 1).is_some());
        assert_eq!(holder(&store), Some("a"));
        let mut second = Candidate::new("b".to_owned(), Planted::default());
        assert_eq!(until(&mut second, &mut store, 1, 15), None);
        assert!(until(&mut second, &mut store, 15, 20).is_some());
        assert_eq!(holder(&store), Some("b"));
        assert!(first.has_lost(Duration::from_secs(20)));
    }

    #[test]
    fn le_8_who_leaves_lets_the_next_take_over_at_once() {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        let mut first = Candidate::new("a".to_owned(), Planted::default());
        assert!(until(&mut first, &mut store, 0, 1).is_some());
        let mut second = Candidate::new("b".to_owned(), Planted::default());
        second.see(&store, Duration::from_secs(1));
        first.begin_to_leave();
        while !first.has_left() {
            assert!(first.is_due(Duration::from_secs(2)));
            first.step(
                &mut store,
                "lws",
                (Duration::from_secs(2), Timestamp::UNIX_EPOCH),
                None,
            );
        }
        assert_eq!(first.fence(), None);
        assert_eq!(holder(&store), Some(""));
        while second.has_news(&store) {
            second.see(&store, Duration::from_secs(2));
        }
        assert!(until(&mut second, &mut store, 2, 5).is_some());
    }

    #[test]
    fn le_6_a_watch_that_breaks_begins_with_what_is_there() {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        let mut candidate = Candidate::new("a".to_owned(), Planted::default());
        candidate.see(&store, Duration::ZERO);
        assert!(!candidate.has_news(&store));
        assert!(until(&mut candidate, &mut store, 0, 1).is_some());
        assert!(candidate.has_news(&store));
        candidate.lose_sight(Duration::from_secs(1));
        candidate.see(&store, Duration::from_secs(1));
        assert!(!candidate.has_news(&store));
        assert!(candidate.is_leader());
    }
}
