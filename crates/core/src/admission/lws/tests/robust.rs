//! Whatever is stored or sent: no panic (admission.md section 9).

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{default, native, validate};
use crate::admission::lws::mutate;

/// Names that rules read, so that arbitrary objects reach them.
const NAMES: &str = "metadata|spec|replicas|leaderWorkerTemplate|size|subGroupPolicy|subGroupSize|restartBackoff|baseSeconds|\
                     rolloutStrategy|rollingUpdateConfiguration|maxUnavailable|maxSurge|networkConfig|scheduling|replica|\
                     worker|leader|schedulingPolicy|gang|minCount|resourceClaims|name|annotations|groupIdentity|labels";

fn any_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9]{1,20}%?|Hash|.{0,6}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Value::from),
            4 => btree_map(NAMES, inner, 0..6).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    });
    (tree.clone(), tree)
        .prop_map(|(metadata, spec)| serde_json::json!({"metadata": metadata, "spec": spec}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn adm_adm_6_any_object_gets_one_answer(new in any_object(), old in proptest::option::of(any_object())) {
        let findings = validate(&new, old.as_ref(), &native());
        prop_assert_eq!(findings.to_string(), validate(&new, old.as_ref(), &native()).to_string());
    }

    #[test]
    fn adm_adm_2_kue_usr_3_defaulting_settles_at_once(object in any_object()) {
        let mut complete = object.clone();
        default(&mut complete);
        if let Some(patch) = mutate(&object) {
            let mut patched = object.clone();
            json_patch::patch(&mut patched, &patch).unwrap();
            prop_assert_eq!(&patched, &complete);
        }
        prop_assert_eq!(mutate(&complete), None);
    }
}
