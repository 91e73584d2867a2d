//! DisaggregatedSets: the base manifest of the cases, `D(name, role=replicas, …)`, and what tests ask about them.

use std::collections::BTreeMap;

use anyhow::Result;
use lws_api::names::ds_label;
use lws_local_cluster::MANUAL_STATUS;
use serde_json::{Value, json};

use crate::world::is_observed;
use crate::{Bench, Kind, Object, World};

/// A DisaggregatedSet to be written.
#[derive(Clone, Debug)]
pub struct Roles(Value);

impl Roles {
    /// `D(name, role=replicas, …)`: every role has size 1 and one container `c` with `nginx:1.27`.
    pub fn new(name: &str, roles: &[(&str, i64)]) -> Self {
        let roles: Vec<Value> = roles
            .iter()
            .map(|(role, replicas)| role_of(role, *replicas))
            .collect();
        Self(json!({
            "apiVersion": "disaggregatedset.x-k8s.io/v1",
            "kind": "DisaggregatedSet",
            "metadata": {"name": name},
            "spec": {"roles": roles},
        }))
    }

    /// Merges into `spec`.
    pub fn spec(mut self, patch: Value) -> Self {
        merge(&mut self.0["spec"], &patch);
        self
    }

    /// Merges into a role, which is added if there is none of that name.
    pub fn role(mut self, name: &str, patch: Value) -> Self {
        let roles = self.0["spec"]["roles"]
            .as_array_mut()
            .expect("a list of roles");
        if !roles.iter().any(|role| role["name"] == name) {
            roles.push(role_of(name, 1));
        }
        for role in roles.iter_mut().filter(|role| role["name"] == name) {
            merge(role, &patch);
        }
        self
    }

    /// Takes a role away.
    pub fn without(mut self, name: &str) -> Self {
        let roles = self.0["spec"]["roles"]
            .as_array_mut()
            .expect("a list of roles");
        roles.retain(|role| role["name"] != name);
        self
    }

    /// Merges into the worker template of every role.
    pub fn pods(self, patch: Value) -> Self {
        let names: Vec<String> = self.names();
        names.iter().fold(self, |set, name| {
            set.role(
                name,
                json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": patch}}}),
            )
        })
    }

    /// Sets the image of every role.
    pub fn image(self, image: &str) -> Self {
        self.pods(json!({"spec": {"containers": [{"name": "c", "image": image}]}}))
    }

    /// Sets the rollout budgets of a role.
    pub fn budget(self, role: &str, max_surge: Value, max_unavailable: Value) -> Self {
        let limits = json!({"maxSurge": max_surge, "maxUnavailable": max_unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": limits});
        self.role(role, json!({"spec": {"rolloutStrategy": strategy}}))
    }

    /// The test sets the status of the pods; KWOK does not.
    pub fn manual(self) -> Self {
        self.pods(json!({"metadata": {"annotations": {MANUAL_STATUS: "true"}}}))
    }

    /// Names of its roles.
    pub fn names(&self) -> Vec<String> {
        let roles = self.0["spec"]["roles"].as_array().into_iter().flatten();
        roles
            .filter_map(|role| role["name"].as_str())
            .map(str::to_owned)
            .collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().expect("a name")
    }
}

impl From<Roles> for Value {
    fn from(roles: Roles) -> Self {
        roles.0
    }
}

fn role_of(name: &str, replicas: i64) -> Value {
    let pod = json!({"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}});
    json!({"name": name, "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": 1, "workerTemplate": pod}}})
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, member) in patch {
                if member.is_null() {
                    into.remove(name);
                } else {
                    merge(into.entry(name.clone()).or_insert(Value::Null), member);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

impl World {
    /// Child sets that the DisaggregatedSet controls, by name.
    pub fn children(&self, set: &str) -> Vec<&Object> {
        let Some(owner) = self.find(Kind::DisaggregatedSet, set) else {
            return Vec::new();
        };
        self.all(Kind::Set)
            .filter(|child| child.is_controlled_by(owner))
            .collect()
    }

    /// The children of one role.
    pub fn children_of_role(&self, set: &str, role: &str) -> Vec<&Object> {
        let children = self.children(set).into_iter();
        children
            .filter(|child| child.label(ds_label::ROLE) == Some(role))
            .collect()
    }

    /// Names of the children.
    pub fn child_names(&self, set: &str) -> Vec<&str> {
        self.children(set).into_iter().map(Object::name).collect()
    }

    /// UIDs of all pods of a DisaggregatedSet, by name.
    pub fn pods_of_roles(&self, set: &str) -> BTreeMap<String, String> {
        let pods = self
            .all(Kind::Pod)
            .filter(|pod| pod.label(ds_label::NAME) == Some(set));
        pods.map(|pod| (pod.name().to_owned(), pod.uid().to_owned()))
            .collect()
    }

    /// Entry of a role in the status: desired, replicas, ready, updated.
    pub fn role_status(&self, set: &str, role: &str) -> [i64; 4] {
        let set = self.find(Kind::DisaggregatedSet, set);
        let entries = set.and_then(|set| set.at("/status/roleStatuses").as_array());
        let entry = entries
            .into_iter()
            .flatten()
            .find(|entry| entry["name"] == role);
        [
            "desiredReplicas",
            "replicas",
            "readyReplicas",
            "updatedReplicas",
        ]
        .map(|number| {
            entry
                .and_then(|entry| entry[number].as_i64())
                .unwrap_or_default()
        })
    }

    /// Whether all roles are as they are written now, and nothing of an old revision is left.
    pub fn are_roles_available(&self, set: &str) -> bool {
        let Some(object) = self.find(Kind::DisaggregatedSet, set) else {
            return false;
        };
        let mut revisions: Vec<_> = self
            .children(set)
            .iter()
            .map(|child| child.label(ds_label::REVISION))
            .collect();
        revisions.dedup();
        is_observed(object) && object.is("Available") && revisions.len() <= 1
    }
}

impl Bench {
    /// Waits until all roles of a DisaggregatedSet are as they are written now.
    pub async fn until_roles_available(&self, set: &str) -> Result<()> {
        let what = format!("all roles of {set} are available");
        self.until(&what, |world| world.are_roles_available(set))
            .await
    }

    /// Replaces the spec of a DisaggregatedSet.
    pub async fn replace_roles(&self, roles: Roles) -> Result<Object> {
        let name = roles.name().to_owned();
        let spec = Value::from(roles)["spec"].take();
        self.replace_spec_of(Kind::DisaggregatedSet, &name, spec)
            .await
    }
}
