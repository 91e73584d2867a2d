//! The leader Deployment of a Hash set (HASH-17, HASH-18, PT-8).

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lws_api::names::{GROUP_READY, annotation};
use serde_json::{Map, Value, json};

use super::leader_template::{LeaderTemplate, additions, metadata};
use super::{annotations_over, completed, group_size, without_nulls};
use crate::gang::Membership;
use crate::intent::Kind;
use crate::model::Lws;
use crate::ownership::leader_selector;

/// Annotations with this prefix belong to the Deployment controller.
const DEPLOYMENT_PREFIX: &str = "deployment.kubernetes.io/";

/// What is decided about the leader Deployment apart from the spec of its set.
#[derive(Clone, Copy, Debug)]
pub struct LeaderDeployment<'a> {
    /// The live set.
    pub lws: &'a Lws,
    /// Key of the current revision.
    pub revision_key: &'a str,
    /// Wanted groups.
    pub replicas: u32,
    /// FAIL-94: leaders carry the hint that groups end in parallel.
    pub parallel_hint: bool,
    /// PT-9: the gang that the leaders belong to.
    pub membership: Option<&'a Membership>,
}

/// The full configuration, for a create and for an apply alike.
pub fn leader_deployment(deployment: &LeaderDeployment<'_>) -> Value {
    let LeaderDeployment {
        lws,
        revision_key,
        replicas,
        parallel_hint,
        membership,
    } = *deployment;
    let template = template(&LeaderTemplate {
        lws,
        revision_key,
        parallel_hint,
        membership,
    });
    json!({
        "apiVersion": Kind::Deployment.api_version(),
        "kind": Kind::Deployment.name(),
        "metadata": metadata(lws, revision_key, annotations(lws, replicas)),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": leader_selector(lws.key())},
            "strategy": strategy(lws),
            "template": template,
        },
    })
}

fn annotations(lws: &Lws, replicas: u32) -> Map<String, Value> {
    let mut annotations = annotations_over(lws, &[(annotation::REPLICAS, &replicas.to_string())]);
    annotations.retain(|key, _| !key.starts_with(DEPLOYMENT_PREFIX));
    annotations
}

/// HASH-18: as the user wrote it. The API refuses two literal zeros, which can be stored while no group is wanted (ORD-59).
fn strategy(lws: &Lws) -> Value {
    let (unavailable, surge) = (lws.spec.max_unavailable(), lws.spec.max_surge());
    let unavailable = if is_zero(&unavailable) && is_zero(&surge) {
        IntOrString::Int(1)
    } else {
        unavailable
    };
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}})
}

fn is_zero(value: &IntOrString) -> bool {
    match value {
        IntOrString::Int(number) => *number == 0,
        IntOrString::String(text) => text
            .strip_suffix('%')
            .is_some_and(|percent| percent.parse() == Ok(0)),
    }
}

/// PT-8: pod template of the leaders.
pub fn template(leaders: &LeaderTemplate<'_>) -> Value {
    let lws = leaders.lws;
    let mut additions = additions(leaders);
    let identity = json!({
        "metadata": {"annotations": {annotation::GROUP_IDENTITY: "Hash"}},
        "spec": {"subdomain": &*lws.key().name},
    });
    json_patch::merge(&mut additions, &identity);
    let user = lws.spec.leader_worker_template.leader_template();
    if group_size(&lws.spec) > 1 {
        let gates = json!({"spec": {"readinessGates": readiness_gates(user.as_value())}});
        json_patch::merge(&mut additions, &gates);
    }
    completed(user, &additions)
}

/// PT-8: the user's gates, then ours.
fn readiness_gates(user: &Value) -> Vec<Value> {
    let gate = json!({"conditionType": GROUP_READY});
    let theirs = user
        .pointer("/spec/readinessGates")
        .and_then(Value::as_array);
    theirs
        .into_iter()
        .flatten()
        .map(without_nulls)
        .filter(|theirs| *theirs != gate)
        .chain([gate.clone()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::tests::{demo, lws};

    fn built(patch: Value) -> Value {
        let mut set = demo();
        json_patch::merge(&mut set, &json!({"spec": {"groupIdentity": "Hash"}}));
        json_patch::merge(&mut set, &patch);
        let lws = lws(set);
        let mut built = leader_deployment(&LeaderDeployment {
            lws: &lws,
            revision_key: "key",
            replicas: 2,
            parallel_hint: false,
            membership: None,
        });
        built.sort_all_objects();
        built
    }

    #[test]
    fn hash_17_leader_deployment() {
        insta::assert_yaml_snapshot!(built(json!({})));
    }

    #[test]
    fn hash_17_annotations_of_the_deployment_controller_stay_behind() {
        let theirs =
            json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "7"}}});
        assert_eq!(
            built(theirs)["metadata"]["annotations"],
            json!({"note": "a", annotation::REPLICAS: "2"})
        );
    }

    #[test]
    fn pod_pt_8_the_users_readiness_gates_come_first() {
        let gates = |size: u32, user: Value| {
            let template =
                json!({"leaderTemplate": {"spec": {"readinessGates": user}}, "size": size});
            built(json!({"spec": {"leaderWorkerTemplate": template}}))["spec"]["template"]["spec"]
                .get("readinessGates")
                .cloned()
        };
        let (ours, theirs) = (
            json!({"conditionType": GROUP_READY}),
            json!({"conditionType": "x"}),
        );
        assert_eq!(gates(2, json!([theirs])), Some(json!([theirs, ours])));
        assert_eq!(gates(2, json!([ours])), Some(json!([ours])));
        assert_eq!(gates(2, json!("absurd")), Some(json!([ours])));
        assert_eq!(gates(1, Value::Null), None, "a group of one is its leader");
        assert_eq!(gates(1, json!([theirs])), Some(json!([theirs])));
    }

    #[test]
    fn pod_pt_8_the_subdomain_is_the_set() {
        let template = json!({"leaderTemplate": {"spec": {"subdomain": "theirs"}}});
        let built = built(json!({"spec": {"leaderWorkerTemplate": template}}));
        assert_eq!(built["spec"]["template"]["spec"]["subdomain"], "demo");
    }

    #[test]
    fn hash_18_rollout_numbers_are_copied() {
        for (unavailable, surge, written) in [
            (json!(1), json!(0), json!(1)),
            (json!("25%"), json!("25%"), json!("25%")),
            (json!("25%"), json!(0), json!("25%")),
            (json!(0), json!("50%"), json!(0)),
            (json!("15%"), json!("15%"), json!("15%")),
            (json!(0), json!(0), json!(1)),
            (json!("0%"), json!("0%"), json!(1)),
            (json!(0), json!("0%"), json!(1)),
        ] {
            let numbers = json!({"maxUnavailable": unavailable, "maxSurge": surge});
            let strategy = json!({"rolloutStrategy": {"rollingUpdateConfiguration": numbers}});
            let built = built(json!({"spec": strategy}));
            assert_eq!(
                built["spec"]["strategy"],
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": written, "maxSurge": surge}}),
            );
        }
    }
}
