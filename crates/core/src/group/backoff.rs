//! Restart back-off: how long a group must have lived before it is recreated (FAIL-60, FAIL-61).

use std::time::Duration;

use jiff::Timestamp;
use lws_api::leaderworkerset::RestartBackoff;

const BASE_SECONDS: u64 = 10;
const CAP_SECONDS: u64 = 300;

/// FAIL-60: the least life of a group that was recreated `count` times: `min(cap, base · 2^count)` seconds.
fn delay(backoff: &RestartBackoff, count: i32) -> Duration {
    let base = positive(backoff.base_seconds(), BASE_SECONDS);
    let cap = positive(backoff.cap_seconds(), CAP_SECONDS);
    let grown = u32::try_from(count)
        .ok()
        .filter(|count| *count < 30)
        .and_then(|count| base.checked_mul(1 << count));
    Duration::from_secs(grown.map_or(cap, |grown| grown.min(cap)))
}

fn positive(seconds: i32, otherwise: u64) -> u64 {
    u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .unwrap_or(otherwise)
}

/// FAIL-61: what is left of the delay for a leader created at `created`; `None` when the group may be recreated now.
/// A creation time in the future counts as now, so that a wrong clock cannot stretch the wait.
pub fn remaining(
    backoff: &RestartBackoff,
    count: i32,
    created: Option<Timestamp>,
    now: Timestamp,
) -> Option<Duration> {
    let elapsed = Duration::try_from(now.duration_since(created?)).unwrap_or_default();
    delay(backoff, count)
        .checked_sub(elapsed)
        .filter(|left| !left.is_zero())
}

/// FAIL-65: whole seconds, rounded up.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(base: i32, cap: i32) -> RestartBackoff {
        RestartBackoff {
            base_seconds: Some(base),
            cap_seconds: Some(cap),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn fail_60_lws_api_14_delay_doubles_up_to_the_cap() {
        let rows = [
            (0, [10, 5, 20, 1]),
            (1, [20, 10, 20, 2]),
            (2, [40, 20, 20, 4]),
            (3, [80, 40, 20, 8]),
            (4, [160, 60, 20, 16]),
            (5, [300, 60, 20, 32]),
            (29, [300, 60, 20, 536_870_912]),
            (30, [300, 60, 20, 2_147_483_647]),
            (i32::MAX, [300, 60, 20, 2_147_483_647]),
        ];
        for (count, delays) in rows {
            for ((base, cap), seconds) in [(10, 300), (5, 60), (20, 20), (1, i32::MAX)]
                .into_iter()
                .zip(delays)
            {
                assert_eq!(
                    delay(&backoff(base, cap), count),
                    Duration::from_secs(seconds),
                    "{base} {cap} {count}"
                );
            }
        }
    }

    #[test]
    fn fail_60_missing_or_absurd_halves_read_as_10_and_300() {
        for (given, first, last) in [
            (RestartBackoff::default(), 10, 300),
            (backoff(0, -1), 10, 300),
            (
                RestartBackoff {
                    base_seconds: None,
                    cap_seconds: Some(60),
                },
                10,
                60,
            ),
            (
                RestartBackoff {
                    base_seconds: Some(20),
                    cap_seconds: None,
                },
                20,
                300,
            ),
            (backoff(10, 5), 5, 5),
            (backoff(i32::MAX, i32::MAX), 2_147_483_647, 2_147_483_647),
        ] {
            assert_eq!(delay(&given, 0), Duration::from_secs(first), "{given:?}");
            assert_eq!(delay(&given, 29), Duration::from_secs(last), "{given:?}");
        }
    }

    #[test]
    fn fail_61_the_wait_is_what_is_left_of_the_life() {
        let left =
            |created, now| remaining(&backoff(10, 300), 0, created, now).map(|left| left.as_secs());
        assert_eq!(left(Some(at(100)), at(102)), Some(8));
        assert_eq!(left(Some(at(100)), at(110)), None);
        assert_eq!(left(Some(at(100)), at(5000)), None);
        assert_eq!(
            left(Some(at(100)), at(40)),
            Some(10),
            "created in the future"
        );
        assert_eq!(left(None, at(40)), None, "never created");
    }

    #[test]
    fn fail_65_seconds_are_rounded_up() {
        for (millis, seconds) in [(1, 1), (1000, 1), (1001, 2), (7999, 8)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
