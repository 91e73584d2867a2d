//! The tables of admission.md, row by row.

mod cases;
mod defaults;
mod metadata;
mod robust;
mod scheduling;
mod spec;
mod updates;

use serde_json::{Value, json};

use super::{Findings, check_rules, default, validate};
use crate::admission::Environment;
use crate::admission::fixture::{heads, native};

/// A LeaderWorkerSet with defaults, changed by a merge patch (null removes).
fn lws(patch: Value) -> Value {
    let mut object = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "demo", "namespace": "t1"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}}},
    });
    json_patch::merge(&mut object, &patch);
    default(&mut object);
    object
}

/// A set with members of `spec`.
fn spec(patch: Value) -> Value {
    lws(json!({"spec": patch}))
}

/// A set with members of `spec.leaderWorkerTemplate`.
fn template(patch: Value) -> Value {
    spec(json!({"leaderWorkerTemplate": patch}))
}

/// A set of two groups with a rollout budget.
fn rollout(patch: Value) -> Value {
    spec(
        json!({"replicas": 2, "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": patch}}),
    )
}

/// `path: Type` of every finding of a create.
fn create(object: &Value) -> Vec<String> {
    heads(&validate(object, None, &Environment::default()))
}

/// The same without the refusal of what is not built yet.
fn create_complete(object: &Value, environment: &Environment) -> Vec<String> {
    let mut findings = Findings::default();
    check_rules(object, None, environment, &mut findings);
    heads(&findings)
}

/// `path: Type` of every finding of an update.
fn update(old: &Value, new: &Value) -> Vec<String> {
    heads(&validate(new, Some(old), &Environment::default()))
}
