//! The front of the API server: admission by our real functions, then the store.

use std::sync::Arc;

use lws_core::admission::{Environment, disaggregatedset, lws, pod};
use lws_core::intent::{Propagation, Subresource};
use lws_core::run::{Class, Failure, Request};
use serde_json::{Value, json};

use crate::store::{self, Answer, Cascade, Deletion, Key, Kind, Store};

/// Performs a request of ours.
pub fn perform(store: &mut Store, by: &'static str, request: &Request) -> Answer {
    let key = Key::from(request.target());
    match request {
        Request::Create { body, .. } => create(store, by, key, (**body).clone()),
        Request::Read { .. } => store.get(&key).cloned().ok_or_else(|| gone(&key)),
        Request::Apply { body, .. } => store.apply(by, &key, body),
        Request::Patch {
            subresource, body, ..
        } => store.patch(by, &key, *subresource == Subresource::Status, body),
        Request::MergeStatus { body, .. } => merge_status(store, by, &key, body),
        Request::Delete {
            uid,
            resource_version,
            propagation,
            ..
        } => {
            let cascade = match propagation {
                Propagation::Background => Cascade::Background,
                Propagation::Foreground => Cascade::Foreground,
            };
            let deletion = Deletion {
                uid: Some(uid.as_str().to_owned()),
                version: resource_version.as_deref().map(str::to_owned),
                cascade,
                grace: None,
            };
            store.delete(by, &key, &deletion)
        }
    }
}

/// A strategic merge patch of a status: conditions are merged by type.
fn merge_status(store: &mut Store, by: &'static str, key: &Key, body: &Value) -> Answer {
    const CONDITIONS: &str = "/status/conditions";
    let list = |object: &Value| {
        object
            .pointer(CONDITIONS)
            .and_then(Value::as_array)
            .cloned()
    };
    let sent = list(body).unwrap_or_default();
    let mut merged = store
        .get(key)
        .and_then(|live| list(live))
        .unwrap_or_default();
    merged.retain(|old| sent.iter().all(|new| new["type"] != old["type"]));
    merged.extend(sent);
    let mut body = body.clone();
    if let Some(conditions) = body.pointer_mut(CONDITIONS) {
        *conditions = merged.into();
    }
    store.patch(by, key, true, &body)
}

/// POST through admission.
pub fn create(store: &mut Store, by: &'static str, key: Key, mut body: Value) -> Answer {
    let meta = store::metadata(&mut body);
    meta.insert("namespace".into(), key.namespace.as_ref().into());
    meta.insert("name".into(), key.name.as_ref().into());
    match key.kind {
        Kind::LeaderWorkerSet => {
            lws::default(&mut body);
            validate(&body, None)?;
        }
        Kind::DisaggregatedSet => validate_roles(&body, None)?,
        Kind::Pod => {
            let request = pod::Request {
                pod: &body,
                namespace: &key.namespace,
                random: store.version().into(),
            };
            let patch = pod::mutate(&request, &Environment::default())
                .map_err(|denial| rejected(denial.to_string()))?;
            if let Some(patch) = patch {
                json_patch::patch(&mut body, &patch)
                    .map_err(|error| rejected(error.to_string()))?;
            }
        }
        Kind::StatefulSet
        | Kind::Deployment
        | Kind::ControllerRevision
        | Kind::Service
        | Kind::Node
        | Kind::Namespace
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::RoleScaler
        | Kind::Workload
        | Kind::PodGroup => {}
    }
    store.create(by, key, body)
}

/// POST with `generateName`.
pub fn generate(store: &mut Store, by: &'static str, key: &Key, mut body: Value) -> Answer {
    store::metadata(&mut body).insert("generateName".into(), key.name.as_ref().into());
    store.generate(by, key.kind, &key.namespace, body)
}

/// A merge patch through admission.
pub fn patch(store: &mut Store, by: &'static str, key: &Key, body: &Value) -> Answer {
    store.admit_patch(by, key, false, body, |new, old| {
        if key.kind == Kind::LeaderWorkerSet {
            lws::default(new);
            validate(new, Some(old))?;
        }
        if key.kind == Kind::DisaggregatedSet {
            validate_roles(new, Some(old))?;
        }
        Ok(())
    })
}

/// A user's edit of a set: a merge patch of its spec.
pub fn edit(store: &mut Store, key: &Key, spec: &Value) -> Answer {
    patch(store, "user", key, &json!({"spec": spec}))
}

fn validate(new: &Value, old: Option<&Arc<Value>>) -> Result<(), Failure> {
    let findings = lws::validate(new, old.map(|old| &**old), &Environment::default());
    match findings.iter().next() {
        Some(finding) => Err(rejected(format!("{}: {}", finding.path, finding.detail))),
        None => Ok(()),
    }
}

fn validate_roles(new: &Value, old: Option<&Arc<Value>>) -> Result<(), Failure> {
    let environment = Environment::default();
    let findings = disaggregatedset::validate(new, old.map(|old| &**old), &environment);
    match findings.iter().next() {
        Some(finding) => Err(rejected(format!("{}: {}", finding.path, finding.detail))),
        None => Ok(()),
    }
}

fn gone(key: &Key) -> Failure {
    Failure {
        class: Class::Gone,
        message: format!("{key} not found"),
        retry_after: None,
    }
}

fn rejected(message: String) -> Failure {
    Failure {
        class: Class::Rejected,
        message,
        retry_after: None,
    }
}
