use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn spec(roles: Value) -> DisaggregatedSetSpec {
    serde_json::from_value(json!({ "roles": roles })).unwrap()
}

/// What is wanted of the first role and its leaves, with these scalers.
fn first(role: Value, scalers: &[(&str, i32)]) -> (Option<u64>, Vec<(String, Option<u64>)>) {
    let scalers: BTreeMap<&str, i32> = scalers.iter().copied().collect();
    let spec = spec(json!([role]));
    let mut wanted = wanted(&spec, |leaf| scalers.get(&*leaf.to_string()).copied());
    let role = wanted.remove(0);
    let leaves = role.leaves.iter();
    let leaves = leaves.map(|leaf| (leaf.key.to_string(), leaf.replicas));
    (role.replicas, leaves.collect())
}

#[test]
fn dsr_scl_8_wanted_groups_of_a_role() {
    let external = json!({"name": "r", "scaling": {"mode": "External"}, "spec": {"replicas": 3}});
    for (role, scalers, expected) in [
        (json!({"name": "r", "spec": {}}), vec![], Some(1)),
        (
            json!({"name": "r", "spec": {"replicas": 4}}),
            vec![],
            Some(4),
        ),
        (external.clone(), vec![("r", 0)], Some(0)),
        (external.clone(), vec![("r", 7)], Some(7)),
        (external.clone(), vec![], None),
        (external, vec![("r", -1)], None),
        (json!({"name": "r", "spec": {"replicas": -1}}), vec![], None),
    ] {
        assert_eq!(
            first(role.clone(), &scalers),
            (expected, vec![("r".to_owned(), expected)]),
            "{role}"
        );
    }
}

#[test]
fn dsr_scl_8_wanted_groups_of_a_partitioned_role() {
    let role = json!({"name": "m", "spec": {"replicas": 9}, "subRoles": [
        {"name": "r", "scaling": {"mode": "External"}}, {"name": "default"}, {"name": "paused", "replicas": 0},
    ]});
    let leaves = |scaled| {
        vec![
            ("m/r".to_owned(), scaled),
            ("m/default".to_owned(), Some(1)),
            ("m/paused".to_owned(), Some(0)),
        ]
    };
    assert_eq!(
        first(role.clone(), &[("m/r", 7)]),
        (Some(8), leaves(Some(7)))
    );
    assert_eq!(first(role.clone(), &[("m", 7)]), (None, leaves(None)));
    let most = u64::from(i32::MAX.unsigned_abs());
    assert_eq!(
        first(role, &[("m/r", i32::MAX)]),
        (None, leaves(Some(most)))
    );
}

#[test]
fn dsr_scl_9_one_unresolved_role_leaves_all_targets_open() {
    let spec = spec(json!([
        {"name": "a", "spec": {"replicas": 2}},
        {"name": "b", "scaling": {"mode": "External"}, "spec": {}},
    ]));
    let open = wanted(&spec, |_| None);
    assert_eq!(unresolved(&open), ["b".into()]);
    assert_eq!(targets(&spec, &open), None);
    let known = wanted(&spec, |_| Some(3));
    assert_eq!(unresolved(&known), []);
    let targets = targets(&spec, &known).unwrap();
    let replicas: Vec<u64> = targets.iter().map(|role| role.replicas).collect();
    assert_eq!(replicas, [2, 3]);
}

#[test]
fn dsr_scl_1_scalers_belong_to_external_leaves() {
    let spec = spec(json!([
        {"name": "a", "spec": {}},
        {"name": "b", "scaling": {"mode": "External"}, "spec": {}},
        {"name": "c", "spec": {}, "subRoles": [{"name": "x"}, {"name": "y", "scaling": {"mode": "External"}}]},
    ]));
    let keys: Vec<String> = external_leaves(&spec)
        .iter()
        .map(LeafKey::to_string)
        .collect();
    assert_eq!(keys, ["b", "c/y"]);
}

#[test]
fn ds_api_4_effective_budget() {
    let both = |surge: Value, unavailable: Value| json!({"maxSurge": surge, "maxUnavailable": unavailable});
    for (limits, desired, expected) in [
        (Value::Null, 4, (0, 1)),
        (json!({}), 4, (0, 1)),
        (both(json!(1), json!(0)), 4, (1, 0)),
        (both(json!("25%"), json!("25%")), 4, (1, 1)),
        (both(json!("25%"), json!("25%")), 2, (1, 0)),
        (both(json!("25%"), json!("25%")), 10, (3, 2)),
        (both(json!("0%"), json!("10%")), 5, (1, 0)),
        (both(json!("50%"), json!(0)), 0, (1, 0)),
        (both(json!("many"), json!(-3)), 4, (1, 0)),
    ] {
        let spec = json!({"rolloutStrategy": {"rollingUpdateConfiguration": limits}});
        let spec: LeaderWorkerSetSpec = serde_json::from_value(spec).unwrap();
        let Budget { surge, unavailable } = Budget::of(Some(&spec), desired);
        assert_eq!((surge, unavailable), expected, "{limits} of {desired}");
    }
    let Budget { surge, unavailable } = Budget::of(None, 4);
    assert_eq!((surge, unavailable), (0, 1));
}

#[test]
fn dsr_srl_2_each_sub_role_has_the_budget_of_its_role_for_its_own_size() {
    let spec = spec(
        json!([{"name": "m", "subRoles": [{"name": "x", "replicas": 10}, {"name": "y", "replicas": 2}],
        "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": "25%", "maxUnavailable": "25%"}}}}]),
    );
    let targets = targets(&spec, &wanted(&spec, |_| None)).unwrap();
    let budgets: Vec<(u64, u64)> = targets[0]
        .leaves
        .iter()
        .map(|leaf| (leaf.budget.surge, leaf.budget.unavailable))
        .collect();
    assert_eq!(budgets, [(3, 2), (1, 0)]);
}
