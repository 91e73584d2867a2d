//! Which events wake which work items (ORD-10 … ORD-19).

use super::*;
use crate::cache::Wakes;

fn wakes(sets: &[&str], groups: &[&str]) -> Wakes {
    let keys = |names: &[&str]| names.iter().map(|name| key(name)).collect();
    Wakes {
        sets: keys(sets),
        groups: keys(groups),
        ..Wakes::default()
    }
}

/// What a change of the set wakes, apart from back-offs.
fn woken(cache: &mut Cache, change: Change<Lws>) -> Wakes {
    Wakes {
        renewed: Default::default(),
        ..cache.apply_sets(change)
    }
}

/// `x` with group 0 plain, 1 gated, 2 waiting for its back-off, 3 with a retained worker, 4 with a retained leader.
fn five_groups() -> Cache {
    let mut cache = Cache::default();
    cache.apply_sets(Change::Applied(set(&[])));
    cache.apply_stateful_sets(Change::Applied(leader_set(&[])));
    cache.apply_pods(Change::Relisted(vec![
        leader("0", "l0", &[]),
        worker("0", "w0", "s0", &[]),
        leader("1", "l1", &[gated()]),
        leader(
            "2",
            "l2",
            &[annotated(annotation::GROUP_RECREATE_PENDING, "true")],
        ),
        leader("3", "l3", &[]),
        worker("3", "w3", "s3", &[retained()]),
        leader("4", "l4", &[retained()]),
        leader(
            "9",
            "l9",
            &[labelled(label::NAME, "y"), gated(), retained()],
        ),
    ]));
    cache
}

#[test]
fn ord_18_set_events_wake_the_set_and_what_waits_for_it() {
    let all = wakes(&["x"], &["x-1", "x-2", "x-3", "x-4"]);
    let only_set = wakes(&["x"], &[]);
    let deleted = |version| [super::version(version), terminating()];
    for (change, expected, what) in [
        (
            Change::Applied(set(&[version("2"), ("/metadata/generation", 2.into())])),
            &all,
            "generation",
        ),
        (Change::Applied(set(&deleted("2"))), &all, "deletion begins"),
        (Change::Deleted(set(&[])), &all, "delete"),
        (Change::Relisted(vec![]), &all, "absent from a relist"),
        (Change::Applied(set(&[version("2")])), &only_set, "status"),
        (
            Change::Applied(set(&[version("2"), labelled("team", "a")])),
            &only_set,
            "label",
        ),
        (
            Change::Relisted(vec![set(&[])]),
            &wakes(&[], &[]),
            "unchanged in a relist",
        ),
    ] {
        assert_eq!(woken(&mut five_groups(), change), *expected, "{what}");
    }
}

#[test]
fn ord_18_a_set_that_comes_wakes_all_its_groups() {
    let mut cache = five_groups();
    cache.apply_sets(Change::Deleted(set(&[])));
    let all = wakes(&["x"], &["x-0", "x-1", "x-2", "x-3", "x-4"]);
    assert_eq!(woken(&mut cache, Change::Applied(set(&[]))), all);
    let successor = set(&[("/metadata/uid", "new".into())]);
    assert_eq!(woken(&mut cache, Change::Applied(successor)), all);
}

#[test]
fn krs_50_a_new_generation_renews_the_back_off() {
    let spec = ("/metadata/generation", json!(2));
    for (change, renewed) in [
        (Change::Applied(set(&[version("2"), spec])), true),
        (
            Change::Applied(set(&[("/metadata/uid", "new".into())])),
            true,
        ),
        (Change::Deleted(set(&[])), true),
        (Change::Applied(set(&[version("2")])), false),
        (Change::Relisted(vec![set(&[])]), false),
    ] {
        let got = five_groups().apply_sets(change.clone());
        assert_eq!(got.renewed.contains(&key("x")), renewed, "{change:?}");
    }
}

#[test]
fn ord_10_11_17_19_stateful_set_events() {
    let of_leaders = wakes(&["x"], &["x-1", "x-3", "x-4"]);
    let unlabelled = |set: StatefulSet| {
        let meta = Meta {
            labels: Default::default(),
            ..set.meta.clone()
        };
        StatefulSet { meta, ..set }
    };
    let by_label_only = stateful_set("z", "z", owner("Deployment", "z", "z"), &[]);
    for (change, expected, what) in [
        (
            Change::Applied(leader_set(&[version("2")])),
            of_leaders.clone(),
            "leader set",
        ),
        (
            Change::Deleted(leader_set(&[])),
            of_leaders.clone(),
            "leader set gone",
        ),
        (
            Change::Applied(worker_set("0", "s0", "l0")),
            wakes(&["x"], &["x-0"]),
            "worker set",
        ),
        (
            Change::Applied(worker_set("7", "s7", "l7")),
            wakes(&["x"], &["x-7"]),
            "of a leader not seen",
        ),
        (
            Change::Applied(by_label_only),
            wakes(&["x"], &[]),
            "label only",
        ),
        (
            Change::Applied(unlabelled(worker_set("0", "s0", "l0"))),
            wakes(&[], &[]),
            "no label",
        ),
        (
            Change::Applied(stateful_set(
                "z",
                "z",
                owner("LeaderWorkerSet", "y", "y"),
                &[],
            )),
            wakes(&["x", "y"], &["x-9"]),
            "controlled by another set than it is labelled for",
        ),
        (
            Change::Relisted(vec![leader_set(&[])]),
            wakes(&[], &[]),
            "unchanged in a relist",
        ),
        (Change::Relisted(vec![]), of_leaders, "absent from a relist"),
    ] {
        assert_eq!(
            five_groups().apply_stateful_sets(change),
            expected,
            "{what}"
        );
    }
}

#[test]
fn c35_a_leader_set_that_comes_or_is_adopted_wakes_all_its_groups() {
    let mut cache = five_groups();
    let all = wakes(&["x"], &["x-0", "x-1", "x-2", "x-3", "x-4"]);
    cache.apply_stateful_sets(Change::Deleted(leader_set(&[])));
    assert_eq!(
        cache.apply_stateful_sets(Change::Applied(leader_set(&[]))),
        all
    );
    let orphan = leader_set(&[version("2"), ("/metadata/ownerReferences", json!([]))]);
    cache.apply_stateful_sets(Change::Applied(orphan));
    let adopted = leader_set(&[version("3")]);
    assert_eq!(cache.apply_stateful_sets(Change::Applied(adopted)), all);
}

#[test]
fn krs_44_old_and_new_version_wake_their_owners() {
    let mut cache = Cache::default();
    cache.apply_stateful_sets(Change::Applied(worker_set("0", "s0", "l0")));
    let moved = stateful_set(
        "x-0",
        "s0",
        owner("Pod", "y-0", "m0"),
        &[version("2"), labelled(label::NAME, "y")],
    );
    assert_eq!(
        cache.apply_stateful_sets(Change::Applied(moved)),
        wakes(&["x", "y"], &["x-0", "y-0"])
    );
    cache.apply_pods(Change::Applied(leader("0", "l0", &[])));
    let moved = leader("0", "l0", &[version("2"), labelled(label::NAME, "y")]);
    assert_eq!(
        cache.apply_pods(Change::Applied(moved)),
        wakes(&["x", "y"], &["x-0"])
    );
}

#[test]
fn ord_82_the_predecessors_worker_set_wakes_the_leader_of_that_name() {
    let mut cache = one_group();
    cache.apply_pods(Change::Applied(leader("0", "l1", &[])));
    let gone = cache.apply_stateful_sets(Change::Deleted(worker_set("0", "s0", "l0")));
    assert_eq!(gone.groups, [key("x-0")].into());
}

#[test]
fn ord_10_services_wake_their_controller() {
    for (owners, expected) in [
        (owner("LeaderWorkerSet", "x", "x-uid"), wakes(&["x"], &[])),
        (owner("Pod", "x-0", "l0"), wakes(&[], &["x-0"])),
        (owner("Deployment", "x", "d"), wakes(&[], &[])),
        (json!([]), wakes(&[], &[])),
    ] {
        let mut cache = Cache::default();
        assert_eq!(
            cache.apply_services(Change::Applied(service("x", owners.clone()))),
            expected
        );
        assert_eq!(
            cache.apply_services(Change::Deleted(service("x", owners))),
            expected
        );
    }
}

#[test]
fn krs_40_owners_are_told_by_group_and_kind() {
    let mut owners = owner("LeaderWorkerSet", "x", "x-uid");
    for (api_version, woken) in [
        ("leaderworkerset.x-k8s.io/v1", true),
        ("leaderworkerset.x-k8s.io/v2", true),
        ("leaderworkerset.x-k8s.io.example.com/v1", false),
        ("leaderworkerset.x-k8s.io", false),
        ("v1", false),
    ] {
        owners[0]["apiVersion"] = api_version.into();
        let got = Cache::default().apply_services(Change::Applied(service("x", owners.clone())));
        assert_eq!(!got.is_empty(), woken, "{api_version}");
    }
}

#[test]
fn ord_13_revisions_wake_nothing() {
    let mut cache = five_groups();
    assert!(
        cache
            .apply_revisions(Change::Applied(revision("x-a")))
            .is_empty()
    );
    assert!(cache.apply_revisions(Change::Relisted(vec![])).is_empty());
}

#[test]
fn ord_12_pod_events_that_wake_the_set() {
    let gang = annotated(annotation::WORKLOAD_AWARE_SCHEDULING, "replica");
    let ready = (
        "/status",
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    let exhausted = annotated(annotation::RESTART_BUDGET_EXHAUSTED, "true");
    let v2 = || version("2");
    let changed = |edit: Edit<'static>| Change::Applied(leader("0", "l0", &[v2(), edit]));
    for (change, woken, what) in [
        (
            Change::Applied(leader("7", "l7", &[])),
            true,
            "leader created",
        ),
        (
            Change::Applied(worker("7", "w7", "s7", &[])),
            false,
            "worker created",
        ),
        (
            Change::Deleted(leader("0", "l0", &[])),
            true,
            "leader deleted",
        ),
        (
            Change::Deleted(worker("0", "w0", "s0", &[])),
            false,
            "worker deleted",
        ),
        (
            Change::Deleted(worker("0", "w0", "s0", &[gang])),
            true,
            "worker of a gang deleted",
        ),
        (
            Change::Applied(leader("0", "l1", &[])),
            true,
            "leader replaced",
        ),
        (changed(exhausted.clone()), true, "budget exhausted"),
        (
            Change::Applied(worker("0", "w0", "s0", &[v2(), exhausted])),
            false,
            "same on a worker",
        ),
        (
            changed(annotated(annotation::RECOVER, "true")),
            false,
            "nothing that a set reads",
        ),
        (
            changed(("/status/phase", "Running".into())),
            false,
            "running but not ready",
        ),
        (changed(ready.clone()), true, "leader ready"),
        (
            Change::Applied(worker("0", "w0", "s0", &[v2(), ready])),
            false,
            "worker ready",
        ),
        (changed(terminating()), true, "leader terminating"),
        (
            changed(labelled(label::REVISION, "r2")),
            true,
            "leader of another revision",
        ),
        (
            Change::Relisted(vec![]),
            true,
            "leaders absent from a relist",
        ),
    ] {
        let mut cache = one_group();
        let got = cache.apply_pods(change);
        assert_eq!(got.sets.contains(&key("x")), woken, "{what}");
    }
}

#[test]
fn ord_15_16_pod_events_wake_their_group() {
    for (change, expected) in [
        (
            Change::Applied(leader("0", "l0", &[version("2")])),
            vec!["x-0"],
        ),
        (
            Change::Applied(worker("0", "w0", "s0", &[version("2")])),
            vec!["x-0"],
        ),
        (Change::Applied(worker("7", "w7", "s7", &[])), vec!["x-7"]),
        (Change::Deleted(worker("0", "w0", "s0", &[])), vec!["x-0"]),
        (Change::Deleted(leader("0", "l0", &[])), vec!["x-0"]),
        (
            Change::Applied(worker(
                "0",
                "w0",
                "s0",
                &[version("2"), annotated(annotation::LEADER_NAME, "x-5")],
            )),
            vec!["x-0", "x-5"],
        ),
        (Change::Relisted(vec![leader("0", "l0", &[])]), vec!["x-0"]),
        (
            Change::Relisted(vec![leader("0", "l0", &[]), worker("0", "w0", "s0", &[])]),
            vec![],
        ),
    ] {
        let got = one_group().apply_pods(change.clone());
        assert_eq!(
            got.groups,
            expected.into_iter().map(key).collect(),
            "{change:?}"
        );
    }
}

#[test]
fn ord_19_fail_97_pod_events_that_wake_gated_leaders() {
    for (change, expected, what) in [
        (
            Change::Deleted(worker("0", "w0", "s0", &[])),
            vec!["x-0", "x-1"],
            "pod gone",
        ),
        (
            Change::Deleted(leader("0", "l0", &[])),
            vec!["x-0", "x-1"],
            "leader gone",
        ),
        (
            Change::Applied(worker("0", "w9", "s0", &[])),
            vec!["x-0", "x-1"],
            "pod replaced",
        ),
        (
            Change::Applied(leader("7", "l7", &[gated()])),
            vec!["x-1", "x-7"],
            "gated leader came",
        ),
        (
            Change::Applied(leader("7", "l7", &[])),
            vec!["x-7"],
            "leader came",
        ),
        (
            Change::Applied(worker("7", "w7", "s7", &[gated()])),
            vec!["x-7"],
            "gated worker came",
        ),
        (
            Change::Applied(leader("0", "l0", &[version("2")])),
            vec!["x-0"],
            "pod changed",
        ),
        (
            Change::Applied(leader("1", "l1", &[version("2")])),
            vec!["x-1"],
            "gate lifted",
        ),
    ] {
        assert_eq!(
            five_groups().apply_pods(change).groups,
            expected.into_iter().map(key).collect(),
            "{what}"
        );
    }
}

/// Leaders 0 … 2 on node n1; only group 1 has its worker set.
fn exclusive(topology: &str) -> Cache {
    let on_n1 = || ("/spec/nodeName", json!("n1"));
    let mut cache = Cache::default();
    cache.apply_sets(Change::Applied(set(&[annotated(
        annotation::EXCLUSIVE_TOPOLOGY,
        topology,
    )])));
    cache.apply_pods(Change::Relisted(vec![
        leader("0", "l0", &[on_n1()]),
        leader("1", "l1", &[on_n1()]),
        leader("2", "l2", &[on_n1()]),
        leader("3", "l3", &[("/spec/nodeName", json!("n2"))]),
        leader("4", "l4", &[]),
        worker("5", "w5", "s5", &[on_n1()]),
    ]));
    cache.apply_stateful_sets(Change::Relisted(vec![
        worker_set("1", "s1", "l1"),
        worker_set("2", "s2", "previous"),
    ]));
    cache
}

#[test]
fn ord_19_node_labels_wake_groups_that_wait_for_a_topology_value() {
    let waiting = wakes(&[], &["x-0", "x-2"]);
    let mut cache = exclusive("rack");
    assert_eq!(
        cache.apply_nodes(Change::Applied(node(json!({}), "1"))),
        waiting,
        "node appears"
    );
    assert_eq!(
        cache.apply_nodes(Change::Applied(node(json!({}), "2"))),
        wakes(&[], &[]),
        "nothing new"
    );
    assert_eq!(
        cache.apply_nodes(Change::Applied(node(json!({"rack": "a"}), "3"))),
        waiting,
        "label"
    );
    assert_eq!(
        cache.apply_nodes(Change::Deleted(node(json!({"rack": "a"}), "4"))),
        wakes(&[], &[]),
        "node gone"
    );
    assert_eq!(
        exclusive("").apply_nodes(Change::Applied(node(json!({}), "1"))),
        wakes(&[], &[]),
        "not exclusive"
    );
}

#[test]
fn ord_4_the_worker_set_is_named_after_the_hostname() {
    let mut cache = exclusive("rack");
    cache.apply_pods(Change::Applied(leader(
        "1",
        "l1",
        &[
            version("2"),
            ("/spec/nodeName", json!("n1")),
            ("/spec/hostname", json!("h")),
        ],
    )));
    let woken = cache.apply_nodes(Change::Applied(node(json!({}), "1")));
    assert!(woken.groups.contains(&key("x-1")));
    cache.apply_stateful_sets(Change::Applied(stateful_set(
        "h",
        "sh",
        owner("Pod", "x-1", "l1"),
        &[],
    )));
    let woken = cache.apply_nodes(Change::Applied(node(json!({"rack": "a"}), "2")));
    assert!(!woken.groups.contains(&key("x-1")));
}
