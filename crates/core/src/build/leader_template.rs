//! What leader workloads have in common: their own metadata, and what is added to the pod template of leaders (ORD-62, PT-1 … PT-7).

use lws_api::leaderworkerset::SubdomainPolicy;
use lws_api::names::{annotation, label, role};
use serde_json::{Map, Value, json};

use super::{
    exclusive_topology, gang_annotations, group_size, labels_over, members, name_label,
    owner_reference, subgroup_annotations,
};
use crate::gang::Membership;
use crate::intent::Kind;
use crate::model::Lws;

/// What leaders are made from.
#[derive(Clone, Copy, Debug)]
pub struct LeaderTemplate<'a> {
    /// The live set: leaders are built from it, not from a stored revision.
    pub lws: &'a Lws,
    /// Key of the current revision.
    pub revision_key: &'a str,
    /// FAIL-94: leaders carry the hint that groups end in parallel.
    pub parallel_hint: bool,
    /// PT-9: the gang that the leaders belong to.
    pub membership: Option<&'a Membership>,
}

/// Metadata of the workload that runs the leaders.
pub(super) fn metadata(lws: &Lws, revision_key: &str, annotations: Map<String, Value>) -> Value {
    let key = lws.key();
    let labels = labels_over(
        lws,
        &[
            name_label(lws),
            (label::REVISION, revision_key),
            (label::ROLE, role::LEADER),
        ],
    );
    json!({
        "name": &*key.name,
        "namespace": &*key.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": owner_reference(Kind::LeaderWorkerSet, &lws.meta),
    })
}

/// Labels and annotations, as a merge patch of the user's template.
pub(super) fn additions(template: &LeaderTemplate<'_>) -> Value {
    let LeaderTemplate {
        lws,
        revision_key,
        parallel_hint,
        membership,
    } = *template;
    let spec = &lws.spec;
    let labels = json!({label::NAME: &*lws.key().name, label::WORKER_INDEX: "0", label::REVISION: revision_key});
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
    if parallel_hint {
        annotations.push((annotation::POD_TERMINATION_POLICY, "Parallel".to_owned()));
    }
    annotations.extend(membership.into_iter().flat_map(gang_annotations));
    json!({"metadata": {"labels": labels, "annotations": members(annotations)}})
}
