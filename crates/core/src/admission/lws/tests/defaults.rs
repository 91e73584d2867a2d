use serde_json::{Value, json};

use super::default;
use crate::admission::lws::mutate;

fn defaulted(spec: Value) -> Value {
    let mut object = json!({"spec": spec});
    default(&mut object);
    object["spec"].take()
}

/// (rule, pointer, member before, member after).
#[test]
fn adm_d_1_to_d_10_each_default() {
    let template = |member: Value| json!({"leaderWorkerTemplate": member});
    let rollout = json!({"partition": 0, "maxUnavailable": 1, "maxSurge": 0});
    for (rule, before, pointer, after) in [
        ("D-1", json!({}), "/replicas", json!(1)),
        ("D-1 keeps", json!({"replicas": 0}), "/replicas", json!(0)),
        (
            "D-2",
            template(json!({})),
            "/leaderWorkerTemplate/restartPolicy",
            json!("RecreateGroupOnPodRestart"),
        ),
        (
            "D-2 empty",
            template(json!({"restartPolicy": ""})),
            "/leaderWorkerTemplate/restartPolicy",
            json!("RecreateGroupOnPodRestart"),
        ),
        (
            "D-3",
            template(json!({"restartBackoff": {}})),
            "/leaderWorkerTemplate/restartBackoff",
            json!({"baseSeconds": 10, "capSeconds": 300}),
        ),
        (
            "D-3 partial",
            template(json!({"restartBackoff": {"baseSeconds": 20}})),
            "/leaderWorkerTemplate/restartBackoff",
            json!({"baseSeconds": 20, "capSeconds": 300}),
        ),
        (
            "D-3 absent",
            template(json!({})),
            "/leaderWorkerTemplate/restartBackoff",
            Value::Null,
        ),
        ("D-4", json!({}), "/groupIdentity", json!("Ordinal")),
        (
            "D-5",
            json!({"groupReplacementPolicy": ""}),
            "/groupReplacementPolicy",
            json!("PostTermination"),
        ),
        ("D-6", json!({}), "/podTerminationPolicy", json!("Default")),
        (
            "D-6 keeps",
            json!({"podTerminationPolicy": "Parallel"}),
            "/podTerminationPolicy",
            json!("Parallel"),
        ),
        (
            "D-7",
            template(json!({"restartPolicy": "Default"})),
            "/leaderWorkerTemplate/restartPolicy",
            json!("None"),
        ),
        (
            "D-8",
            json!({}),
            "/rolloutStrategy/type",
            json!("RollingUpdate"),
        ),
        (
            "D-9",
            json!({"rolloutStrategy": {}}),
            "/rolloutStrategy",
            json!({"type": "RollingUpdate", "rollingUpdateConfiguration": rollout}),
        ),
        (
            "D-9 partial",
            json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 2}}}),
            "/rolloutStrategy/rollingUpdateConfiguration",
            json!({"maxSurge": 2}),
        ),
        (
            "D-9 other",
            json!({"rolloutStrategy": {"type": "Other"}}),
            "/rolloutStrategy",
            json!({"type": "Other"}),
        ),
        (
            "D-10",
            json!({}),
            "/networkConfig",
            json!({"subdomainPolicy": "Shared"}),
        ),
        (
            "D-10 empty",
            json!({"networkConfig": {}}),
            "/networkConfig/subdomainPolicy",
            json!("Shared"),
        ),
        (
            "D-10 null",
            json!({"networkConfig": {"subdomainPolicy": null}}),
            "/networkConfig/subdomainPolicy",
            json!("Shared"),
        ),
        (
            "D-10 keeps",
            json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}),
            "/networkConfig/subdomainPolicy",
            json!("UniquePerReplica"),
        ),
    ] {
        let found = defaulted(before)
            .pointer(pointer)
            .cloned()
            .unwrap_or_default();
        assert_eq!(found, after, "{rule}");
    }
}

#[test]
fn kue_kq_10_nothing_else_is_created() {
    let spec = defaulted(json!({"leaderWorkerTemplate": {"size": 2}}));
    for absent in [
        "scheduling",
        "leaderWorkerTemplate/leaderTemplate",
        "leaderWorkerTemplate/subGroupPolicy",
        "leaderWorkerTemplate/maxGroupRestarts",
        "startupPolicy",
    ] {
        assert_eq!(spec.pointer(&format!("/{absent}")), None, "{absent}");
    }
}

#[test]
fn adm_d_1_object_without_spec_gets_one_that_the_schema_refuses() {
    let mut object = json!({"metadata": {"name": "demo"}});
    default(&mut object);
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object.pointer("/spec/leaderWorkerTemplate"), None);
}

#[test]
fn adm_adm_2_patch_of_the_changed_paths_only() {
    let object = json!({"spec": {"future": {"kept": 1}, "networkConfig": {"subdomainPolicy": "Shared"}, "leaderWorkerTemplate": {"size": 2}}});
    let patch = mutate(&object).unwrap();
    let mut paths: Vec<_> = patch
        .iter()
        .map(|operation| operation.path().to_string())
        .collect();
    paths.sort();
    let expected = [
        "/spec/groupIdentity",
        "/spec/groupReplacementPolicy",
        "/spec/leaderWorkerTemplate/restartPolicy",
        "/spec/podTerminationPolicy",
        "/spec/replicas",
        "/spec/rolloutStrategy",
    ];
    assert_eq!(paths, expected);
    let mut complete = object;
    json_patch::patch(&mut complete, &patch).unwrap();
    assert_eq!(mutate(&complete), None);
}
