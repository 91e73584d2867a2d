//! The base manifest of the cases, `L(name, replicas, size)`, and how a test varies it.

use lws_local_cluster::MANUAL_STATUS;
use serde_json::{Value, json};

/// A LeaderWorkerSet to be written.
#[derive(Clone, Debug)]
pub struct Manifest(Value);

impl Manifest {
    /// `L(name, replicas, size)`: one container `c` with `nginx:1.27`.
    pub fn new(name: &str, replicas: i64, size: i64) -> Self {
        Self(json!({
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "leaderWorkerTemplate": {
                    "size": size,
                    "workerTemplate": {
                        "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
                    },
                },
            },
        }))
    }

    /// The test sets the status of the pods; KWOK does not.
    pub fn manual(self) -> Self {
        self.pod(json!({"metadata": {"annotations": {MANUAL_STATUS: "true"}}}))
    }

    /// Merges into `metadata`.
    pub fn metadata(self, patch: Value) -> Self {
        self.merged(json!({"metadata": patch}))
    }

    /// Merges into `spec`.
    pub fn spec(self, patch: Value) -> Self {
        self.merged(json!({"spec": patch}))
    }

    /// Merges into `spec.leaderWorkerTemplate`.
    pub fn group(self, patch: Value) -> Self {
        self.spec(json!({"leaderWorkerTemplate": patch}))
    }

    /// Merges into the worker template, which leaders use too unless they have their own.
    pub fn pod(self, patch: Value) -> Self {
        self.group(json!({"workerTemplate": patch}))
    }

    /// Sets the budgets of a rollout.
    pub fn budget(self, max_surge: Value, max_unavailable: Value) -> Self {
        self.spec(json!({"rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxSurge": max_surge, "maxUnavailable": max_unavailable},
        }}))
    }

    /// Sets the image of container `c`.
    pub fn image(self, image: &str) -> Self {
        self.pod(json!({"spec": {"containers": [{"name": "c", "image": image}]}}))
    }

    /// Adds an init container `i`.
    pub fn init_container(self) -> Self {
        self.pod(json!({"spec": {"initContainers": [{"name": "i", "image": "busybox:1"}]}}))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object.
    pub fn json(&self) -> Value {
        self.0.clone()
    }

    fn merged(mut self, patch: Value) -> Self {
        merge(&mut self.0, patch);
        self
    }
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(members) = target.as_object_mut() {
                members.remove(&key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variations_are_merged() {
        let manifest = Manifest::new("demo", 2, 3)
            .manual()
            .image("nginx:1.28")
            .group(json!({"size": null}));
        let group = &manifest.json()["spec"]["leaderWorkerTemplate"];
        assert_eq!(group.get("size"), None);
        assert_eq!(
            group["workerTemplate"]["spec"]["containers"][0]["image"],
            "nginx:1.28"
        );
        assert_eq!(
            group["workerTemplate"]["metadata"]["annotations"][MANUAL_STATUS],
            "true"
        );
    }
}
