//! What concerns a Hash set: its Deployment, the ReplicaSets between it and the leaders, and gated leaders.

use super::*;
use crate::model::{Deployment, ReplicaSet};

fn wakes(sets: &[&str], groups: &[&str]) -> crate::cache::Wakes {
    crate::cache::Wakes {
        sets: sets.iter().map(|name| key(name)).collect(),
        groups: groups.iter().map(|name| key(name)).collect(),
        ..Default::default()
    }
}

fn deployment(edits: &[Edit<'_>]) -> Deployment {
    let owner = owner("LeaderWorkerSet", "x", "x-uid");
    let object = json!({"metadata": metadata("x", "d"), "spec": {"selector": {}, "template": {}}});
    let object = edited(object, &[("/metadata/ownerReferences", owner)]);
    serde_json::from_value::<k8s_openapi::api::apps::v1::Deployment>(edited(object, edits))
        .expect("a deployment")
        .into()
}

fn replica_set(name: &str, deployment: &str) -> ReplicaSet {
    let mut object = metadata(name, name);
    object["ownerReferences"] = owner("Deployment", "x", deployment);
    let object = json!({"metadata": object, "spec": {"selector": {}}});
    serde_json::from_value::<k8s_openapi::api::apps::v1::ReplicaSet>(object)
        .expect("a ReplicaSet")
        .into()
}

/// Leader `x-<index>` of ReplicaSet `rs`.
fn hash_leader(index: &str, edits: &[Edit<'_>]) -> Pod {
    let mut all = vec![
        annotated(annotation::GROUP_IDENTITY, "Hash"),
        ("/metadata/ownerReferences", owner("ReplicaSet", "rs", "rs")),
    ];
    all.extend_from_slice(edits);
    leader(index, index, &all)
}

/// A gated group, a retained one, and one that is neither.
fn three_groups() -> Cache {
    let mut cache = Cache::default();
    cache.apply_sets(Change::Applied(set(&[])));
    cache.apply_deployments(Change::Applied(deployment(&[])));
    cache.apply_replica_sets(Change::Applied(replica_set("rs", "d")));
    cache.apply_pods(Change::Relisted(vec![
        hash_leader("a", &[]),
        hash_leader("g", &[gated()]),
        hash_leader("r", &[retained()]),
    ]));
    cache
}

#[test]
fn hash_16_deployment_events() {
    for (change, expected, what) in [
        (
            Change::Applied(deployment(&[version("2")])),
            wakes(&["x"], &["x-r"]),
            "changed",
        ),
        (
            Change::Deleted(deployment(&[])),
            wakes(&["x"], &["x-r"]),
            "gone",
        ),
        (
            Change::Relisted(vec![deployment(&[])]),
            wakes(&[], &[]),
            "unchanged in a relist",
        ),
    ] {
        assert_eq!(three_groups().apply_deployments(change), expected, "{what}");
    }
    let mut cache = three_groups();
    cache.apply_deployments(Change::Deleted(deployment(&[])));
    assert_eq!(
        cache.apply_deployments(Change::Applied(deployment(&[]))),
        wakes(&["x"], &["x-a", "x-g", "x-r"]),
        "the link to the set came to light"
    );
}

#[test]
fn hash_16_a_replica_set_that_comes_to_light_wakes_its_leaders() {
    let mut cache = three_groups();
    cache.apply_replica_sets(Change::Deleted(replica_set("rs", "d")));
    assert_eq!(
        cache.apply_replica_sets(Change::Applied(replica_set("rs", "d"))),
        wakes(&["x"], &["x-a", "x-g", "x-r"])
    );
    assert_eq!(
        cache.apply_replica_sets(Change::Applied(replica_set("other", "d"))),
        wakes(&["x"], &[])
    );
    let found = cache.replica_sets_of(&key("x")).map(|set| &set.meta);
    assert_eq!(names(found), ["other", "rs"]);
}

#[test]
fn hash_43_what_lets_gated_leaders_be_decided_on() {
    let mut cache = three_groups();
    cache.apply_pods(Change::Applied(worker("7", "w", "s", &[])));
    assert_eq!(
        cache.apply_pods(Change::Deleted(worker("7", "w", "s", &[]))),
        wakes(&["x"], &["x-7", "x-g"]),
        "the last pod of a group"
    );
    assert_eq!(
        cache.apply_pods(Change::Applied(hash_leader("h", &[gated()]))),
        wakes(&["x"], &["x-g", "x-h", "x-r"]),
        "another gated leader"
    );
    assert_eq!(
        cache.apply_pods(Change::Applied(hash_leader("h", &[version("2")]))),
        wakes(&["x"], &["x-h", "x-r"]),
        "an admission"
    );
    let service = service("x-g", owner("Pod", "x-g", "g"));
    assert_eq!(
        cache.apply_services(Change::Applied(service)),
        wakes(&["x"], &["x-g"]),
        "the Service of a gated group (GATE-4)"
    );
}

#[test]
fn hash_40_all_pods_of_a_set_and_of_no_other() {
    let mut cache = three_groups();
    cache.apply_pods(Change::Applied(worker("a", "w", "s", &[])));
    cache.apply_pods(Change::Applied(leader(
        "o",
        "o",
        &[labelled(label::NAME, "xx")],
    )));
    let (set, other) = (key("x"), key("xx"));
    assert_eq!(
        names(cache.pods_of(&set).map(|pod| &pod.meta)),
        ["x-a", "x-a-1", "x-g", "x-r"]
    );
    assert_eq!(names(cache.pods_of(&other).map(|pod| &pod.meta)), ["x-o"]);
}
