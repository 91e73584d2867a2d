//! What the cache finds, and what it makes of writes (KRS-36).

use jiff::Timestamp;

use super::*;
use crate::cache::Applied;
use crate::intent::{Kind, Target};
use crate::model::Uid;
use crate::run::{SeenAs, Written};

#[test]
fn ord_14_lookups_follow_labels_names_and_uids() {
    let mut cache = one_group();
    cache.apply_pods(Change::Applied(leader("1", "l1", &[])));
    cache.apply_pods(Change::Applied(leader(
        "9",
        "other",
        &[labelled(label::NAME, "y")],
    )));
    cache.apply_revisions(Change::Relisted(vec![revision("x-b"), revision("x-a")]));
    let x = key("x");
    assert_eq!(
        names(cache.leaders_of(&x).map(|pod| &pod.meta)),
        ["x-0", "x-1"]
    );
    assert_eq!(
        names(cache.stateful_sets_of(&x).map(|set| &set.meta)),
        ["x", "x-0"]
    );
    assert_eq!(
        names(cache.revisions_of(&x).map(|revision| &revision.meta)),
        ["x-a", "x-b"]
    );
    assert_eq!(
        names(cache.pods_with_index(&x, "0").map(|pod| &pod.meta)),
        ["x-0", "x-0-1"]
    );
    assert_eq!(
        names(cache.pods_with_index(&x, "7").map(|pod| &pod.meta)),
        [""; 0]
    );
    assert_eq!(
        cache.groups_of(&x).collect::<Vec<_>>(),
        [&key("x-0"), &key("x-1")]
    );
    assert_eq!(
        cache.stateful_set_by_uid(&"s0".into()).map(|set| set.key()),
        Some(&key("x-0"))
    );
    assert_eq!(cache.stateful_set_by_uid(&"gone".into()), None);
    let all = cache.all();
    assert_eq!(all.sets, [key("x")].into());
    assert_eq!(all.groups, [key("x-0"), key("x-1"), key("x-9")].into());
}

#[test]
fn ord_84_pods_by_the_names_of_a_worker_set() {
    let mut cache = Cache::default();
    let elsewhere = ("/metadata/namespace", "nt".into());
    for name in [
        "x-0",
        "x-0-1",
        "x-0-10",
        "x-0-2",
        "x-0-02",
        "x-0-1-1",
        "x-0-a",
        "x-00-1",
        "x-0-4294967296",
    ] {
        cache.apply_pods(Change::Applied(pod(name, name, "1", "0", &[])));
    }
    cache.apply_pods(Change::Applied(pod(
        "x-0-7",
        "other",
        "1",
        "0",
        &[elsewhere],
    )));
    let found: Vec<_> = cache
        .pods_below(&key("x-0"))
        .map(|(ordinal, pod)| (ordinal, pod.key().name.to_string()))
        .collect();
    assert_eq!(
        found,
        [
            (1, "x-0-1".to_owned()),
            (10, "x-0-10".to_owned()),
            (2, "x-0-2".to_owned())
        ]
    );
}

#[test]
fn ord_14_a_changed_label_moves_the_object() {
    let mut cache = one_group();
    cache.apply_pods(Change::Applied(worker(
        "0",
        "w0",
        "s0",
        &[version("2"), labelled(label::GROUP_INDEX, "7")],
    )));
    assert_eq!(
        names(cache.pods_with_index(&key("x"), "0").map(|pod| &pod.meta)),
        ["x-0"]
    );
    assert_eq!(
        names(cache.pods_with_index(&key("x"), "7").map(|pod| &pod.meta)),
        ["x-0-1"]
    );
    cache.apply_stateful_sets(Change::Applied(leader_set(&[
        version("2"),
        labelled(label::NAME, "y"),
    ])));
    assert_eq!(
        names(cache.stateful_sets_of(&key("x")).map(|set| &set.meta)),
        ["x-0"]
    );
    assert_eq!(
        names(cache.stateful_sets_of(&key("y")).map(|set| &set.meta)),
        ["x"]
    );
}

#[test]
fn fail_34_pod_rst_2_the_group_of_a_pod() {
    let named = |name: &str| annotated(annotation::LEADER_NAME, name);
    for (name, worker_index, edits, group) in [
        ("x-0", "0", vec![], "x-0"),
        ("x-0", "0", vec![named("y-0")], "x-0"),
        ("x-0-1", "1", vec![], "x-0"),
        ("x-0-1", "1", vec![named("x-abc")], "x-abc"),
        ("x-0-2147483647", "1", vec![], "x-0"),
        ("x-0-2147483648", "1", vec![], "x-0-2147483648"),
        ("x-0-1", "", vec![], "x-0"),
        ("x-0-a", "1", vec![], "x-0-a"),
        ("x-0-", "1", vec![], "x-0-"),
        ("x", "1", vec![], "x"),
    ] {
        let mut cache = Cache::default();
        cache.apply_pods(Change::Applied(pod(name, "u", worker_index, "0", &edits)));
        assert_eq!(
            cache.all().groups,
            [key(group)].into(),
            "{name} {worker_index}"
        );
        let workers = cache
            .group(&key(group))
            .expect("a group")
            .workers(&cache)
            .count();
        assert_eq!(
            workers,
            usize::from(worker_index != "0"),
            "{name} {worker_index}"
        );
    }
}

#[test]
fn a_group_is_there_as_long_as_a_pod_of_it() {
    let mut cache = one_group();
    cache.apply_pods(Change::Deleted(leader("0", "l0", &[])));
    let group = cache.group(&key("x-0")).expect("a worker is left");
    assert_eq!(names(group.workers(&cache).map(|pod| &pod.meta)), ["x-0-1"]);
    cache.apply_pods(Change::Deleted(worker("0", "w0", "s0", &[])));
    assert_eq!(cache.group(&key("x-0")), None);
    assert_eq!(cache.groups_of(&key("x")).count(), 0);
}

#[test]
fn krs_57_applied_is_remembered_until_the_set_is_gone() {
    let mut cache = one_group();
    let applied = Applied {
        desired_hash: 1,
        uid: "leader-set".into(),
        generation: 1,
        metadata_hash: 2,
    };
    let remember = |cache: &mut Cache, applied| cache.remember_applied("x-uid".into(), applied);
    remember(&mut cache, Some(applied.clone()));
    cache.apply_sets(Change::Applied(set(&[version("2")])));
    assert_eq!(cache.applied(&"x-uid".into()), Some(&applied));
    remember(&mut cache, None);
    assert_eq!(cache.applied(&"x-uid".into()), None, "no longer known");
    remember(&mut cache, Some(applied));
    cache.apply_sets(Change::Relisted(vec![set(&[(
        "/metadata/uid",
        "new".into(),
    )])]));
    assert_eq!(cache.applied(&"x-uid".into()), None);
}

#[test]
fn ord_109_the_time_of_the_status_is_remembered_until_the_set_is_gone() {
    let mut cache = one_group();
    cache.remember_reported("x-uid".into(), Timestamp::UNIX_EPOCH);
    cache.apply_sets(Change::Applied(set(&[version("2")])));
    assert_eq!(cache.reported(&"x-uid".into()), Some(Timestamp::UNIX_EPOCH));
    cache.apply_sets(Change::Relisted(vec![]));
    assert_eq!(cache.reported(&"x-uid".into()), None);
}

fn written(uid: &str, seen_as: SeenAs) -> Written {
    Written {
        target: Target {
            kind: Kind::Pod,
            key: key("x-0"),
        },
        uid: uid.into(),
        seen_as,
    }
}

#[test]
fn krs_36_a_write_is_seen_by_version() {
    let version = |version: &str| SeenAs::Version(version.into());
    for (held, expected, seen) in [
        (Some("99"), "99", true),
        (Some("100"), "99", true),
        (Some("98"), "99", false),
        (Some("99"), "100", false),
        (Some("x"), "99", true),
        (Some("98"), "x", true),
        (Some("98"), "0", true),
        (None, "99", false),
    ] {
        let mut cache = Cache::default();
        if let Some(held) = held {
            cache.apply_pods(Change::Applied(leader("0", "l0", &[super::version(held)])));
        }
        assert_eq!(
            cache.sees(&written("l0", version(expected))),
            seen,
            "{held:?} {expected}"
        );
    }
}

#[test]
fn krs_36_a_write_to_what_is_gone_again_is_seen_by_a_newer_version() {
    let mut cache = Cache::default();
    cache.apply_pods(Change::Applied(leader("0", "l0", &[version("2")])));
    let patched = written("l0", SeenAs::Version("5".into()));
    assert!(!cache.sees(&patched));
    cache.apply_pods(Change::Deleted(leader("0", "l0", &[version("6")])));
    assert!(cache.sees(&patched));
}

#[test]
fn krs_36_a_delete_is_seen_as_terminating_gone_or_replaced() {
    let deleted = written("l0", SeenAs::Deleted);
    let mut cache = Cache::default();
    assert!(cache.sees(&deleted));
    cache.apply_pods(Change::Applied(leader("0", "l0", &[])));
    assert!(!cache.sees(&deleted));
    cache.apply_pods(Change::Applied(leader("0", "l0", &[terminating()])));
    assert!(cache.sees(&deleted));
    cache.apply_pods(Change::Applied(leader("0", "l1", &[])));
    assert!(cache.sees(&deleted));
}

#[test]
fn krs_36_a_refused_version_is_seen_when_another_is_there() {
    let refused = written("l0", SeenAs::NotVersion("1".into()));
    let mut cache = Cache::default();
    assert!(cache.sees(&refused));
    cache.apply_pods(Change::Applied(leader("0", "l0", &[])));
    assert!(!cache.sees(&refused));
    cache.apply_pods(Change::Applied(leader("0", "l0", &[version("2")])));
    assert!(cache.sees(&refused));
}

#[test]
fn krs_36_every_written_kind_is_looked_up_in_its_own_cache() {
    let mut cache = one_group();
    cache.apply_services(Change::Applied(service(
        "x",
        owner("LeaderWorkerSet", "x", "x-uid"),
    )));
    cache.apply_revisions(Change::Applied(revision("x")));
    let uid = Uid::from("any");
    for (kind, name) in [
        (Kind::LeaderWorkerSet, "x"),
        (Kind::StatefulSet, "x"),
        (Kind::ControllerRevision, "x"),
        (Kind::Service, "x"),
        (Kind::Pod, "x-0"),
    ] {
        let seen = |name: &str, expected: &str| {
            let target = Target {
                kind,
                key: key(name),
            };
            cache.sees(&Written {
                target,
                uid: uid.clone(),
                seen_as: SeenAs::Version(expected.into()),
            })
        };
        assert!(seen(name, "1"), "{kind:?}");
        assert!(!seen("absent", "9999"), "{kind:?}");
    }
}
