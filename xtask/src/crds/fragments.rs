//! Derives the schemas of embedded templates from Kubernetes' published OpenAPI v3 (CRD-10): references are followed, so that
//! each fragment stands by itself, and what a CRD cannot say or does not need is left out. Its output is committed; this runs
//! again only when the pinned minor of Kubernetes moves.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::Output;

const PREFIX: &str = "#/components/schemas/";
const POD_TEMPLATE: &str = "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec";
const CLAIM: &str = "#/components/schemas/io.k8s.api.core.v1.PersistentVolumeClaim";

/// What a quantity looks like as a text.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Every keyword that may occur in the source, and whether a fragment keeps it as it is.
const KEPT: [&str; 7] = [
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "enum",
];
const DROPPED: [&str; 5] = [
    "description",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// The files under `crates/api/schema`.
pub fn derive(source: &Path, root: &Path) -> Result<Vec<Output>> {
    let text = fs::read_to_string(source)
        .with_context(|| format!("failed to read {}", source.display()))?;
    let document: Value =
        serde_json::from_str(&text).context("the OpenAPI document is not JSON")?;
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object)
        .context("the OpenAPI document has no components.schemas")?;
    let folder = root.join("crates/api/schema");
    [
        ("pod-template.json", POD_TEMPLATE),
        ("claim-template.json", CLAIM),
    ]
    .into_iter()
    .map(|(file, reference)| {
        let mut fragment = resolve(schemas, reference)?;
        fragment.sort_all_objects();
        Ok(Output {
            path: folder.join(file),
            content: format!("{}\n", serde_json::to_string_pretty(&fragment)?),
        })
    })
    .collect()
}

/// The fragment of a named schema.
fn resolve(schemas: &Map<String, Value>, reference: &str) -> Result<Value> {
    match reference.strip_prefix(PREFIX).unwrap_or(reference) {
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" => Ok(embedded_metadata()),
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Ok(quantity()),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Ok(int_or_string()),
        name => {
            let schema = schemas
                .get(name)
                .with_context(|| format!("no schema {name}"))?;
            convert(schemas, schema).with_context(|| format!("in {name}"))
        }
    }
}

/// One schema with everything that it refers to. Descriptions go (CRD-8); an unknown keyword is an error, so that a new
/// Kubernetes cannot slip in what nobody looked at.
fn convert(schemas: &Map<String, Value>, schema: &Value) -> Result<Value> {
    let schema = schema.as_object().context("a schema is no object")?;
    if let Some(reference) = reference(schema) {
        return resolve(schemas, reference);
    }
    let required = schema.get("required");
    let mut fragment = Map::new();
    for (keyword, value) in schema {
        let converted = match keyword.as_str() {
            "items" | "additionalProperties" => convert(schemas, value)?,
            "properties" => properties(schemas, value, required)?,
            // A default counts on an optional property only, and there `properties` sees to it.
            "default" => continue,
            kept if KEPT.contains(&kept) => value.clone(),
            dropped if DROPPED.contains(&dropped) => continue,
            unknown => bail!("unknown keyword {unknown}"),
        };
        fragment.insert(keyword.clone(), converted);
    }
    Ok(Value::Object(fragment))
}

/// The reference of a schema that is one, bare or as the single part of `allOf`.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    let direct = schema.get("$ref");
    let wrapped = || match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    };
    direct.or_else(wrapped)?.as_str()
}

/// The properties of an object. Required ones carry the zero value as default and objects carry `{}`; neither may reach a
/// CRD. The others are defaults that Kubernetes applies as well.
fn properties(
    schemas: &Map<String, Value>,
    properties: &Value,
    required: Option<&Value>,
) -> Result<Value> {
    let required = required.and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let mut fragments = Map::new();
    for (name, schema) in properties.as_object().context("properties is no object")? {
        let mut fragment =
            convert(schemas, schema).with_context(|| format!("in property {name}"))?;
        let default = schema
            .get("default")
            .filter(|default| !default.is_object() && !is_required(name));
        if let (Some(default), Some(fragment)) = (default, fragment.as_object_mut()) {
            fragment.insert("default".into(), default.clone());
        }
        fragments.insert(name.clone(), fragment);
    }
    Ok(Value::Object(fragments))
}

/// CRD-5: the metadata of something that is embedded.
fn embedded_metadata() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    json!({
        "type": "object",
        "properties": {
            "annotations": texts,
            "finalizers": {"type": "array", "items": text},
            "labels": texts,
            "name": text,
            "namespace": text,
        },
    })
}

/// CRD-6: a number or a text such as `100m`.
fn quantity() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// CRD-6: a number or a text such as `25%`.
fn int_or_string() -> Value {
    json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn crd_10_references_are_followed_and_descriptions_left_out() {
        let schemas = schemas(json!({
            "Outer": {
                "type": "object",
                "description": "long",
                "x-kubernetes-unions": [],
                "properties": {"inner": {"allOf": [{"$ref": "#/components/schemas/Inner"}], "default": {}}},
            },
            "Inner": {"type": "string", "description": "long"},
        }));
        assert_eq!(
            resolve(&schemas, "#/components/schemas/Outer").unwrap(),
            json!({"type": "object", "properties": {"inner": {"type": "string"}}})
        );
    }

    #[test]
    fn crd_10_defaults_stay_on_optional_properties_only() {
        let schemas = schemas(json!({
            "Port": {
                "type": "object",
                "required": ["containerPort"],
                "properties": {
                    "containerPort": {"type": "integer", "default": 0},
                    "protocol": {"type": "string", "default": "TCP"},
                    "names": {"type": "array", "items": {"type": "string", "default": ""}},
                },
            },
        }));
        let port = resolve(&schemas, "Port").unwrap();
        assert_eq!(
            port["properties"]["containerPort"],
            json!({"type": "integer"})
        );
        assert_eq!(
            port["properties"]["protocol"],
            json!({"type": "string", "default": "TCP"})
        );
        assert_eq!(
            port["properties"]["names"]["items"],
            json!({"type": "string"})
        );
    }

    #[test]
    fn crd_10_an_unknown_keyword_is_an_error() {
        let schemas = schemas(json!({"A": {"type": "string", "x-kubernetes-new": true}}));
        assert!(format!("{:#}", resolve(&schemas, "A").unwrap_err()).contains("x-kubernetes-new"));
    }

    #[test]
    fn crd_6_quantities_have_both_types_and_a_pattern() {
        let schema = resolve(&Map::new(), "io.k8s.apimachinery.pkg.api.resource.Quantity").unwrap();
        assert_eq!(schema["x-kubernetes-int-or-string"], true);
        assert_eq!(
            schema["anyOf"],
            json!([{"type": "integer"}, {"type": "string"}])
        );
        assert!(schema["pattern"].is_string());
    }
}
