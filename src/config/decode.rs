//! Strict reading of the file (CFG-3): every field must be known, of the right type, and given once.
//!
//! The text is read into a plain value first and held against the shape of a full configuration, so that errors can name the dotted path.

use serde_json::Value;

use super::{Configuration, GROUP, GangSchedulingManagement, KIND};

/// Why a text is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not YAML, or a key given twice.
    #[error("could not parse the configuration: {0}")]
    Yaml(String),
    /// No apiVersion or kind.
    #[error("Object '{0}' is missing")]
    Missing(&'static str),
    /// Another object.
    #[error("no kind \"{kind}\" is registered for version \"{version}\"")]
    OtherObject {
        /// Its kind.
        kind: String,
        /// Its apiVersion.
        version: String,
    },
    /// Fields that do not exist or have another type.
    #[error("strict decoding error: {}", .0.join(", "))]
    Fields(Vec<String>),
}

/// CFG-1: versions of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V1Alpha1,
}

/// Decodes `text`; defaults stand for what is absent.
pub(super) fn decode(text: &str) -> Result<(Configuration, Version), DecodeError> {
    let options = serde_saphyr::Options {
        with_snippet: false,
        ..serde_saphyr::Options::default()
    };
    let mut given: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(yaml_error)?;
    let version = version(&given)?;
    let mut wrong = Vec::new();
    compare(&given, &shape(), "", &mut wrong);
    if !wrong.is_empty() {
        return Err(DecodeError::Fields(wrong));
    }
    drop_nulls(&mut given);
    let configuration = serde_json::from_value(given)
        .map_err(|error| DecodeError::Fields(vec![error.to_string()]))?;
    Ok((configuration, version))
}

fn yaml_error(error: serde_saphyr::Error) -> DecodeError {
    let message = error.to_string();
    DecodeError::Yaml(if message.contains("duplicate mapping key") {
        format!("{message}: key already set")
    } else {
        message
    })
}

fn version(given: &Value) -> Result<Version, DecodeError> {
    let text = |name: &'static str, missing| match given.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        Some(_) | None => Err(DecodeError::Missing(missing)),
    };
    let kind = text("kind", "Kind")?;
    let version = text("apiVersion", "apiVersion")?;
    let known = match version
        .strip_prefix(GROUP)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        Some("v1") => Some(Version::V1),
        Some("v1alpha1") => Some(Version::V1Alpha1),
        Some(_) | None => None,
    };
    known
        .filter(|_| kind == KIND)
        .ok_or_else(|| DecodeError::OtherObject {
            kind: kind.to_owned(),
            version: version.to_owned(),
        })
}

/// A configuration in which every field stands; `*` is any key.
fn shape() -> Value {
    let full = Configuration {
        gang_scheduling_management: Some(GangSchedulingManagement {
            scheduler_provider: Some(String::new()),
        }),
        feature_gates: [("*".to_owned(), true)].into(),
        tls: super::Tls {
            min_version: String::new(),
            cipher_suites: vec![String::new()],
        },
        ..Configuration::default()
    };
    serde_json::to_value(full).unwrap_or_default()
}

fn compare(given: &Value, known: &Value, path: &str, wrong: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (name, value) in given {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match known.get(name).or_else(|| known.get("*")) {
                    Some(known) => compare(value, known, &path, wrong),
                    None => wrong.push(format!("unknown field \"{path}\"")),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (at, value) in given.iter().enumerate() {
                compare(
                    value,
                    known.first().unwrap_or(&Value::Null),
                    &format!("{path}[{at}]"),
                    wrong,
                );
            }
        }
        (Value::Null, _)
        | (Value::Bool(_), Value::Bool(_))
        | (Value::String(_), Value::String(_)) => {}
        (Value::Number(given), Value::Number(known)) if given.is_i64() || known.is_f64() => {}
        (_, _) => wrong.push(format!(
            "{path}: expected {}, got {}",
            type_name(known),
            type_name(given)
        )),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// An explicit null is as good as an absent field.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.retain(|item| !item.is_null()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
