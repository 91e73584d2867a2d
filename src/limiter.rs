//! CLI-1: a token bucket for requests to the API server. Watches and leader election never take from it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Waits longer than this are told in the log.
const NOTABLE: Duration = Duration::from_secs(1);

/// Requests per second on average, and at once after a quiet time.
#[derive(Debug)]
pub struct Limiter {
    /// `None`: no limit.
    per_second: Option<f64>,
    burst: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Below zero when requests wait.
    tokens: f64,
    filled: Instant,
    told: Option<Instant>,
}

impl Limiter {
    /// CLI-1: `qps` 0 means 5, `burst` 0 means 10, a negative `qps` means no limit.
    pub fn new(qps: f32, burst: i32) -> Self {
        let per_second = if qps == 0.0 { 5.0 } else { f64::from(qps) };
        let burst = if burst == 0 {
            10.0
        } else {
            f64::from(burst).max(1.0)
        };
        let bucket = Bucket {
            tokens: burst,
            filled: Instant::now(),
            told: None,
        };
        Self {
            per_second: (per_second > 0.0).then_some(per_second),
            burst,
            bucket: Mutex::new(bucket),
        }
    }

    /// Waits until a request may start.
    pub async fn take(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn reserve(&self, now: Instant) -> Duration {
        let Some(per_second) = self.per_second else {
            return Duration::ZERO;
        };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let gained = now.duration_since(bucket.filled).as_secs_f64() * per_second;
        bucket.tokens = (bucket.tokens + gained).min(self.burst) - 1.0;
        bucket.filled = now;
        let wait = Duration::try_from_secs_f64((-bucket.tokens).max(0.0) / per_second)
            .unwrap_or(Duration::MAX);
        let told_lately = bucket
            .told
            .is_some_and(|told| now.duration_since(told) < NOTABLE);
        if wait > NOTABLE && !told_lately {
            bucket.told = Some(now);
            tracing::warn!(
                wait_seconds = wait.as_secs_f64(),
                "waiting because of the client-side rate limit"
            );
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(limiter: &Limiter, now: Instant) -> u128 {
        limiter.reserve(now).as_millis()
    }

    #[test]
    fn ops_cli_1_burst_then_the_rate() {
        let limiter = Limiter::new(10.0, 3);
        let start = Instant::now();
        assert_eq!([0; 5].map(|_| wait(&limiter, start)), [0, 0, 0, 100, 200]);
        assert_eq!(wait(&limiter, start + Duration::from_millis(300)), 0);
        let later = start + Duration::from_secs(60);
        assert_eq!(
            [0; 4].map(|_| wait(&limiter, later)),
            [0, 0, 0, 100],
            "never more than the burst at once"
        );
    }

    #[test]
    fn ops_cli_1_zero_and_negative() {
        let start = Instant::now();
        let zero = Limiter::new(0.0, 0);
        assert_eq!((0..11).map(|_| wait(&zero, start)).max(), Some(200));
        let unlimited = Limiter::new(-1.0, 1);
        assert_eq!((0..1000).map(|_| wait(&unlimited, start)).max(), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn ops_cli_1_take_waits() {
        let limiter = Limiter::new(2.0, 1);
        let start = Instant::now();
        limiter.take().await;
        limiter.take().await;
        assert_eq!(start.elapsed(), Duration::from_millis(500));
    }
}
