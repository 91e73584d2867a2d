//! StatefulSets: the leader set and the worker sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use serde_json::Value;

use super::stored::{is_unclaimed, leader_template, match_labels, metadata_hash};
use super::{Meta, ObjectKey, Pairs};

/// What the controllers read of a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatefulSet {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// Hash of all labels, annotations and owner references: a change by somebody else shows here, not in the generation (KRS-57).
    pub metadata_hash: u64,
    /// Fields that our POST wrote are not yet part of our apply (KRS-54).
    pub is_unclaimed: bool,
    /// `spec.replicas`, 1 if absent.
    pub replicas: i32,
    /// `spec.updateStrategy.rollingUpdate.partition`, 0 if absent (ORD-134).
    pub partition: i32,
    /// `spec.selector.matchLabels`, or nothing when the selector has expressions.
    pub selector: Option<BTreeMap<String, String>>,
    /// Annotations of ours in the pod template.
    pub template_annotations: Pairs,
    /// The pod template, if these are the leaders of a set (ORD-33).
    pub leader_template: Option<Arc<Value>>,
    /// Status.
    pub status: StatefulSetStatus,
}

/// What the controllers read of a StatefulSet's status.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatefulSetStatus {
    /// Generation that the status was made from.
    pub observed_generation: i64,
    /// Pods that exist.
    pub replicas: i32,
    /// Pods that are available.
    pub available: i32,
    /// Revision of the pods that are not updated.
    pub current_revision: Box<str>,
    /// Revision of the pods that are.
    pub update_revision: Box<str>,
}

impl StatefulSet {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// ORD-46: all pods are there, available and of one revision.
    pub fn is_ready(&self) -> bool {
        self.replicas == self.status.available
            && self.status.current_revision == self.status.update_revision
    }

    /// Kubernetes has seen the template as it is, and makes pods of no other.
    pub fn has_rolled(&self) -> bool {
        self.status.observed_generation >= self.meta.generation
            && self.status.current_revision == self.status.update_revision
    }
}

impl From<apps::StatefulSet> for StatefulSet {
    fn from(set: apps::StatefulSet) -> Self {
        let spec = set.spec;
        let status = set.status.unwrap_or_default();
        let meta = Meta::ours(&set.metadata);
        let leader_template = leader_template(&meta, &spec.template);
        let template = spec.template.metadata.unwrap_or_default();
        Self {
            leader_template,
            meta,
            metadata_hash: metadata_hash(&set.metadata),
            is_unclaimed: is_unclaimed(set.metadata.managed_fields.as_ref()),
            replicas: spec.replicas.unwrap_or(1),
            partition: spec
                .update_strategy
                .and_then(|s| s.rolling_update)
                .and_then(|r| r.partition)
                .unwrap_or(0),
            selector: match_labels(spec.selector),
            template_annotations: Pairs::ours(template.annotations.as_ref()),
            status: StatefulSetStatus {
                observed_generation: status.observed_generation.unwrap_or_default(),
                replicas: status.replicas,
                available: status.available_replicas.unwrap_or(0),
                current_revision: status.current_revision.unwrap_or_default().into(),
                update_revision: status.update_revision.unwrap_or_default().into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: serde_json::Value) -> StatefulSet {
        serde_json::from_value::<apps::StatefulSet>(value)
            .expect("a statefulset")
            .into()
    }

    #[test]
    fn ord_46_ready_needs_all_available_and_one_revision() {
        let ready = |replicas: i32, available: i32, current: &str| {
            set(serde_json::json!({"spec": {"replicas": replicas},
                "status": {"availableReplicas": available, "currentRevision": current, "updateRevision": "b"}}))
            .is_ready()
        };
        assert!(ready(2, 2, "b"));
        assert!(!ready(2, 1, "b"));
        assert!(!ready(2, 2, "a"));
    }

    #[test]
    fn ord_134_missing_rolling_update_reads_as_partition_0() {
        assert_eq!(
            set(serde_json::json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})).partition,
            0
        );
    }
}
