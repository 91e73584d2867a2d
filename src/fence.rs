//! The write fence (LE-7): no write starts after the lease may be somebody else's, and none lasts until it is.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Whether writes may start now; shared by the lease loop, which moves it, and the gateway, which asks.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No election takes place.
    Open,
    /// Writes start before `until` and end by `hard`.
    Held { until: Instant, hard: Instant },
    /// Not the leader (yet).
    Shut,
    /// For good.
    Closed,
}

/// A write may not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced;

impl Fence {
    /// A fence for a process that needs no lease (LE-9).
    pub fn open() -> Self {
        Self::from(State::Open)
    }

    /// A fence for a candidate.
    pub fn shut() -> Self {
        Self::from(State::Shut)
    }

    fn from(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    /// The lease was renewed: writes may start before `until` and must end by `hard`.
    pub fn hold(&self, until: Instant, hard: Instant) {
        self.change(|state| match state {
            State::Closed => State::Closed,
            State::Open | State::Held { .. } | State::Shut => State::Held { until, hard },
        });
    }

    /// No more writes, for good: the lease is lost or about to be released.
    pub fn close(&self) {
        self.change(|_| State::Closed);
    }

    /// Whether a write may start at `now`, and when it must have ended.
    ///
    /// # Errors
    /// [`Fenced`] when it may not.
    pub fn admit(&self, now: Instant) -> Result<Option<Instant>, Fenced> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open => Ok(None),
            State::Held { until, hard } if now < until => Ok(Some(hard)),
            State::Held { .. } | State::Shut | State::Closed => Err(Fenced),
        }
    }

    fn change(&self, next: impl FnOnce(State) -> State) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = next(*state);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ops_le_7_writes_start_between_renewal_and_deadline_only() {
        let now = Instant::now();
        let (until, hard) = (now + Duration::from_secs(10), now + Duration::from_secs(15));
        let fence = Fence::shut();
        assert_eq!(fence.admit(now), Err(Fenced));
        fence.hold(until, hard);
        assert_eq!(fence.admit(now), Ok(Some(hard)));
        assert_eq!(fence.admit(until), Err(Fenced));
    }

    #[test]
    fn ops_le_7_closed_is_for_good() {
        let now = Instant::now();
        let fence = Fence::shut();
        fence.close();
        fence.hold(now + Duration::from_secs(10), now + Duration::from_secs(15));
        assert_eq!(fence.admit(now), Err(Fenced));
    }

    #[test]
    fn ops_le_9_without_election_always_open() {
        assert_eq!(Fence::open().admit(Instant::now()), Ok(None));
    }
}
