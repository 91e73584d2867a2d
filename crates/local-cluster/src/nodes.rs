//! The fake nodes, how KWOK plays them, and the annotations by which a test takes over.

use serde_json::{Value, json};

/// Pod or node annotation (any value): KWOK sets nothing in its status, the test does.
pub const MANUAL_STATUS: &str = "e2e.lws/manual-status";
/// Pod annotation: a deletion finishes after this time (`"3s"`), or after the grace period (`"grace"`). The time
/// starts anew whenever the terminating pod changes.
pub const DELETE_AFTER: &str = "e2e.lws/delete-after";
/// Pod annotation (any value): a deletion does not finish before this annotation is removed.
pub const HOLD_DELETION: &str = "e2e.lws/hold-deletion";

/// KWOK's stages.
pub(crate) const STAGES: &str = include_str!("kwok.yaml");

const RACKS_PER_ZONE: usize = 2;

/// A list of `count` nodes in zones of two racks, with room for every test.
pub(crate) fn documents(count: usize) -> Value {
    let nodes: Vec<Value> = (0..count).map(node).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": nodes})
}

fn node(index: usize) -> Value {
    let name = format!("fake-{index}");
    let rack = format!("rack-{index}");
    let zone = format!("zone-{}", index / RACKS_PER_ZONE);
    let resources = json!({
        "cpu": "1000",
        "memory": "4Ti",
        "ephemeral-storage": "4Ti",
        "pods": "10000",
        "nvidia.com/gpu": "1000",
        "google.com/tpu": "1000",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "region-0",
                "topology.kubernetes.io/zone": zone,
                "rack": rack,
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn stages() -> Vec<Value> {
        STAGES
            .split("\n---\n")
            .map(|text| serde_saphyr::from_str(text).unwrap())
            .collect()
    }

    fn stage(name: &str) -> Value {
        stages()
            .into_iter()
            .find(|stage| stage["metadata"]["name"] == name)
            .unwrap()
    }

    #[test]
    fn stages_are_valid_documents() {
        let mut names = BTreeSet::new();
        for document in stages().iter().skip(1) {
            assert_eq!(document["apiVersion"], "kwok.x-k8s.io/v1alpha1");
            assert_eq!(document["kind"], "Stage");
            assert!(document["spec"]["selector"]["matchExpressions"].is_array());
            assert!(document["spec"]["steps"].is_array());
            assert!(names.insert(document["metadata"]["name"].to_string()));
        }
        assert_eq!(names.len(), 5);
    }

    #[test]
    fn no_stage_sets_a_readiness_gate() {
        for document in stages() {
            let steps = document["spec"]["steps"].to_string();
            assert!(!steps.contains("conditionType"), "{steps}");
        }
    }

    #[test]
    fn pod_patches_carry_the_uid() {
        for name in ["pod-run", "pod-gates-open", "pod-gates-shut"] {
            let patch = &stage(name)["spec"]["steps"][0]["patch"];
            assert!(
                patch["template"]
                    .as_str()
                    .unwrap()
                    .contains("uid: {{ .metadata.uid | Quote }}")
            );
            assert_eq!(patch["subresource"], "status");
        }
    }

    #[test]
    fn stages_know_the_annotations() {
        for name in ["node-ready", "pod-run", "pod-gates-open", "pod-gates-shut"] {
            assert!(
                stage(name)["spec"]["selector"]
                    .to_string()
                    .contains(MANUAL_STATUS),
                "{name}"
            );
        }
        let delete = stage("pod-delete")["spec"].to_string();
        assert!(delete.contains(HOLD_DELETION));
        assert!(delete.contains(DELETE_AFTER));
    }

    #[test]
    fn nodes_have_topology_and_accelerators() {
        let list = documents(3);
        let zones: Vec<&str> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| {
                node["metadata"]["labels"]["topology.kubernetes.io/zone"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(zones, ["zone-0", "zone-0", "zone-1"]);
        let node = &list["items"][2];
        assert_eq!(node["metadata"]["labels"]["type"], "kwok");
        assert_eq!(node["metadata"]["labels"]["rack"], "rack-2");
        for resource in ["nvidia.com/gpu", "google.com/tpu"] {
            assert!(node["status"]["allocatable"][resource].is_string());
        }
    }
}
