//! Traits of stored workload objects that a later apply goes by.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, ManagedFieldsEntry, ObjectMeta,
};
use lws_api::names::{FIELD_MANAGER, label, role};
use serde_json::Value;

use super::Meta;

/// Annotations with this prefix belong to the Deployment controller, which changes them at every rollout.
const DEPLOYMENT_PREFIX: &str = "deployment.kubernetes.io/";

/// KRS-57: a change of labels, annotations or owner references by somebody else shows here, not in the generation.
pub(super) fn metadata_hash(meta: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    meta.labels.hash(&mut hasher);
    for annotation in meta.annotations.iter().flatten() {
        if !annotation.0.starts_with(DEPLOYMENT_PREFIX) {
            annotation.hash(&mut hasher);
        }
    }
    for owner in meta.owner_references.iter().flatten() {
        (
            &owner.uid,
            &owner.kind,
            &owner.name,
            owner.controller,
            owner.block_owner_deletion,
        )
            .hash(&mut hasher);
    }
    hasher.finish()
}

/// KRS-54: a POST leaves an entry with operation `Update` and no subresource.
pub(super) fn is_unclaimed(entries: Option<&Vec<ManagedFieldsEntry>>) -> bool {
    entries.into_iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Update")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    })
}

/// The pod template of a workload that runs the leaders of a set. Those of workers are not kept: there are many, and nothing is decided from them.
pub(super) fn leader_template(meta: &Meta, template: &PodTemplateSpec) -> Option<Arc<Value>> {
    if meta.label(label::ROLE) != role::LEADER {
        return None;
    }
    serde_json::to_value(template).ok().map(Arc::new)
}

/// `matchLabels`, or nothing when the selector has expressions.
pub(super) fn match_labels(selector: LabelSelector) -> Option<BTreeMap<String, String>> {
    match selector.match_expressions {
        Some(expressions) if !expressions.is_empty() => None,
        Some(_) | None => Some(selector.match_labels.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).expect("metadata")
    }

    fn hash(value: Value) -> u64 {
        metadata_hash(&meta(value))
    }

    #[test]
    fn krs_54_post_entry_is_unclaimed_until_it_is_an_apply() {
        let with = |entry: Value| {
            is_unclaimed(
                meta(json!({"managedFields": [entry]}))
                    .managed_fields
                    .as_ref(),
            )
        };
        assert!(with(json!({"manager": "lws", "operation": "Update"})));
        assert!(!with(json!({"manager": "lws", "operation": "Apply"})));
        assert!(!with(
            json!({"manager": "lws", "operation": "Update", "subresource": "status"})
        ));
        assert!(!with(json!({"manager": "kubectl", "operation": "Update"})));
    }

    #[test]
    fn krs_57_foreign_metadata_changes_the_hash() {
        let plain = hash(json!({"labels": {"a": "b"}}));
        assert_ne!(plain, hash(json!({"labels": {"a": "c"}})));
        assert_ne!(
            plain,
            hash(json!({"labels": {"a": "b"}, "annotations": {"a": "b"}}))
        );
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]);
        assert_ne!(
            plain,
            hash(json!({"labels": {"a": "b"}, "ownerReferences": owner}))
        );
    }

    #[test]
    fn krs_37_only_templates_of_leaders_are_kept() {
        let kept = |role: &str| {
            let meta = meta(json!({"labels": {label::NAME: "demo", label::ROLE: role}}));
            leader_template(&Meta::ours(&meta), &PodTemplateSpec::default())
        };
        assert!(kept("leader").is_some());
        assert!(kept("worker").is_none());
    }

    #[test]
    fn krs_57_the_deployment_controllers_own_annotations_do_not_count() {
        let revision = json!({"annotations": {"deployment.kubernetes.io/revision": "2"}});
        assert_eq!(hash(revision), hash(json!({})));
    }
}
