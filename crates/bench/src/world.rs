//! Sets with all their objects in a cache, as after a successful creation: what the plans ask for is stored, pods are made from templates, admitted and
//! made ready. Only what later plans change is kept beside the cache, so that memory can be measured.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_core::admission::{Environment, lws as lws_admission, pod as pod_admission};
use lws_core::cache::{Cache, Change};
use lws_core::intent::{Kind, Step, Target};
use lws_core::model::ObjectKey;
use lws_core::run::{Class, Failure, Outcome, Request, Run};
use lws_core::{group, leaderworkerset};
use serde_json::{Value, json};

/// Namespace of everything.
pub const NAMESPACE: &str = "default";

/// See the module.
#[derive(Default)]
pub struct World {
    /// What the controllers read.
    pub cache: Cache,
    /// Objects that later plans change.
    kept: BTreeMap<Target, Value>,
    version: u64,
}

/// The time of everything.
pub fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn key(object: &Value) -> Option<ObjectKey> {
    let name = object.pointer("/metadata/name")?.as_str()?;
    Some(ObjectKey::new(NAMESPACE, name))
}

impl World {
    /// Stores an object of the user's, a set of either kind.
    pub fn create(&mut self, kind: Kind, body: &Value) -> Result<ObjectKey> {
        let key = key(body).context("no name")?;
        let target = Target {
            kind,
            key: key.clone(),
        };
        self.store(&target, body.clone())?;
        Ok(key)
    }

    /// Changes a stored object by a merge patch, as a new generation.
    pub fn patch(&mut self, target: &Target, patch: &Value) -> Result<()> {
        let mut object = self.kept.get(target).context("no such object")?.clone();
        json_patch::merge(&mut object, patch);
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("generation".into(), (generation.unwrap_or(1) + 1).into());
        }
        self.store(target, object).map(drop)
    }

    /// Gives a LeaderWorkerSet all that it wants, down to ready pods and its status.
    pub fn fill(&mut self, set: &ObjectKey) -> Result<()> {
        self.reconcile_set(set)?;
        let target = Target {
            kind: Kind::StatefulSet,
            key: set.clone(),
        };
        let leaders = self.kept.get(&target).context("no leader set")?.clone();
        let replicas = number(&leaders, "/spec/replicas");
        for index in 0..replicas {
            let leader = self.pod(&leaders, index)?;
            self.fill_group(&leader)?;
        }
        let status = json!({"observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas});
        self.kept_with_status(&target, status)?;
        self.reconcile_set(set)?;
        // A second pass is what shows that the first one left nothing to do.
        let rest = self.reconcile_set(set)?;
        ensure!(
            rest == 0,
            "{rest} writes are left for a set that has everything"
        );
        Ok(())
    }

    fn fill_group(&mut self, leader: &ObjectKey) -> Result<()> {
        let snapshot = group::observe(leader, &self.cache).context("no group")?;
        let plan = group::plan(&snapshot, now()).plan;
        for request in self.creations(plan.steps)? {
            let (target, mut workers) = request;
            let count = number(&workers, "/spec/replicas");
            let status = json!({"observedGeneration": 1, "replicas": count, "readyReplicas": count, "availableReplicas": count, "updatedReplicas": count});
            set_member(&mut workers, "status", status);
            self.stamp(&target, &mut workers);
            self.show(&target, &workers)?;
            for ordinal in 1..=count {
                self.pod(&workers, ordinal)?;
            }
        }
        Ok(())
    }

    /// The objects that steps create.
    fn creations(&self, steps: Vec<Step>) -> Result<Vec<(Target, Value)>> {
        let mut run = Run::new(steps);
        let mut created = Vec::new();
        while let Some(request) = run.next_request() {
            let Request::Create { target, body } = request else {
                bail!("a new group asks for more than creations: {request:?}")
            };
            run.answer(Ok((*body).clone()));
            created.push((target, (*body).clone()));
        }
        Ok(created)
    }

    /// One pass of the set controller; the number of its writes.
    fn reconcile_set(&mut self, set: &ObjectKey) -> Result<usize> {
        let snapshot = leaderworkerset::observe(set, &self.cache).context("no set")?;
        let plan = leaderworkerset::plan(&snapshot, now());
        let done = self.perform(plan.plan.steps.clone())?;
        let report = leaderworkerset::report(&snapshot, &plan, &done, now());
        self.cache
            .remember_applied(snapshot.lws.meta.uid.clone(), report.applied);
        let reported = self.perform(report.steps)?;
        Ok(done.written.len() + reported.written.len())
    }

    /// Does what a plan wants done.
    pub fn perform(&mut self, steps: Vec<Step>) -> Result<Outcome> {
        let mut run = Run::new(steps);
        while let Some(request) = run.next_request() {
            let stored = match &request {
                Request::Create { target, body } => {
                    self.store(target, self.defaulted(target, body)?)
                }
                Request::Apply { target, body } | Request::Patch { target, body, .. } => {
                    self.merge(target, body)
                }
                Request::Read { .. } | Request::MergeStatus { .. } | Request::Delete { .. } => {
                    bail!("not expected of a set that has everything: {request:?}")
                }
            };
            run.answer(stored.map_err(|error| Failure {
                class: Class::Unknown,
                message: error.to_string(),
                retry_after: None,
            }));
        }
        let outcome = run.finish();
        ensure!(
            outcome.is_complete(),
            "a pass failed: {:?}",
            outcome.failure
        );
        Ok(outcome)
    }

    fn defaulted(&self, target: &Target, body: &Value) -> Result<Value> {
        let mut object = body.clone();
        if let (Kind::LeaderWorkerSet, Some(patch)) = (target.kind, lws_admission::mutate(body)) {
            json_patch::patch(&mut object, &patch)?;
        }
        Ok(object)
    }

    fn merge(&mut self, target: &Target, patch: &Value) -> Result<Value> {
        let mut object = self.kept.get(target).context("no such object")?.clone();
        let mut patch = patch.clone();
        if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        json_patch::merge(&mut object, &patch);
        self.store(target, object)
    }

    fn kept_with_status(&mut self, target: &Target, status: Value) -> Result<()> {
        self.merge(target, &json!({"status": status})).map(drop)
    }

    /// Keeps an object and shows it to the controllers.
    fn store(&mut self, target: &Target, mut object: Value) -> Result<Value> {
        self.stamp(target, &mut object);
        self.show(target, &object)?;
        self.kept.insert(target.clone(), object.clone());
        Ok(object)
    }

    /// What the API server adds.
    fn stamp(&mut self, target: &Target, object: &mut Value) {
        self.version += 1;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".into(), NAMESPACE.into());
            metadata.insert("resourceVersion".into(), self.version.to_string().into());
            metadata.entry("generation").or_insert_with(|| 1.into());
            let uid = format!(
                "{}-{}-{:08x}",
                target.kind.plural(),
                target.key.name,
                self.version
            );
            metadata.entry("uid").or_insert_with(|| uid.into());
        }
    }

    fn show(&mut self, target: &Target, object: &Value) -> Result<()> {
        let object = object.clone();
        let cache = &mut self.cache;
        match target.kind {
            Kind::LeaderWorkerSet => {
                let set: LeaderWorkerSet = serde_json::from_value(object)?;
                cache.apply_sets(Change::Applied(set.into()))
            }
            Kind::DisaggregatedSet => {
                let set: DisaggregatedSet = serde_json::from_value(object)?;
                cache.apply_disaggregated_sets(Change::Applied(set.into()))
            }
            Kind::StatefulSet => {
                let set: apps::StatefulSet = serde_json::from_value(object)?;
                cache.apply_stateful_sets(Change::Applied(set.into()))
            }
            Kind::ControllerRevision => {
                let revision: apps::ControllerRevision = serde_json::from_value(object)?;
                cache.apply_revisions(Change::Applied(revision.into()))
            }
            Kind::Service => {
                let service: core::Service = serde_json::from_value(object)?;
                cache.apply_services(Change::Applied(service.into()))
            }
            Kind::Pod => {
                let pod: core::Pod = serde_json::from_value(object)?;
                cache.apply_pods(Change::Applied(pod.into()))
            }
            Kind::Deployment | Kind::RoleScaler | Kind::Workload | Kind::PodGroup => {
                bail!("no {} is expected", target.kind.name())
            }
        };
        Ok(())
    }

    /// A ready pod of a StatefulSet.
    fn pod(&mut self, set: &Value, ordinal: u64) -> Result<ObjectKey> {
        let name = format!("{}-{ordinal}", text(set, "/metadata/name"));
        let template = set.pointer("/spec/template").context("no template")?;
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": template.get("metadata"), "spec": template.get("spec"),
        });
        let additions = json!({
            "metadata": {
                "name": name,
                "labels": {
                    "apps.kubernetes.io/pod-index": ordinal.to_string(),
                    "statefulset.kubernetes.io/pod-name": name,
                    "controller-revision-hash": format!("{}-7c9d8f6b5", text(set, "/metadata/name")),
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": text(set, "/metadata/name"),
                    "uid": text(set, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"hostname": name, "subdomain": text(set, "/spec/serviceName"), "nodeName": "node-1"},
        });
        json_patch::merge(&mut pod, &additions);
        let request = pod_admission::Request {
            pod: &pod,
            namespace: NAMESPACE,
            random: self.version.into(),
        };
        if let Some(patch) = pod_admission::mutate(&request, &Environment::default())? {
            json_patch::patch(&mut pod, &patch)?;
        }
        set_member(&mut pod, "status", running());
        let target = Target {
            kind: Kind::Pod,
            key: ObjectKey::new(NAMESPACE, &name),
        };
        self.stamp(&target, &mut pod);
        self.show(&target, &pod)?;
        Ok(target.key)
    }
}

fn running() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({
        "phase": "Running", "podIP": "10.244.0.1", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [condition("PodScheduled"), condition("Initialized"), condition("ContainersReady"), condition("Ready")],
        "containerStatuses": [{"name": "c", "ready": true, "restartCount": 0, "image": "nginx:1.27", "imageID": "", "state": {"running": {}}}],
    })
}

fn set_member(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> u64 {
    object
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

/// A set as a user writes it, complete.
pub fn set(name: &str, groups: u32, size: u32) -> Result<Value> {
    let object = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name},
        "spec": {"replicas": groups, "leaderWorkerTemplate": {"size": size, "workerTemplate": {
            "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
        }}},
    });
    let mut complete = object.clone();
    if let Some(patch) = lws_admission::mutate(&object) {
        json_patch::patch(&mut complete, &patch)?;
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_set_is_available_and_settled() {
        let mut world = World::default();
        let key = world
            .create(Kind::LeaderWorkerSet, &set("llm", 3, 4).unwrap())
            .unwrap();
        world.fill(&key).unwrap();
        let lws = world.cache.set(&key).unwrap();
        assert_eq!(
            (lws.status.ready_replicas, lws.status.updated_replicas),
            (3, 3)
        );
        assert_eq!(world.cache.pods_of(&key).count(), 12);
        assert_eq!(world.cache.groups_of(&key).count(), 3);
    }
}
