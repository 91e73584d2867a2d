//! The StatefulSet controller of Kubernetes 1.37, policy Parallel: it sees the truth, and makes one write at a time.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{controller, is_ready, label, number, uid};
use crate::store::{Key, Kind, Store, is_terminating, text};

/// Label of a pod that names the revision of its set.
pub const REVISION: &str = "controller-revision-hash";

/// What the controller would write next.
#[derive(Clone, Debug)]
pub enum Write {
    /// A pod or a revision.
    Create(Key, Value),
    /// A pod.
    Delete(Key, String),
    /// A pod gets its owner reference.
    Adopt(Key, Value),
    /// The set's status.
    Status(Key, Value),
}

/// One set with its pods, by ordinal.
struct Sync<'a> {
    key: &'a Key,
    set: &'a Value,
    pods: BTreeMap<i64, &'a Arc<Value>>,
    update: String,
    current: String,
}

/// The next write for the set `key`, if one is due. `gate`: feature MaxUnavailableStatefulSet.
pub fn next(store: &Store, key: &Key, gate: bool) -> Option<Write> {
    let set = store.get(key)?;
    let update = revision_name(key, set);
    let stored = text(set, "/status/currentRevision").unwrap_or_default();
    let current = if stored.is_empty() {
        update.clone()
    } else {
        stored.to_owned()
    };
    let pods = pods(store, key, set);
    let sync = Sync {
        key,
        set,
        pods,
        update,
        current,
    };
    let work = if is_terminating(set) {
        None
    } else {
        sync.adopt(store)
            .or_else(|| sync.revision(store))
            .or_else(|| sync.pod_to_end(gate))
            .or_else(|| sync.pod_to_create(store))
    };
    work.or_else(|| sync.status())
}

fn pods<'a>(store: &'a Store, key: &Key, set: &Value) -> BTreeMap<i64, &'a Arc<Value>> {
    store
        .list(Kind::Pod)
        .filter(|(pod, object)| {
            pod.namespace == key.namespace
                && controller(object).is_some_and(|owner| owner["uid"] == uid(set))
        })
        .filter_map(|(pod, object)| Some((ordinal(key, pod)?, object)))
        .collect()
}

fn ordinal(set: &Key, pod: &Key) -> Option<i64> {
    pod.name
        .strip_prefix(&*set.name)?
        .strip_prefix('-')?
        .parse()
        .ok()
}

fn hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.hash(&mut hasher);
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

fn revision_name(key: &Key, set: &Value) -> String {
    format!("{}-{}", key.name, hash(&set["spec"]["template"]))
}

impl Sync<'_> {
    fn replicas(&self) -> i64 {
        number(self.set, "/spec/replicas")
    }

    fn start(&self) -> i64 {
        number(self.set, "/spec/ordinals/start")
    }

    fn partition(&self) -> i64 {
        number(self.set, "/spec/updateStrategy/rollingUpdate/partition")
    }

    fn wanted(&self) -> impl Iterator<Item = i64> {
        self.start()..self.start() + self.replicas()
    }

    fn adopt(&self, store: &Store) -> Option<Write> {
        let selector = self.set["spec"]["selector"]["matchLabels"].as_object()?;
        let orphan = store.list(Kind::Pod).find(|(key, pod)| {
            key.namespace == self.key.namespace
                && ordinal(self.key, key).is_some()
                && controller(pod).is_none()
                && !is_terminating(pod)
                && selector
                    .iter()
                    .all(|(name, value)| label(pod, name) == value)
        });
        let (key, pod) = orphan?;
        let patch =
            json!({"metadata": {"uid": uid(pod), "ownerReferences": [owner(self.key, self.set)]}});
        Some(Write::Adopt(key.clone(), patch))
    }

    fn revision(&self, store: &Store) -> Option<Write> {
        let key = Key::new(
            Kind::ControllerRevision,
            &self.key.namespace,
            &format!("{}-{}", self.update, uid(self.set)),
        );
        if store.get(&key).is_some() {
            return None;
        }
        let labels = self.set["spec"]["template"]["metadata"]["labels"].clone();
        let body = json!({"metadata": {"labels": labels, "ownerReferences": [owner(self.key, self.set)]},
            "data": {"spec": {"template": self.set["spec"]["template"]}}, "revision": 1});
        Some(Write::Create(key, body))
    }

    fn pod_to_create(&self, store: &Store) -> Option<Write> {
        let ordinal = self.wanted().find(|n| !self.pods.contains_key(n))?;
        let is_old = ordinal < self.start() + self.partition();
        let revision = if is_old { &self.current } else { &self.update };
        let template = self.template(store, revision);
        let name = format!("{}-{ordinal}", self.key.name);
        let mut labels = template["metadata"]["labels"].clone();
        labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        labels["statefulset.kubernetes.io/pod-name"] = json!(name);
        labels[REVISION] = json!(revision);
        let mut spec = template["spec"].clone();
        spec["hostname"] = json!(name);
        spec["subdomain"] = self.set["spec"]["serviceName"].clone();
        let metadata = json!({"namespace": &*self.key.namespace, "name": name, "labels": labels, "annotations": template["metadata"]["annotations"],
            "ownerReferences": [owner(self.key, self.set)]});
        let body = json!({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}});
        Some(Write::Create(
            Key::new(Kind::Pod, &self.key.namespace, &name),
            body,
        ))
    }

    fn template(&self, store: &Store, revision: &str) -> Value {
        let key = Key::new(
            Kind::ControllerRevision,
            &self.key.namespace,
            &format!("{revision}-{}", uid(self.set)),
        );
        let stored = store
            .get(&key)
            .map(|revision| revision["data"]["spec"]["template"].clone());
        stored.unwrap_or_else(|| self.set["spec"]["template"].clone())
    }

    fn pod_to_end(&self, gate: bool) -> Option<Write> {
        let is_over =
            |pod: &Value| matches!(text(pod, "/status/phase"), Some("Failed" | "Succeeded"));
        let wanted: Vec<i64> = self.wanted().collect();
        let over = self
            .pods
            .iter()
            .rev()
            .find(|(n, pod)| !is_terminating(pod) && (!wanted.contains(n) || is_over(pod)));
        if let Some((_, pod)) = over {
            return Some(self.delete(pod));
        }
        if wanted.iter().any(|n| !self.pods.contains_key(n)) {
            return None;
        }
        if gate {
            self.update_many(&wanted)
        } else {
            self.update_one(&wanted)
        }
    }

    fn is_old(&self, pod: &Value) -> bool {
        label(pod, REVISION) != self.update
    }

    fn update_one(&self, wanted: &[i64]) -> Option<Write> {
        for n in wanted
            .iter()
            .rev()
            .filter(|n| **n >= self.start() + self.partition())
        {
            let pod = self.pods.get(n)?;
            if self.is_old(pod) && !is_terminating(pod) {
                return Some(self.delete(pod));
            }
            if is_terminating(pod) || !is_ready(pod) {
                return None;
            }
        }
        None
    }

    /// Old pods that do not serve go first; what serves goes as far as the budget allows.
    fn update_many(&self, wanted: &[i64]) -> Option<Write> {
        let budget = number(
            self.set,
            "/spec/updateStrategy/rollingUpdate/maxUnavailable",
        )
        .max(1);
        let from = self.start() + self.partition();
        let serves = |pod: &Value| is_ready(pod) && !is_terminating(pod);
        let old = || {
            wanted
                .iter()
                .rev()
                .filter(|n| **n >= from)
                .filter_map(|n| self.pods.get(n))
                .filter(|pod| self.is_old(pod) && !is_terminating(pod))
        };
        if let Some(pod) = old().find(|pod| !serves(pod)) {
            return Some(self.delete(pod));
        }
        let missing = wanted
            .iter()
            .filter_map(|n| self.pods.get(n))
            .filter(|pod| !serves(pod))
            .count();
        let pod = old().next()?;
        (i64::try_from(missing).unwrap_or(i64::MAX) < budget).then(|| self.delete(pod))
    }

    fn delete(&self, pod: &Value) -> Write {
        let name = text(pod, "/metadata/name").unwrap_or_default();
        Write::Delete(
            Key::new(Kind::Pod, &self.key.namespace, name),
            uid(pod).to_owned(),
        )
    }

    fn status(&self) -> Option<Write> {
        let live = || self.pods.values().filter(|pod| !is_terminating(pod));
        let ready = live().filter(|pod| is_ready(pod)).count();
        let updated = live().filter(|pod| !self.is_old(pod)).count();
        let all = usize::try_from(self.replicas()).unwrap_or(0);
        let is_complete = updated == all && ready == all && self.pods.len() == all;
        let current = if is_complete {
            &self.update
        } else {
            &self.current
        };
        let status = json!({
            "observedGeneration": number(self.set, "/metadata/generation"),
            "replicas": self.pods.len(), "readyReplicas": ready, "availableReplicas": ready,
            "currentReplicas": live().filter(|pod| label(pod, REVISION) == current).count(), "updatedReplicas": updated,
            "currentRevision": current, "updateRevision": self.update,
        });
        (self.set.get("status") != Some(&status))
            .then(|| Write::Status(self.key.clone(), json!({"status": status})))
    }
}

fn owner(key: &Key, set: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": &*key.name, "uid": uid(set), "controller": true, "blockOwnerDeletion": true})
}
