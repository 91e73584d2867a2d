//! Cases C01, C02, C03 and C05 as far as admission decides them.

use serde_json::{Value, json};

use super::{create, lws, rollout, spec, template, update, validate};
use crate::admission::Environment;

#[test]
fn c01_replica_count_out_of_range() {
    let set = |replicas: i64, size: i64| {
        spec(json!({"replicas": replicas, "leaderWorkerTemplate": {"size": size}}))
    };
    for (replicas, size, denied_at) in [
        (-1, 1, Some("spec.replicas")),
        (1_000_001, 1, Some("spec.replicas")),
        (1_000_000, 2148, Some("spec.replicas")),
        (1_000_000, 2147, None),
        (1, 0, Some("spec.leaderWorkerTemplate.size")),
        (0, 2, None),
    ] {
        let expected: Vec<_> = denied_at
            .into_iter()
            .map(|path| format!("{path}: Invalid value"))
            .collect();
        assert_eq!(create(&set(replicas, size)), expected, "{replicas} {size}");
    }
}

#[test]
fn c02_budget_that_resolves_to_zero() {
    for (row, replicas, unavailable, surge, part) in [
        (
            "a",
            2,
            json!(0),
            json!(0),
            Some("must not be 0 when `maxSurge` is 0"),
        ),
        (
            "b",
            2,
            json!("0%"),
            json!("0%"),
            Some("must not be 0 when `maxSurge` is 0"),
        ),
        (
            "c",
            2,
            json!("10%"),
            json!(0),
            Some("must not be 0 when `maxSurge` is 0"),
        ),
        ("d", 2, json!(0), json!("10%"), None),
        ("e", 0, json!(0), json!(0), None),
        ("f", 2, json!("150%"), json!(0), Some("100%")),
        ("g", 2, json!(-1), json!(1), Some("negative")),
        ("h", 2, json!("abc"), json!(1), Some("percentage")),
        ("i", 2, json!(5), json!(0), None),
    ] {
        let mut object = rollout(json!({"maxUnavailable": unavailable, "maxSurge": surge}));
        object["spec"]["replicas"] = replicas.into();
        let findings = validate(&object, None, &Environment::default());
        let text = findings.to_string();
        assert_eq!(findings.is_empty(), part.is_none(), "{row}: {text}");
        if let Some(part) = part {
            let path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable";
            assert!(text.contains(part) && text.contains(path), "{row}: {text}");
        }
    }
}

#[test]
fn c03_half_filled_subgroup_policy() {
    let none = template(json!({"size": 4}));
    let set = |policy: Value| {
        let mut object = none.clone();
        object["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = policy;
        object
    };
    let size = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize";
    let (required, invalid) = (
        format!("{size}: Required value"),
        format!("{size}: Invalid value"),
    );
    let h = set(json!({"subGroupSize": 2}));
    for (row, object, expected) in [
        ("a", set(json!({})), vec![&required]),
        ("b", set(json!({"type": "LeaderWorker"})), vec![&required]),
        ("c", set(json!({"subGroupSize": 0})), vec![&invalid]),
        ("d", set(json!({"subGroupSize": -2})), vec![&invalid]),
        ("e", set(json!({"subGroupSize": 3})), vec![]),
        (
            "f",
            set(json!({"subGroupSize": 5})),
            vec![&invalid, &invalid],
        ),
        (
            "g",
            set(json!({"subGroupSize": 4, "subGroupPolicyType": "LeaderExcluded"})),
            vec![&invalid],
        ),
        ("h", h.clone(), vec![]),
    ] {
        assert_eq!(
            create(&object),
            expected.into_iter().cloned().collect::<Vec<_>>(),
            "{row}"
        );
    }
    for (row, old, new) in [
        ("i", &none, &h),
        ("j", &h, &set(json!({"subGroupSize": 4}))),
        ("k", &h, &none),
    ] {
        assert_eq!(update(old, new), [invalid.as_str()], "{row}");
    }
    let key = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
    let l = lws(json!({"metadata": {"annotations": {key: "rack"}}}));
    assert_eq!(
        create(&l),
        [format!("metadata.annotations.{key}: Invalid value")],
        "l"
    );
}

#[test]
fn c05_long_names() {
    let named = |name: String| {
        let mut object = template(json!({"size": 2}));
        object["metadata"]["name"] = name.into();
        validate(&object, None, &Environment::default())
    };
    let fits = named("n".repeat(50));
    assert!(fits.is_empty() && fits.warnings().is_empty());
    let warned = named("n".repeat(60));
    assert!(warned.is_empty() && warned.warnings().len() == 1);
    for name in ["n".repeat(64), "1demo".to_owned(), "de.mo".to_owned()] {
        assert!(
            named(name.clone())
                .to_string()
                .starts_with("metadata.name: Invalid value"),
            "{name}"
        );
    }
}
