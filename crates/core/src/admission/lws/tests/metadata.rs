use serde_json::{Value, json};

use super::{create, lws, validate};
use crate::admission::Environment;

fn with(metadata: Value) -> Value {
    lws(json!({"metadata": metadata}))
}

#[test]
fn adm_v_1_names() {
    let long = "n".repeat(64);
    let name = "metadata.name: Invalid value";
    let generate = "metadata.generateName: Invalid value";
    for (metadata, expected) in [
        (json!({"name": "2cube"}), vec![name]),
        (json!({"name": "de.mo"}), vec![name]),
        (json!({"name": long}), vec![name]),
        (json!({"name": null, "generateName": "demo-"}), vec![]),
        (
            json!({"name": null, "generateName": "1demo-"}),
            vec![generate],
        ),
        (json!({"name": null, "generateName": "-"}), vec![generate]),
        (json!({"name": null}), vec!["metadata.name: Required value"]),
        (
            json!({"namespace": null}),
            vec!["metadata.namespace: Required value"],
        ),
    ] {
        assert_eq!(create(&with(metadata.clone())), expected, "{metadata}");
    }
}

#[test]
fn adm_v_1_other_metadata() {
    let owner = |controller: bool| json!({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": controller});
    for (metadata, expected) in [
        (
            json!({"labels": {"a b": "x", "c": "y z"}}),
            vec!["metadata.labels: Invalid value"; 2],
        ),
        (
            json!({"annotations": {"a b": "any text", "Upper.io/c": "d"}}),
            vec!["metadata.annotations: Invalid value"],
        ),
        (
            json!({"annotations": {"a": "x".repeat(262_144)}}),
            vec!["metadata.annotations: Invalid value"],
        ),
        (
            json!({"finalizers": ["a/b", "a b"]}),
            vec!["metadata.finalizers[1]: Invalid value"],
        ),
        (
            json!({"ownerReferences": [owner(true), owner(false)]}),
            vec![],
        ),
        (
            json!({"ownerReferences": [owner(true), owner(true)]}),
            vec!["metadata.ownerReferences: Invalid value"],
        ),
        (
            json!({"ownerReferences": [{"kind": "Pod", "apiVersion": "v1", "name": "x"}]}),
            vec!["metadata.ownerReferences[0].uid: Required value"],
        ),
    ] {
        assert_eq!(
            create(&with(metadata.clone())),
            expected,
            "{}",
            metadata.to_string().get(..60).unwrap_or_default()
        );
    }
}

/// API-32: (length of the name, replicas, size, maxSurge, permitted length if too long).
#[test]
fn adm_adm_8_lws_api_32_long_names_get_a_warning() {
    for (length, replicas, size, surge, permitted) in [
        (50, 1, 2, json!(0), None),
        (51, 1, 2, json!(0), Some("50")),
        (51, 3, 2, json!(0), Some("50")),
        (50, 10, 2, json!(0), None),
        (50, 10, 2, json!(1), Some("49")),
        (50, 6, 2, json!("100%"), Some("49")),
        (50, 5, 2, json!(100), None),
        (50, 11, 2, json!(0), Some("49")),
        (50, 0, 2, json!(0), None),
        (52, 1000, 1, json!(0), None),
        (53, 1, 1, json!(0), Some("52")),
    ] {
        let object = lws(json!({
            "metadata": {"name": "n".repeat(length)},
            "spec": {
                "replicas": replicas,
                "leaderWorkerTemplate": {"size": size},
                "rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": surge}},
            },
        }));
        let findings = validate(&object, None, &Environment::default());
        assert!(findings.is_empty());
        let case = format!(
            "{length} {replicas} {size} {surge}: {:?}",
            findings.warnings()
        );
        match (findings.warnings(), permitted) {
            ([], None) => {}
            ([warning], Some(permitted)) => assert!(warning.ends_with(permitted), "{case}"),
            _ => panic!("{case}"),
        }
    }
}
