//! The objects that are created: sets, and bare StatefulSets of the same shape.

use serde_json::{Value, json};

use super::row::Shape;

/// Namespace of all of them.
pub const NAMESPACE: &str = "bench";
/// Image at first, and after the update.
const IMAGE: &str = "nginx:1.27";
const NEXT_IMAGE: &str = "nginx:1.28";

/// Name of the set with this index, and of its leaders' StatefulSet.
pub fn name(index: u32) -> String {
    format!("bench-{index}")
}

/// The sets.
pub fn sets(shape: Shape) -> Vec<Value> {
    (0..shape.sets)
        .map(|index| set(&name(index), shape))
        .collect()
}

fn set(name: &str, shape: Shape) -> Value {
    let budget = json!({"maxUnavailable": tenth(shape.groups)});
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": shape.groups,
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": budget},
            "leaderWorkerTemplate": {
                "size": shape.size,
                "workerTemplate": {"spec": pod_spec()},
            },
        },
    })
}

/// What an ideal controller would have made at once: for each set one StatefulSet of leaders, and for each group one of workers.
pub fn bare(shape: Shape) -> Vec<Value> {
    let sets = 0..shape.sets;
    sets.flat_map(|index| {
        let leaders = name(index);
        let workers = (0..shape.groups).map({
            let leaders = leaders.clone();
            move |group| stateful_set(&format!("{leaders}-{group}"), shape.size - 1)
        });
        std::iter::once(stateful_set(&leaders, shape.groups))
            .chain(workers)
            .collect::<Vec<_>>()
    })
    .collect()
}

fn stateful_set(name: &str, replicas: u32) -> Value {
    let labels = json!({"bench": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "serviceName": "bench",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": tenth(replicas)}},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    })
}

/// How many may be unavailable: a tenth, which is rounded down, but not to none.
fn tenth(replicas: u32) -> u32 {
    (replicas / 10).max(1)
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": IMAGE}]})
}

/// The JSON patch that starts a rollout of a set.
pub fn update_of_set() -> String {
    update("/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image")
}

/// The JSON patch that starts a rollout of a StatefulSet.
pub fn update_of_stateful_set() -> String {
    update("/spec/template/spec/containers/0/image")
}

fn update(path: &str) -> String {
    json!([{"op": "replace", "path": path, "value": NEXT_IMAGE}]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_stateful_sets_have_the_pods_of_the_sets() {
        let shape = Shape {
            sets: 2,
            groups: 3,
            size: 4,
        };
        let pods = |list: &[Value]| -> u64 {
            list.iter()
                .map(|object| object["spec"]["replicas"].as_u64().unwrap())
                .sum()
        };
        let bare = bare(shape);
        assert_eq!(bare.len(), 2 * (1 + 3));
        assert_eq!(pods(&bare), 2 * 3 * 4);
        assert_eq!(pods(&sets(shape)), 2 * 3);
        assert_eq!(bare[1]["metadata"]["name"], "bench-0-0");
    }

    #[test]
    fn updates_change_the_image_that_is_there() {
        for (object, patch) in [
            (
                &sets(Shape {
                    sets: 1,
                    groups: 1,
                    size: 2,
                })[0],
                update_of_set(),
            ),
            (&stateful_set("x", 2), update_of_stateful_set()),
        ] {
            let patch: Value = serde_json::from_str(&patch).unwrap();
            assert_eq!(
                object.pointer(patch[0]["path"].as_str().unwrap()),
                Some(&json!(IMAGE))
            );
        }
    }
}
