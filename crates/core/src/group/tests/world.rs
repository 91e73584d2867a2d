//! One set, its pods and a clock: plans are made from the cache and performed against stored objects, one request at a time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, scheduling::v1beta1 as scheduling};
use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use crate::cache::{Cache, Change};
use crate::group::{GroupPlan, GroupSnapshot, observe, plan};
use crate::intent::{Kind, PlanError, Step};
use crate::model::{ObjectKey, Uid};
use crate::run::{Class, Failure, Outcome, Request, Run};

/// Second zero of every test.
const START: i64 = 1_800_000_000;
/// Revision key of everything that a test does not say otherwise about.
pub const REVISION: &str = "r";

pub fn time(second: i64) -> Timestamp {
    Timestamp::from_second(START + second).expect("a time")
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

/// Set `x` in namespace `ns`, its leader set, and groups of leader `x-<i>` and workers `x-<i>-<j>`.
#[derive(Clone, Default)]
pub struct World {
    objects: BTreeMap<(Kind, String), Value>,
    pub cache: Cache,
    pub second: i64,
    versions: u64,
    incarnations: u64,
}

/// What a run did.
pub struct Done {
    pub plan: GroupPlan,
    pub outcome: Outcome,
}

impl Done {
    /// Notes of the events, `<reason>: <note>`.
    pub fn events(&self) -> Vec<String> {
        self.plan
            .plan
            .notices
            .iter()
            .chain(&self.outcome.notices)
            .map(|n| format!("{}: {}", n.reason, n.note.text()))
            .collect()
    }

    pub fn errors(&self) -> Vec<&str> {
        self.plan
            .plan
            .errors
            .iter()
            .map(|error| error.message.as_str())
            .collect()
    }

    /// The writes as `<verb> <kind> <name>`.
    pub fn writes(&self) -> Vec<String> {
        self.plan.plan.steps.iter().map(write).collect()
    }

    pub fn wake_seconds(&self) -> Option<u64> {
        self.plan.plan.wake_after.map(|wait| wait.as_secs())
    }
}

fn write(step: &Step) -> String {
    use crate::intent::Intent;
    let verb = match &step.intent {
        Intent::Create { .. } => "create",
        Intent::Apply { .. } => "apply",
        Intent::Patch { .. } => "patch",
        Intent::SetCondition { .. } => "condition",
        Intent::Delete { .. } => "delete",
    };
    let target = step.intent.target();
    format!("{verb} {} {}", target.kind.name(), target.key.name)
}

impl World {
    /// A set whose spec is the default one with `spec` merged over it, and no group.
    pub fn new(spec: Value) -> Self {
        let mut world = Self {
            second: -100,
            ..Self::default()
        };
        let mut full = json!({"replicas": 2, "leaderWorkerTemplate": {
            "size": 3, "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        json_patch::merge(&mut full, &spec);
        world.put(
            Kind::LeaderWorkerSet,
            json!({
                "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
                "metadata": {"name": "x", "uid": "set"}, "spec": full,
            }),
        );
        world.revision(REVISION, 1);
        world.leader_set(2, REVISION);
        world.second = 0;
        world
    }

    /// Stores the live template as the revision `revision`.
    pub fn revision(&mut self, revision: &str, number: i64) {
        let spec = self.object(Kind::LeaderWorkerSet, "x").expect("the set")["spec"].clone();
        let spec = serde_json::from_value(spec).expect("a spec");
        let data = crate::build::revision::revision_data(&spec);
        self.put(Kind::ControllerRevision, json!({
            "metadata": {"name": format!("x-{revision}-{number}"), "uid": format!("revision-{revision}"),
                "labels": {label::NAME: "x", label::REVISION: revision}, "ownerReferences": owner("LeaderWorkerSet", "x", "set")},
            "data": data, "revision": number,
        }));
    }

    pub fn leader_set(&mut self, replicas: i32, revision: &str) {
        self.put(Kind::StatefulSet, json!({
            "metadata": {"name": "x", "uid": "leaders",
                "labels": {label::NAME: "x", label::REVISION: revision, label::ROLE: "leader"}, "ownerReferences": owner("LeaderWorkerSet", "x", "set")},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {label::NAME: "x", label::WORKER_INDEX: "0"}}, "template": {}},
        }));
    }

    /// A new incarnation of the leader of group `index`, running, created now; returns its UID.
    pub fn leader(&mut self, index: u32, revision: &str, size: u32) -> String {
        self.incarnations += 1;
        let (name, uid) = (
            format!("x-{index}"),
            format!("x-{index}#{}", self.incarnations),
        );
        self.put(Kind::Pod, json!({
            "metadata": {"name": name, "uid": uid, "ownerReferences": owner("StatefulSet", "x", "leaders"),
                "labels": pod_labels(index, "0", revision), "annotations": {annotation::SIZE: size.to_string()}},
            "spec": {"containers": [], "hostname": name, "subdomain": "x", "nodeName": "n"}, "status": running(),
        }));
        uid
    }

    /// The worker set of group `index`, controlled by its present leader; returns its UID.
    pub fn worker_set(&mut self, index: u32) -> String {
        let (name, leader) = (
            format!("x-{index}"),
            self.uid(Kind::Pod, &format!("x-{index}")),
        );
        let uid = format!("workers of {leader}");
        self.put(Kind::StatefulSet, json!({
            "metadata": {"name": name, "uid": uid, "labels": {label::NAME: "x", label::GROUP_INDEX: index.to_string()},
                "ownerReferences": owner("Pod", &name, &leader)},
            "spec": {"replicas": 2, "selector": {"matchLabels": {}}, "template": {}},
        }));
        uid
    }

    /// Worker `ordinal` of group `index`, controlled by its present worker set.
    pub fn worker(&mut self, index: u32, ordinal: u32, revision: &str, size: u32) {
        self.incarnations += 1;
        let (leader, name) = (format!("x-{index}"), format!("x-{index}-{ordinal}"));
        let set = self.uid(Kind::StatefulSet, &leader);
        self.put(Kind::Pod, json!({
            "metadata": {"name": name, "uid": format!("{name}#{}", self.incarnations), "ownerReferences": owner("StatefulSet", &leader, &set),
                "labels": pod_labels(index, &ordinal.to_string(), revision),
                "annotations": {annotation::SIZE: size.to_string(), annotation::LEADER_NAME: leader}},
            "spec": {"containers": [], "hostname": name, "subdomain": "x", "nodeName": "n"}, "status": running(),
        }));
    }

    /// A whole group of three that runs.
    pub fn group(&mut self, index: u32) {
        self.group_of(index, REVISION, 3);
    }

    pub fn group_of(&mut self, index: u32, revision: &str, size: u32) {
        self.leader(index, revision, size);
        if size > 1 {
            self.worker_set(index);
        }
        for ordinal in 1..size {
            self.worker(index, ordinal, revision, size);
        }
    }

    /// Everything of a group is gone, workers first, as foreground deletion has it.
    pub fn end_group(&mut self, index: u32) {
        let leader = format!("x-{index}");
        let workers: Vec<_> = self
            .names(Kind::Pod)
            .into_iter()
            .filter(|name| name.starts_with(&format!("{leader}-")))
            .collect();
        for name in workers {
            self.gone(Kind::Pod, &name);
        }
        self.gone(Kind::StatefulSet, &leader);
        self.gone(Kind::Pod, &leader);
    }

    pub fn names(&self, kind: Kind) -> Vec<String> {
        self.objects
            .keys()
            .filter(|(k, _)| *k == kind)
            .map(|(_, name)| name.clone())
            .collect()
    }

    pub fn object(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, name.to_owned()))
    }

    pub fn pod(&self, name: &str) -> &Value {
        self.object(Kind::Pod, name).expect("a pod")
    }

    pub fn uid(&self, kind: Kind, name: &str) -> String {
        self.object(kind, name).expect("an object")["metadata"]["uid"]
            .as_str()
            .expect("a uid")
            .to_owned()
    }

    pub fn counts(&self) -> Value {
        self.object(Kind::LeaderWorkerSet, "x").expect("the set")["metadata"]["annotations"]
            [annotation::GROUP_RESTART_COUNTS]
            .clone()
    }

    pub fn is_terminating(&self, kind: Kind, name: &str) -> bool {
        !self.object(kind, name).expect("an object")["metadata"]["deletionTimestamp"].is_null()
    }

    /// Stores an object as it is now, and shows it to the cache.
    pub fn put(&mut self, kind: Kind, mut object: Value) {
        self.versions += 1;
        object["metadata"]["namespace"] = json!("ns");
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = json!(time(self.second).to_string());
        }
        let name = object["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        self.objects.insert((kind, name), object.clone());
        self.show(kind, object, false);
    }

    /// Merges `patch` into an object.
    pub fn edit(&mut self, kind: Kind, name: &str, patch: Value) {
        let mut object = self.object(kind, name).expect("an object").clone();
        json_patch::merge(&mut object, &patch);
        self.put(kind, object);
    }

    pub fn edit_pod(&mut self, name: &str, patch: Value) {
        self.edit(Kind::Pod, name, patch);
    }

    /// Changes the live spec; members that a pass counts as a spec change move the generation.
    pub fn edit_spec(&mut self, patch: Value) {
        self.edit(Kind::LeaderWorkerSet, "x", json!({"spec": patch}));
    }

    /// Somebody deletes the object; it stays until it is gone.
    pub fn delete(&mut self, kind: Kind, name: &str) {
        let at = time(self.second + 30).to_string();
        self.edit(kind, name, json!({"metadata": {"deletionTimestamp": at}}));
    }

    pub fn gone(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.objects.remove(&(kind, name.to_owned())) {
            self.show(kind, object, true);
        }
    }

    /// Container `c` of the pod restarted.
    pub fn restart(&mut self, name: &str) {
        self.edit_pod(
            name,
            json!({"status": {"containerStatuses": [restarted("c", 1)]}}),
        );
    }

    fn show(&mut self, kind: Kind, object: Value, gone: bool) {
        match kind {
            Kind::LeaderWorkerSet => {
                let lws: lws_api::leaderworkerset::LeaderWorkerSet =
                    serde_json::from_value(object).expect("a set");
                self.cache.apply_sets(change(lws.into(), gone));
            }
            Kind::StatefulSet => {
                let mut set = object;
                set["spec"]["serviceName"] = json!("x");
                let set: apps::StatefulSet = serde_json::from_value(set).expect("a statefulset");
                self.cache.apply_stateful_sets(change(set.into(), gone));
            }
            Kind::Deployment => {
                let deployment: apps::Deployment =
                    serde_json::from_value(object).expect("a deployment");
                self.cache
                    .apply_deployments(change(deployment.into(), gone));
            }
            Kind::ControllerRevision => {
                let revision: apps::ControllerRevision =
                    serde_json::from_value(object).expect("a revision");
                self.cache.apply_revisions(change(revision.into(), gone));
            }
            Kind::Service => {
                let service: core::Service = serde_json::from_value(object).expect("a service");
                self.cache.apply_services(change(service.into(), gone));
            }
            Kind::Pod => {
                let pod: core::Pod = serde_json::from_value(object).expect("a pod");
                self.cache.apply_pods(change(pod.into(), gone));
            }
            Kind::Workload => {
                let workload: scheduling::Workload =
                    serde_json::from_value(object).expect("a workload");
                self.cache.apply_workloads(change(workload.into(), gone));
            }
            Kind::PodGroup => {
                let group: scheduling::PodGroup =
                    serde_json::from_value(object).expect("a pod group");
                self.cache.apply_pod_groups(change(group.into(), gone));
            }
            Kind::DisaggregatedSet | Kind::RoleScaler => panic!("no group reads a {kind:?}"),
        }
    }

    pub fn snapshot(&self, leader: &str) -> GroupSnapshot {
        observe(&key(leader), &self.cache).expect("a group")
    }

    /// One run of the group of `leader`.
    pub fn run(&mut self, leader: &str) -> Done {
        let snapshot = self.snapshot(leader);
        self.run_from(&snapshot, leader)
    }

    /// One run of the group of `leader` on a snapshot that may be old.
    pub fn run_from(&mut self, snapshot: &GroupSnapshot, leader: &str) -> Done {
        let plan = plan(snapshot, time(self.second));
        let mut run = Run::new(plan.plan.steps.clone());
        while let Some(request) = run.next_request() {
            let answer = self.perform(&request);
            run.answer(answer);
        }
        let outcome = run.finish();
        if outcome.is_complete() {
            for uid in &plan.judged {
                self.cache.handled(&key(leader), uid);
            }
        }
        Done { plan, outcome }
    }

    fn perform(&mut self, request: &Request) -> Result<Value, Failure> {
        let target = request.target();
        let name = target.key.name.to_string();
        let stored = self.object(target.kind, &name).cloned();
        match (request, stored) {
            (Request::Create { .. }, Some(_)) => Err(failure(Class::Exists)),
            (Request::Create { body, .. }, None) => {
                let mut object = body.as_ref().clone();
                self.incarnations += 1;
                object["metadata"]["uid"] = json!(format!("created#{}", self.incarnations));
                self.put(target.kind, object.clone());
                Ok(object)
            }
            (_, None) => Err(failure(Class::Gone)),
            (Request::Read { .. }, Some(object)) => Ok(object),
            (Request::Delete { uid, .. }, Some(object)) => {
                if object["metadata"]["uid"] != uid.as_str() {
                    return Err(failure(Class::Conflict));
                }
                self.delete(target.kind, &name);
                Ok(object)
            }
            (Request::Patch { body, .. } | Request::Apply { body, .. }, Some(mut object)) => {
                for member in ["uid", "resourceVersion"] {
                    let sent = &body["metadata"][member];
                    if !sent.is_null() && *sent != object["metadata"][member] {
                        return Err(failure(Class::Conflict));
                    }
                }
                json_patch::merge(&mut object, body);
                self.put(target.kind, object.clone());
                Ok(object)
            }
            (Request::MergeStatus { body, .. }, Some(mut object)) => {
                if body["metadata"]["uid"] != object["metadata"]["uid"] {
                    return Err(failure(Class::Conflict));
                }
                merge_conditions(&mut object, body);
                self.put(target.kind, object.clone());
                Ok(object)
            }
        }
    }
}

/// As a strategic merge patch does: by type.
fn merge_conditions(object: &mut Value, body: &Value) {
    let stored = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let sent = body["status"]["conditions"].as_array().expect("conditions");
    let is_sent = |kind: &Value| sent.iter().any(|condition| condition["type"] == *kind);
    let kept = stored
        .into_iter()
        .filter(|condition| !is_sent(&condition["type"]));
    object["status"]["conditions"] = kept.chain(sent.iter().cloned()).collect();
}

fn failure(class: Class) -> Failure {
    Failure {
        class,
        message: "words".to_owned(),
        retry_after: None,
    }
}

fn change<T>(object: T, gone: bool) -> Change<T> {
    if gone {
        Change::Deleted(object)
    } else {
        Change::Applied(object)
    }
}

pub fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let api = match kind {
        "Pod" => "v1",
        "LeaderWorkerSet" => "leaderworkerset.x-k8s.io/v1",
        _ => "apps/v1",
    };
    json!([{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true}])
}

fn pod_labels(index: u32, worker_index: &str, revision: &str) -> Value {
    json!({label::NAME: "x", label::WORKER_INDEX: worker_index, label::GROUP_INDEX: index.to_string(),
        label::GROUP_KEY: format!("key-{index}"), label::REVISION: revision})
}

fn running() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": []})
}

/// Status of a container that restarted `count` times, the last time with exit code 137.
pub fn restarted(name: &str, count: i32) -> Value {
    json!({"name": name, "restartCount": count, "image": "i", "imageID": "i", "ready": true,
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": time(0).to_string()}}})
}

pub fn texts(errors: &[PlanError]) -> Vec<&str> {
    errors.iter().map(|error| error.message.as_str()).collect()
}

pub fn uids(uids: &[Uid]) -> Vec<&str> {
    uids.iter().map(Uid::as_str).collect()
}
