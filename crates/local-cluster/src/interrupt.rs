//! A wish to stop, checked wherever this crate waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(100);

/// A flag that ends every wait of this crate with [`Error::Interrupted`]. By default it is never set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// The flag itself, for a signal handler.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Looks at `condition` until it holds.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Timeout`] with `what` after `limit`, or the error of `condition`.
    pub fn wait_until(
        &self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let start = Instant::now();
        loop {
            if self.is_set() {
                return Err(Error::Interrupted);
            }
            if condition()? {
                return Ok(());
            }
            if start.elapsed() > limit {
                return Err(Error::Timeout {
                    what: what.to_owned(),
                    limit,
                });
            }
            thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_the_condition_holds() {
        let mut looks = 0;
        let outcome = Interrupt::default().wait_until("third look", Duration::from_secs(5), || {
            looks += 1;
            Ok(looks == 3)
        });
        assert!(outcome.is_ok());
        assert_eq!(looks, 3);
    }

    #[test]
    fn waiting_ends_with_the_limit() {
        let outcome = Interrupt::default().wait_until("rain", Duration::ZERO, || Ok(false));
        assert!(matches!(outcome, Err(Error::Timeout { what, .. }) if what == "rain"));
    }

    #[test]
    fn waiting_ends_with_an_interrupt() {
        let interrupt = Interrupt::default();
        interrupt.flag().store(true, Ordering::Relaxed);
        let outcome = interrupt.wait_until("rain", Duration::from_secs(60), || Ok(false));
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}
