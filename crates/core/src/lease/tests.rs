use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn timings() -> Timings {
    Timings::new(s(15), s(10), s(2)).expect("the defaults hold")
}

fn record(version: &str, holder: &str, duration: Option<i32>) -> Record {
    Record {
        version: version.into(),
        holder: holder.into(),
        duration_seconds: duration,
        acquired: Some(Timestamp::UNIX_EPOCH),
        renewed: Some(Timestamp::UNIX_EPOCH),
        transitions: 4,
    }
}

/// A candidate `me` that has seen `record` at time 0 and watches the Lease.
fn candidate(record: Option<Record>, random: f64) -> Elector {
    let mut elector = Elector::new("me", timings());
    elector.watching(true, s(0), 0.0);
    elector.observe(record, s(0), random);
    elector
}

/// A holder that acquired at time 0.
fn holder() -> Elector {
    let mut elector = candidate(None, 0.0);
    elector.succeeded(record("10", "me", Some(15)), s(0));
    elector
}

#[test]
fn ops_le_4_constraints() {
    let too_short = "leaseDuration must be greater than renewDeadline";
    let jitter = "renewDeadline must be greater than retryPeriod*JitterFactor";
    for (lease, renew, retry, error) in [
        (s(15), s(10), s(2), None),
        (s(60), s(60), s(60), Some(too_short)),
        (s(15), s(15), s(2), Some(too_short)),
        (s(10), s(15), s(2), Some(too_short)),
        (s(15), s(10), s(9), Some(jitter)),
        (s(15), ms(10_800), s(9), Some(jitter)),
        (s(15), ms(10_801), s(9), None),
        (s(0), s(0), s(0), Some(too_short)),
        (s(15), s(0), s(0), Some(jitter)),
        (
            s(15),
            s(10),
            s(0),
            Some("retryPeriod must be greater than zero"),
        ),
    ] {
        let got = Timings::new(lease, renew, retry)
            .err()
            .map(|error| error.to_string());
        assert_eq!(got.as_deref(), error, "{lease:?} {renew:?} {retry:?}");
    }
}

#[test]
fn ops_le_6_request_limit() {
    assert_eq!(timings().request_limit(), s(5));
    assert_eq!(
        Timings::new(s(2), ms(1500), s(1)).map(|t| t.request_limit()),
        Ok(s(1))
    );
}

#[test]
fn ops_le_6_nothing_is_written_before_the_lease_was_read() {
    let mut elector = Elector::new("me", timings());
    assert_eq!(elector.decide(s(0)), Decision::Read);
    elector.read_failed(s(0));
    assert_eq!(elector.decide(s(1)), Decision::Wait(s(2)));
    assert_eq!(elector.decide(s(2)), Decision::Read);
}

#[test]
fn ops_le_6_a_candidate_takes_over_when_the_record_is_free_or_expired() {
    for (seen, random, free_at, what) in [
        (None, 1.0, ms(0), "no lease"),
        (Some(record("1", "", Some(1))), 0.0, ms(0), "released"),
        (
            Some(record("1", "", Some(1))),
            1.0,
            ms(200),
            "released, longest hesitation",
        ),
        (
            Some(record("1", "", Some(1))),
            f64::NAN,
            ms(0),
            "released, no random number",
        ),
        (Some(record("1", "other", Some(15))), 1.0, s(15), "held"),
        (
            Some(record("1", "other", Some(3))),
            1.0,
            s(3),
            "held, of the record's own duration",
        ),
        (
            Some(record("1", "other", None)),
            1.0,
            s(15),
            "held, no duration: our own",
        ),
        (
            Some(record("1", "other", Some(0))),
            1.0,
            s(15),
            "held, useless duration: our own",
        ),
        (
            Some(record("1", "other", Some(-1))),
            1.0,
            s(15),
            "held, negative duration: our own",
        ),
        (
            Some(record("1", "me", Some(15))),
            1.0,
            ms(0),
            "ours, by a write whose answer got lost",
        ),
    ] {
        let elector = candidate(seen, random);
        if !free_at.is_zero() {
            assert_eq!(
                elector.decide(free_at - ms(1)),
                Decision::Wait(free_at),
                "{what}"
            );
        }
        assert_eq!(elector.decide(free_at), Decision::Acquire, "{what}");
    }
}

#[test]
fn ops_le_6_every_change_of_the_record_starts_the_wait_anew() {
    let other = |version| record(version, "other", Some(15));
    let renewed = Record {
        renewed: Some(Timestamp::UNIX_EPOCH + s(1)),
        ..other("1")
    };
    for (change, free_at, what) in [
        (Some(other("1")), s(15), "the same again"),
        (Some(renewed), s(25), "renewTime"),
        (Some(other("2")), s(25), "resourceVersion"),
        (Some(record("2", "third", Some(15))), s(25), "holder"),
        (Some(record("2", "", Some(1))), s(10), "released"),
        (None, s(10), "deleted"),
    ] {
        let mut elector = candidate(Some(other("1")), 0.0);
        elector.observe(change, s(10), 0.0);
        let expected = if free_at == s(10) {
            Decision::Acquire
        } else {
            Decision::Wait(free_at)
        };
        assert_eq!(elector.decide(s(10)), expected, "{what}");
        assert_eq!(elector.decide(free_at), Decision::Acquire, "{what}");
    }
}

#[test]
fn ops_le_6_an_older_version_is_no_news() {
    let mut elector = holder();
    elector.observe(Some(record("9", "other", Some(15))), s(1), 0.0);
    assert_eq!(elector.decide(s(1)), Decision::Wait(s(2)));
    elector.observe(Some(record("11", "other", Some(15))), s(1), 0.0);
    assert_eq!(elector.decide(s(1)), Decision::Lost);
}

#[test]
fn ops_le_6_a_failed_try_is_repeated_after_retry_period() {
    let mut elector = candidate(None, 0.0);
    elector.failed(Failed::Otherwise, s(1));
    assert_eq!(elector.decide(s(1)), Decision::Wait(s(3)));
    assert_eq!(elector.decide(s(3)), Decision::Acquire);
    elector.failed(Failed::Conflict, s(3));
    assert_eq!(
        elector.decide(s(3)),
        Decision::Read,
        "a conflict means: read again, at once"
    );
    elector.observe(Some(record("1", "", Some(1))), s(3), 0.0);
    assert_eq!(elector.decide(s(3)), Decision::Wait(s(5)));
    assert_eq!(elector.decide(s(5)), Decision::Acquire);
}

#[test]
fn ops_le_6_who_wins_the_race_is_left_alone() {
    let mut elector = candidate(None, 0.0);
    elector.failed(Failed::Conflict, s(0));
    elector.observe(Some(record("1", "other", Some(15))), s(1), 0.0);
    assert_eq!(elector.decide(s(2)), Decision::Wait(s(16)));
}

#[test]
fn ops_le_6_without_a_watch_the_lease_is_polled() {
    for (random, interval) in [
        (0.0, ms(2000)),
        (0.5, ms(3200)),
        (1.0, ms(4400)),
        (9.0, ms(4400)),
    ] {
        let mut elector = candidate(Some(record("1", "other", Some(15))), 0.0);
        elector.watching(false, s(1), random);
        let first = s(1) + interval;
        assert_eq!(elector.decide(s(1)), Decision::Wait(first), "{random}");
        assert_eq!(elector.decide(first), Decision::Read, "{random}");
        elector.observe(Some(record("2", "other", Some(15))), first, random);
        assert_eq!(
            elector.decide(first),
            Decision::Wait(first + interval),
            "{random}"
        );
        elector.watching(true, first, random);
        assert_eq!(
            elector.decide(first),
            Decision::Wait(first + s(15)),
            "{random}"
        );
    }
}

#[test]
fn ops_le_6_a_poll_that_fails_is_repeated_and_expiry_still_counts() {
    let mut elector = candidate(Some(record("1", "other", Some(15))), 0.0);
    elector.watching(false, s(12), 0.0);
    assert_eq!(elector.decide(s(14)), Decision::Read);
    elector.read_failed(s(14));
    assert_eq!(elector.decide(s(14)), Decision::Wait(s(15)));
    assert_eq!(elector.decide(s(15)), Decision::Acquire);
}

#[test]
fn ops_le_6_a_holder_renews_every_retry_period_counted_from_sending() {
    let mut elector = holder();
    assert_eq!(elector.decide(ms(1999)), Decision::Wait(s(2)));
    assert_eq!(elector.decide(s(2)), Decision::Renew);
    elector.succeeded(record("11", "me", Some(15)), s(2));
    assert_eq!(elector.decide(ms(2500)), Decision::Wait(s(4)));
    elector.failed(Failed::Otherwise, s(4));
    assert_eq!(elector.decide(s(5)), Decision::Wait(s(6)));
    assert_eq!(elector.decide(s(11)), Decision::Renew);
    assert_eq!(
        elector.decide(s(12)),
        Decision::Lost,
        "10 s after the renewal of second 2"
    );
}

#[test]
fn ops_le_6_a_holder_waits_no_longer_than_its_deadline() {
    let mut elector = holder();
    elector.failed(Failed::Otherwise, s(9));
    assert_eq!(elector.decide(s(9)), Decision::Wait(s(10)));
}

#[test]
fn ops_le_6_another_holder_ends_it_at_once_and_for_good() {
    let mut elector = holder();
    elector.observe(Some(record("11", "other", Some(15))), s(1), 0.0);
    assert_eq!(elector.decide(s(1)), Decision::Lost);
    elector.succeeded(record("12", "me", Some(15)), s(1));
    assert_eq!(
        (elector.decide(s(2)), elector.fence()),
        (Decision::Lost, None)
    );
}

#[test]
fn ops_le_6_a_holder_that_was_erased_writes_itself_in_again() {
    for erased in [None, Some(record("11", "", Some(1)))] {
        let mut elector = holder();
        elector.observe(erased, s(1), 1.0);
        assert_eq!(elector.decide(s(1)), Decision::Renew);
    }
}

#[test]
fn ops_le_6_a_renewal_that_met_another_version_reads_first() {
    let mut elector = holder();
    elector.failed(Failed::Conflict, s(2));
    assert_eq!(elector.decide(s(2)), Decision::Read);
    elector.observe(Some(record("12", "me", Some(15))), s(2), 0.0);
    assert_eq!(elector.decide(s(4)), Decision::Renew);
    assert_eq!(elector.claim(Timestamp::UNIX_EPOCH).version.as_ref(), "12");
}

#[test]
fn ops_le_6_takeover_within_20_s_after_a_kill() {
    let mut elector = candidate(Some(record("1", "other", Some(15))), 1.0);
    // The last renewal, seen half a second after it was made at second 30; then the leader dies.
    elector.observe(Some(record("2", "other", Some(15))), ms(30_500), 1.0);
    assert_eq!(elector.decide(ms(45_499)), Decision::Wait(ms(45_500)));
    assert_eq!(elector.decide(ms(45_500)), Decision::Acquire);
}

#[test]
fn ops_le_7_fence_follows_the_last_renewal_sent() {
    let mut elector = candidate(None, 0.0);
    assert_eq!((elector.fence(), elector.is_leader()), (None, false));
    elector.succeeded(record("10", "me", Some(15)), s(3));
    assert_eq!(
        (elector.fence(), elector.is_leader()),
        (
            Some(Fence {
                until: s(13),
                hard: s(18)
            }),
            true
        )
    );
    elector.succeeded(record("11", "me", Some(15)), s(5));
    assert_eq!(
        elector.fence(),
        Some(Fence {
            until: s(15),
            hard: s(20)
        })
    );
}

#[test]
fn ops_le_2_what_a_claim_says() {
    let wall = Timestamp::UNIX_EPOCH + s(100);
    let claim = |seen: Option<Record>| candidate(seen, 0.0).claim(wall);
    let base = Record {
        version: "1".into(),
        holder: "me".into(),
        duration_seconds: Some(15),
        acquired: Some(wall),
        renewed: Some(wall),
        transitions: 5,
    };
    assert_eq!(
        claim(Some(record("1", "other", Some(15)))),
        base,
        "takeover"
    );
    assert_eq!(
        claim(Some(record("1", "", Some(1)))),
        base,
        "after a release"
    );
    let created = Record {
        version: "".into(),
        transitions: 0,
        ..base.clone()
    };
    assert_eq!(claim(None), created, "creation");
    let renewal = Record {
        acquired: Some(Timestamp::UNIX_EPOCH),
        transitions: 4,
        ..base
    };
    assert_eq!(claim(Some(record("1", "me", Some(15)))), renewal, "renewal");
}

#[test]
fn ops_le_8_what_a_release_says() {
    let wall = Timestamp::UNIX_EPOCH + s(100);
    assert_eq!(candidate(None, 0.0).release(wall), None);
    let released = holder().release(wall).expect("the holder releases");
    let expected = Record {
        acquired: Some(wall),
        renewed: Some(wall),
        ..record("10", "", Some(1))
    };
    assert_eq!(released, expected);
}
