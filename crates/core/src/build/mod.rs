//! Objects as the controllers write them, built from what was validated before.
//!
//! Every builder is a pure function to the JSON of one object and never fails on what a user wrote: a template of an absurd shape becomes an object
//! that the API server refuses, with its own words. Nothing here decides whether an object is wanted.

pub mod affinity;
pub mod child_set;
pub mod claims;
pub mod gang;
pub mod leader_deployment;
pub mod leader_set;
pub mod leader_template;
pub mod revision;
pub mod role_scaler;
pub mod service;
pub mod worker_set;

use lws_api::leaderworkerset::{LeaderWorkerSetSpec, SubGroupPolicyType};
use lws_api::names::{annotation, label};
use lws_api::template::PodTemplate;
use serde_json::{Map, Value, json};

use crate::gang::Membership;
use crate::intent::Kind;
use crate::model::{Lws, Meta};

/// ORD-22: pods per group, leader included, never below one.
pub fn group_size(spec: &LeaderWorkerSetSpec) -> u32 {
    u32::try_from(spec.size()).unwrap_or_default().max(1)
}

/// ORD-3: the reference of a child to its controller.
fn owner_reference(kind: Kind, owner: &Meta) -> Value {
    json!([{
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "name": &*owner.key.name,
        "uid": owner.uid.as_str(),
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// ORD-61: labels of the set, on which those of the controller win.
fn labels_over(lws: &Lws, ours: &[(&str, &str)]) -> Map<String, Value> {
    over(lws.meta.labels.iter(), ours)
}

/// ORD-61: annotations of the set without what client-side apply stored, on which those of the controller win.
fn annotations_over(lws: &Lws, ours: &[(&str, &str)]) -> Map<String, Value> {
    over(
        lws.meta
            .annotations
            .iter()
            .filter(|(key, _)| *key != annotation::LAST_APPLIED),
        ours,
    )
}

fn over<'a>(
    theirs: impl Iterator<Item = (&'a str, &'a str)>,
    ours: &[(&'a str, &'a str)],
) -> Map<String, Value> {
    theirs
        .chain(ours.iter().copied())
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// A pod template with the controller's labels, annotations and node selector on top of the user's.
fn completed(template: &PodTemplate, additions: &Value) -> Value {
    let mut template = without_nulls(template.as_value());
    json_patch::merge(&mut template, additions);
    template
}

/// A null in an apply would be owned as such (KRS-30); in a template it means the same as leaving the member out.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(key, member)| (key.clone(), without_nulls(member)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// PT-3: exclusive placement of the group, read from the set.
fn exclusive_topology(lws: &Lws) -> Option<(&'static str, String)> {
    not_empty(
        annotation::EXCLUSIVE_TOPOLOGY,
        lws.meta.annotation(annotation::EXCLUSIVE_TOPOLOGY),
    )
}

/// PT-4, PT-5: what pods need to know of their subgroups; the type only when the caller has one.
fn subgroup_annotations(
    lws: &Lws,
    spec: &LeaderWorkerSetSpec,
    kind: Option<SubGroupPolicyType>,
) -> Vec<(&'static str, String)> {
    let Some(policy) = &spec.leader_worker_template.sub_group_policy else {
        return Vec::new();
    };
    let kind = kind.map(|kind| match kind {
        SubGroupPolicyType::LeaderWorker => "LeaderWorker",
        SubGroupPolicyType::LeaderExcluded => "LeaderExcluded",
    });
    let topology = lws.meta.annotation(annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY);
    kind.map(|kind| (annotation::SUBGROUP_POLICY_TYPE, kind.to_owned()))
        .into_iter()
        .chain(
            policy
                .sub_group_size
                .map(|size| (annotation::SUBGROUP_SIZE, size.to_string())),
        )
        .chain(not_empty(annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY, topology))
        .collect()
}

/// NAT-28: what pods need to know of their gang.
fn gang_annotations(membership: &Membership) -> [(&'static str, String); 2] {
    let Membership { level, workload } = membership;
    [
        (
            annotation::WORKLOAD_AWARE_SCHEDULING,
            level.as_str().to_owned(),
        ),
        (annotation::WORKLOAD_NAME, workload.clone()),
    ]
}

fn not_empty(key: &'static str, value: &str) -> Option<(&'static str, String)> {
    (!value.is_empty()).then(|| (key, value.to_owned()))
}

fn members(pairs: Vec<(&'static str, String)>) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// Label that says which set an object belongs to.
fn name_label(lws: &Lws) -> (&'static str, &str) {
    (label::NAME, &lws.key().name)
}

#[cfg(test)]
pub(crate) mod tests;
