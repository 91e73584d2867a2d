use serde_json::{Value, json};

use super::{Admitted, Pod};
use crate::identity::{group_key, subgroup_key};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn pair(topology: &str, key: &str, value: &str) -> (Value, Value) {
    let key = format!("leaderworkerset.sigs.k8s.io/{key}");
    let term = |expressions: Value| json!({"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}});
    let together = term(json!([{"key": key, "operator": "In", "values": [value]}]));
    let apart = term(
        json!([{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": [value]}]),
    );
    (together, apart)
}

fn terms(pod: &Admitted, kind: &str) -> Vec<Value> {
    let terms = pod
        .value
        .pointer(&format!("/spec/affinity/{kind}/{REQUIRED}"));
    terms.and_then(Value::as_array).cloned().unwrap_or_default()
}

#[test]
fn pod_ex_1_ex_2_leader_gets_both_terms() {
    let pod = Pod::leader("demo-0", 2)
        .annotation("exclusive-topology", "rack")
        .admit()
        .unwrap();
    let (together, apart) = pair("rack", "group-key", &group_key("default", "demo-0"));
    let expected = json!({
        "podAffinity": {REQUIRED: [together]},
        "podAntiAffinity": {REQUIRED: [apart]},
    });
    assert_eq!(pod.value["spec"]["affinity"], expected);
}

/// EX-5: whatever the user already has stays, and blocks our terms only if both kinds name the topology.
#[test]
fn pod_ex_5_user_terms_stay() {
    let user = |topology: &str| json!({"topologyKey": topology, "labelSelector": {"matchLabels": {"a": "b"}}});
    for (affinity, together, apart) in [
        (json!({}), 1, 1),
        (json!({"nodeAffinity": {"x": 1}}), 1, 1),
        (json!({"podAffinity": {REQUIRED: [user("rack")]}}), 2, 1),
        (json!({"podAntiAffinity": {REQUIRED: [user("rack")]}}), 1, 2),
        (
            json!({"podAffinity": {REQUIRED: [user("rack")]}, "podAntiAffinity": {REQUIRED: [user("zone")]}}),
            2,
            2,
        ),
        (
            json!({"podAffinity": {"preferred": []}, "podAntiAffinity": {REQUIRED: []}}),
            1,
            1,
        ),
        (
            json!({"podAffinity": {REQUIRED: [user("rack")]}, "podAntiAffinity": {REQUIRED: [user("rack")]}}),
            1,
            1,
        ),
    ] {
        let pod = Pod::leader("demo-0", 2)
            .annotation("exclusive-topology", "rack")
            .with("/spec/affinity", affinity.clone());
        let pod = pod.admit().unwrap();
        let found = (
            terms(&pod, "podAffinity").len(),
            terms(&pod, "podAntiAffinity").len(),
        );
        assert_eq!(found, (together, apart), "{affinity}");
        for member in ["nodeAffinity", "podAffinity/preferred"] {
            assert_eq!(
                pod.value.pointer(&format!("/spec/affinity/{member}")),
                affinity.pointer(&format!("/{member}"))
            );
        }
    }
}

#[test]
fn pod_ex_3_group_term_first_and_only_on_leaders() {
    let both = |pod: Pod| {
        let pod = pod
            .annotation("exclusive-topology", "rack")
            .annotation("subgroup-size", "2");
        pod.annotation("subgroup-exclusive-topology", "host")
            .admit()
            .unwrap()
    };
    let group = pair("rack", "group-key", &group_key("default", "demo-0"));
    let first = pair("host", "subgroup-key", &subgroup_key("demo-0", "0"));
    let leader = both(Pod::leader("demo-0", 4));
    assert_eq!(terms(&leader, "podAffinity"), [group.0, first.0]);
    assert_eq!(terms(&leader, "podAntiAffinity"), [group.1, first.1]);

    let second = pair("host", "subgroup-key", &subgroup_key("demo-0", "1"));
    let worker = both(Pod::worker("demo-0-3", 4));
    assert_eq!(terms(&worker, "podAffinity"), [second.0]);
    assert_eq!(terms(&worker, "podAntiAffinity"), [second.1]);
}

#[test]
fn pod_ex_4_excluded_leader_has_no_subgroup_terms() {
    let excluded = |pod: Pod| {
        let pod = pod
            .annotation("subgroup-size", "2")
            .annotation("subgroup-policy-type", "LeaderExcluded")
            .annotation("subgroup-exclusive-topology", "host");
        pod.admit().unwrap()
    };
    let leader = excluded(Pod::leader("demo-0", 5));
    assert_eq!(leader.value.pointer("/spec/affinity"), None);
    for (worker, subgroup) in [("demo-0-1", "0"), ("demo-0-2", "0"), ("demo-0-3", "1")] {
        let worker = excluded(Pod::worker(worker, 5));
        let (together, apart) = pair("host", "subgroup-key", &subgroup_key("demo-0", subgroup));
        assert_eq!(terms(&worker, "podAffinity"), [together]);
        assert_eq!(terms(&worker, "podAntiAffinity"), [apart]);
    }
}

#[test]
fn pod_ex_6_empty_annotation_counts_as_absent() {
    let pod = Pod::leader("demo-0", 2)
        .annotation("exclusive-topology", "")
        .admit()
        .unwrap();
    assert_eq!(pod.value.pointer("/spec/affinity"), None);
}
