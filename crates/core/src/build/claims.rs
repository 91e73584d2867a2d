//! Volume claim templates of leader and worker sets (ORD-64).

use lws_api::leaderworkerset::LeaderWorkerTemplate;
use lws_api::template::ClaimTemplate;
use serde_json::{Map, Value, json};

use super::without_nulls;

/// ORD-60, ORD-64: adds the claim templates and the retention policy to the spec of a StatefulSet, each only if the set has it.
pub(super) fn add_claims(
    spec: &mut Map<String, Value>,
    template: &LeaderWorkerTemplate,
    namespace: &str,
) {
    let claims = template.claim_templates();
    if !claims.is_empty() {
        spec.insert(
            "volumeClaimTemplates".into(),
            claims
                .iter()
                .map(|claim| reduced(claim, namespace))
                .collect(),
        );
    }
    if let Some(policy) = &template.persistent_volume_claim_retention_policy {
        let retention =
            json!({"whenDeleted": policy.when_deleted, "whenScaled": policy.when_scaled});
        spec.insert(
            "persistentVolumeClaimRetentionPolicy".into(),
            without_nulls(&retention),
        );
    }
}

/// API-11: only what a claim is asked for; labels, selectors and data sources stay behind.
fn reduced(claim: &ClaimTemplate, namespace: &str) -> Value {
    let resources =
        json!({"requests": claim.resources("requests"), "limits": claim.resources("limits")});
    let resources = without_nulls(&resources);
    let has_resources = resources.as_object().is_some_and(|r| !r.is_empty());
    without_nulls(&json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim.name(), "namespace": namespace},
        "spec": {
            "accessModes": claim.spec_field("accessModes"),
            "storageClassName": claim.spec_field("storageClassName"),
            "volumeMode": claim.spec_field("volumeMode"),
            "resources": has_resources.then_some(resources),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(template: Value) -> Value {
        let mut spec = Map::new();
        add_claims(&mut spec, &serde_json::from_value(template).unwrap(), "ns");
        Value::Object(spec)
    }

    #[test]
    fn ord_64_lws_api_11_only_listed_members_are_carried_over() {
        let spec = added(json!({"volumeClaimTemplates": [{
            "metadata": {"name": "data", "labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": "Block",
                "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}, "claims": [1]},
                "selector": {"matchLabels": {}}, "volumeName": "v", "dataSource": {"name": "s"},
            },
            "status": {},
        }]}));
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "ns"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": "Block",
                "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
            },
        });
        assert_eq!(spec, json!({"volumeClaimTemplates": [claim]}));
    }

    #[test]
    fn ord_64_absent_members_stay_absent() {
        let spec = added(
            json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {}}}}]}),
        );
        assert_eq!(
            spec["volumeClaimTemplates"][0]["spec"],
            json!({"resources": {"requests": {}}})
        );
        assert_eq!(
            added(json!({"volumeClaimTemplates": [{}]}))["volumeClaimTemplates"][0]["spec"],
            json!({})
        );
        assert_eq!(added(json!({"volumeClaimTemplates": []})), json!({}));
    }

    #[test]
    fn ord_60_retention_policy_is_copied_as_far_as_it_is_set() {
        let spec = added(
            json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}),
        );
        assert_eq!(
            spec,
            json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}})
        );
        let spec = added(json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}));
        assert_eq!(
            spec,
            json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}})
        );
    }
}
