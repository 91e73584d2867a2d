//! Pod and claim templates as raw JSON (API-1, ORD-31): what a user wrote is kept byte for byte in meaning, however much
//! newer than this program it is. The code reads it through the accessors here and passes it on as it is. Stored templates
//! are hostile input: a member of an unexpected type reads as absent.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `format` of the placeholder schema that the CRD assembly replaces by the fragment of PodTemplateSpec (CRD-10).
pub const POD_TEMPLATE_FORMAT: &str = "lws-pod-template";
/// `format` of the placeholder schema that the CRD assembly replaces by the fragment of PersistentVolumeClaim (CRD-10).
pub const CLAIM_TEMPLATE_FORMAT: &str = "lws-claim-template";

/// A PodTemplateSpec: shared raw JSON, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(Arc<Value>);

impl Default for PodTemplate {
    fn default() -> Self {
        Self::new(Value::Object(Map::new()))
    }
}

impl PodTemplate {
    /// A template with this content.
    pub fn new(value: Value) -> Self {
        Self(Arc::new(value))
    }

    /// The whole template as it is stored.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// The whole template for editing; copies it when it is shared.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }

    /// The labels of the pods, in key order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        strings(self.0.pointer("/metadata/labels"))
    }

    /// One label of the pods.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.pointer("/metadata/labels")?.get(key)?.as_str()
    }

    /// The annotations of the pods, in key order.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        strings(self.0.pointer("/metadata/annotations"))
    }

    /// One annotation of the pods.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    /// One member of the pod spec.
    pub fn spec_field(&self, name: &str) -> Option<&Value> {
        self.0.get("spec")?.get(name)
    }

    /// The containers, in order, without init containers.
    pub fn containers(&self) -> impl Iterator<Item = ContainerRef<'_>> {
        self.spec_list("containers").map(ContainerRef)
    }

    /// The init containers, in order.
    pub fn init_containers(&self) -> impl Iterator<Item = ContainerRef<'_>> {
        self.spec_list("initContainers").map(ContainerRef)
    }

    /// `spec.priorityClassName`, absent when empty.
    pub fn priority_class_name(&self) -> Option<&str> {
        self.spec_field("priorityClassName")?
            .as_str()
            .filter(|name| !name.is_empty())
    }

    /// Whether `spec.schedulingGroup` is set (S-24).
    pub fn has_scheduling_group(&self) -> bool {
        self.spec_field("schedulingGroup")
            .is_some_and(|group| !group.is_null())
    }

    /// `spec.resourceClaims`, in order (S-25).
    pub fn resource_claims(&self) -> impl Iterator<Item = &Value> {
        self.spec_list("resourceClaims")
    }

    fn spec_list(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.spec_field(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }
}

/// One container of a [`PodTemplate`], read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContainerRef<'a>(&'a Value);

impl<'a> ContainerRef<'a> {
    /// Reads a container, of a template or of a pod.
    pub fn new(container: &'a Value) -> Self {
        Self(container)
    }

    /// Name of the container, empty when it has none.
    pub fn name(self) -> &'a str {
        self.0
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The container as it is stored.
    pub fn as_value(self) -> &'a Value {
        self.0
    }

    /// `resources.requests[resource]`.
    pub fn request(self, resource: &str) -> Option<&'a Value> {
        self.0.pointer("/resources/requests")?.get(resource)
    }

    /// `resources.limits[resource]`.
    pub fn limit(self, resource: &str) -> Option<&'a Value> {
        self.0.pointer("/resources/limits")?.get(resource)
    }
}

/// A PersistentVolumeClaim used as a template: shared raw JSON, cheap to clone (API-11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimTemplate(Arc<Value>);

impl Default for ClaimTemplate {
    fn default() -> Self {
        Self::new(Value::Object(Map::new()))
    }
}

impl ClaimTemplate {
    /// A claim template with this content.
    pub fn new(value: Value) -> Self {
        Self(Arc::new(value))
    }

    /// The whole claim as it is stored.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// `metadata.name`, empty when it has none.
    pub fn name(&self) -> &str {
        self.0
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// One member of the claim's spec.
    pub fn spec_field(&self, name: &str) -> Option<&Value> {
        self.0.get("spec")?.get(name)
    }

    /// `spec.resources[member]`, where the member is `requests` or `limits`.
    pub fn resources(&self, member: &str) -> Option<&Value> {
        self.spec_field("resources")?.get(member)
    }
}

fn strings(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

impl JsonSchema for PodTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplateSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "format": POD_TEMPLATE_FORMAT})
    }
}

impl JsonSchema for ClaimTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PersistentVolumeClaim".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "format": CLAIM_TEMPLATE_FORMAT})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lws_api_1_accessors_read_what_is_there() {
        let template = PodTemplate::new(json!({
            "metadata": {"labels": {"a": "1", "odd": 3}, "annotations": {"b": "2"}},
            "spec": {
                "containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}],
                "initContainers": [{"name": "first"}],
                "resourceClaims": [{"name": "gpu"}],
                "schedulingGroup": {},
                "priorityClassName": "",
            },
        }));
        assert_eq!(template.labels().collect::<Vec<_>>(), [("a", "1")]);
        assert_eq!(template.annotation("b"), Some("2"));
        assert_eq!(
            template
                .containers()
                .map(ContainerRef::name)
                .collect::<Vec<_>>(),
            ["main"]
        );
        assert_eq!(
            template
                .init_containers()
                .map(ContainerRef::name)
                .collect::<Vec<_>>(),
            ["first"]
        );
        assert_eq!(
            template.containers().next().unwrap().limit("cpu"),
            Some(&json!("1"))
        );
        assert_eq!(template.resource_claims().count(), 1);
        assert!(template.has_scheduling_group());
        assert_eq!(template.priority_class_name(), None);
    }

    #[test]
    fn lws_hostile_templates_read_as_empty() {
        for value in [
            json!(null),
            json!(7),
            json!({"metadata": [], "spec": "x"}),
            json!({"spec": {"containers": {"a": 1}}}),
        ] {
            let template = PodTemplate::new(value);
            assert_eq!(
                template.labels().count()
                    + template.annotations().count()
                    + template.containers().count(),
                0
            );
            assert!(!template.has_scheduling_group());
        }
    }

    #[test]
    fn lws_claim_accessors_read_what_is_there() {
        let claim = ClaimTemplate::new(json!({
            "metadata": {"name": "data"},
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
        }));
        assert_eq!(claim.name(), "data");
        assert_eq!(claim.spec_field("storageClassName"), Some(&json!("fast")));
        assert_eq!(
            claim.resources("requests"),
            Some(&json!({"storage": "1Gi"}))
        );
        assert_eq!(
            (
                ClaimTemplate::default().name(),
                ClaimTemplate::default().resources("limits")
            ),
            ("", None)
        );
    }
}
