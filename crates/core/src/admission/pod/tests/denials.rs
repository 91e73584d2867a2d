use serde_json::{Value, json};

use super::Pod;
use crate::admission::{Environment, SchedulerProvider};

fn with_tpus(pod: Pod) -> Pod {
    pod.containers(json!([{"name": "c", "resources": {"limits": {"google.com/tpu": "4"}}}]))
        .annotation("leader-requests-tpus", "true")
        .annotation("subgroup-size", "2")
}

fn without_label(pod: Pod, key: &str) -> Pod {
    pod.with(
        &format!("/metadata/labels/leaderworkerset.sigs.k8s.io~1{key}"),
        Value::Null,
    )
}

/// Every row of the table, with what the answer must tell beside the name of the pod.
#[test]
fn adm_pw_4_denials() {
    let leader = || Pod::leader("demo-0", 4);
    let worker = || Pod::worker("demo-0-1", 4);
    let excluded = with_tpus(leader()).annotation("subgroup-policy-type", "LeaderExcluded");
    for (pod, told) in [
        (
            leader().without_annotation("size"),
            "leaderworkerset.sigs.k8s.io/size is missing",
        ),
        (
            worker().annotation("size", "4.0"),
            "leaderworkerset.sigs.k8s.io/size",
        ),
        (leader().with("/metadata/name", "demo".into()), "ordinal"),
        (leader().with("/metadata/name", "".into()), "ordinal"),
        (
            worker().with("/metadata/name", "demo-0-b".into()),
            "ordinal",
        ),
        (
            worker().annotation("subgroup-size", "two"),
            "leaderworkerset.sigs.k8s.io/subgroup-size",
        ),
        (
            with_tpus(leader()).annotation("subgroup-size", "two"),
            "leaderworkerset.sigs.k8s.io/subgroup-size",
        ),
        (excluded, "leaderworkerset.sigs.k8s.io/subgroup-index"),
        (
            with_tpus(worker()).label("subgroup-index", "x"),
            "leaderworkerset.sigs.k8s.io/subgroup-index",
        ),
        (
            with_tpus(worker()).with("/metadata/name", "worker".into()),
            "ordinal",
        ),
        (
            without_label(worker(), "group-index"),
            "leaderworkerset.sigs.k8s.io/group-index",
        ),
        (
            worker().annotation("group-identity", "Hash"),
            "leaderworkerset.sigs.k8s.io/leader-address",
        ),
        (
            leader().annotation("workload-aware-scheduling", "lws"),
            "no scheduler provider is configured",
        ),
    ] {
        let name = pod.value["metadata"]["name"].to_string();
        let denied = pod.admit().unwrap_err().to_string();
        assert!(
            denied.contains(told) && denied.contains(&name),
            "{told}: {denied}"
        );
    }
    let native = Environment {
        scheduler_provider: Some(SchedulerProvider::Kubernetes),
        ..Environment::default()
    };
    let denied = leader()
        .annotation("workload-aware-scheduling", "all")
        .admit_in(&native)
        .unwrap_err();
    assert!(denied.to_string().contains("\"all\""), "{denied}");
}
