//! What the published schema of a role's spec says about values: their defaults, and which of them are quantities.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::quantity;

/// Place of a role's spec in the published CRD of DisaggregatedSet.
const ROLE_SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/roles/items/properties/spec";
/// How the pattern of quantities in Kubernetes' schemas begins.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)";

static ROLE_SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    // The committed fragments are part of this program, and a test reads them.
    let crds = lws_api::crd::all().unwrap_or_default();
    let schema = crds
        .iter()
        .find_map(|crd| crd.definition.pointer(ROLE_SPEC))
        .map(Shape::of);
    schema.flatten().unwrap_or_default()
});

/// One place of a schema. Places below which nothing is to be known are left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shape {
    default: Option<Value>,
    is_quantity: bool,
    members: BTreeMap<String, Shape>,
    /// Elements of a list, or values of a map.
    elements: Option<Box<Shape>>,
}

impl Shape {
    /// The shape of a role's spec.
    pub(super) fn of_role() -> &'static Self {
        &ROLE_SHAPE
    }

    fn of(schema: &Value) -> Option<Self> {
        let below = |keyword| schema.get(keyword).and_then(Self::of).map(Box::new);
        let members = schema.get("properties").and_then(Value::as_object);
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let shape = Self {
            default: schema.get("default").cloned(),
            is_quantity: pattern.is_some_and(|pattern| pattern.starts_with(QUANTITY_PATTERN)),
            members: members
                .into_iter()
                .flatten()
                .filter_map(|(name, schema)| Some((name.clone(), Self::of(schema)?)))
                .collect(),
            elements: below("items").or_else(|| below("additionalProperties")),
        };
        (shape != Self::default()).then_some(shape)
    }

    /// REV-3 steps 4 and 6: takes members away that say what holds without them, and writes quantities in one way.
    pub(super) fn reduce(&self, value: &mut Value) {
        if self.is_quantity
            && let Some(number) = quantity::canonical(value)
        {
            *value = Value::String(number);
        }
        match value {
            Value::Object(members) => self.reduce_members(members),
            Value::Array(items) => {
                for item in items {
                    self.reduce_element(item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn reduce_members(&self, members: &mut Map<String, Value>) {
        members.retain(|name, member| {
            let Some(shape) = self.members.get(name) else {
                self.reduce_element(member);
                return true;
            };
            shape.reduce(member);
            shape.default.as_ref() != Some(member)
        });
    }

    fn reduce_element(&self, element: &mut Value) {
        if let Some(shape) = &self.elements {
            shape.reduce(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dsr_rev_3_the_published_schema_is_found() {
        let shape = Shape::of_role();
        assert_eq!(
            shape.members["groupIdentity"].default,
            Some(json!("Ordinal"))
        );
        let template = &shape.members["leaderWorkerTemplate"];
        assert_eq!(template.members["size"].default, Some(json!(1)));
        assert_eq!(shape.members["replicas"].default, Some(json!(1)));
    }

    #[test]
    fn dsr_rev_3_defaults_go_at_every_depth_and_quantities_become_numbers() {
        let mut spec = json!({
            "groupIdentity": "Ordinal",
            "startupPolicy": "LeaderReady",
            "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{
                "name": "c",
                "ports": [{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 2, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "1000m", "example.com/gpu": 2}},
            }]}}},
        });
        Shape::of_role().reduce(&mut spec);
        assert_eq!(
            spec,
            json!({
                "startupPolicy": "LeaderReady",
                "leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{
                    "name": "c",
                    "ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}],
                    "resources": {"limits": {"cpu": "1", "example.com/gpu": "2"}},
                }]}}},
            })
        );
    }
}
