//! Stored objects are hostile input: whatever they say, a plan is made, and it touches nothing that is not ours.

use lws_api::names::{BUDGET_FINALIZER, REPLACEMENT_GATE, annotation, label};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{World, owner, restarted, time};
use crate::group::{observe, plan};
use crate::intent::{Intent, Kind};

/// Values that mean something somewhere, and some that mean nothing anywhere.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "x",
            "x-0",
            "0",
            "1",
            "2",
            "r",
            "true",
            "Parallel",
            "",
            "-1",
            "null",
            "99999999999",
            "{\"r/0\":7}",
            "rack"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "x",
        "x-0",
        "x-0-1",
        "x-0-2",
        "x-0-0",
        "x-1",
        "x-0-99999999999",
        "-0",
        "y",
    ])
    .prop_map(str::to_owned)
}

fn uid() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "leaders", "set"]).prop_map(str::to_owned)
}

/// Each of `keys` with some value, or absent.
fn pairs(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec(prop::option::of(text()), keys.len()).prop_map(|values| {
        keys.iter()
            .zip(values)
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect()
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    let labels = pairs(&[
        label::WORKER_INDEX,
        label::GROUP_INDEX,
        label::GROUP_KEY,
        label::REVISION,
        label::ROLE,
    ]);
    let annotations = pairs(&[
        annotation::SIZE,
        annotation::LEADER_NAME,
        annotation::RESTART_BUDGET_EXHAUSTED,
        annotation::RECOVER,
        annotation::GROUP_RECREATE_PENDING,
        annotation::POD_TERMINATION_POLICY,
    ]);
    let controller = (
        prop::sample::select(vec!["Pod", "StatefulSet", "LeaderWorkerSet", "Job"]),
        name(),
        uid(),
    );
    let finalizers = prop::collection::vec(
        prop_oneof![Just(BUDGET_FINALIZER.to_owned()), any::<String>()],
        0..3,
    );
    ((name(), uid(), text()), labels, annotations, prop::option::of(controller), finalizers, any::<bool>()).prop_map(
        |((name, uid, set), labels, annotations, controller, finalizers, terminating)| {
            let mut metadata = json!({"name": name, "uid": uid, "labels": labels, "annotations": annotations, "finalizers": finalizers});
            metadata["labels"][label::NAME] = json!(set);
            metadata["ownerReferences"] = controller.map_or(Value::Null, |(kind, name, uid)| owner(kind, &name, &uid));
            metadata["deletionTimestamp"] = if terminating { json!(time(0).to_string()) } else { Value::Null };
            without_nulls(metadata)
        },
    )
}

fn without_nulls(value: Value) -> Value {
    crate::build::without_nulls(&value)
}

fn pod() -> impl Strategy<Value = Value> {
    let phase = prop::sample::select(vec!["Running", "Pending", "Failed", "Odd"]);
    (metadata(), name(), name(), phase, any::<i32>(), any::<bool>()).prop_map(|(metadata, hostname, subdomain, phase, restarts, gated)| {
        let gates = if gated { json!([{"name": REPLACEMENT_GATE}]) } else { json!([]) };
        json!({"metadata": metadata, "spec": {"containers": [], "hostname": hostname, "subdomain": subdomain, "schedulingGates": gates},
            "status": {"phase": phase, "containerStatuses": [restarted("c", restarts)]}})
    })
}

fn stateful_set() -> impl Strategy<Value = Value> {
    (metadata(), any::<i32>(), any::<i32>()).prop_map(|(metadata, replicas, partition)| {
        json!({"metadata": metadata, "spec": {"replicas": replicas, "selector": {}, "template": {},
            "updateStrategy": {"rollingUpdate": {"partition": partition}}}})
    })
}

/// Spec and annotations of the set.
fn set() -> impl Strategy<Value = (Value, Value)> {
    let number = || prop::option::of(any::<i32>());
    let policy = prop::sample::select(vec![
        "RecreateGroupOnPodRestart",
        "RecreateGroupAfterStart",
        "None",
    ]);
    let subdomain = prop::sample::select(vec!["Shared", "UniquePerReplica"]);
    let annotations = pairs(&[
        annotation::GROUP_RESTART_COUNTS,
        annotation::EXCLUSIVE_TOPOLOGY,
        annotation::RECREATE_AFTER_START,
    ]);
    (number(), number(), number(), number(), policy, subdomain, annotations).prop_map(|(size, budget, base, cap, policy, subdomain, annotations)| {
        let spec = json!({"networkConfig": {"subdomainPolicy": subdomain}, "leaderWorkerTemplate": {"size": size, "maxGroupRestarts": budget,
            "restartPolicy": policy, "restartBackoff": {"baseSeconds": base, "capSeconds": cap}}});
        (without_nulls(spec), without_nulls(annotations))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fail_and_ord_80_any_objects(
        (spec, annotations) in set(),
        pods in prop::collection::vec((pod(), any::<bool>()), 1..8),
        sets in prop::collection::vec(stateful_set(), 0..4),
        second in -10_i64..1000,
    ) {
        let mut world = World::new(spec);
        world.edit(Kind::LeaderWorkerSet, "x", json!({"metadata": {"annotations": annotations}}));
        world.second = second;
        for set in sets {
            world.put(Kind::StatefulSet, set);
        }
        for (pod, vanishes) in pods {
            let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
            world.put(Kind::Pod, pod);
            if vanishes {
                world.gone(Kind::Pod, &name);
            }
        }
        for group in world.cache.all().groups {
            let Some(snapshot) = observe(&group, &world.cache) else { continue };
            for step in plan(&snapshot, time(second)).plan.steps {
                prop_assert_eq!(&*step.intent.target().key.namespace, "ns");
                if let Intent::Delete { target, .. } = &step.intent && target.kind == Kind::Pod {
                    let owner = &world.pod(&target.key.name)["metadata"]["ownerReferences"][0]["uid"];
                    let leader_set = world.object(Kind::StatefulSet, "x").map(|set| &set["metadata"]["uid"]);
                    prop_assert_eq!(Some(owner), leader_set, "only leaders of the leader set are deleted");
                }
            }
        }
    }
}
