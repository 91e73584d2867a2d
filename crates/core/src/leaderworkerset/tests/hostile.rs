//! Whatever is stored, a plan and its report come out.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::fixture::{demo_with, leader, pass, running};
use crate::model::Meta;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,20}",
        "-?[0-9]{1,22}",
        Just(String::new()),
        Just(r#"{"a/9":1,"b":-1}"#.to_owned())
    ]
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -2..6_i32, Just(i32::MAX), Just(i32::MIN)]
}

proptest! {
    #[test]
    fn ord_22_any_stored_objects_are_survived(
        texts in [text(), text(), text(), text(), text()],
        wanted in [number(), number(), number(), number(), number()],
        have in [number(), number(), number(), number()],
        groups in "[OoNn-]{0,6}",
    ) {
        let [counts, topology, annotated, index, size] = texts;
        let [replicas, group_size, partition, unavailable, surge] = wanted;
        let set = demo_with(json!({
            "metadata": {"annotations": {
                "leaderworkerset.sigs.k8s.io/group-restart-counts": counts,
                "leaderworkerset.sigs.k8s.io/exclusive-topology": topology,
            }},
            "spec": {
                "leaderWorkerTemplate": {"size": group_size, "subGroupPolicy": {"subGroupSize": replicas}},
                "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition, "maxUnavailable": unavailable, "maxSurge": surge}},
            },
        }));
        let mut snapshot = running(set, (2, 0), &groups);
        Arc::make_mut(&mut snapshot.lws).spec.replicas = Some(replicas);
        let [replicas, partition, pods, available] = have;
        let leader_set = Arc::make_mut(snapshot.leader_set.as_mut().unwrap());
        (leader_set.replicas, leader_set.partition, leader_set.status.replicas) = (replicas, partition, pods);
        let annotations = json!({"annotations": {"leaderworkerset.sigs.k8s.io/replicas": annotated}});
        leader_set.meta.annotations = Meta::ours(&serde_json::from_value(annotations).unwrap()).annotations;
        let labels = json!({"leaderworkerset.sigs.k8s.io/group-index": index, "leaderworkerset.sigs.k8s.io/worker-index": "0"});
        let mut stray = leader("stray", labels, true);
        let annotations = json!({"annotations": {"leaderworkerset.sigs.k8s.io/size": size}});
        stray.meta.annotations = Meta::ours(&serde_json::from_value(annotations).unwrap()).annotations;
        snapshot.leaders.push(Arc::new(stray));
        for set in snapshot.stateful_sets.values_mut() {
            (Arc::make_mut(set).replicas, Arc::make_mut(set).status.available) = (available, available);
        }
        let pass = pass(&snapshot);
        let (partition, replicas) = pass.parameters();
        prop_assert!(i32::try_from(partition).is_ok() && i32::try_from(replicas).is_ok());
    }
}
