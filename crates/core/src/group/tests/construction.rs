//! ORD-80 steps 9–21, ORD-84, ORD-135, EX-6: the Service and the worker set of a group.

use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use super::world::{Done, World, key, owner, texts};
use crate::cache::Change;
use crate::intent::{Accept, Intent, Kind};
use crate::model::Node;

/// A set without groups, and a leader for group 0.
fn with_leader(spec: Value) -> World {
    let mut world = World::new(spec);
    world.leader(0, "r", 3);
    world
}

#[track_caller]
fn assert_nothing(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

#[track_caller]
fn assert_created(done: &Done) {
    assert_eq!(
        (done.writes(), done.errors()),
        (vec!["create StatefulSet x-0".to_owned()], vec![])
    );
    assert_eq!(
        done.events(),
        ["GroupsProgressing: Created worker statefulset for leader pod x-0"]
    );
}

fn node(world: &mut World, labels: Value) {
    let metadata =
        serde_json::from_value(json!({"name": "n", "labels": labels})).expect("metadata");
    world
        .cache
        .apply_nodes(Change::Applied(Node::new(&metadata)));
}

fn created(done: &Done) -> &Value {
    let Some(Intent::Create { body, .. }) = done.plan.plan.steps.last().map(|step| &step.intent)
    else {
        panic!("a create")
    };
    body
}

#[test]
fn ord_80_lws_api_9_worker_set_is_created_once() {
    let mut world = with_leader(json!({}));
    world.edit_pod(
        "x-0",
        json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": null}}),
    );
    let done = world.run("x-0");
    assert_created(&done);
    let set = created(&done);
    assert_eq!(
        set["metadata"]["ownerReferences"],
        owner("Pod", "x-0", "x-0#1")
    );
    assert_eq!(
        (
            &set["spec"]["replicas"],
            &set["spec"]["template"]["metadata"]["labels"][label::REVISION]
        ),
        (&json!(2), &json!("r"))
    );
    assert_nothing(&world.run("x-0"));
}

#[test]
fn ord_2_lws_api_8_size_1_has_no_worker_set() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"size": 1}}));
    world.leader(0, "r", 1);
    assert_nothing(&world.run("x-0"));
}

#[test]
fn ord_80_lws_api_9_step_16_leader_ready() {
    let mut world = with_leader(json!({"startupPolicy": "LeaderReady"}));
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    world.edit_pod("x-0", not_ready);
    assert_nothing(&world.run("x-0"));
    // The phase is not looked at.
    world.edit_pod("x-0", json!({"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}}));
    assert_created(&world.run("x-0"));
}

#[test]
fn ord_126_the_live_startup_policy_counts() {
    let mut world = with_leader(json!({"startupPolicy": "LeaderReady"}));
    world.edit_pod("x-0", json!({"status": {"conditions": null}}));
    world.edit_spec(json!({"startupPolicy": "LeaderCreated"}));
    assert_created(&world.run("x-0"));
}

#[test]
fn pod_ex_6_exclusive_topology() {
    let mut world = with_leader(json!({}));
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::EXCLUSIVE_TOPOLOGY: "rack"}}}),
    );
    world.edit_pod("x-0", json!({"spec": {"nodeName": null}}));
    assert_nothing(&world.run("x-0"));
    world.edit_pod("x-0", json!({"spec": {"nodeName": "n"}}));
    assert_eq!(world.run("x-0").errors(), ["getting node \"n\": not found"]);
    for labels in [json!({}), json!({"rack": ""})] {
        node(&mut world, labels);
        let done = world.run("x-0");
        assert_eq!(
            (done.errors(), done.writes()),
            (vec!["node does not have topology label: rack"], vec![])
        );
    }
    node(&mut world, json!({"rack": "a", "other": "b"}));
    let done = world.run("x-0");
    assert_created(&done);
    assert_eq!(
        created(&done)["spec"]["template"]["spec"]["nodeSelector"],
        json!({"rack": "a"})
    );
    node(&mut world, json!({}));
    assert_nothing(&world.run("x-0"));
}

#[test]
fn pod_ex_6_empty_annotation_counts_as_absent() {
    let mut world = with_leader(json!({}));
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::EXCLUSIVE_TOPOLOGY: ""}}}),
    );
    world.edit_pod("x-0", json!({"spec": {"nodeName": null}}));
    assert_created(&world.run("x-0"));
}

#[test]
fn pod_ex_8_leader_ready_and_topology_both_hold() {
    let mut world = with_leader(json!({"startupPolicy": "LeaderReady"}));
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::EXCLUSIVE_TOPOLOGY: "rack"}}}),
    );
    node(&mut world, json!({"rack": "a"}));
    world.edit_pod("x-0", json!({"status": {"conditions": null}}));
    assert_nothing(&world.run("x-0"));
}

#[test]
fn ord_80_step_11_nothing_for_a_terminating_leader() {
    let mut world = with_leader(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn ord_80_step_17_unknown_revision() {
    let mut world = with_leader(json!({}));
    for revision in ["unknown", ""] {
        world.edit_pod(
            "x-0",
            json!({"metadata": {"labels": {label::REVISION: revision}}}),
        );
        let done = world.run("x-0");
        assert_nothing(&done);
        assert_eq!(done.wake_seconds(), Some(1));
    }
}

#[test]
fn ord_34_a_foreign_revision_is_unknown_and_of_several_the_newest_counts() {
    let mut world = with_leader(json!({}));
    world.edit(
        Kind::ControllerRevision,
        "x-r-1",
        json!({"metadata": {"ownerReferences": owner("LeaderWorkerSet", "x", "another")}}),
    );
    assert_eq!(world.run("x-0").wake_seconds(), Some(1));
    world.edit(
        Kind::ControllerRevision,
        "x-r-1",
        json!({"metadata": {"ownerReferences": null}}),
    );
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 5}}));
    world.revision("r", 12);
    let done = world.run("x-0");
    assert_eq!(created(&done)["spec"]["replicas"], 4);
}

#[test]
fn ord_80_old_revision_leader_gets_the_old_group() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"size": 4}}));
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "new"}]}}},
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    world.revision("r2", 2);
    world.leader(0, "r", 4);
    let done = world.run("x-0");
    assert_created(&done);
    let set = created(&done);
    assert_eq!(set["spec"]["replicas"], 3);
    let template = &set["spec"]["template"];
    assert_eq!(
        (
            &template["metadata"]["annotations"][annotation::SIZE],
            &template["spec"]["containers"][0]["image"]
        ),
        (&json!("4"), &json!("i"))
    );
}

#[test]
fn pod_pt_17_ord_80_step_18_no_address() {
    for missing in ["hostname", "subdomain"] {
        let mut world = with_leader(json!({}));
        world.edit_pod("x-0", json!({"spec": {missing: null}}));
        let done = world.run("x-0");
        assert_eq!(
            (done.errors(), done.writes()),
            (
                vec!["leader pod ns/x-0 has no hostname or subdomain"],
                vec![]
            ),
            "{missing}"
        );
    }
}

#[test]
fn c35_rst_3_a_leader_that_names_a_leader_starts_no_chain() {
    let mut world = with_leader(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::LEADER_NAME: "x-0"}}}),
    );
    let done = world.run("x-0");
    assert_eq!((done.writes(), done.errors()), (vec![], vec![]));
    assert_eq!(
        done.events(),
        [
            "FailedCreate: leader pod ns/x-0 contains mistake annotation 'leaderworkerset.sigs.k8s.io/leader-name': \
          requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
        ]
    );
}

#[test]
fn ord_80_step_13_scheduling_without_a_provider() {
    let mut world = with_leader(json!({"scheduling": {}}));
    let done = world.run("x-0");
    assert_eq!(
        (done.errors(), done.writes()),
        (
            vec!["spec.scheduling is set, but no scheduler provider is configured"],
            vec![]
        )
    );
}

#[test]
fn ord_82_a_deleted_worker_set_is_created_again() {
    let mut world = World::new(json!({}));
    world.leader(0, "r", 3);
    world.worker_set(0);
    world.delete(Kind::StatefulSet, "x-0");
    assert_nothing(&world.run("x-0"));
    world.second += 2;
    world.gone(Kind::StatefulSet, "x-0");
    assert_created(&world.run("x-0"));
}

#[test]
fn ord_83_135_worker_set_of_somebody_else() {
    let leftover = owner("Pod", "x-0", "older");
    let foreign = [
        Value::Null,
        owner("Pod", "y-0", "y"),
        owner("LeaderWorkerSet", "x-0", "set"),
    ];
    let mut world = World::new(json!({}));
    world.leader(0, "r", 3);
    world.worker_set(0);
    world.edit(
        Kind::StatefulSet,
        "x-0",
        json!({"metadata": {"ownerReferences": leftover}}),
    );
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(done.wake_seconds(), Some(1));
    for owner in foreign {
        world.edit(
            Kind::StatefulSet,
            "x-0",
            json!({"metadata": {"ownerReferences": owner}}),
        );
        let done = world.run("x-0");
        assert_eq!(done.writes(), Vec::<String>::new());
        let message = "statefulset ns/x-0 is not controlled by Pod x-0";
        assert_eq!(
            done.events(),
            [format!(
                "FailedCreate: Failed to create worker statefulset for leader pod x-0: {message}"
            )]
        );
        assert_eq!(texts(&done.plan.plan.errors), [message]);
        assert_eq!(
            done.plan.plan.errors[0]
                .retry_after
                .map(|wait| wait.as_secs()),
            Some(30)
        );
    }
    world.delete(Kind::StatefulSet, "x-0");
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(
        done.wake_seconds(),
        Some(1),
        "a terminating one is a leftover, whose ever it was"
    );
}

#[test]
fn ord_135_a_stale_create_accepts_what_is_ours() {
    let mut world = with_leader(json!({}));
    let snapshot = world.snapshot("x-0");
    world.worker_set(0);
    let done = world.run_from(&snapshot, "x-0");
    assert!(done.outcome.is_complete() && done.events().is_empty());
    world.edit(
        Kind::StatefulSet,
        "x-0",
        json!({"metadata": {"ownerReferences": null}}),
    );
    let done = world.run_from(&snapshot, "x-0");
    let message = "FailedCreate: Failed to create worker statefulset for leader pod x-0: statefulset ns/x-0 is not controlled by Pod x-0";
    assert_eq!(done.events(), [message]);
}

#[test]
fn ord_84_fail_93_old_workers_hold_their_names() {
    for policy in ["Default", "Parallel"] {
        old_workers_hold_their_names(World::new(json!({"podTerminationPolicy": policy})));
    }
}

fn old_workers_hold_their_names(mut world: World) {
    world.group(0);
    for ordinal in [1, 2] {
        world.delete(Kind::Pod, &format!("x-0-{ordinal}"));
    }
    world.gone(Kind::StatefulSet, "x-0");
    world.leader(0, "r", 3);
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(
        done.wake_seconds(),
        None,
        "the end of the last one wakes the group"
    );
    world.gone(Kind::Pod, "x-0-1");
    assert_nothing(&world.run("x-0"));
    world.gone(Kind::Pod, "x-0-2");
    assert_created(&world.run("x-0"));
}

#[test]
fn ord_84_who_holds_a_name() {
    let held = "held";
    let foreign = "foreign";
    for (name, pod_owner, terminating, expected) in [
        ("x-0-1", owner("StatefulSet", "x-0", "gone"), false, held),
        ("x-0-2", owner("StatefulSet", "x-0", "gone"), true, held),
        ("x-0-2", owner("StatefulSet", "x", "leaders"), true, held),
        (
            "x-0-2",
            owner("StatefulSet", "x", "leaders"),
            false,
            foreign,
        ),
        ("x-0-1", owner("ReplicaSet", "y", "y"), false, foreign),
        ("x-0-1", Value::Null, false, "free"),
        ("x-0-3", owner("StatefulSet", "x", "leaders"), false, "free"),
        ("x-0-0", owner("StatefulSet", "x", "leaders"), false, "free"),
        (
            "x-0-01",
            owner("StatefulSet", "x", "leaders"),
            false,
            "free",
        ),
        (
            "x-01-1",
            owner("StatefulSet", "x", "leaders"),
            false,
            "free",
        ),
    ] {
        let mut world = with_leader(json!({}));
        world.put(Kind::Pod, json!({"metadata": {"name": name, "uid": "holder", "labels": {label::NAME: "other", label::WORKER_INDEX: "1"},
            "annotations": {annotation::LEADER_NAME: "other-0"}, "ownerReferences": pod_owner}, "spec": {"containers": []}}));
        if terminating {
            world.delete(Kind::Pod, name);
        }
        let done = world.run("x-0");
        let case = format!("{name} {pod_owner} {terminating}");
        match expected {
            "free" => assert_created(&done),
            "held" => assert_nothing(&done),
            _ => {
                let message = format!("pod ns/{name} is not controlled by statefulset x-0");
                assert_eq!(done.writes(), Vec::<String>::new(), "{case}");
                assert_eq!(
                    done.events(),
                    [format!(
                        "FailedCreate: Failed to create worker statefulset for leader pod x-0: {message}"
                    )],
                    "{case}"
                );
                assert_eq!(done.errors(), [message], "{case}");
            }
        }
    }
}

#[test]
fn ord_84_an_absurd_size_costs_nothing() {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"size": i32::MAX}}));
    world.leader(0, "r", 3);
    assert_created(&world.run("x-0"));
}

#[test]
fn ord_133_a_leader_of_another_set_holds_a_worker_name() {
    let mut world = with_leader(json!({}));
    world.put(Kind::Pod, json!({"metadata": {"name": "x-0-1", "uid": "other leader", "labels": {label::NAME: "x-0", label::WORKER_INDEX: "0"},
        "ownerReferences": owner("StatefulSet", "x", "leaders")}, "spec": {"containers": []}}));
    assert_eq!(
        world.run("x-0").errors(),
        ["pod ns/x-0-1 is not controlled by statefulset x-0"]
    );
}

fn unique() -> World {
    let mut world = World::new(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
    world.leader(0, "r", 3);
    world.edit_pod("x-0", json!({"spec": {"subdomain": "x-0"}}));
    world
}

#[test]
fn ord_71_service_of_the_group_before_its_workers() {
    let mut world = unique();
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        ["create Service x-0", "create StatefulSet x-0"]
    );
    let service = world.object(Kind::Service, "x-0").expect("the service");
    assert_eq!(
        service["spec"]["selector"],
        json!({label::NAME: "x", label::GROUP_INDEX: "0"})
    );
    assert_eq!(
        service["metadata"]["ownerReferences"],
        owner("Pod", "x-0", "x-0#1")
    );
    let Intent::Create {
        accept: Accept::Controlled { foreign, .. },
        ..
    } = &done.plan.plan.steps[0].intent
    else {
        panic!("a create")
    };
    assert_eq!(foreign, "service ns/x-0 is not controlled by Pod x-0");
    assert_nothing(&world.run("x-0"));
    world.gone(Kind::Service, "x-0");
    assert_eq!(world.run("x-0").writes(), ["create Service x-0"]);
}

#[test]
fn ord_71_policy_of_the_group_s_revision() {
    let mut world = unique();
    world.edit_spec(json!({"networkConfig": {"subdomainPolicy": "Shared"}}));
    assert_eq!(world.run("x-0").writes().len(), 2);
}

#[test]
fn ord_71_also_for_groups_of_one() {
    let mut world = World::new(
        json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}, "leaderWorkerTemplate": {"size": 1}}),
    );
    world.leader(0, "r", 1);
    world.edit_pod("x-0", json!({"spec": {"subdomain": "x-0"}}));
    assert_eq!(world.run("x-0").writes(), ["create Service x-0"]);
}

#[test]
fn ord_73_what_peers_rely_on_is_repaired() {
    let mut world = unique();
    world.run("x-0");
    world.edit(Kind::Service, "x-0", json!({"spec": {"selector": {"app": "y", label::GROUP_INDEX: null}, "publishNotReadyAddresses": false, "ports": []}}));
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["patch Service x-0"]);
    let Intent::Patch {
        resource_version, ..
    } = &done.plan.plan.steps[0].intent
    else {
        panic!("a patch")
    };
    assert!(resource_version.is_some());
    let spec = &world.object(Kind::Service, "x-0").expect("the service")["spec"];
    assert_eq!(
        (
            &spec["selector"],
            &spec["publishNotReadyAddresses"],
            &spec["ports"]
        ),
        (
            &json!({label::NAME: "x", label::GROUP_INDEX: "0"}),
            &json!(true),
            &json!([])
        )
    );
}

#[test]
fn ord_74_135_a_service_that_is_not_good_stops_its_group() {
    let service = |owner: Value| {
        json!({"metadata": {"name": "x-0", "uid": "theirs", "ownerReferences": owner},
            "spec": {"clusterIP": "None", "selector": {label::NAME: "x", label::GROUP_INDEX: "0"}, "publishNotReadyAddresses": true}})
    };
    let mut world = unique();
    world.put(Kind::Service, service(owner("Pod", "x-0", "older")));
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(done.wake_seconds(), Some(1));
    for owner in [Value::Null, owner("LeaderWorkerSet", "x-0", "other")] {
        world.put(Kind::Service, service(owner));
        let done = world.run("x-0");
        let message = "service ns/x-0 is not controlled by Pod x-0";
        assert_eq!(
            done.events(),
            [format!(
                "FailedCreate: Failed to create headless service for error: {message}"
            )]
        );
        assert_eq!((done.errors(), done.writes()), (vec![message], vec![]));
    }
    world.put(Kind::Service, service(owner("Pod", "x-0", "x-0#1")));
    assert_eq!(world.run("x-0").writes(), ["create StatefulSet x-0"]);
    world.gone(Kind::StatefulSet, "x-0");
    world.delete(Kind::Service, "x-0");
    let done = world.run("x-0");
    assert_nothing(&done);
    assert_eq!(done.wake_seconds(), Some(1));
}

#[test]
fn ord_4_worker_set_is_named_after_the_hostname() {
    let mut world = with_leader(json!({}));
    world.edit_pod("x-0", json!({"spec": {"hostname": "h"}}));
    assert_eq!(world.run("x-0").writes(), ["create StatefulSet h"]);
}

#[test]
fn ord_80_step_1_no_pods_no_group() {
    assert_eq!(
        crate::group::observe(&key("x-0"), &World::new(json!({})).cache),
        None
    );
}

#[test]
fn ord_80_a_broken_revision_is_reported() {
    let mut world = with_leader(json!({}));
    world.edit(
        Kind::ControllerRevision,
        "x-r-1",
        json!({"data": {"spec": {"leaderWorkerTemplate": {"size": "many"}}}}),
    );
    let done = world.run("x-0");
    assert_eq!(done.writes(), Vec::<String>::new());
    assert!(
        done.errors()[0].starts_with("reading revision x-r-1: "),
        "{:?}",
        done.errors()
    );
}

#[test]
fn ord_81_a_worker_set_is_never_changed() {
    let mut world = World::new(json!({}));
    world.group(0);
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"labels": {"team": "y"}, "annotations": {annotation::EXCLUSIVE_TOPOLOGY: "rack"}}}),
    );
    world.edit_spec(json!({"leaderWorkerTemplate": {"size": 7}, "networkConfig": {"subdomainPolicy": "Shared"}}));
    world.revision("r2", 2);
    node(&mut world, json!({"rack": "a"}));
    assert_nothing(&world.run("x-0"));
    world.edit(Kind::StatefulSet, "x-0", json!({"spec": {"replicas": 1}}));
    assert_nothing(&world.run("x-0"));
}

#[test]
fn pod_ex_7_placement_of_subgroups_waits_for_nothing() {
    let mut world = with_leader(json!({}));
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack"}}}),
    );
    world.edit_spec(json!({"leaderWorkerTemplate": {"subGroupPolicy": {"subGroupSize": 3}}}));
    world.revision("r", 2);
    world.edit_pod("x-0", json!({"spec": {"nodeName": null}}));
    let done = world.run("x-0");
    assert_created(&done);
    let template = &created(&done)["spec"]["template"];
    assert_eq!(
        template["metadata"]["annotations"][annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY],
        "rack"
    );
    assert_eq!(template["spec"].get("nodeSelector"), None);
}

#[test]
fn ord_82_what_keeps_vanishing_is_made_ever_more_rarely() {
    let mut world = with_leader(json!({}));
    for pause in [2, 4, 8] {
        assert_created(&world.run("x-0"));
        world.gone(Kind::StatefulSet, "x-0");
        let done = world.run("x-0");
        assert_nothing(&done);
        assert_eq!(done.wake_seconds(), Some(pause));
        world.second += i64::try_from(pause).unwrap();
    }
    for _ in 0..9 {
        assert_created(&world.run("x-0"));
        world.gone(Kind::StatefulSet, "x-0");
        world.second += 300;
    }
}

#[test]
fn ord_82_a_new_leader_waits_for_nothing_and_nor_does_a_set_that_lived() {
    let mut world = with_leader(json!({}));
    assert_created(&world.run("x-0"));
    world.gone(Kind::StatefulSet, "x-0");
    world.gone(Kind::Pod, "x-0");
    world.leader(0, "r", 3);
    assert_created(&world.run("x-0"));
    world.second += 2;
    world.gone(Kind::StatefulSet, "x-0");
    assert_created(&world.run("x-0"));
}
