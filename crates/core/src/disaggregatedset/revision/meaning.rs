//! Whether a child means what a role says, however its revision is called (REV-7).

use lws_api::disaggregatedset::Role;
use lws_api::names::{annotation, ds_label};
use serde_json::{Map, Value};

use super::canonical::{normal, normalised, templates};
use crate::build::affinity;
use crate::build::child_set::is_injected;
use crate::disaggregatedset::children::Child;
use crate::model::{Ds, Pairs};

/// Prefix of the keys that the controller of DisaggregatedSets writes.
const OURS: &str = "disaggregatedset.x-k8s.io/";
/// Label of children that were made by upstream up to 0.10 (LBL-5).
const APP: &str = "app";

/// REV-7: `child` equals `role` by meaning.
pub(super) fn is_equal(set: &Ds, role: &Role, child: &Child, is_legacy: bool) -> bool {
    let Some(spec) = &role.spec else {
        return false;
    };
    let drops_app = has_upstream_app(set, child);
    let strip = |spec: Value| stripped(spec, set, child.slice, drops_app);
    let (wanted, found) = (strip(normal(spec)), strip(normal(&child.lws.spec)));
    if child.content_hash().is_some() {
        wanted == found && has_same_metadata(role, child)
    } else if is_legacy {
        is_contained(template_only(wanted), template_only(found))
    } else {
        is_contained(wanted, found) && has_metadata(role, child, drops_app)
    }
}

fn has_upstream_app(set: &Ds, child: &Child) -> bool {
    let app = format!("{}-{}-{}", set.key().name, child.slice, child.role());
    child.lws.meta.label(APP) == app
}

/// Takes off what the controller adds to templates, on either side.
fn stripped(mut spec: Value, set: &Ds, slice: u32, drops_app: bool) -> Value {
    for template in templates(&mut spec) {
        affinity::remove_from(template, &set.key().name, slice);
        if let Some(labels) = template
            .pointer_mut("/metadata/labels")
            .and_then(Value::as_object_mut)
        {
            labels.retain(|key, _| {
                !ds_label::INJECTED.contains(&key.as_str()) && (!drops_app || key != APP)
            });
        }
        for list in ["/spec/containers", "/spec/initContainers"] {
            let containers = template.pointer_mut(list).and_then(Value::as_array_mut);
            containers.into_iter().flatten().for_each(drop_variables);
        }
    }
    normalised(spec)
}

fn drop_variables(container: &mut Value) {
    let Some(container) = container.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(env)) = container.get_mut("env") {
        env.retain(|variable| !is_injected(variable));
        if env.is_empty() {
            container.remove("env");
        }
    }
}

fn template_only(mut spec: Value) -> Value {
    if let Some(members) = spec.as_object_mut() {
        members.retain(|name, _| name == "leaderWorkerTemplate");
    }
    spec
}

/// Upstream fills in empty members, and other controllers add labels: the role's must be there, and everything else must be equal.
fn is_contained(wanted: Value, found: Value) -> bool {
    let (mut wanted, mut found) = (dense(wanted), dense(found));
    let (of_role, of_child) = (take_pairs(&mut wanted), take_pairs(&mut found));
    let has = |place: &str, key: &str, value: &Value| {
        of_child
            .iter()
            .any(|(other, pairs)| other == place && pairs.get(key) == Some(value))
    };
    of_role
        .iter()
        .all(|(place, pairs)| pairs.iter().all(|(key, value)| has(place, key, value)))
        && dense(wanted) == dense(found)
}

/// Takes labels and annotations out of the templates, by place.
fn take_pairs(spec: &mut Value) -> Vec<(String, Map<String, Value>)> {
    let mut taken = Vec::new();
    for template in ["leaderTemplate", "workerTemplate"] {
        for kind in ["labels", "annotations"] {
            let place = format!("/leaderWorkerTemplate/{template}/metadata/{kind}");
            if let Some(Value::Object(pairs)) = spec.pointer_mut(&place).map(Value::take) {
                taken.push((place, pairs));
            }
        }
    }
    taken
}

/// Without members that are null, false, 0, empty or made of such members.
fn dense(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, dense(member)))
            .filter(|(_, member)| !is_empty(member))
            .collect(),
        Value::Array(items) => items.into_iter().map(dense).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Role metadata and the child's have the same pairs, apart from those of controllers.
fn has_same_metadata(role: &Role, child: &Child) -> bool {
    let is_users = |key: &str| !key.starts_with(OURS) && key != annotation::GROUP_RESTART_COUNTS;
    let same = |wanted: Vec<(&str, &str)>, found: &Pairs| {
        let found = found.iter().filter(|(key, _)| is_users(key));
        found.eq(wanted.into_iter().filter(|(key, _)| is_users(key)))
    };
    same(labels(role), &child.lws.meta.labels)
        && same(annotations(role), &child.lws.meta.annotations)
}

/// The child has all pairs of the role's metadata, apart from those of controllers.
fn has_metadata(role: &Role, child: &Child, drops_app: bool) -> bool {
    let has = |wanted: Vec<(&str, &str)>, found: &Pairs| {
        wanted.into_iter().all(|(key, value)| {
            key.starts_with(OURS) || (drops_app && key == APP) || found.get(key) == Some(value)
        })
    };
    has(labels(role), &child.lws.meta.labels) && has(annotations(role), &child.lws.meta.annotations)
}

fn labels(role: &Role) -> Vec<(&str, &str)> {
    let labels = role
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.labels.as_ref());
    labels
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn annotations(role: &Role) -> Vec<(&str, &str)> {
    let annotations = role
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.annotations.as_ref());
    annotations
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
