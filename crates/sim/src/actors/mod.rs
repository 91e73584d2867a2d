//! Everybody in the cluster but us: each is a function from the store to the next single write, so that others can come in between.

mod claims;
pub mod garbage;
pub mod kubelet;
pub mod namespace;
pub mod stateful_set;
pub mod user;

use serde_json::Value;

use crate::store::{part, text};

/// The UID of an object.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid").unwrap_or_default()
}

/// The owner reference with `controller: true`.
pub fn controller(object: &Value) -> Option<&Value> {
    owners(object).find(|owner| owner["controller"] == true)
}

/// All owner references.
pub fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = part(object, "/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten()
}

/// A label.
pub fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    member(object, "labels", name)
}

/// An annotation.
pub fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    member(object, "annotations", name)
}

fn member<'a>(object: &'a Value, map: &str, name: &str) -> &'a str {
    object["metadata"][map][name].as_str().unwrap_or_default()
}

/// A number by JSON pointer, 0 if absent.
pub fn number(object: &Value, pointer: &str) -> i64 {
    part(object, pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// Phase Running and condition Ready.
pub fn is_ready(pod: &Value) -> bool {
    let ready = part(pod, "/status/conditions").and_then(Value::as_array);
    text(pod, "/status/phase") == Some("Running")
        && ready
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Restarts of the first container.
pub fn restarts(pod: &Value) -> i64 {
    number(pod, "/status/containerStatuses/0/restartCount")
}
