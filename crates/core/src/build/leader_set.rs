//! The leader StatefulSet (ORD-60 … ORD-65, PT-1 … PT-7).

use lws_api::leaderworkerset::SubdomainPolicy;
use lws_api::names::{annotation, label, role};
use serde_json::{Map, Value, json};

use super::claims::add_claims;
use super::{
    annotations_over, completed, exclusive_topology, group_size, labels_over, members, name_label,
    owner_reference, subgroup_annotations,
};
use crate::intent::Kind;
use crate::model::Lws;
use crate::ownership::leader_selector;

/// What is decided about the leader set apart from the spec of its set.
#[derive(Clone, Copy, Debug)]
pub struct LeaderSet<'a> {
    /// The live set: leaders are built from it, not from a stored revision.
    pub lws: &'a Lws,
    /// Key of the current revision.
    pub revision_key: &'a str,
    /// Wanted groups, `spec.replicas`.
    pub desired_replicas: u32,
    /// Groups to run now, surge included.
    pub replicas: u32,
    /// Lowest group index that is updated.
    pub partition: u32,
    /// ORD-63: groups that the StatefulSet controller may replace at a time.
    pub max_unavailable: u32,
    /// FAIL-94: leaders carry the hint that groups end in parallel.
    pub parallel_hint: bool,
}

/// The full configuration, for a create and for an apply alike.
pub fn leader_set(set: &LeaderSet<'_>) -> Value {
    let LeaderSet {
        lws,
        revision_key,
        desired_replicas,
        replicas,
        partition,
        max_unavailable,
        parallel_hint: _,
    } = *set;
    let key = lws.key();
    let labels = labels_over(
        lws,
        &[
            name_label(lws),
            (label::REVISION, revision_key),
            (label::ROLE, role::LEADER),
        ],
    );
    let annotations = annotations_over(
        lws,
        &[(annotation::REPLICAS, &desired_replicas.to_string())],
    );
    let mut spec = Map::from_iter([
        ("serviceName".to_owned(), json!(&*key.name)),
        ("replicas".to_owned(), json!(replicas)),
        ("podManagementPolicy".to_owned(), json!("Parallel")),
        (
            "selector".to_owned(),
            json!({"matchLabels": leader_selector(key)}),
        ),
        (
            "updateStrategy".to_owned(),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable, "partition": partition}}),
        ),
        ("template".to_owned(), template(set)),
    ]);
    add_claims(&mut spec, &lws.spec.leader_worker_template, &key.namespace);
    json!({
        "apiVersion": Kind::StatefulSet.api_version(),
        "kind": Kind::StatefulSet.name(),
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": owner_reference(Kind::LeaderWorkerSet, &lws.meta),
        },
        "spec": spec,
    })
}

/// ORD-62: the leader's pod template.
fn template(set: &LeaderSet<'_>) -> Value {
    let lws = set.lws;
    let spec = &lws.spec;
    let labels = json!({label::NAME: &*lws.key().name, label::WORKER_INDEX: "0", label::REVISION: set.revision_key});
    let kind = spec
        .leader_worker_template
        .sub_group_policy
        .as_ref()
        .map(|policy| policy.policy_type());
    let mut annotations = vec![(annotation::SIZE, group_size(spec).to_string())];
    annotations.extend(exclusive_topology(lws));
    annotations.extend(subgroup_annotations(lws, spec, kind));
    match spec.subdomain_policy() {
        SubdomainPolicy::Shared => {}
        SubdomainPolicy::UniquePerReplica => {
            annotations.push((annotation::SUBDOMAIN_POLICY, "UniquePerReplica".to_owned()))
        }
    }
    if set.parallel_hint {
        annotations.push((annotation::POD_TERMINATION_POLICY, "Parallel".to_owned()));
    }
    completed(
        spec.leader_worker_template.leader_template(),
        &json!({"metadata": {"labels": labels, "annotations": members(annotations)}}),
    )
}
