//! Tombstones (FAIL-20 … FAIL-23).

use std::time::Duration;

use super::*;
use crate::cache::TOMBSTONE_LIFE;

/// Name, UID and end of the chain of each tombstone of group 0.
fn tombstones(cache: &Cache) -> Vec<(String, String, Option<String>)> {
    let group = cache.group(&key("x-0"));
    group
        .into_iter()
        .flat_map(|group| group.tombstones())
        .map(|tombstone| {
            let meta = &tombstone.pod.meta;
            let chain = tombstone
                .set_owner
                .as_ref()
                .map(|owner| owner.uid.to_string());
            (meta.key.name.to_string(), meta.uid.to_string(), chain)
        })
        .collect()
}

fn of_w0() -> Vec<(String, String, Option<String>)> {
    vec![("x-0-1".into(), "w0".into(), Some("l0".into()))]
}

#[test]
fn fail_20_a_worker_that_vanishes_leaves_a_tombstone() {
    let gone = worker("0", "w0", "s0", &[version("2"), terminating()]);
    let leader = leader("0", "l0", &[]);
    let successor = worker("0", "w1", "s0", &[]);
    for (change, what) in [
        (Change::Deleted(gone), "delete event"),
        (
            Change::Relisted(vec![leader.clone()]),
            "absent from a relist",
        ),
        (
            Change::Relisted(vec![leader, successor.clone()]),
            "replaced in a relist",
        ),
        (Change::Applied(successor), "replaced under its name"),
    ] {
        let mut cache = one_group();
        let wakes = cache.apply_pods(change);
        assert_eq!(tombstones(&cache), of_w0(), "{what}");
        assert!(wakes.groups.contains(&key("x-0")), "{what}");
    }
}

#[test]
fn krs_37_a_pod_that_lost_its_label_counts_as_vanished() {
    let mut cache = one_group();
    let mut unlabelled = worker("0", "w0", "s0", &[version("2")]);
    unlabelled.meta.labels = Default::default();
    cache.apply_pods(Change::Deleted(unlabelled));
    assert_eq!(tombstones(&cache), of_w0());
    let group = cache.group(&key("x-0")).expect("a group");
    let tombstone = group.tombstones().next().expect("a tombstone");
    assert_eq!(
        tombstone.pod.meta.label(label::GROUP_INDEX),
        "0",
        "the labelled state is kept"
    );
}

#[test]
fn fail_20_the_last_state_is_kept_even_if_never_seen_before() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(worker(
        "0",
        "w0",
        "s0",
        &[version("2"), ("/status/reason", "Evicted".into())],
    )));
    let group = cache.group(&key("x-0")).expect("a group");
    assert_eq!(
        group
            .tombstones()
            .map(|t| t.pod.reason.as_ref())
            .collect::<Vec<_>>(),
        ["Evicted"]
    );
    cache.apply_pods(Change::Deleted(pod("x-0-2", "w2", "2", "0", &[])));
    assert_eq!(tombstones(&cache).len(), 2);
}

#[test]
fn fail_20_the_newest_of_a_name_is_kept() {
    let mut cache = one_group();
    cache.apply_pods(Change::Applied(worker("0", "w1", "s0", &[])));
    cache.apply_pods(Change::Applied(worker("0", "w2", "s0", &[])));
    assert_eq!(
        tombstones(&cache),
        [("x-0-1".into(), "w1".into(), Some("l0".into()))]
    );
}

#[test]
fn fail_21_a_leader_leaves_none() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(leader("0", "l0", &[])));
    assert_eq!(tombstones(&cache), []);
    let mut cache = one_group();
    cache.apply_pods(Change::Applied(leader("0", "l1", &[])));
    assert_eq!(tombstones(&cache), []);
}

#[test]
fn fail_21_a_handled_tombstone_goes() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    cache.handled(&key("x-0"), &"w9".into());
    assert_eq!(tombstones(&cache), of_w0(), "another pod was handled");
    cache.handled(&key("x-1"), &"w0".into());
    assert_eq!(tombstones(&cache), of_w0(), "in another group");
    cache.handled(&key("x-0"), &"w0".into());
    assert_eq!(tombstones(&cache), []);
}

#[test]
fn fail_21_tombstones_end_with_the_leader_incarnation() {
    let same = || worker("0", "w1", "s0", &[]);
    for (change, what) in [
        (Change::Deleted(leader("0", "l0", &[])), "leader gone"),
        (
            Change::Applied(leader("0", "l0", &[terminating()])),
            "leader terminating",
        ),
        (Change::Applied(leader("0", "l1", &[])), "another leader"),
        (
            Change::Applied(leader("0", "l0", &[labelled(label::WORKER_INDEX, "1")])),
            "no leader any more",
        ),
        (
            Change::Relisted(vec![leader("0", "l1", &[]), same()]),
            "another leader in a relist",
        ),
        (
            Change::Relisted(vec![leader("0", "l0", &[terminating()])]),
            "terminating in a relist",
        ),
    ] {
        let mut cache = one_group();
        cache.apply_pods(Change::Applied(same()));
        assert_eq!(tombstones(&cache), of_w0(), "{what}");
        cache.apply_pods(change);
        assert_eq!(tombstones(&cache), [], "{what}");
    }
}

#[test]
fn fail_21_a_change_of_the_living_leader_keeps_them() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    cache.apply_pods(Change::Applied(leader(
        "0",
        "l0",
        &[version("2"), annotated(annotation::RECOVER, "true")],
    )));
    assert_eq!(tombstones(&cache), of_w0());
}

#[test]
fn fail_21_a_worker_of_no_living_leader_leaves_none() {
    for edits in [None, Some(vec![terminating()])] {
        let mut cache = Cache::default();
        if let Some(edits) = &edits {
            cache.apply_pods(Change::Applied(leader("0", "l0", edits)));
        }
        cache.apply_pods(Change::Applied(worker("0", "w0", "s0", &[])));
        cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
        assert_eq!(tombstones(&cache), []);
        assert_eq!(cache.group(&key("x-0")).is_some(), edits.is_some());
    }
}

#[test]
fn fail_22_the_chain_is_the_one_of_the_time_of_death() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    cache.apply_stateful_sets(Change::Deleted(worker_set("0", "s0", "l0")));
    assert_eq!(tombstones(&cache), of_w0());

    let mut cache = one_group();
    cache.apply_stateful_sets(Change::Deleted(worker_set("0", "s0", "l0")));
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    cache.apply_stateful_sets(Change::Applied(worker_set("0", "s1", "l0")));
    assert_eq!(tombstones(&cache), [("x-0-1".into(), "w0".into(), None)]);
}

#[test]
fn fail_22_a_set_that_shows_after_its_pod_completes_the_chain() {
    let mut cache = Cache::default();
    cache.apply_pods(Change::Relisted(vec![
        leader("0", "l0", &[]),
        worker("0", "w0", "s0", &[]),
    ]));
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    let wakes = cache.apply_stateful_sets(Change::Applied(worker_set("0", "s0", "l0")));
    assert_eq!(tombstones(&cache), of_w0());
    assert!(wakes.groups.contains(&key("x-0")));
    cache.apply_stateful_sets(Change::Applied(stateful_set(
        "x-0",
        "s0",
        owner("Pod", "x-0", "l9"),
        &[version("2")],
    )));
    assert_eq!(tombstones(&cache), of_w0(), "it is not looked up again");
}

/// A process that begins to lead while its watch of StatefulSets stands still must not pass over the failure.
#[test]
fn fail_22_a_tombstone_is_judged_once_its_chain_can_be_known() {
    let may_judge = |cache: &Cache| {
        let group = cache.group(&key("x-0")).expect("a group");
        let tombstone = group.tombstones().next().expect("a tombstone");
        cache.may_judge(tombstone)
    };
    let mut cache = Cache::default();
    cache.apply_pods(Change::Applied(leader("0", "l0", &[])));
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[version("7")])));
    assert!(!may_judge(&cache), "no StatefulSet was seen");
    cache.apply_stateful_sets(Change::Applied(leader_set(&[version("6")])));
    assert!(!may_judge(&cache), "they are seen as of a time before");
    let mut behind = cache.clone();
    behind.apply_stateful_sets(Change::Applied(worker_set("0", "s0", "l0")));
    assert!(may_judge(&behind), "the chain is known");
    cache.apply_stateful_sets(Change::Applied(leader_set(&[version("7")])));
    assert!(may_judge(&cache), "its StatefulSet is gone");
}

#[test]
fn fail_23_a_standby_drops_what_is_older_than_a_minute() {
    let start = Duration::from_secs(1000);
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    cache.expire(start);
    cache.expire(start + TOMBSTONE_LIFE);
    assert_eq!(tombstones(&cache), of_w0());
    cache.expire(start + TOMBSTONE_LIFE + Duration::from_millis(1));
    assert_eq!(tombstones(&cache), []);
    assert!(cache.group(&key("x-0")).is_some());
}
