//! The CRDs as they are published (CRD-1 … CRD-12): what kube derives from the types, made fit for users.
//!
//! kube's output accepts `null` where Kubernetes would apply a default, knows no list keys of pod templates and carries a
//! title. [`all`] cures that and puts the committed fragments of Kubernetes' own schema in the place of templates. Nothing is
//! read but the types and the fragments; writing files is the business of `cargo xtask crds`.

use kube::CustomResourceExt;
use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::disaggregatedset::DisaggregatedSet;
use crate::leaderworkerset::LeaderWorkerSet;
use crate::rolescaler::DisaggregatedSetRoleScaler;
use crate::template::{CLAIM_TEMPLATE_FORMAT, POD_TEMPLATE_FORMAT};

pub(crate) mod rules;

const POD_TEMPLATE_FRAGMENT: &str = include_str!("../schema/pod-template.json");
const CLAIM_TEMPLATE_FRAGMENT: &str = include_str!("../schema/claim-template.json");

/// One published CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCrd {
    /// Name of its file, `<group>_<plural>.yaml`.
    pub file: String,
    /// The CustomResourceDefinition.
    pub definition: Value,
}

/// The CRDs of this project, in the order in which they are installed.
///
/// # Errors
/// When a committed fragment is not JSON.
pub fn all() -> Result<Vec<PublishedCrd>, serde_json::Error> {
    let fragments = Fragments::read()?;
    Ok(vec![
        publish::<LeaderWorkerSet>(
            &fragments,
            Root {
                required: &[],
                rules: rules::leader_worker_set(),
            },
        )?,
        publish::<DisaggregatedSet>(
            &fragments,
            Root {
                required: &["spec"],
                rules: Vec::new(),
            },
        )?,
        publish::<DisaggregatedSetRoleScaler>(
            &fragments,
            Root {
                required: &[],
                rules: Vec::new(),
            },
        )?,
    ])
}

/// What the root of a schema says beyond the types.
struct Root {
    required: &'static [&'static str],
    rules: Vec<Rule>,
}

/// CRD-10: the schemas of embedded templates.
struct Fragments {
    pod_template: Value,
    claim_template: Value,
}

impl Fragments {
    fn read() -> Result<Self, serde_json::Error> {
        Ok(Self {
            pod_template: serde_json::from_str(POD_TEMPLATE_FRAGMENT)?,
            claim_template: serde_json::from_str(CLAIM_TEMPLATE_FRAGMENT)?,
        })
    }

    /// The fragment that a placeholder stands for.
    fn of(&self, schema: &Map<String, Value>) -> Option<&Value> {
        match schema.get("format")?.as_str()? {
            POD_TEMPLATE_FORMAT => Some(&self.pod_template),
            CLAIM_TEMPLATE_FORMAT => Some(&self.claim_template),
            _ => None,
        }
    }
}

fn publish<K: CustomResourceExt>(
    fragments: &Fragments,
    root: Root,
) -> Result<PublishedCrd, serde_json::Error> {
    let crd = K::crd();
    let file = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
    let mut definition = serde_json::to_value(crd)?;
    if let Some(schema) = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        cure(schema, fragments);
        complete_root(schema, root);
    }
    definition.sort_all_objects();
    Ok(PublishedCrd { file, definition })
}

/// CRD-2, CRD-7 and API-3: required members, the three members of every object, and the CEL rules of the whole object.
fn complete_root(schema: &mut Value, root: Root) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.remove("title");
    schema.remove("required");
    if !root.required.is_empty() {
        schema.insert("required".into(), json!(root.required));
    }
    if !root.rules.is_empty() {
        schema.insert("x-kubernetes-validations".into(), json!(root.rules));
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    properties.insert(
        "apiVersion".into(),
        json!({"type": "string", "description": "Group and version of the schema of this object."}),
    );
    properties.insert(
        "kind".into(),
        json!({"type": "string", "description": "Kind of this object."}),
    );
    properties.insert("metadata".into(), json!({"type": "object"}));
}

/// Walks a schema and corrects what kube derives differently from what Kubernetes publishes.
fn cure(schema: &mut Value, fragments: &Fragments) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(fragment) = fragments.of(object) {
        *schema = in_place_of(object, fragment);
        return;
    }
    cure_keywords(object);
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(keyword) {
            cure(inner, fragments);
        }
    }
    for inner in object
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        cure(inner, fragments);
    }
}

/// CRD-10: a fragment, with the description of the field that it serves.
fn in_place_of(placeholder: &Map<String, Value>, fragment: &Value) -> Value {
    let mut schema = fragment.clone();
    if let (Some(schema), Some(description)) =
        (schema.as_object_mut(), placeholder.get("description"))
    {
        schema.insert("description".into(), description.clone());
    }
    schema
}

/// CRD-1: no `nullable`. CRD-6: both types of an int-or-string. A default that is an object would make members that users
/// left out; bounds are integers, which the Rust type of the CRD turns into floats; descriptions flow in one line.
fn cure_keywords(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    if schema.get("default").is_some_and(Value::is_object) {
        schema.remove("default");
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        schema.insert(
            "anyOf".into(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
    for bound in ["minimum", "maximum"] {
        if let Some(whole) = schema
            .get(bound)
            .and_then(Value::as_f64)
            .and_then(whole_number)
        {
            schema.insert(bound.into(), whole);
        }
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// A bound written without a fraction.
fn whole_number(bound: f64) -> Option<Value> {
    format!("{bound:.0}").parse::<i64>().ok().map(Value::from)
}

/// Conditions as every Kubernetes API has them (API-19).
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status of the condition changed last.",
                },
                "message": {"type": "string", "maxLength": 32768, "description": "The reason in words."},
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "Generation of the object that the condition was made from.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why the condition has its status, as one word.",
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether the condition holds.",
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "Name of the condition.",
                },
            },
        },
    })
}

/// Takes the description off an enum's schema, since it would hide that of the field.
pub(crate) fn undescribed(schema: &mut Schema) {
    schema.remove("description");
}

#[cfg(test)]
mod tests;
