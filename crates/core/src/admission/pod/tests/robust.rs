//! Whatever is sent: no panic, and a patch that applies (admission.md section 9).

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PREFIX, Request, mutate};
use crate::admission::{Environment, SchedulerProvider};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from("0")),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z/~]{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn scalar_or_junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop_oneof!["-?[0-9]{1,19}", "demo-0(-[0-9]{1,10})?", Just("Hash".to_owned()), Just("role".to_owned())].prop_map(Value::from),
        1 => any_json(),
    ]
}

/// An object in which each of the members may be there, with any content.
fn members(names: &'static [&'static str], prefix: &'static str) -> impl Strategy<Value = Value> {
    vec(proptest::option::of(scalar_or_junk()), names.len()).prop_map(move |values| {
        let present = names
            .iter()
            .zip(values)
            .filter_map(|(name, value)| Some((format!("{prefix}{name}"), value?)));
        Value::Object(present.collect())
    })
}

const LABELS: &[&str] = &[
    "name",
    "worker-index",
    "group-index",
    "group-key",
    "subgroup-index",
];
const ANNOTATIONS: &[&str] = &[
    "size",
    "group-identity",
    "subdomainPolicy",
    "exclusive-topology",
    "subgroup-size",
    "subgroup-policy-type",
    "subgroup-exclusive-topology",
    "leader-name",
    "leader-address",
    "leader-requests-tpus",
    "workload-aware-scheduling",
    "workload-name",
];

fn any_pod() -> impl Strategy<Value = Value> {
    let containers = prop_oneof![
        any_json(),
        vec(any_json(), 0..3).prop_map(|env| {
            json!([{"env": env, "resources": {"limits": {"google.com/tpu": "1"}}}, {"env": [{"name": "A"}, {"name": "A"}]}])
        }),
    ];
    let affinity = prop_oneof![
        any_json(),
        any_json().prop_map(|terms| json!({"podAffinity": terms}))
    ];
    let parts = (
        members(LABELS, PREFIX),
        members(ANNOTATIONS, PREFIX),
        scalar_or_junk(),
        containers,
        affinity,
        any_json(),
    );
    parts.prop_map(|(labels, annotations, name, containers, affinity, gates)| {
        json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"containers": containers, "affinity": affinity, "schedulingGates": gates, "hostname": name},
        })
    })
}

fn any_environment() -> impl Strategy<Value = Environment> {
    let provider = prop_oneof![
        Just(None),
        Just(Some(SchedulerProvider::Kubernetes)),
        Just(Some(SchedulerProvider::Volcano)),
    ];
    provider.prop_map(|scheduler_provider| Environment {
        scheduler_provider,
        ..Environment::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn adm_any_json_is_answered(pod in any_json(), environment in any_environment(), random in any::<u128>()) {
        let request = Request { pod: &pod, namespace: "default", random };
        prop_assert_eq!(mutate(&request, &environment), Ok(None));
    }

    #[test]
    fn adm_any_pod_is_denied_or_gets_a_patch_that_applies(
        pod in any_pod(),
        environment in any_environment(),
        random in any::<u128>(),
    ) {
        let request = Request { pod: &pod, namespace: "default", random };
        if let Ok(Some(patch)) = mutate(&request, &environment) {
            let mut patched = pod.clone();
            json_patch::patch(&mut patched, &patch).unwrap();
            prop_assert_ne!(patched, pod);
        }
    }
}
