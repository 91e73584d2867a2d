//! Workloads and PodGroups (gang-scheduling.md D.1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

use super::owner_reference;
use crate::gang::Template;
use crate::intent::Kind;
use crate::model::{
    Claim, Disruption, Lws, Meta, ObjectKey, Policy, StoredTemplate, Terms, Workload,
};
use lws_api::names::{GROUP, label};

/// A PodGroup as it is created.
#[derive(Clone, Copy, Debug)]
pub struct PodGroupBody<'a> {
    /// The set.
    pub lws: &'a Lws,
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a [(&'static str, String)],
    /// The Workload, unless it is an ancestor's (NAT-56).
    pub workload: Option<&'a Meta>,
    /// Names of Workload and template.
    pub made_from: (&'a str, &'a str),
    /// The terms.
    pub terms: &'a Terms,
}

/// The set's own Workload.
pub fn workload(lws: &Lws, key: &ObjectKey, templates: &[Template]) -> Value {
    let templates: Vec<_> = templates
        .iter()
        .map(|template| named(template.name, members(&template.terms)))
        .collect();
    json!({
        "apiVersion": Kind::Workload.api_version(),
        "kind": Kind::Workload.name(),
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": {label::NAME: &*lws.key().name},
            "ownerReferences": owner_reference(Kind::LeaderWorkerSet, &lws.meta),
        },
        "spec": {
            "controllerRef": {"apiGroup": GROUP, "kind": Kind::LeaderWorkerSet.name(), "name": &*lws.key().name},
            "podGroupTemplates": templates,
        },
    })
}

/// The templates of a stored Workload with other policies; a merge patch replaces the list as a whole.
pub fn templates(stored: &Workload, policy: impl Fn(&StoredTemplate) -> Policy) -> Value {
    let template = |template: &StoredTemplate| {
        let terms = Terms {
            policy: policy(template),
            ..template.terms.clone()
        };
        let mut members = members(&terms);
        if let Some(priority) = template.priority {
            members.insert("priority".to_owned(), json!(priority));
        }
        if let Some(policy) = &template.preemption_policy {
            members.insert("preemptionPolicy".to_owned(), json!(policy));
        }
        named(&template.name, members)
    };
    stored.templates.iter().map(template).collect()
}

/// A PodGroup.
pub fn pod_group(group: &PodGroupBody<'_>) -> Value {
    let lws = group.lws;
    let labels: Map<String, Value> = group
        .labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let mut owners = owner_reference(Kind::LeaderWorkerSet, &lws.meta);
    if let (Some(workload), Some(owners)) = (group.workload, owners.as_array_mut()) {
        owners.push(json!(workload_reference(workload)));
    }
    let mut spec = members(group.terms);
    let (workload, template) = group.made_from;
    spec.insert(
        "workloadRef".to_owned(),
        json!({"workloadName": workload, "templateName": template}),
    );
    json!({
        "apiVersion": Kind::PodGroup.api_version(),
        "kind": Kind::PodGroup.name(),
        "metadata": {
            "name": group.name,
            "namespace": &*lws.key().namespace,
            "labels": labels,
            "ownerReferences": owners,
        },
        "spec": spec,
    })
}

/// D.1: the Workload as a second owner, which does not control.
pub fn workload_reference(workload: &Meta) -> OwnerReference {
    OwnerReference {
        api_version: Kind::Workload.api_version().to_owned(),
        kind: Kind::Workload.name().to_owned(),
        name: workload.key.name.to_string(),
        uid: workload.uid.to_string(),
        ..OwnerReference::default()
    }
}

fn named(name: &str, mut members: Map<String, Value>) -> Value {
    members.insert("name".to_owned(), json!(name));
    Value::Object(members)
}

/// The members that a template and a PodGroup have in common.
fn members(terms: &Terms) -> Map<String, Value> {
    let Terms {
        policy,
        topology,
        disruption,
        claims,
        priority_class,
    } = terms;
    let policy = match policy {
        Policy::Basic => json!({"basic": {}}),
        Policy::Gang { min_count } => json!({"gang": {"minCount": min_count}}),
    };
    let mut members = Map::from_iter([("schedulingPolicy".to_owned(), policy)]);
    if !topology.is_empty() {
        let keys: Vec<_> = topology.iter().map(|key| json!({"key": key})).collect();
        members.insert(
            "schedulingConstraints".to_owned(),
            json!({"topology": keys}),
        );
    }
    if let Some(mode) = disruption {
        let mode = match mode {
            Disruption::Single => json!({"single": {}}),
            Disruption::All => json!({"all": {}}),
        };
        members.insert("disruptionMode".to_owned(), mode);
    }
    if !claims.is_empty() {
        members.insert(
            "resourceClaims".to_owned(),
            claims.iter().map(claim).collect(),
        );
    }
    if !priority_class.is_empty() {
        members.insert("priorityClassName".to_owned(), json!(priority_class));
    }
    members
}

fn claim(claim: &Claim) -> Value {
    let sources = [
        ("resourceClaimName", &claim.claim),
        ("resourceClaimTemplateName", &claim.template),
    ];
    let mut members = Map::from_iter([("name".to_owned(), json!(claim.name))]);
    for (key, source) in sources {
        members.extend(source.as_ref().map(|name| (key.to_owned(), json!(name))));
    }
    Value::Object(members)
}
