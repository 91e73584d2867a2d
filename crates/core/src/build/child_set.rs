//! Child LeaderWorkerSets of a DisaggregatedSet (reconcile-disaggregatedset section 4.1).

use std::collections::BTreeMap;

use lws_api::disaggregatedset::Role;
use lws_api::names::{ds_annotation, ds_env, ds_label};
use serde_json::{Map, Value, json};

use super::affinity::Placement;
use super::over;
use crate::intent::Kind;
use crate::model::Ds;

/// A child that is to be created.
#[derive(Clone, Copy, Debug)]
pub struct ChildSet<'a> {
    /// The DisaggregatedSet.
    pub set: &'a Ds,
    /// The role, as it stands in the spec.
    pub role: &'a Role,
    /// Index of the slice.
    pub slice: u32,
    /// Revision that the child is named after.
    pub revision: &'a str,
    /// Revision value of the roles as they are (REV-1).
    pub content_hash: &'a str,
    /// CHL-3: groups to start with.
    pub replicas: u32,
    /// CHL-3: groups in the end.
    pub initial_replicas: u32,
    /// API-4: groups that a rollout of the child may add and take away.
    pub budget: (u32, u32),
}

/// API 9: name of a child.
pub fn name(set: &str, slice: u32, revision: &str, role: &str) -> String {
    format!("{set}-{slice}-{revision}-{role}")
}

/// CHL-1, CHL-2.
pub fn child_set(child: &ChildSet<'_>) -> Value {
    let set = child.set;
    let key = set.key();
    json!({
        "apiVersion": Kind::LeaderWorkerSet.api_version(),
        "kind": Kind::LeaderWorkerSet.name(),
        "metadata": {
            "name": name(&key.name, child.slice, child.revision, &child.role.name),
            "namespace": &*key.namespace,
            "labels": labels(child),
            "annotations": annotations(child),
            // OWN-1: unlike other references of ours, this one does not hold up the deletion of the owner.
            "ownerReferences": [{
                "apiVersion": Kind::DisaggregatedSet.api_version(),
                "kind": Kind::DisaggregatedSet.name(),
                "name": &*key.name,
                "uid": set.meta.uid.as_str(),
                "controller": true,
            }],
        },
        "spec": spec(child),
    })
}

/// LBL-2.
fn labels(child: &ChildSet<'_>) -> Map<String, Value> {
    let theirs = child
        .role
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.labels.as_ref());
    let ours = injected(child);
    let ours: Vec<(&str, &str)> = ours
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    over(pairs(theirs), &ours)
}

fn annotations(child: &ChildSet<'_>) -> Map<String, Value> {
    let theirs = child
        .role
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.annotations.as_ref());
    let initial = child.initial_replicas.to_string();
    over(
        pairs(theirs),
        &[
            (ds_annotation::INITIAL_REPLICAS, &initial),
            (ds_annotation::CONTENT_HASH, child.content_hash),
        ],
    )
}

fn pairs(map: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

/// API 7.1.
fn injected(child: &ChildSet<'_>) -> [(&'static str, String); 4] {
    [
        (ds_label::NAME, child.set.key().name.to_string()),
        (ds_label::ROLE, child.role.name.clone()),
        (ds_label::SLICE, child.slice.to_string()),
        (ds_label::REVISION, child.revision.to_owned()),
    ]
}

fn spec(child: &ChildSet<'_>) -> Value {
    // Plain data with text keys: it has no way not to be serialised.
    let mut spec = serde_json::to_value(&child.role.spec).unwrap_or_default();
    json_patch::merge(&mut spec, &json!({"replicas": child.replicas}));
    if let Some(configuration) = spec.pointer_mut("/rolloutStrategy/rollingUpdateConfiguration") {
        json_patch::merge(configuration, &rollout_budget(child.budget));
    }
    for template in ["leaderTemplate", "workerTemplate"] {
        let template = spec.pointer_mut(&format!("/leaderWorkerTemplate/{template}"));
        if let Some(template) = template.filter(|template| template.is_object()) {
            complete(template, child);
        }
    }
    spec
}

/// SCP-2: a child never sees percentages.
pub fn rollout_budget((surge, unavailable): (u32, u32)) -> Value {
    json!({"maxSurge": surge, "maxUnavailable": unavailable})
}

fn complete(template: &mut Value, child: &ChildSet<'_>) {
    let labels: Map<String, Value> = injected(child)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    json_patch::merge(template, &json!({"metadata": {"labels": labels}}));
    for list in ["/spec/initContainers", "/spec/containers"] {
        let containers = template.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            add_variables(container, child);
        }
    }
    Placement::of(&child.set.key().name, &child.set.spec, child.slice).add_to(template);
}

/// ENV-1: in front, in place of variables of the same names.
fn add_variables(container: &mut Value, child: &ChildSet<'_>) {
    let values = [
        &*child.set.key().name,
        &child.role.name,
        &child.slice.to_string(),
        child.revision,
    ];
    let ours = ds_env::ALL.into_iter().zip(values);
    let mut env: Vec<Value> = ours
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let theirs = container
        .get("env")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    env.extend(theirs.filter(|variable| !is_injected(variable)).cloned());
    if let Some(container) = container.as_object_mut() {
        container.insert("env".to_owned(), Value::Array(env));
    }
}

/// Whether a variable has one of our names.
pub fn is_injected(variable: &Value) -> bool {
    let name = variable
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    ds_env::ALL.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disaggregatedset::tests::fixture::ds;

    fn built(patch: Value) -> Value {
        let mut role = json!({"name": "prefill", "spec": {"replicas": 4, "leaderWorkerTemplate": {
            "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        }}});
        json_patch::merge(&mut role, &patch);
        let set = ds(
            "pd",
            json!({"roles": [role], "placementPolicy": {"type": "ExclusiveSlice", "topology": "rack"}}),
        );
        let child = ChildSet {
            set: &set,
            role: &set.spec.roles[0],
            slice: 1,
            revision: "907fa611",
            content_hash: "907fa611",
            replicas: 0,
            initial_replicas: 4,
            budget: (1, 0),
        };
        child_set(&child)
    }

    #[test]
    fn dsr_chl_1_a_child_as_it_is_created() {
        let metadata =
            json!({"labels": {"queue": "q", ds_label::ROLE: "mine"}, "annotations": {"a": "b"}});
        let leader = json!({"metadata": {"labels": {"l": "1"}}, "spec": {
            "initContainers": [{"name": "first"}], "containers": [{"name": "c"}],
        }});
        let child = built(json!({
            "metadata": metadata,
            "spec": {
                "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": "25%", "maxUnavailable": "0%"}},
                "leaderWorkerTemplate": {"size": 2, "leaderTemplate": leader},
            },
        }));
        insta::assert_snapshot!(serde_saphyr::to_string(&child).unwrap());
    }

    #[test]
    fn ds_env_1_our_variables_stand_in_front_and_win() {
        let env = json!([{"name": "A", "value": "1"}, {"name": "DISAGGREGATEDSET_ROLE", "valueFrom": {}},
            {"name": "B", "value": "$(DISAGGREGATEDSET_ROLE)"}]);
        let child = built(
            json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "c", "env": env}]}}}}}),
        );
        let env = &child["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
            ["env"];
        let pairs: Vec<_> = env
            .as_array()
            .unwrap()
            .iter()
            .map(|v| (v["name"].as_str().unwrap(), v["value"].as_str().unwrap()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("DISAGGREGATEDSET_NAME", "pd"),
                ("DISAGGREGATEDSET_ROLE", "prefill"),
                ("DISAGGREGATEDSET_SLICE", "1"),
                ("DISAGGREGATEDSET_REVISION", "907fa611"),
                ("A", "1"),
                ("B", "$(DISAGGREGATEDSET_ROLE)"),
            ]
        );
    }

    #[test]
    fn dsr_chl_2_without_a_rollout_strategy_none_is_made() {
        assert_eq!(built(json!({}))["spec"].get("rolloutStrategy"), None);
        let odd = built(json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": null}}}));
        assert_eq!(odd["spec"]["replicas"], 0);
    }
}
