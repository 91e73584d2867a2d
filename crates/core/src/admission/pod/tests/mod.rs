//! Every row of the tables in pods.md, as far as admission decides it.

mod denials;
mod gang;
mod groups;
mod placement;
mod robust;
mod tpu;
mod variables;

use serde_json::{Map, Value, json};

use super::{Denial, Request, mutate};
use crate::admission::Environment;

const PREFIX: &str = "leaderworkerset.sigs.k8s.io/";

/// A pod as the workload controllers make it: host name and subdomain are set, one container.
struct Pod {
    value: Value,
}

impl Pod {
    fn new(name: &str) -> Self {
        let value = json!({
            "metadata": {"name": name, "namespace": "default", "labels": {}, "annotations": {}},
            "spec": {"hostname": name, "subdomain": "demo", "containers": [{"name": "c"}]},
        });
        Self { value }
    }

    fn leader(name: &str, size: u32) -> Self {
        let set = name.rsplit_once('-').map_or(name, |(set, _)| set);
        Self::new(name)
            .label("name", set)
            .label("worker-index", "0")
            .annotation("size", &size.to_string())
    }

    fn worker(name: &str, size: u32) -> Self {
        let leader = name.rsplit_once('-').map_or(name, |(leader, _)| leader);
        let (set, index) = leader.rsplit_once('-').unwrap_or((leader, "0"));
        Self::new(name)
            .label("name", set)
            .label("group-index", index)
            .annotation("size", &size.to_string())
            .annotation("leader-name", leader)
    }

    fn hash_leader(size: u32) -> Self {
        let pod = Self::leader("demo-7d9f8b6c4-x2kkp", size)
            .label("name", "demo")
            .annotation("group-identity", "Hash");
        pod.with("/spec/hostname", Value::Null)
            .with("/metadata/name", Value::Null)
    }

    fn label(self, key: &str, value: &str) -> Self {
        self.with(&format!("/metadata/labels/{}", escape(key)), value.into())
    }

    fn annotation(self, key: &str, value: &str) -> Self {
        self.with(
            &format!("/metadata/annotations/{}", escape(key)),
            value.into(),
        )
    }

    fn without_annotation(self, key: &str) -> Self {
        self.with(
            &format!("/metadata/annotations/{}", escape(key)),
            Value::Null,
        )
    }

    fn subdomain(self, value: &str) -> Self {
        self.with("/spec/subdomain", value.into())
    }

    fn containers(self, value: Value) -> Self {
        self.with("/spec/containers", value)
    }

    /// Sets a member whose parent exists; null removes it.
    fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let member = member.replace("~1", "/");
        let parent = self
            .value
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap();
        if value.is_null() {
            parent.remove(&member)
        } else {
            parent.insert(member, value)
        };
        self
    }

    fn admit(self) -> Result<Admitted, Denial> {
        self.admit_in(&Environment::default())
    }

    fn admit_in(self, environment: &Environment) -> Result<Admitted, Denial> {
        let request = Request {
            pod: &self.value,
            namespace: "default",
            random: 42,
        };
        let patch = mutate(&request, environment)?;
        let mut value = self.value.clone();
        if let Some(patch) = &patch {
            json_patch::patch(&mut value, patch).unwrap();
        }
        Ok(Admitted { value })
    }
}

/// Keys without a prefix of their own get ours.
fn escape(key: &str) -> String {
    if key.contains('/') {
        key.replace('/', "~1")
    } else {
        format!("{PREFIX}{key}").replace('/', "~1")
    }
}

/// The pod as the API server would store it.
#[derive(Debug)]
struct Admitted {
    value: Value,
}

impl Admitted {
    fn label(&self, key: &str) -> &str {
        self.text(&format!("/metadata/labels/{}", escape(key)))
    }

    fn annotation(&self, key: &str) -> &str {
        self.text(&format!("/metadata/annotations/{}", escape(key)))
    }

    /// The string at a pointer, `-` where there is none.
    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("-")
    }

    /// Environment of a container as `NAME=value` texts.
    fn env(&self, container: &str) -> Vec<String> {
        let entries = self
            .value
            .pointer(&format!("/spec/{container}/env"))
            .and_then(Value::as_array);
        let text = |entry: &Value, member| {
            entry
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        entries
            .into_iter()
            .flatten()
            .map(|entry| format!("{}={}", text(entry, "name"), text(entry, "value")))
            .collect()
    }

    /// Value of one variable of a container, `-` without it.
    fn variable(&self, container: &str, name: &str) -> String {
        let env = self.env(container);
        let own = env
            .iter()
            .find_map(|entry| entry.strip_prefix(&format!("{name}=")));
        own.unwrap_or("-").to_owned()
    }

    fn gates(&self) -> Vec<&str> {
        let gates = self
            .value
            .pointer("/spec/schedulingGates")
            .and_then(Value::as_array);
        gates
            .into_iter()
            .flatten()
            .filter_map(|gate| gate.get("name").and_then(Value::as_str))
            .collect()
    }

    fn labels(&self) -> Map<String, Value> {
        self.value
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    }
}
