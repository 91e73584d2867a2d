use serde_json::{Value, json};

use super::{create_complete, heads, native, spec, validate};
use crate::admission::{Environment, SchedulerProvider, ServedKinds};

const SCHEDULING: &str = "spec.scheduling";
const TEMPLATE_NAME: &str = "metadata.annotations[scheduling.k8s.io/group-template-name]";
const PARENT: &str = "metadata.annotations[scheduling.k8s.io/parent-compositepodgroup]";

/// A set of groups of three with gang scheduling.
fn gang(scheduling: Value) -> Value {
    with(scheduling, json!({}))
}

fn with(scheduling: Value, rest: Value) -> Value {
    let mut object = spec(json!({"leaderWorkerTemplate": {"size": 3}, "scheduling": scheduling}));
    json_patch::merge(&mut object, &rest);
    object
}

fn volcano() -> Environment {
    Environment {
        scheduler_provider: Some(SchedulerProvider::Volcano),
        ..native()
    }
}

fn created(object: &Value) -> Vec<String> {
    create_complete(object, &native())
}

fn updated(old: &Value, new: &Value) -> Vec<String> {
    heads(&validate(new, Some(old), &native()))
}

fn at(path: &str, kind: &str) -> String {
    format!("{SCHEDULING}{path}: {kind}")
}

#[test]
fn adm_s_1_s_2_s_4_opt_in() {
    let none = Environment::default();
    let object = gang(json!({}));
    let unserved = ServedKinds::default();
    for (environment, expected) in [
        (native(), vec![]),
        (volcano(), vec![]),
        (none, vec!["Forbidden"]),
        (
            Environment {
                workload_aware_scheduling: false,
                ..native()
            },
            vec!["Forbidden"],
        ),
        (
            Environment {
                scheduler_provider: None,
                ..native()
            },
            vec!["Required value"],
        ),
        (
            Environment {
                served: unserved,
                ..native()
            },
            vec!["Forbidden", "Forbidden"],
        ),
        (
            Environment {
                served: ServedKinds {
                    workload: true,
                    pod_group: false,
                },
                ..native()
            },
            vec!["Forbidden"],
        ),
        (
            Environment {
                served: unserved,
                ..volcano()
            },
            vec![],
        ),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|kind| at("", kind)).collect();
        assert_eq!(
            create_complete(&object, &environment),
            expected,
            "{environment:?}"
        );
    }
    let ambiguous = gang(json!({"schedulingPolicy": {}, "replica": {}}));
    assert_eq!(
        create_complete(&ambiguous, &none),
        [at("", "Forbidden")],
        "S-1 stops the rest"
    );
}

#[test]
fn adm_s_5_delegation_annotations() {
    let owner =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true}]);
    let template = "scheduling.k8s.io/group-template-name";
    let parent = "scheduling.k8s.io/parent-compositepodgroup";
    let role = json!({"replica": {"leader": {}}});
    for (scheduling, annotations, owners, expected) in [
        (json!({}), json!({template: "t"}), owner.clone(), vec![]),
        (
            json!({}),
            json!({template: "t", parent: "p"}),
            owner.clone(),
            vec![],
        ),
        (
            json!({}),
            json!({parent: "p"}),
            owner.clone(),
            vec![format!("{PARENT}: Forbidden")],
        ),
        (
            json!({}),
            json!({template: ""}),
            owner.clone(),
            vec![format!("{TEMPLATE_NAME}: Required value")],
        ),
        (
            json!({}),
            json!({template: "t"}),
            json!([]),
            vec![format!("{TEMPLATE_NAME}: Forbidden")],
        ),
        (
            json!({}),
            json!({template: "t", parent: ""}),
            owner.clone(),
            vec![format!("{PARENT}: Required value")],
        ),
        (
            role,
            json!({template: "t"}),
            owner,
            vec![format!("{TEMPLATE_NAME}: Forbidden")],
        ),
    ] {
        let metadata = json!({"metadata": {"annotations": annotations, "ownerReferences": owners}});
        let object = with(scheduling, metadata);
        assert_eq!(created(&object), expected, "{annotations}");
        assert!(
            create_complete(&object, &volcano())
                .iter()
                .all(|finding| !finding.contains("annotations"))
        );
    }
}

#[test]
fn adm_s_6_s_12_to_s_17_lws_api_6_each_level_by_itself() {
    let many = json!({"topology": [{"key": "rack"}, {"key": ""}, {"key": "a b"}]});
    let keys = |path: &str| {
        vec![
            at(path, "Too many"),
            at(&format!("{path}[1].key"), "Required value"),
            at(&format!("{path}[2].key"), "Invalid value"),
        ]
    };
    for (scheduling, expected) in [
        (
            json!({"schedulingPolicy": {"basic": {}}, "replica": {}}),
            vec![at("", "Invalid value")],
        ),
        (
            json!({"replica": {"disruptionMode": {"all": {}}, "worker": {}}}),
            vec![at("", "Invalid value")],
        ),
        (
            json!({"schedulingPolicy": {}}),
            vec![at(".schedulingPolicy", "Invalid value")],
        ),
        (
            json!({"replica": {"schedulingPolicy": {"basic": {}, "gang": {}}}}),
            vec![at(".replica.schedulingPolicy", "Invalid value")],
        ),
        (
            json!({"replica": {"disruptionMode": {}}}),
            vec![at(".replica.disruptionMode", "Invalid value")],
        ),
        (
            json!({"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": 0}}}}}),
            vec![
                at(
                    ".replica.worker.schedulingPolicy.gang.minCount",
                    "Invalid value"
                );
                2
            ],
        ),
        (
            json!({"schedulingConstraints": many}),
            keys(".schedulingConstraints.topology"),
        ),
        (
            json!({"replica": {"leader": {"schedulingConstraints": many}}}),
            keys(".replica.leader.schedulingConstraints.topology"),
        ),
        (
            json!({"disruptionMode": {"all": {}}}),
            vec![at(".disruptionMode", "Invalid value")],
        ),
        (json!({"replica": {"disruptionMode": {"all": {}}}}), vec![]),
        (
            json!({"replica": {"leader": {"disruptionMode": {"all": {}}}}}),
            vec![at(".replica.leader.disruptionMode", "Invalid value")],
        ),
        (
            json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}),
            vec![],
        ),
    ] {
        assert_eq!(created(&gang(scheduling.clone())), expected, "{scheduling}");
    }
}

#[test]
fn adm_s_16_s_25_resource_claims() {
    let claims = json!([
        {"name": "a", "resourceClaimName": "x"},
        {"name": "", "resourceClaimName": "x"},
        {"name": "A b", "resourceClaimTemplateName": "y z"},
        {"name": "d"},
    ]);
    let scheduling = json!({"replica": {"worker": {"resourceClaims": claims}}});
    let pods = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"resourceClaims": [
        {"name": "a", "resourceClaimName": "x"},
        {"name": "d", "resourceClaimName": "x"},
    ]}}}}});
    let claim = |rest: &str, kind: &str| at(&format!(".replica.worker.resourceClaims{rest}"), kind);
    let expected = [
        claim("[3]", "Invalid value"),
        claim("[1].name", "Required value"),
        claim("[2].name", "Invalid value"),
        claim("[2].resourceClaimTemplateName", "Invalid value"),
        claim("[1]", "Invalid value"),
        claim("[2]", "Invalid value"),
        claim("[3]", "Invalid value"),
    ];
    assert_eq!(created(&with(scheduling, pods)), expected);
}

#[test]
fn adm_s_18_to_s_24_what_does_not_go_together() {
    let topology = json!({"topology": [{"key": "rack"}]});
    let exclusive = json!({"metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}}});
    let ready = json!({"spec": {"startupPolicy": "LeaderReady"}});
    let single = json!({"spec": {"leaderWorkerTemplate": {"size": 1}}});
    let leader_priority = json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {"priorityClassName": "high"}}}}});
    let group = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"schedulingGroup": {"podGroupName": "x"}}}}}});
    let gang_count = |count: i64| json!({"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": count}}}}});
    let basic = json!({"replica": {"schedulingPolicy": {"basic": {}}}});
    let nothing = json!({});
    for (rule, scheduling, rest, expected) in [
        (
            "S-18 set",
            json!({"schedulingPolicy": {"gang": {"minGroupCount": 2}}}),
            &nothing,
            vec![at(".schedulingPolicy.gang.minGroupCount", "Forbidden")],
        ),
        (
            "S-18 replica",
            json!({"replica": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}}),
            &nothing,
            vec![at(
                ".replica.schedulingPolicy.gang.minGroupCount",
                "Forbidden",
            )],
        ),
        (
            "S-19",
            json!({"replica": {"leader": {}}}),
            &single,
            vec!["spec.leaderWorkerTemplate.size: Invalid value".to_owned()],
        ),
        (
            "S-20",
            gang_count(1),
            &nothing,
            vec![at(
                ".replica.worker.schedulingPolicy.gang.minCount",
                "Invalid value",
            )],
        ),
        ("S-20 full", gang_count(2), &nothing, vec![]),
        (
            "S-20 leader",
            json!({"replica": {"leader": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}),
            &nothing,
            vec![at(
                ".replica.leader.schedulingPolicy.gang.minCount",
                "Invalid value",
            )],
        ),
        ("S-21", json!({}), &ready, vec![at("", "Forbidden")]),
        (
            "S-21 set",
            json!({"schedulingPolicy": {"gang": {}}}),
            &ready,
            vec![at("", "Forbidden")],
        ),
        ("S-21 basic", basic.clone(), &ready, vec![]),
        ("S-21 role", gang_count(2), &ready, vec![]),
        (
            "S-22 gang",
            json!({}),
            &exclusive,
            vec![at("", "Forbidden")],
        ),
        (
            "S-22 topology",
            json!({"schedulingConstraints": topology}),
            &exclusive,
            vec![at("", "Forbidden")],
        ),
        ("S-22 basic", basic, &exclusive, vec![]),
        (
            "S-23",
            json!({}),
            &leader_priority,
            vec![at("", "Invalid value")],
        ),
        ("S-24", json!({}), &group, vec![at("", "Forbidden"); 2]),
    ] {
        assert_eq!(created(&with(scheduling, rest.clone())), expected, "{rule}");
    }
}

#[test]
fn adm_s_24_equal_texts_stand_once() {
    let group = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"schedulingGroup": {}}}}}});
    let old = gang(json!({}));
    let text = validate(&with(json!({}), group), Some(&old), &native()).to_string();
    assert!(
        text.starts_with("spec.scheduling: Forbidden: "),
        "one finding, no brackets: {text}"
    );
}

#[test]
fn adm_s_26_s_27_volcano_gangs_groups_only() {
    let member = |name: &str| at(&format!(".replica.{name}"), "Forbidden");
    for (scheduling, expected) in [
        (json!({}), vec![]),
        (
            json!({"replica": {"schedulingPolicy": {"gang": {}}}}),
            vec![],
        ),
        (
            json!({"schedulingPolicy": {"gang": {}}}),
            vec![at("", "Forbidden")],
        ),
        (
            json!({"replica": {"leader": {}}}),
            vec![at("", "Forbidden")],
        ),
        (
            json!({"replica": {"schedulingPolicy": {"basic": {}}}}),
            vec![member("schedulingPolicy")],
        ),
        (
            json!({"replica": {"schedulingConstraints": {"topology": []}, "disruptionMode": {"single": {}}}}),
            vec![member("schedulingConstraints"), member("disruptionMode")],
        ),
    ] {
        assert_eq!(
            create_complete(&gang(scheduling.clone()), &volcano()),
            expected,
            "{scheduling}"
        );
    }
}

#[test]
fn adm_u_6_s_7_to_s_11_s_28_updates() {
    let priority = |name: &str| json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"priorityClassName": name}}}}});
    let count = |size: i64, count: i64| {
        let size = json!({"spec": {"leaderWorkerTemplate": {"size": size}}});
        with(
            json!({"replica": {"worker": {"schedulingPolicy": {"gang": {"minCount": count}}}}}),
            size,
        )
    };
    let owner =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true}]);
    let delegated = json!({"metadata": {"annotations": {"scheduling.k8s.io/group-template-name": "t"}, "ownerReferences": owner}});
    let basic = json!({"replica": {"schedulingPolicy": {"basic": {}}}});
    let plain = spec(json!({"leaderWorkerTemplate": {"size": 3}}));
    for (rule, old, new, expected) in [
        (
            "S-7",
            gang(json!({})),
            plain.clone(),
            vec![at("", "Forbidden")],
        ),
        ("S-8", plain, gang(json!({})), vec![at("", "Forbidden")]),
        (
            "S-9",
            gang(json!({})),
            gang(json!({"schedulingPolicy": {"gang": {}}})),
            vec![at("", "Forbidden")],
        ),
        (
            "S-10",
            with(json!({}), priority("a")),
            with(json!({}), priority("b")),
            vec!["spec.leaderWorkerTemplate: Forbidden".to_owned()],
        ),
        (
            "S-11",
            gang(json!({})),
            gang(basic),
            vec![at("", "Invalid value")],
        ),
        (
            "S-11 spelling",
            gang(json!({})),
            gang(json!({"replica": {}})),
            vec![at("", "Invalid value")],
        ),
        ("S-11 count", count(3, 2), count(4, 3), vec![]),
        (
            "S-28",
            gang(json!({})),
            with(json!({}), delegated),
            vec![format!("{TEMPLATE_NAME}: Forbidden")],
        ),
    ] {
        assert_eq!(updated(&old, &new), expected, "{rule}");
    }
}
