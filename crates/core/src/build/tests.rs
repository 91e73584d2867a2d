//! Built objects as YAML, among them the example of API-29.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use lws_api::leaderworkerset::LeaderWorkerSet;
use serde_json::{Value, json};

use super::leader_set::{LeaderSet, leader_set};
use super::revision::{canonical, revision, revision_data, revision_hash};
use super::service::{repair, replica_selector, replica_service, shared_selector, shared_service};
use super::worker_set::{GroupTemplate, worker_set, worker_set_name};
use crate::model::{Lws, Pod, Service};

/// The set of API-29: two groups of three, a leader template of its own.
pub(crate) fn demo() -> Value {
    json!({
        "metadata": {
            "name": "demo", "namespace": "ns", "uid": "demo-uid", "resourceVersion": "7", "generation": 1,
            "labels": {"team": "x"},
            "annotations": {"note": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"replicas": 2, "leaderWorkerTemplate": {
            "size": 3,
            "leaderTemplate": {"spec": {"containers": [{"name": "leader", "image": "nginx:1.27"}]}},
            "workerTemplate": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "worker", "image": "nginx:1.27"}]}},
        }},
    })
}

pub(crate) fn lws(value: Value) -> Lws {
    serde_json::from_value::<LeaderWorkerSet>(value)
        .expect("a set")
        .into()
}

/// Members in the order of their names, whatever order the builder gave them.
fn sorted(mut object: Value) -> Value {
    object.sort_all_objects();
    object
}

fn changed(patch: Value) -> Lws {
    let mut set = demo();
    json_patch::merge(&mut set, &patch);
    lws(set)
}

fn leader() -> Pod {
    let pod = json!({
        "metadata": {"name": "demo-1", "namespace": "ns", "uid": "leader-uid", "labels": {
            "leaderworkerset.sigs.k8s.io/name": "demo",
            "leaderworkerset.sigs.k8s.io/group-index": "1",
            "leaderworkerset.sigs.k8s.io/group-key": "0123",
            "leaderworkerset.sigs.k8s.io/template-revision-hash": "old",
        }},
        "spec": {"containers": [], "hostname": "demo-1", "subdomain": "demo"},
    });
    serde_json::from_value::<core::Pod>(pod).unwrap().into()
}

fn built_leader_set(lws: &Lws, parallel_hint: bool) -> Value {
    leader_set(&LeaderSet {
        lws,
        revision_key: "key",
        desired_replicas: 2,
        replicas: 3,
        partition: 1,
        max_unavailable: 2,
        parallel_hint,
        membership: None,
    })
}

fn built_worker_set(lws: &Lws, leader: &Pod, topology: Option<(&str, &str)>) -> Value {
    worker_set(&GroupTemplate {
        lws,
        spec: &lws.spec,
        leader,
        topology,
        membership: None,
    })
}

#[test]
fn lws_api_29_ord_62_70_pod_pt_1_2_leader_set() {
    insta::assert_yaml_snapshot!(sorted(built_leader_set(&lws(demo()), false)));
}

#[test]
fn lws_api_29_ord_1_90_91_92_pod_pt_10_11_worker_set() {
    insta::assert_yaml_snapshot!(sorted(built_worker_set(&lws(demo()), &leader(), None)));
}

#[test]
fn lws_api_28_29_ord_70_72_shared_service() {
    insta::assert_yaml_snapshot!(sorted(shared_service(&lws(demo()))));
}

#[test]
fn ord_71_72_lws_api_28_replica_service() {
    let leader = Pod {
        subdomain: "demo-1".into(),
        ..leader()
    };
    insta::assert_yaml_snapshot!(sorted(replica_service(&lws(demo()), &leader)));
}

#[test]
fn ord_32_revision() {
    let set = lws(demo());
    let data = revision_data(&set.spec);
    let key = revision_hash(&canonical(&data));
    insta::assert_yaml_snapshot!(sorted(revision(
        &set,
        &format!("demo-{key}-1"),
        &key,
        1,
        &data
    )));
}

#[test]
fn ord_62_pod_pt_3_to_pt_7_lws_api_27_leader_annotations() {
    let set = changed(json!({
        "metadata": {"annotations": {
            "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack",
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "block",
            "leaderworkerset.sigs.k8s.io/replicas": "99",
        }},
        "spec": {
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "leaderWorkerTemplate": {"subGroupPolicy": {"subGroupSize": 1}, "leaderTemplate": null},
        },
    }));
    let built = built_leader_set(&set, true);
    insta::assert_yaml_snapshot!(sorted(built["spec"]["template"]["metadata"].clone()));
    assert_eq!(
        built["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/replicas"],
        "2"
    );
    assert_eq!(
        built["spec"]["template"]["spec"]["containers"][0]["name"],
        "worker"
    );
}

#[test]
fn ord_91_pod_pt_12_pt_13_pt_15_worker_additions() {
    let set = changed(json!({
        "metadata": {"annotations": {
            "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack",
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "block",
        }},
        "spec": {"leaderWorkerTemplate": {
            "subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
            "workerTemplate": {"spec": {"nodeSelector": {"pool": "p"}}},
        }},
    }));
    let leader = Pod {
        requests_tpus: true,
        ..leader()
    };
    let built = built_worker_set(&set, &leader, Some(("rack", "r7")));
    insta::assert_yaml_snapshot!(sorted(built["spec"]["template"].clone()));
}

#[test]
fn pod_pt_5_subgroup_topology_needs_a_policy() {
    let set = changed(
        json!({"metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "block"}}}),
    );
    for built in [
        built_leader_set(&set, false),
        built_worker_set(&set, &leader(), None),
    ] {
        let annotations = &built["spec"]["template"]["metadata"]["annotations"];
        assert!(
            annotations
                .get("leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology")
                .is_none()
        );
    }
}

#[test]
fn ord_61_controller_keys_win_and_last_applied_stays_behind() {
    let set = changed(json!({"metadata": {"labels": {
        "leaderworkerset.sigs.k8s.io/name": "forged",
        "leaderworkerset.sigs.k8s.io/role": "forged",
        "leaderworkerset.sigs.k8s.io/template-revision-hash": "forged",
        "leaderworkerset.sigs.k8s.io/group-index": "forged",
    }}}));
    for built in [
        built_leader_set(&set, false),
        built_worker_set(&set, &leader(), None),
    ] {
        let metadata = &built["metadata"];
        assert_eq!(
            metadata["labels"]["leaderworkerset.sigs.k8s.io/name"],
            "demo"
        );
        assert_ne!(
            metadata["labels"]["leaderworkerset.sigs.k8s.io/role"],
            "forged"
        );
        assert_ne!(
            metadata["labels"]["leaderworkerset.sigs.k8s.io/template-revision-hash"],
            "forged"
        );
        assert_eq!(metadata["annotations"]["note"], "a");
        assert!(
            metadata["annotations"]
                .get("kubectl.kubernetes.io/last-applied-configuration")
                .is_none()
        );
    }
    assert_eq!(
        built_worker_set(&set, &leader(), None)["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"],
        "1"
    );
}

#[test]
fn ord_90_old_revision_gives_size_and_template() {
    let live = lws(demo());
    let old = changed(json!({"spec": {"leaderWorkerTemplate": {"size": 5}}}));
    let built = worker_set(&GroupTemplate {
        lws: &live,
        spec: &old.spec,
        leader: &leader(),
        topology: None,
        membership: None,
    });
    assert_eq!(built["spec"]["replicas"], 4);
    assert_eq!(
        built["spec"]["template"]["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/size"],
        "5"
    );
}

#[test]
fn ord_4_worker_set_is_named_by_host_name_then_pod_name() {
    assert_eq!(
        worker_set_name(&Pod {
            hostname: "demo-c6da7bcc".into(),
            ..leader()
        }),
        "demo-c6da7bcc"
    );
    assert_eq!(
        worker_set_name(&Pod {
            hostname: "".into(),
            ..leader()
        }),
        "demo-1"
    );
}

#[test]
fn ord_64_lws_api_11_claims_go_to_both_sets() {
    let set = changed(
        json!({"spec": {"leaderWorkerTemplate": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}}),
    );
    for built in [
        built_leader_set(&set, false),
        built_worker_set(&set, &leader(), None),
    ] {
        assert_eq!(
            built["spec"]["volumeClaimTemplates"][0]["metadata"],
            json!({"name": "data", "namespace": "ns"})
        );
    }
}

#[test]
fn ord_73_repair_touches_selector_and_publishing_only() {
    let set = lws(demo());
    let wanted = shared_selector(&set);
    let service = |selector: Value, publishes: bool| -> Service {
        let object = json!({"spec": {"selector": selector, "publishNotReadyAddresses": publishes}});
        serde_json::from_value::<core::Service>(object)
            .unwrap()
            .into()
    };
    let patch =
        |selector: Value| json!({"spec": {"selector": selector, "publishNotReadyAddresses": true}});
    assert_eq!(repair(&service(json!(wanted), true), &wanted), None);
    assert_eq!(
        repair(&service(json!(wanted), false), &wanted),
        Some(patch(json!(wanted)))
    );
    let mut with_removal = json!(wanted);
    with_removal["app"] = Value::Null;
    assert_eq!(
        repair(&service(json!({"app": "x"}), true), &wanted),
        Some(patch(with_removal))
    );
    assert_eq!(replica_selector(&set, &leader()).len(), 2);
}

#[test]
fn ord_22_hostile_templates_are_built_all_the_same() {
    let absurd = [
        json!("text"),
        json!([1]),
        json!({"metadata": 3, "spec": null}),
        json!({"spec": {"nodeSelector": "x", "containers": {}}}),
    ];
    for template in absurd {
        for size in [i32::MIN, 0, 1, i32::MAX] {
            let set = changed(json!({"spec": {"leaderWorkerTemplate": null}}));
            let template = serde_json::from_value(template.clone()).unwrap();
            let mut spec = set.spec.clone();
            spec.leader_worker_template.worker_template = template;
            spec.leader_worker_template.size = Some(size);
            let set = Arc::new(Lws { spec, ..set });
            assert_eq!(built_leader_set(&set, true)["metadata"]["name"], "demo");
            let workers = built_worker_set(&set, &leader(), Some(("rack", "r")));
            assert!(workers["spec"]["replicas"].as_u64().unwrap() <= 2_147_483_646);
            assert_eq!(
                workers["spec"]["template"]["spec"]["nodeSelector"]["rack"],
                "r"
            );
        }
    }
}

#[test]
fn krs_30_nulls_are_not_owned() {
    let set = changed(
        json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {"volumes": [{"name": "v"}]}}}}}),
    );
    let mut spec = set.spec.clone();
    let template = json!({"metadata": {"creationTimestamp": null}, "spec": {"volumes": [{"name": "v", "emptyDir": {}, "secret": null}]}});
    spec.leader_worker_template.leader_template = serde_json::from_value(template).unwrap();
    let built = built_leader_set(&Lws { spec, ..set }, false);
    assert_eq!(
        built["spec"]["template"]["spec"]["volumes"],
        json!([{"name": "v", "emptyDir": {}}])
    );
    assert!(
        built["spec"]["template"]["metadata"]
            .get("creationTimestamp")
            .is_none()
    );
}

/// By these references the chains pod → set → LeaderWorkerSet and worker → worker set → leader are walked.
#[test]
fn ord_3_kue_usr_7_chk_7_everything_has_one_controller_that_waits_for_it() {
    let set = lws(demo());
    let of_set = json!([{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "demo", "uid": "demo-uid",
        "controller": true, "blockOwnerDeletion": true}]);
    let of_leader = json!([{"apiVersion": "v1", "kind": "Pod", "name": "demo-1", "uid": "leader-uid",
        "controller": true, "blockOwnerDeletion": true}]);
    for (built, owner) in [
        (built_leader_set(&set, false), &of_set),
        (shared_service(&set), &of_set),
        (
            revision(&set, "demo-key-1", "key", 1, &revision_data(&set.spec)),
            &of_set,
        ),
        (built_worker_set(&set, &leader(), None), &of_leader),
        (replica_service(&set, &leader()), &of_leader),
    ] {
        assert_eq!(
            built["metadata"]["ownerReferences"], *owner,
            "{}",
            built["kind"]
        );
    }
}

/// Kueue writes into the templates and reads from the sets.
#[test]
fn kue_kq_1_kq_6_templates_keep_what_others_put_into_them() {
    let metadata = json!({
        "labels": {"kueue.x-k8s.io/queue-name": "q", "example.com/role": "decode"},
        "annotations": {"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset", "example.com/x": "y"},
    });
    let pod = json!({
        "containers": [{"name": "c", "image": "i"}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "fieldOfTheFuture": {"x": [1]},
    });
    let template = json!({"metadata": metadata, "spec": pod});
    let set = changed(
        json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": null, "workerTemplate": null}}}),
    );
    let mut spec = set.spec.clone();
    spec.leader_worker_template.leader_template = serde_json::from_value(template.clone()).unwrap();
    spec.leader_worker_template.worker_template = serde_json::from_value(template).unwrap();
    let set = Lws { spec, ..set };
    for built in [
        built_leader_set(&set, false),
        built_worker_set(&set, &leader(), None),
    ] {
        let template = &built["spec"]["template"];
        for kind in ["labels", "annotations"] {
            for (key, value) in metadata[kind].as_object().unwrap() {
                assert_eq!(template["metadata"][kind][key], *value);
            }
        }
        assert_eq!(template["spec"], pod);
        assert_eq!(
            built["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"],
            "demo"
        );
    }
}

#[test]
fn ord_128_subgroups_are_annotations_and_nothing_else() {
    let with =
        changed(json!({"spec": {"leaderWorkerTemplate": {"subGroupPolicy": {"subGroupSize": 3}}}}));
    let without = lws(demo());
    for (mut one, mut other) in [
        (
            built_leader_set(&with, false),
            built_leader_set(&without, false),
        ),
        (
            built_worker_set(&with, &leader(), None),
            built_worker_set(&without, &leader(), None),
        ),
    ] {
        assert_ne!(one, other);
        for built in [&mut one, &mut other] {
            built["spec"]["template"]["metadata"]["annotations"].take();
        }
        assert_eq!(one, other);
    }
}

/// Peers look each other up before anybody is ready: the Service that pods name as their subdomain publishes all addresses.
#[test]
fn kue_usr_2_chk_6_addresses_resolve_before_pods_are_ready() {
    let set = lws(demo());
    let unique = Pod {
        subdomain: "demo-1".into(),
        ..leader()
    };
    for (service, pods) in [
        (shared_service(&set), built_leader_set(&set, false)),
        (
            shared_service(&set),
            built_worker_set(&set, &leader(), None),
        ),
        (
            replica_service(&set, &unique),
            built_worker_set(&set, &unique, None),
        ),
    ] {
        assert_eq!(service["metadata"]["name"], pods["spec"]["serviceName"]);
        assert_eq!(
            (
                &service["spec"]["clusterIP"],
                &service["spec"]["publishNotReadyAddresses"]
            ),
            (&json!("None"), &json!(true))
        );
        for (label, value) in service["spec"]["selector"].as_object().unwrap() {
            assert_eq!(
                pods["spec"]["template"]["metadata"]["labels"][label],
                *value
            );
        }
    }
}
