//! The worker StatefulSet of one group (ORD-90 … ORD-92, PT-10 … PT-15).

use lws_api::leaderworkerset::LeaderWorkerSetSpec;
use lws_api::names::{annotation, label, role};
use serde_json::{Map, Value, json};

use super::claims::add_claims;
use super::{
    annotations_over, completed, exclusive_topology, gang_annotations, group_size, labels_over,
    members, name_label, owner_reference, subgroup_annotations,
};
use crate::gang::Membership;
use crate::intent::Kind;
use crate::model::{Lws, Pod};

/// The group whose workers are wanted. Its leader has a host name and a subdomain (PT-17) and its size is above one.
#[derive(Clone, Copy, Debug)]
pub struct GroupTemplate<'a> {
    /// The live set: labels and annotations come from it.
    pub lws: &'a Lws,
    /// Spec of the set as of the leader's revision (ORD-38).
    pub spec: &'a LeaderWorkerSetSpec,
    /// The leader pod.
    pub leader: &'a Pod,
    /// EX-6: node label and value that the workers must share with the leader.
    pub topology: Option<(&'a str, &'a str)>,
    /// PT-16: the gang that the workers belong to.
    pub membership: Option<&'a Membership>,
}

/// ORD-4: name of the worker set of a leader.
pub fn worker_set_name(leader: &Pod) -> &str {
    if leader.hostname.is_empty() {
        &leader.key().name
    } else {
        &leader.hostname
    }
}

/// The StatefulSet as it is created; it is never changed afterwards (ORD-81).
pub fn worker_set(group: &GroupTemplate<'_>) -> Value {
    let GroupTemplate {
        lws,
        spec: as_of_revision,
        leader,
        topology: _,
        membership: _,
    } = *group;
    let revision = leader.meta.label(label::REVISION);
    let selector = selector(group);
    let labels = labels_over(
        lws,
        &[
            name_label(lws),
            (label::GROUP_INDEX, leader.meta.label(label::GROUP_INDEX)),
            (label::GROUP_KEY, leader.meta.label(label::GROUP_KEY)),
            (label::REVISION, revision),
            (label::ROLE, role::WORKER),
        ],
    );
    let mut spec = Map::from_iter([
        ("serviceName".to_owned(), json!(leader.subdomain)),
        (
            "replicas".to_owned(),
            json!(group_size(as_of_revision).saturating_sub(1)),
        ),
        ("podManagementPolicy".to_owned(), json!("Parallel")),
        ("ordinals".to_owned(), json!({"start": 1})),
        ("selector".to_owned(), json!({"matchLabels": selector})),
        ("template".to_owned(), template(group)),
    ]);
    add_claims(
        &mut spec,
        &as_of_revision.leader_worker_template,
        &lws.key().namespace,
    );
    json!({
        "apiVersion": Kind::StatefulSet.api_version(),
        "kind": Kind::StatefulSet.name(),
        "metadata": {
            "name": worker_set_name(leader),
            "namespace": &*lws.key().namespace,
            "labels": labels,
            "annotations": annotations_over(lws, &[]),
            "ownerReferences": owner_reference(Kind::Pod, &leader.meta),
        },
        "spec": spec,
    })
}

fn selector(group: &GroupTemplate<'_>) -> Value {
    json!({
        label::NAME: &*group.lws.key().name,
        label::GROUP_INDEX: group.leader.meta.label(label::GROUP_INDEX),
        label::GROUP_KEY: group.leader.meta.label(label::GROUP_KEY),
    })
}

/// ORD-91: the workers' pod template.
fn template(group: &GroupTemplate<'_>) -> Value {
    let GroupTemplate {
        lws,
        spec,
        leader,
        topology,
        membership,
    } = *group;
    let mut labels = selector(group);
    json_patch::merge(
        &mut labels,
        &json!({label::REVISION: leader.meta.label(label::REVISION)}),
    );
    let address = format!(
        "{}.{}.{}",
        leader.hostname,
        leader.subdomain,
        lws.key().namespace
    );
    let kind = spec
        .leader_worker_template
        .sub_group_policy
        .as_ref()
        .and_then(|policy| policy.sub_group_policy_type);
    let mut annotations = vec![
        (annotation::SIZE, group_size(spec).to_string()),
        (annotation::LEADER_NAME, leader.key().name.to_string()),
        (annotation::LEADER_ADDRESS, address),
    ];
    annotations.extend(exclusive_topology(lws));
    annotations.extend(subgroup_annotations(lws, spec, kind));
    if leader.is_hash() {
        annotations.push((annotation::GROUP_IDENTITY, "Hash".to_owned()));
    }
    annotations.extend(membership.into_iter().flat_map(gang_annotations));
    if leader.requests_tpus {
        annotations.push((annotation::LEADER_REQUESTS_TPUS, "true".to_owned()));
    }
    let mut additions =
        json!({"metadata": {"labels": labels, "annotations": members(annotations)}});
    if let Some((key, value)) = topology {
        json_patch::merge(
            &mut additions,
            &json!({"spec": {"nodeSelector": {key: value}}}),
        );
    }
    completed(&spec.leader_worker_template.worker_template, &additions)
}
