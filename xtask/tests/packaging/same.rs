//! OPS-21: the chart, the kustomize tree and the single file install the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::documents::{Documents, kustomize, root, template};

/// The chart as the kustomize tree has it: two replicas, metrics, in the namespace that Helm is told to create.
fn chart() -> Documents {
    let mut documents = template("lws", &["--set=replicaCount=2,enablePrometheus=true"]);
    // What only the Prometheus operator understands is a switch in the tree.
    documents.0.retain(|document| {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        document["kind"] != "ServiceMonitor" && !name.contains("prometheus")
    });
    documents
}

/// What must be equal in both: everything but labels, which tell the tools apart, and what the API server fills in.
fn essence(documents: &Documents) -> BTreeMap<(String, String), Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |document: &Value| {
        let mut document = document.clone();
        let metadata = &document["metadata"];
        let key = (text(&document["kind"]), text(&metadata["name"]));
        let mut kept = json!({"name": metadata["name"], "namespace": metadata["namespace"]});
        for (label, value) in metadata["labels"].as_object().into_iter().flatten() {
            if label.starts_with("rbac.") || label == "control-plane" {
                kept["labels"][label.as_str()] = value.clone();
            }
        }
        document["metadata"] = kept;
        (key, without_incidentals(document))
    };
    documents.0.iter().map(entry).collect()
}

fn without_incidentals(mut document: Value) -> Value {
    if let Some(hooks) = document["webhooks"].as_array_mut() {
        for hook in hooks.iter_mut().filter_map(Value::as_object_mut) {
            // The default, spelled out by the chart.
            assert!(
                hook.remove("timeoutSeconds")
                    .is_none_or(|seconds| seconds == 10)
            );
        }
    }
    if document["kind"] == "Deployment" {
        let annotations = &mut document["spec"]["template"]["metadata"]["annotations"];
        annotations
            .as_object_mut()
            .expect("annotations")
            .remove("checksum/config");
    }
    if document["kind"] == "Service" && document["spec"]["type"] == "ClusterIP" {
        document["spec"]
            .as_object_mut()
            .expect("a spec")
            .remove("type");
    }
    if let Some(text) = document["data"]["controller_manager_config.yaml"].as_str() {
        document["data"] = serde_saphyr::from_str(text).expect("YAML");
    }
    document
}

#[test]
fn ops_21_chart_tree_and_single_file_install_the_same() {
    let file = std::fs::read_to_string(root().join("manifests.yaml")).unwrap();
    let file = essence(&Documents::parse(&file));
    let tree = essence(&kustomize(&root().join("config/default")));
    assert!(file == tree, "manifests.yaml is not config/default");
    let mut chart = essence(&chart());
    // Helm does not make the namespace of its release from a template.
    let namespace = ("Namespace".to_owned(), "lws-system".to_owned());
    chart.insert(namespace.clone(), tree[&namespace].clone());
    assert_eq!(
        chart.keys().collect::<Vec<_>>(),
        tree.keys().collect::<Vec<_>>()
    );
    for (key, document) in &tree {
        assert_eq!(&chart[key], document, "{key:?}");
    }
}

/// The release sets version and image in one go; in the tree they are those of the workspace.
#[test]
fn ops_dep_1_version_and_image_are_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = std::fs::read_to_string(root().join("charts/lws/Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&chart).unwrap();
    assert_eq!(chart["version"], version);
    assert_eq!(chart["appVersion"], format!("v{version}"));
    let tree = kustomize(&root().join("config/default"));
    let image = tree.container()["image"].as_str().unwrap().to_owned();
    assert!(image.ends_with(&format!(":v{version}")), "{image}");
    assert_eq!(template("lws", &[]).container()["image"], image);
}
