//! The leader StatefulSet (ORD-60 … ORD-65).

use lws_api::names::annotation;
use serde_json::{Map, Value, json};

use super::claims::add_claims;
use super::leader_template::{LeaderTemplate, additions, metadata};
use super::{annotations_over, completed};
use crate::gang::Membership;
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
    /// PT-9: the gang that the leaders belong to.
    pub membership: Option<&'a Membership>,
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
        parallel_hint,
        membership,
    } = *set;
    let key = lws.key();
    let annotations = annotations_over(
        lws,
        &[(annotation::REPLICAS, &desired_replicas.to_string())],
    );
    let template = template(&LeaderTemplate {
        lws,
        revision_key,
        parallel_hint,
        membership,
    });
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
        ("template".to_owned(), template),
    ]);
    add_claims(&mut spec, &lws.spec.leader_worker_template, &key.namespace);
    json!({
        "apiVersion": Kind::StatefulSet.api_version(),
        "kind": Kind::StatefulSet.name(),
        "metadata": metadata(lws, revision_key, annotations),
        "spec": spec,
    })
}

/// ORD-62: pod template of the leaders.
pub fn template(leaders: &LeaderTemplate<'_>) -> Value {
    let user = leaders.lws.spec.leader_worker_template.leader_template();
    completed(user, &additions(leaders))
}
