use proptest::prelude::*;

use super::*;
use crate::run::Failure;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn failed(class: Class) -> Verdict {
    retry(Retry::Failed { class, after: None })
}

fn retry(retry: Retry) -> Verdict {
    Verdict {
        wake_after: None,
        retry: Some(retry),
    }
}

fn take(queue: &mut Queue<&'static str>, now: Duration) -> Option<&'static str> {
    queue.take(now).map(|turn| turn.key)
}

/// The delay that a verdict leads to for a key that is taken alone when it is due.
fn delay(queue: &mut Queue<&'static str>, verdict: &Verdict, jitter: f64) -> Option<Duration> {
    let now = queue.next_deadline().unwrap_or_default();
    queue.add("x", now);
    assert_eq!(take(queue, now), Some("x"));
    queue.done(&"x", verdict, now, jitter);
    Some(queue.next_deadline()?.saturating_sub(now))
}

#[test]
fn krs_50_runs_that_events_cause_do_not_prolong_a_back_off() {
    let mut queue = Queue::new(9);
    let rejected = failed(Class::Rejected);
    queue.add("x", ms(0));
    for millis in 0..20 {
        queue.add("x", ms(millis));
        assert_eq!(take(&mut queue, ms(millis)), Some("x"));
        queue.done(&"x", &rejected, ms(millis), 0.0);
        assert_eq!(queue.next_deadline(), Some(ms(30_000)), "after {millis} ms");
    }
    assert_eq!(take(&mut queue, ms(30_000)), Some("x"));
    queue.done(&"x", &rejected, ms(30_000), 0.0);
    assert_eq!(
        queue.next_deadline(),
        Some(ms(90_000)),
        "the second failure"
    );
}

#[test]
fn krs_46_a_key_is_handed_out_once_in_order_of_arrival() {
    let mut queue = Queue::new(9);
    for key in ["b", "a", "b", "c", "a"] {
        queue.add(key, ms(0));
    }
    assert_eq!(queue.depth(), 3);
    let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, ms(0))).collect();
    assert_eq!(order, ["b", "a", "c"]);
    assert_eq!(
        queue.counts(),
        Counts {
            adds: 3,
            retries: 0
        }
    );
}

#[test]
fn krs_48_a_trigger_during_a_run_is_served_right_after() {
    let mut queue = Queue::new(9);
    queue.add("x", ms(0));
    assert_eq!(take(&mut queue, ms(0)), Some("x"));
    queue.add("x", ms(1));
    queue.add("x", ms(2));
    assert_eq!(take(&mut queue, ms(2)), None, "never two runs of a key");
    queue.done(&"x", &failed(Class::Exists), ms(3), 0.0);
    assert_eq!(
        queue.take(ms(3)),
        Some(Turn {
            key: "x",
            waited: ms(2)
        }),
        "back-off does not hold up a trigger"
    );
    queue.done(&"x", &Verdict::default(), ms(4), 0.0);
    assert!(queue.is_idle());
    assert_eq!(
        queue,
        Queue {
            counts: queue.counts(),
            ..Queue::new(9)
        },
        "nothing is kept of a settled key"
    );
}

#[test]
fn krs_48_an_earlier_time_replaces_a_later_one() {
    for (first, second, due) in [(5, 9, 5), (9, 5, 5), (5, 5, 5)] {
        let mut queue = Queue::new(1);
        queue.add_at("x", ms(first));
        queue.add_at("x", ms(second));
        assert_eq!(queue.next_deadline(), Some(ms(due)));
        assert_eq!(take(&mut queue, ms(due - 1)), None);
        assert_eq!(take(&mut queue, ms(due)), Some("x"));
        queue.done(&"x", &Verdict::default(), ms(due), 0.0);
        assert_eq!(queue.next_deadline(), None, "one slot per key");
    }
}

#[test]
fn krs_48_being_ready_replaces_a_time_and_a_run_takes_both() {
    let mut queue = Queue::new(1);
    queue.add_at("x", ms(50));
    queue.add("x", ms(0));
    assert_eq!(queue.next_deadline(), None);
    queue.add_at("x", ms(50));
    assert_eq!(queue.next_deadline(), None);
    assert_eq!(take(&mut queue, ms(0)), Some("x"));
    queue.add_at("x", ms(50));
    queue.done(
        &"x",
        &Verdict {
            wake_after: Some(ms(70)),
            retry: None,
        },
        ms(1),
        0.0,
    );
    assert_eq!(queue.next_deadline(), Some(ms(50)));
}

#[test]
fn krs_48_a_time_that_passes_during_the_run_is_kept() {
    let mut queue = Queue::new(2);
    queue.add("x", ms(0));
    assert_eq!(take(&mut queue, ms(0)), Some("x"));
    queue.add_at("x", ms(5));
    assert_eq!(take(&mut queue, ms(6)), None);
    queue.done(&"x", &Verdict::default(), ms(7), 0.0);
    assert_eq!(take(&mut queue, ms(7)), Some("x"));
}

#[test]
fn ops_con_2_no_more_keys_than_workers() {
    let mut queue = Queue::new(2);
    queue.seed(["a", "b", "c"], ms(0));
    assert_eq!(
        (
            take(&mut queue, ms(0)),
            take(&mut queue, ms(0)),
            take(&mut queue, ms(0))
        ),
        (Some("a"), Some("b"), None)
    );
    assert_eq!(
        queue.running().map(|(key, _)| *key).collect::<Vec<_>>(),
        ["a", "b"]
    );
    queue.done(&"a", &Verdict::default(), ms(1), 0.0);
    assert_eq!(take(&mut queue, ms(1)), Some("c"));
    let mut queue = Queue::new(0);
    queue.add("a", ms(0));
    assert_eq!(
        take(&mut queue, ms(0)),
        Some("a"),
        "never unbounded, never none"
    );
}

#[test]
fn krs_50_back_off_doubles_to_1000_s() {
    let mut queue = Queue::new(1);
    let delays: Vec<_> = (0..20)
        .map(|_| delay(&mut queue, &failed(Class::Unknown), 0.0).map(|d| d.as_millis()))
        .collect();
    let wanted = (0..20)
        .map(|n| Some((5u128 << n).min(1_000_000)))
        .collect::<Vec<_>>();
    assert_eq!(delays, wanted);
    assert_eq!(queue.counts().retries, 20);
    assert_eq!(backoff(FIRST_DELAY, u32::MAX, 0.0), LONGEST_DELAY);
}

#[test]
fn krs_50_jitter_adds_up_to_a_tenth() {
    for (jitter, percent) in [
        (0.0, 100),
        (0.5, 105),
        (1.0, 110),
        (7.0, 110),
        (-1.0, 100),
        (f64::NAN, 100),
    ] {
        let delay = backoff(Duration::from_secs(100), 0, jitter);
        assert_eq!(delay.as_secs(), percent, "{jitter}");
    }
}

#[test]
fn krs_50_success_and_a_new_generation_reset() {
    let mut queue = Queue::new(1);
    let unknown = failed(Class::Unknown);
    delay(&mut queue, &unknown, 0.0);
    delay(&mut queue, &unknown, 0.0);
    assert_eq!(delay(&mut queue, &Verdict::default(), 0.0), None);
    assert_eq!(delay(&mut queue, &unknown, 0.0), Some(ms(5)));
    assert_eq!(delay(&mut queue, &unknown, 0.0), Some(ms(10)));
    queue.reset(&"x");
    assert_eq!(delay(&mut queue, &unknown, 0.0), Some(ms(5)));
}

#[test]
fn krs_50_delays_by_class() {
    let after = |seconds| Some(Duration::from_secs(seconds));
    let throttled = |after| {
        retry(Retry::Failed {
            class: Class::Throttled,
            after,
        })
    };
    for (verdict, first, second) in [
        (failed(Class::Unknown), Some(5), Some(10)),
        (failed(Class::Rejected), Some(30_000), Some(60_000)),
        (failed(Class::Exists), Some(30_000), Some(30_000)),
        (throttled(None), Some(1_000), Some(1_000)),
        (throttled(after(7)), Some(7_000), Some(7_000)),
        (throttled(after(0)), Some(1_000), Some(1_000)),
        (failed(Class::Conflict), Some(1_000), Some(1_000)),
        (failed(Class::Gone), Some(1_000), Some(1_000)),
        (failed(Class::Terminating), None, None),
        (retry(Retry::Conflict), Some(1_000), Some(1_000)),
        (retry(Retry::After(ms(5_000))), Some(5_000), Some(5_000)),
    ] {
        let mut queue = Queue::new(1);
        assert_eq!(
            delay(&mut queue, &verdict, 0.0),
            first.map(ms),
            "{verdict:?}"
        );
        assert_eq!(
            delay(&mut queue, &verdict, 0.0),
            second.map(ms),
            "{verdict:?} again"
        );
    }
}

#[test]
fn ord_23_the_first_failure_is_the_verdict() {
    let error = |after: Option<u64>| PlanError {
        message: "x".into(),
        retry_after: after.map(ms),
    };
    let failure = Failure {
        class: Class::Rejected,
        message: "x".into(),
        retry_after: None,
    };
    let bad = Outcome {
        failure: Some(failure),
        ..Outcome::default()
    };
    let stale = Outcome {
        conflict: true,
        ..Outcome::default()
    };
    let good = Outcome::default();
    let unknown = Retry::Failed {
        class: Class::Unknown,
        after: None,
    };
    let rejected = Retry::Failed {
        class: Class::Rejected,
        after: None,
    };
    for (wake, errors, outcomes, expected_wake, expected) in [
        (None, vec![], vec![&good], None, None),
        (Some(9), vec![], vec![&good, &good], Some(9), None),
        (
            None,
            vec![],
            vec![&good, &bad],
            None,
            Some(rejected.clone()),
        ),
        (
            None,
            vec![],
            vec![&stale, &bad],
            None,
            Some(rejected.clone()),
        ),
        (
            None,
            vec![error(None)],
            vec![&stale],
            None,
            Some(Retry::Conflict),
        ),
        (None, vec![error(None)], vec![&good], None, Some(unknown)),
        (
            Some(9),
            vec![error(Some(5))],
            vec![&good],
            Some(5),
            Some(Retry::After(ms(5))),
        ),
        (
            Some(3),
            vec![error(Some(5))],
            vec![&bad],
            Some(3),
            Some(rejected),
        ),
    ] {
        let verdict = Verdict::of(wake.map(ms), &errors, &outcomes);
        assert_eq!(
            verdict,
            Verdict {
                wake_after: expected_wake.map(ms),
                retry: expected
            }
        );
    }
}

#[test]
fn krs_50_a_wish_to_wake_earlier_wins() {
    let verdict = |wake: u64, retry| Verdict {
        wake_after: Some(ms(wake)),
        retry: Some(retry),
    };
    let exists = || Retry::Failed {
        class: Class::Exists,
        after: None,
    };
    assert_eq!(
        delay(&mut Queue::new(1), &verdict(2_000, exists()), 0.0),
        Some(ms(2_000))
    );
    assert_eq!(
        delay(&mut Queue::new(1), &verdict(40_000, exists()), 0.0),
        Some(ms(30_000))
    );
}

#[test]
fn krs_36_a_key_put_back_keeps_its_attempts_and_its_trigger() {
    let mut queue = Queue::new(1);
    delay(&mut queue, &failed(Class::Unknown), 0.0);
    queue.add("x", ms(1));
    assert_eq!(take(&mut queue, ms(1)), Some("x"));
    queue.put_back(&"x", ms(31_000));
    assert_eq!(queue.next_deadline(), Some(ms(31_000)));
    assert_eq!(
        delay(&mut queue, &failed(Class::Unknown), 0.0),
        Some(ms(10))
    );
    assert_eq!(queue.counts().retries, 2);
}

#[test]
fn krs_42_a_key_that_is_gone_leaves_no_timer_and_no_back_off() {
    let mut queue = Queue::new(1);
    delay(&mut queue, &failed(Class::Unknown), 0.0);
    queue.forget(&"x");
    assert_eq!(
        queue,
        Queue {
            counts: queue.counts(),
            ..Queue::new(1)
        }
    );
    queue.add("x", ms(0));
    queue.forget(&"x");
    assert_eq!(take(&mut queue, ms(0)), Some("x"), "a trigger stays");
}

#[derive(Clone, Debug)]
enum Event {
    Add(u8),
    AddAt(u8, u64),
    Take,
    Done(usize, Verdict),
    Rest(usize, u64),
    PutBack(usize, u64),
    Pass(u64),
    Forget(u8),
}

/// Twenty times as long as the run was busy, and a quarter of a second at most.
#[test]
fn a_key_rests_in_a_burst_of_events() {
    for (busy, rest) in [(ms(0), 0), (ms(2), 40), (ms(12), 240), (ms(500), 250)] {
        let mut queue = Queue::new(9);
        queue.add("x", ms(0));
        assert_eq!(take(&mut queue, ms(0)), Some("x"));
        queue.add("x", ms(1));
        queue.rest(&"x", busy, ms(10));
        queue.done(&"x", &Verdict::default(), ms(10), 0.0);
        queue.add("x", ms(10));
        if rest > 0 {
            assert_eq!(queue.next_deadline(), Some(ms(10 + rest)));
            assert_eq!(take(&mut queue, ms(9 + rest)), None, "{busy:?}");
        }
        assert_eq!(take(&mut queue, ms(10 + rest)), Some("x"), "{busy:?}");
        queue.done(&"x", &Verdict::default(), ms(1000), 0.0);
        queue.add("x", ms(1000));
        assert_eq!(take(&mut queue, ms(1000)), Some("x"), "the rest was over");
    }
}

#[test]
fn krs_42_a_trigger_during_a_rest_outlives_the_object() {
    let mut queue = Queue::new(9);
    queue.add("x", ms(0));
    assert_eq!(take(&mut queue, ms(0)), Some("x"));
    queue.rest(&"x", ms(1), ms(0));
    queue.done(&"x", &Verdict::default(), ms(0), 0.0);
    queue.add("x", ms(5));
    queue.forget(&"x");
    assert_eq!(take(&mut queue, ms(20)), Some("x"));
}

fn event() -> impl Strategy<Value = Event> {
    let key = || 0..5u8;
    let class = prop::sample::select(vec![
        Class::Unknown,
        Class::Exists,
        Class::Rejected,
        Class::Throttled,
        Class::Conflict,
        Class::Terminating,
    ]);
    let retry = prop::option::of(class.prop_map(|class| Retry::Failed { class, after: None }));
    let wake = prop::option::of((0..100u64).prop_map(ms));
    let verdict = (wake, retry).prop_map(|(wake_after, retry)| Verdict { wake_after, retry });
    prop_oneof![
        4 => key().prop_map(Event::Add),
        2 => (key(), 0..200u64).prop_map(|(key, due)| Event::AddAt(key, due)),
        6 => Just(Event::Take),
        4 => (any::<usize>(), verdict).prop_map(|(which, verdict)| Event::Done(which, verdict)),
        2 => (any::<usize>(), 0..9u64).prop_map(|(which, busy)| Event::Rest(which, busy)),
        1 => (any::<usize>(), 0..200u64).prop_map(|(which, until)| Event::PutBack(which, until)),
        2 => (0..50u64).prop_map(Event::Pass),
        1 => key().prop_map(Event::Forget),
    ]
}

/// What a queue owes: keys that were triggered or due and were not handed out since.
#[derive(Default)]
struct Debt {
    now: Duration,
    running: Vec<u8>,
    triggered: BTreeSet<u8>,
    due: BTreeSet<u8>,
}

fn play(queue: &mut Queue<u8>, debt: &mut Debt, event: Event) {
    let now = debt.now;
    match event {
        Event::Add(key) => {
            queue.add(key, now);
            debt.triggered.insert(key);
        }
        Event::AddAt(key, delay) => {
            queue.add_at(key, now + ms(delay));
            debt.due.insert(key);
        }
        Event::Take => {
            if let Some(turn) = queue.take(now) {
                assert!(
                    !debt.running.contains(&turn.key),
                    "two runs of {}",
                    turn.key
                );
                debt.running.push(turn.key);
                debt.triggered.remove(&turn.key);
                debt.due.remove(&turn.key);
            }
        }
        Event::Done(which, verdict) if !debt.running.is_empty() => {
            let key = debt.running.remove(which % debt.running.len());
            queue.done(&key, &verdict, now, 0.5);
            let again = verdict.wake_after.is_some()
                || verdict.retry.is_some_and(|retry| {
                    retry
                        != Retry::Failed {
                            class: Class::Terminating,
                            after: None,
                        }
                });
            if again {
                debt.due.insert(key);
            }
        }
        Event::Rest(which, busy) if !debt.running.is_empty() => {
            let key = debt.running[which % debt.running.len()];
            queue.rest(&key, ms(busy), now);
        }
        Event::PutBack(which, until) if !debt.running.is_empty() => {
            let key = debt.running.remove(which % debt.running.len());
            queue.put_back(&key, now + ms(until));
            debt.due.insert(key);
        }
        Event::Done(..) | Event::Rest(..) | Event::PutBack(..) => {}
        Event::Pass(time) => debt.now += ms(time),
        Event::Forget(key) => {
            queue.forget(&key);
            debt.due.remove(&key);
        }
    }
}

proptest! {
    #[test]
    fn krs_46_never_two_runs_of_a_key_and_nothing_is_lost(
        workers in 1..4usize,
        events in prop::collection::vec(event(), 0..80),
    ) {
        let (mut queue, mut debt) = (Queue::new(workers), Debt::default());
        for event in events {
            play(&mut queue, &mut debt, event);
            prop_assert!(debt.running.len() <= workers);
            prop_assert_eq!(queue.running().count(), debt.running.len());
        }
        // Whatever is owed is handed out once everything ends well and time passes.
        let mut served = BTreeSet::new();
        while let Some(key) = debt.running.pop() {
            queue.done(&key, &Verdict::default(), debt.now, 0.0);
        }
        loop {
            while let Some(turn) = queue.take(debt.now) {
                served.insert(turn.key);
                queue.done(&turn.key, &Verdict::default(), debt.now, 0.0);
            }
            match queue.next_deadline() {
                Some(deadline) => debt.now = debt.now.max(deadline),
                None => break,
            }
        }
        let owed: BTreeSet<u8> = debt.triggered.union(&debt.due).copied().collect();
        prop_assert!(owed.is_subset(&served), "owed {:?}, served {:?}", owed, served);
        for key in 0..5 {
            queue.forget(&key);
        }
        prop_assert_eq!(queue.clone(), Queue { counts: queue.counts(), ..Queue::new(workers) });
    }
}
