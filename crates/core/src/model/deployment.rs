//! Deployments that run the leaders of Hash sets, and the ReplicaSets between them and the leaders.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use serde_json::Value;

use super::stored::{is_unclaimed, leader_template, match_labels, metadata_hash};
use super::{Meta, ObjectKey, Pairs};

/// What the controllers read of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// Hash of labels, annotations and owner references, but not of what the Deployment controller writes (KRS-57).
    pub metadata_hash: u64,
    /// Fields that our POST wrote are not yet part of our apply (KRS-54).
    pub is_unclaimed: bool,
    /// Wanted leaders (RDY-5).
    pub replicas: i32,
    /// `spec.selector.matchLabels`, or nothing when the selector has expressions.
    pub selector: Option<BTreeMap<String, String>>,
    /// Annotations of ours in the pod template.
    pub template_annotations: Pairs,
    /// The pod template, if these are the leaders of a set (ORD-33).
    pub leader_template: Option<Arc<Value>>,
    /// Status.
    pub status: DeploymentStatus,
}

/// What the controllers read of a Deployment's status (HASH-71).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeploymentStatus {
    /// Leaders that exist and are not terminating.
    pub replicas: i32,
    /// Leaders that are Ready, that is, whose whole group is (HASH-38).
    pub ready: i32,
    /// Leaders of the current pod template.
    pub updated: i32,
    /// Generation that these numbers are about.
    pub observed_generation: i64,
}

impl Deployment {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }
}

impl From<apps::Deployment> for Deployment {
    fn from(deployment: apps::Deployment) -> Self {
        let status = deployment.status.unwrap_or_default();
        let metadata = deployment.metadata;
        let meta = Meta::ours(&metadata);
        let leader_template = leader_template(&meta, &deployment.spec.template);
        let template = deployment.spec.template.metadata.unwrap_or_default();
        Self {
            leader_template,
            meta,
            metadata_hash: metadata_hash(&metadata),
            is_unclaimed: is_unclaimed(metadata.managed_fields.as_ref()),
            replicas: deployment.spec.replicas.unwrap_or(1),
            selector: match_labels(deployment.spec.selector),
            template_annotations: Pairs::ours(template.annotations.as_ref()),
            status: DeploymentStatus {
                replicas: status.replicas.unwrap_or(0),
                ready: status.ready_replicas.unwrap_or(0),
                updated: status.updated_replicas.unwrap_or(0),
                observed_generation: status.observed_generation.unwrap_or(0),
            },
        }
    }
}

/// What the controllers read of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// Wanted leaders (RDY-5).
    pub replicas: i32,
    /// Generation that its status is about.
    pub observed_generation: i64,
}

impl ReplicaSet {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }
}

impl From<apps::ReplicaSet> for ReplicaSet {
    fn from(set: apps::ReplicaSet) -> Self {
        let status = set.status.unwrap_or_default();
        Self {
            meta: Meta::ours(&set.metadata),
            replicas: set.spec.replicas.unwrap_or(1),
            observed_generation: status.observed_generation.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(value: serde_json::Value) -> Deployment {
        let mut object = json!({"spec": {"selector": {}, "template": {}}});
        json_patch::merge(&mut object, &value);
        serde_json::from_value::<apps::Deployment>(object)
            .expect("a deployment")
            .into()
    }

    #[test]
    fn hash_71_absent_numbers_read_as_zero() {
        assert_eq!(deployment(json!({})).status, DeploymentStatus::default());
        let status = json!({"replicas": 4, "readyReplicas": 3, "updatedReplicas": 2, "observedGeneration": 9});
        assert_eq!(
            deployment(json!({"status": status})).status,
            DeploymentStatus {
                replicas: 4,
                ready: 3,
                updated: 2,
                observed_generation: 9
            }
        );
    }
}
