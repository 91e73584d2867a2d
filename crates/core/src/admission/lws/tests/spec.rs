use lws_api::names::annotation;
use serde_json::{Value, json};

use super::{create, create_complete, lws, rollout, spec, template};
use crate::admission::Environment;
use crate::admission::fixture::native;

const TEMPLATE: &str = "spec.leaderWorkerTemplate";
const UNAVAILABLE: &str =
    "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable: Invalid value";
const SURGE: &str = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge: Invalid value";
const SUBGROUP: &str = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value";

fn subgroups(size: i64, policy: Value) -> Value {
    template(json!({"size": size, "subGroupPolicy": policy}))
}

#[test]
fn adm_v_2_v_3_v_4_replicas_and_size() {
    let sized = |replicas: i64, size: i64| {
        spec(json!({"replicas": replicas, "leaderWorkerTemplate": {"size": size}}))
    };
    for (replicas, size, expected) in [
        (-1, 1, vec!["spec.replicas: Invalid value"]),
        (1_000_001, 1, vec!["spec.replicas: Invalid value"]),
        (2, -1, vec!["spec.leaderWorkerTemplate.size: Invalid value"]),
        (1, 0, vec!["spec.leaderWorkerTemplate.size: Invalid value"]),
        (100_000, 1_000_000, vec!["spec.replicas: Invalid value"]),
        (1_000_000, 2148, vec!["spec.replicas: Invalid value"]),
        (1_000_000, 2147, vec![]),
        (0, 2, vec![]),
        (i64::MAX, i64::MAX, vec!["spec.replicas: Invalid value"; 2]),
    ] {
        assert_eq!(
            create(&sized(replicas, size)),
            expected,
            "{replicas} * {size}"
        );
    }
    let object = sized(1_000_000, 2148);
    let text = crate::admission::lws::validate(&object, None, &Environment::default()).to_string();
    assert!(
        text.contains("2148000000") && text.contains("2147483647"),
        "{text}"
    );
}

#[test]
fn adm_v_5_v_6_v_7_v_8_rollout_budget() {
    for (configuration, expected) in [
        (
            json!({"maxUnavailable": "200%", "maxSurge": 0}),
            vec![UNAVAILABLE],
        ),
        (
            json!({"maxUnavailable": -1, "maxSurge": 0}),
            vec![UNAVAILABLE],
        ),
        (
            json!({"maxUnavailable": 1, "maxSurge": "200%"}),
            vec![SURGE],
        ),
        (json!({"maxUnavailable": 1, "maxSurge": -1}), vec![SURGE]),
        (
            json!({"maxUnavailable": "5", "maxSurge": 1}),
            vec![UNAVAILABLE, UNAVAILABLE],
        ),
        (
            json!({"maxUnavailable": 1, "maxSurge": "abc"}),
            vec![SURGE, SURGE],
        ),
        (
            json!({"maxUnavailable": 0, "maxSurge": 0}),
            vec![UNAVAILABLE],
        ),
        (json!({"maxUnavailable": 0, "maxSurge": 1}), vec![]),
        (
            json!({"maxUnavailable": "25%", "maxSurge": 0}),
            vec![UNAVAILABLE],
        ),
        (json!({"maxUnavailable": "100%", "maxSurge": 0}), vec![]),
        (
            json!({"maxUnavailable": "101%", "maxSurge": 0}),
            vec![UNAVAILABLE],
        ),
        (json!({"maxUnavailable": 10, "maxSurge": 0}), vec![]),
        (json!({"maxUnavailable": 1, "maxSurge": 10}), vec![]),
        (
            json!({"partition": -1}),
            vec!["spec.rolloutStrategy.rollingUpdateConfiguration.partition: Invalid value"],
        ),
        (json!({"partition": 5}), vec![]),
    ] {
        assert_eq!(
            create(&rollout(configuration.clone())),
            expected,
            "{configuration}"
        );
    }
    let mut nothing_to_roll = rollout(json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
    nothing_to_roll["spec"]["replicas"] = 0.into();
    assert!(create(&nothing_to_roll).is_empty());
}

#[test]
fn adm_v_9_v_10_subgroups() {
    let required = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Required value";
    let excluded =
        |size: i64| json!({"subGroupSize": size, "subGroupPolicyType": "LeaderExcluded"});
    for (size, policy, expected) in [
        (2, json!({"subGroupSize": -1}), vec![SUBGROUP]),
        (2, json!({"subGroupSize": 3}), vec![SUBGROUP, SUBGROUP]),
        (2, json!({"subGroupSize": 0}), vec![SUBGROUP]),
        (
            2,
            json!({"subGroupPolicyType": "LeaderWorker"}),
            vec![required],
        ),
        (4, excluded(2), vec![SUBGROUP]),
        (5, excluded(2), vec![]),
        (5, json!({"subGroupSize": 2}), vec![]),
        (1, json!({"subGroupSize": 5}), vec![SUBGROUP]),
    ] {
        assert_eq!(
            create(&subgroups(size, policy.clone())),
            expected,
            "{size} {policy}"
        );
    }
    let mut empty = template(json!({"size": 2}));
    empty["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = json!({});
    assert_eq!(create(&empty), [required]);
}

#[test]
fn adm_v_11_subgroup_topology_needs_a_policy() {
    let key = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
    let annotated = |policy: Value| {
        let policy = json!({"leaderWorkerTemplate": {"size": 4, "subGroupPolicy": policy}});
        lws(json!({"metadata": {"annotations": {key: ""}}, "spec": policy}))
    };
    assert_eq!(
        create(&annotated(Value::Null)),
        [format!("metadata.annotations.{key}: Invalid value")]
    );
    assert!(create(&annotated(json!({"subGroupSize": 2}))).is_empty());
}

#[test]
fn adm_v_12_v_13_restarts() {
    let (base, cap) = (
        format!("{TEMPLATE}.restartBackoff.baseSeconds: Invalid value"),
        format!("{TEMPLATE}.restartBackoff.capSeconds: Invalid value"),
    );
    let (budget, backoff) = (
        format!("{TEMPLATE}.maxGroupRestarts: Invalid value"),
        format!("{TEMPLATE}.restartBackoff: Invalid value"),
    );
    let with_backoff = |backoff: Value| json!({"restartBackoff": backoff});
    for (members, expected) in [
        (
            json!({"maxGroupRestarts": 3, "restartPolicy": "RecreateGroupOnPodRestart"}),
            vec![],
        ),
        (
            json!({"maxGroupRestarts": 0, "restartPolicy": "RecreateGroupAfterStart"}),
            vec![],
        ),
        (
            json!({"maxGroupRestarts": 1, "restartPolicy": "None"}),
            vec![&budget],
        ),
        (
            json!({"maxGroupRestarts": 1, "restartPolicy": "Default"}),
            vec![&budget],
        ),
        (
            json!({"restartBackoff": {"baseSeconds": 10, "capSeconds": 300}, "restartPolicy": "None"}),
            vec![&backoff],
        ),
        (
            with_backoff(json!({"baseSeconds": 0, "capSeconds": 300})),
            vec![&base],
        ),
        (
            with_backoff(json!({"baseSeconds": 10, "capSeconds": -1})),
            vec![&cap, &base],
        ),
        (
            with_backoff(json!({"baseSeconds": 600, "capSeconds": 300})),
            vec![&base],
        ),
        (with_backoff(json!({"capSeconds": 5})), vec![&base]),
        (with_backoff(json!({"baseSeconds": 600})), vec![&base]),
        (with_backoff(json!({"baseSeconds": 20})), vec![]),
        (with_backoff(json!({"capSeconds": 60})), vec![]),
        (with_backoff(json!({})), vec![]),
    ] {
        assert_eq!(
            create(&template(members.clone())),
            expected.into_iter().cloned().collect::<Vec<_>>(),
            "{members}"
        );
    }
}

#[test]
fn adm_v_12_v_13_texts() {
    let text = |members: Value| {
        let object = template(members);
        crate::admission::lws::validate(&object, None, &Environment::default()).to_string()
    };
    let recreates = "only supported when restartPolicy recreates the group";
    for (members, expected) in [
        (
            json!({"maxGroupRestarts": 1, "restartPolicy": "None"}),
            format!("1: maxGroupRestarts is {recreates}"),
        ),
        (
            json!({"restartBackoff": {}, "restartPolicy": "None"}),
            format!(": restartBackoff is {recreates}"),
        ),
        (
            json!({"restartBackoff": {"baseSeconds": 0}}),
            "0: must be greater than 0".to_owned(),
        ),
        (
            json!({"restartBackoff": {"capSeconds": 5}}),
            "10: baseSeconds must not be greater than capSeconds".to_owned(),
        ),
    ] {
        let found = text(members.clone());
        assert!(found.ends_with(&expected), "{members}: {found}");
    }
}

#[test]
fn adm_v_14_v_15_v_16_v_17_identity() {
    let hash = |rest: Value| {
        let mut object = spec(json!({"groupIdentity": "Hash"}));
        json_patch::merge(&mut object, &json!({"spec": rest}));
        object
    };
    let named = |length: usize, size: i64| {
        let mut object = hash(json!({"leaderWorkerTemplate": {"size": size}}));
        object["metadata"]["name"] = "n".repeat(length).into();
        object
    };
    let identity = "spec.groupIdentity: Invalid value";
    let partition = json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}});
    let claims =
        json!({"leaderWorkerTemplate": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    for (rule, object, expected) in [
        (
            "V-14",
            spec(json!({"groupReplacementPolicy": "Immediate"})),
            vec!["spec.groupReplacementPolicy: Invalid value"],
        ),
        (
            "V-14 Hash",
            hash(json!({"groupReplacementPolicy": "Immediate"})),
            vec![],
        ),
        ("V-15 partition", hash(partition), vec![identity]),
        ("V-15 claims", hash(claims), vec![identity]),
        (
            "V-15 accepts",
            hash(
                json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}, "leaderWorkerTemplate": {"maxGroupRestarts": 1, "size": 4, "subGroupPolicy": {"subGroupSize": 2}}}),
            ),
            vec![],
        ),
        ("V-16", named(44, 2), vec!["metadata.name: Invalid value"]),
        ("V-16 fits", named(43, 2), vec![]),
        ("V-16 size 1", named(54, 1), vec![]),
        (
            "V-16 size 1 long",
            named(55, 1),
            vec!["metadata.name: Invalid value"],
        ),
        (
            "V-17",
            spec(json!({"podTerminationPolicy": "Other"})),
            vec!["spec.podTerminationPolicy: Unsupported value"],
        ),
        (
            "V-17 Parallel",
            spec(json!({"podTerminationPolicy": "Parallel"})),
            vec![],
        ),
    ] {
        assert_eq!(
            create_complete(&object, &Environment::default()),
            expected,
            "{rule}"
        );
    }
}

#[test]
fn adm_unavailable_the_workload_of_an_ancestor_is_refused_on_creation() {
    let mut object = spec(json!({"scheduling": {}}));
    assert!(create_complete(&object, &native()).is_empty());
    object["metadata"]["ownerReferences"] = json!([{"controller": true}]);
    object["metadata"]["annotations"] = json!({annotation::GROUP_TEMPLATE_NAME: "t"});
    let text = crate::admission::lws::validate(&object, None, &native()).to_string();
    assert!(
        text.contains("not available in this version of lws"),
        "{text}"
    );
    assert_eq!(create(&spec(json!({"groupIdentity": "Hash"}))), [""; 0]);
}
