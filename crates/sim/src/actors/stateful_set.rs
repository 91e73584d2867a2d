//! The StatefulSet controller of Kubernetes 1.37: it sees the truth, and makes one write at a time.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Value, json};

use super::claims::Claims;
use super::{controller, is_ready, label, number, owners, uid};
use crate::store::{Key, Kind, Store, is_terminating, text};

/// Label of a pod that names the revision of its set.
pub const REVISION: &str = "controller-revision-hash";

/// Label of a revision.
const HASH: &str = "controller.kubernetes.io/hash";

/// What the controller would write next.
#[derive(Clone, Debug)]
pub enum Write {
    /// A pod or a revision.
    Create(Key, Value),
    /// A pod.
    Delete(Key, String),
    /// A pod or a revision gets or loses its owner, or a revision becomes the newest again.
    Patch(Key, Value),
    /// The set's status.
    Status(Key, Value),
}

/// One set with what is its own.
struct Sync<'a> {
    key: &'a Key,
    set: &'a Value,
    pods: BTreeMap<i64, &'a Arc<Value>>,
    revisions: BTreeMap<&'a Key, &'a Arc<Value>>,
    update: String,
    current: String,
}

/// The next write for the set `key`, if one is due. `gate`: feature MaxUnavailableStatefulSet.
pub fn next(store: &Store, key: &Key, gate: bool) -> Option<Write> {
    let set = store.get(key)?;
    let update = revision_name(key, set);
    let revisions = revisions(store, key, set);
    let stored = text(set, "/status/currentRevision").unwrap_or_default();
    // A set that ends keeps what it had, although its revisions go before it.
    let is_known = revisions.keys().any(|revision| *revision.name == *stored)
        || (is_terminating(set) && !stored.is_empty());
    let sync = Sync {
        key,
        set,
        pods: pods(store, key, set),
        current: if is_known { stored } else { &update }.to_owned(),
        revisions,
        update,
    };
    let work = if is_terminating(set) {
        None
    } else {
        sync.adopt_revision()
            .or_else(|| sync.adopt_or_release(store))
            .or_else(|| sync.revision(store))
            .or_else(|| sync.claim(store))
            .or_else(|| sync.pod(store, gate))
    };
    match work {
        // A create that cannot succeed does not keep the status from being told.
        Some(Write::Create(key, _)) if store.get(&key).is_some() => {
            sync.status().or(sync.pod(store, gate))
        }
        work => work.or_else(|| sync.status()),
    }
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

/// Revisions of the set, and such that nobody owns but its selector finds.
fn revisions<'a>(store: &'a Store, key: &Key, set: &Value) -> BTreeMap<&'a Key, &'a Arc<Value>> {
    store
        .list(Kind::ControllerRevision)
        .filter(|(revision, object)| {
            revision.namespace == key.namespace
                && selects(set, object)
                && controller(object).is_none_or(|owner| owner["uid"] == uid(set))
        })
        .collect()
}

fn selects(set: &Value, object: &Value) -> bool {
    let selector = set["spec"]["selector"]["matchLabels"].as_object();
    selector.is_some_and(|wanted| {
        wanted
            .iter()
            .all(|(name, value)| label(object, name) == value)
    })
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

fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), Some("Failed" | "Succeeded"))
}

fn serves(pod: &Value) -> bool {
    is_ready(pod) && !is_terminating(pod)
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

    fn is_ordered(&self) -> bool {
        self.set["spec"]["podManagementPolicy"] != "Parallel"
    }

    fn wanted(&self) -> std::ops::Range<i64> {
        self.start()..self.start() + self.replicas()
    }

    fn adopt_revision(&self) -> Option<Write> {
        let mut all = self.revisions.iter();
        let (key, revision) = all.find(|(_, revision)| controller(revision).is_none())?;
        Some(self.own(key, revision))
    }

    fn own(&self, key: &Key, object: &Value) -> Write {
        let all: Vec<Value> = owners(object)
            .cloned()
            .chain([owner(self.key, self.set)])
            .collect();
        let patch = json!({"metadata": {"uid": uid(object), "ownerReferences": all}});
        Write::Patch(key.clone(), patch)
    }

    fn adopt_or_release(&self, store: &Store) -> Option<Write> {
        let here = |key: &Key| key.namespace == self.key.namespace;
        let is_member = |key: &Key| ordinal(self.key, key).is_some();
        let mut pods = store.list(Kind::Pod).filter(|(key, _)| here(key));
        let (key, pod) = pods.find(|(key, pod)| match controller(pod) {
            None => is_member(key) && !is_terminating(pod) && selects(self.set, pod),
            Some(owner) => owner["uid"] == uid(self.set) && !selects(self.set, pod),
        })?;
        if controller(pod).is_none() {
            return Some(self.own(key, pod));
        }
        let others: Vec<&Value> = owners(pod).filter(|o| o["uid"] != uid(self.set)).collect();
        let patch = json!({"metadata": {"uid": uid(pod), "ownerReferences": others}});
        Some(Write::Patch(key.clone(), patch))
    }

    /// The revision of the template is there, and is the newest.
    fn revision(&self, store: &Store) -> Option<Write> {
        let namespace = &self.key.namespace;
        let key = Key::new(Kind::ControllerRevision, namespace, &self.update);
        let of = |revision: &Value| number(revision, "/revision");
        let newest = self.revisions.values().map(|r| of(r)).max().unwrap_or(0);
        if let Some(known) = self.revisions.get(&key) {
            let is_newest = of(known) == newest;
            return (!is_newest).then(|| Write::Patch(key, json!({"revision": newest + 1})));
        }
        if store.get(&key).is_some() {
            return None;
        }
        let mut labels = self.set["spec"]["template"]["metadata"]["labels"].clone();
        labels[HASH] = json!(hash(&self.set["spec"]["template"]));
        let metadata = json!({"labels": labels, "annotations": self.set["metadata"]["annotations"],
            "ownerReferences": [owner(self.key, self.set)]});
        let body = json!({"metadata": metadata, "data": {"spec": {"template": self.set["spec"]["template"]}}, "revision": newest + 1});
        Some(Write::Create(key, body))
    }

    fn pod(&self, store: &Store, gate: bool) -> Option<Write> {
        if self.is_ordered() {
            return self.pod_in_order(store, gate);
        }
        let over =
            self.pods.iter().rev().find(|(n, pod)| {
                !is_terminating(pod) && (!self.wanted().contains(n) || is_over(pod))
            });
        if let Some((_, pod)) = over {
            return Some(self.delete(pod));
        }
        match self.wanted().find(|n| !self.pods.contains_key(n)) {
            Some(missing) => Some(self.create(store, missing)),
            None => self.update(gate),
        }
    }

    /// Policy OrderedReady: nothing goes on before a pod serves, and nothing is taken away before all serve.
    fn pod_in_order(&self, store: &Store, gate: bool) -> Option<Write> {
        for n in self.wanted() {
            match self.pods.get(&n) {
                None => return Some(self.create(store, n)),
                Some(pod) if is_over(pod) && !is_terminating(pod) => {
                    return Some(self.delete(pod));
                }
                Some(pod) if !serves(pod) => return None,
                Some(_) => {}
            }
        }
        let condemned = || self.pods.iter().filter(|(n, _)| !self.wanted().contains(n));
        let first_bad = condemned().find(|(_, pod)| !serves(pod)).map(|(n, _)| n);
        match condemned().next_back() {
            Some((_, pod)) if is_terminating(pod) => None,
            Some((n, pod)) if !is_ready(pod) && first_bad != Some(n) => None,
            Some((_, pod)) => Some(self.delete(pod)),
            None => self.update(gate),
        }
    }

    fn claims<'a>(&'a self, pod: &'a str, ordinal: i64) -> Claims<'a> {
        Claims {
            key: self.key,
            set: self.set,
            pod,
            is_wanted: self.wanted().contains(&ordinal),
        }
    }

    /// The retention policy shows in the owners of claims before their pods are taken away.
    fn claim(&self, store: &Store) -> Option<Write> {
        self.pods.iter().find_map(|(ordinal, pod)| {
            let name = text(pod, "/metadata/name").unwrap_or_default();
            self.claims(name, *ordinal).to_own(store, pod)
        })
    }

    /// A pod, or first a claim of it.
    fn create(&self, store: &Store, ordinal: i64) -> Write {
        let name = format!("{}-{ordinal}", self.key.name);
        let claims = self.claims(&name, ordinal);
        claims
            .missing(store)
            .unwrap_or_else(|| self.create_pod(store, ordinal, &name))
    }

    fn create_pod(&self, store: &Store, ordinal: i64, name: &str) -> Write {
        let is_old = ordinal < self.start() + self.partition();
        let revision = if is_old { &self.current } else { &self.update };
        let template = self.template(store, revision);
        let mut labels = template["metadata"]["labels"].clone();
        labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        labels["statefulset.kubernetes.io/pod-name"] = json!(name);
        labels[REVISION] = json!(revision);
        let mut spec = template["spec"].clone();
        spec["hostname"] = json!(name);
        spec["subdomain"] = self.set["spec"]["serviceName"].clone();
        let metadata = json!({"namespace": &*self.key.namespace, "name": name, "generateName": format!("{}-", self.key.name),
            "labels": labels, "annotations": template["metadata"]["annotations"], "ownerReferences": [owner(self.key, self.set)]});
        let body = json!({"metadata": metadata, "spec": spec});
        Write::Create(Key::new(Kind::Pod, &self.key.namespace, name), body)
    }

    fn template(&self, store: &Store, revision: &str) -> Value {
        let key = Key::new(Kind::ControllerRevision, &self.key.namespace, revision);
        let stored = store
            .get(&key)
            .map(|revision| revision["data"]["spec"]["template"].clone());
        stored.unwrap_or_else(|| self.set["spec"]["template"].clone())
    }

    fn update(&self, gate: bool) -> Option<Write> {
        if self.set["spec"]["updateStrategy"]["type"] == "OnDelete" {
            None
        } else if gate {
            self.update_many()
        } else {
            self.update_one()
        }
    }

    fn is_old(&self, pod: &Value) -> bool {
        label(pod, REVISION) != self.update
    }

    fn update_one(&self) -> Option<Write> {
        let from = self.start() + self.partition();
        for n in self.wanted().rev().filter(|n| *n >= from) {
            let pod = self.pods.get(&n)?;
            if self.is_old(pod) && !is_terminating(pod) {
                return Some(self.delete(pod));
            }
            if !serves(pod) {
                return None;
            }
        }
        None
    }

    /// What serves is taken as far as the budget allows; before, with policy Parallel, all old pods that do not serve.
    fn update_many(&self) -> Option<Write> {
        let from = self.start() + self.partition();
        let mine = || self.wanted().filter_map(|n| self.pods.get(&n));
        let missing = mine().filter(|pod| !serves(pod)).count();
        let old = || {
            let pods = self.wanted().rev().filter(|n| *n >= from);
            let pods = pods.filter_map(|n| self.pods.get(&n));
            pods.filter(|pod| self.is_old(pod) && !is_terminating(pod))
        };
        if !self.is_ordered()
            && let Some(pod) = old().find(|pod| !serves(pod))
        {
            return Some(self.delete(pod));
        }
        let pod = old().next()?;
        (i64::try_from(missing).unwrap_or(i64::MAX) < self.budget()).then(|| self.delete(pod))
    }

    /// `maxUnavailable`, of which a part is rounded up, and which is one at least.
    fn budget(&self) -> i64 {
        let budget = &self.set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
        let percent = budget.as_str().and_then(|text| text.strip_suffix('%'));
        let part = percent.and_then(|number| number.parse::<i64>().ok());
        let part = part.map(|percent| (self.replicas() * percent + 99) / 100);
        part.or(budget.as_i64()).unwrap_or(1).max(1)
    }

    fn delete(&self, pod: &Value) -> Write {
        let name = text(pod, "/metadata/name").unwrap_or_default();
        Write::Delete(
            Key::new(Kind::Pod, &self.key.namespace, name),
            uid(pod).to_owned(),
        )
    }

    fn status(&self) -> Option<Write> {
        let all = || self.pods.values();
        let of = |revision: &str| {
            let live = all().filter(|pod| !is_terminating(pod));
            live.filter(|pod| label(pod, REVISION) == revision).count()
        };
        let ready = all().filter(|pod| is_ready(pod)).count();
        let updated = of(&self.update);
        let wanted = usize::try_from(self.replicas()).unwrap_or(0);
        let is_complete = [updated, ready, self.pods.len()] == [wanted; 3];
        let (current, number_of_current) = if is_complete {
            (&self.update, updated)
        } else {
            (&self.current, of(&self.current))
        };
        let status = json!({
            "observedGeneration": number(self.set, "/metadata/generation"),
            "replicas": self.pods.len(), "readyReplicas": ready, "availableReplicas": ready,
            "currentReplicas": number_of_current, "updatedReplicas": updated,
            "currentRevision": current, "updateRevision": self.update,
        });
        (self.set.get("status") != Some(&status))
            .then(|| Write::Status(self.key.clone(), json!({"status": status})))
    }
}

/// Reference to a set as the controller.
pub(super) fn owner(key: &Key, set: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": &*key.name, "uid": uid(set), "controller": true, "blockOwnerDeletion": true})
}
