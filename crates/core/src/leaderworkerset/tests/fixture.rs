//! A set with its objects, as the API server would show them.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use serde_json::{Value, json};

use crate::build;
use crate::build::leader_set::LeaderSet;
use crate::build::revision::{canonical, revision_data, revision_hash};
use crate::build::tests::{demo, lws};
use crate::intent::Step;
use crate::leaderworkerset::{Report, SetPlan, Snapshot, plan, report};
use crate::model::{Lws, Pod, Revision, Service, StatefulSet};
use crate::run::{Failure, Outcome, Request, Run};

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// `demo` with `patch` merged in.
pub(crate) fn demo_with(patch: Value) -> Lws {
    let mut set = demo();
    json_patch::merge(&mut set, &patch);
    lws(set)
}

pub(crate) fn key_of(lws: &Lws) -> String {
    revision_hash(&canonical(&revision_data(&lws.spec)))
}

/// A snapshot in which the set has nothing yet.
pub(crate) fn bare(lws: Lws) -> Snapshot {
    Snapshot {
        lws: Arc::new(lws),
        leader_set: None,
        deployment: None,
        replica_sets: Default::default(),
        pods: Vec::new(),
        served: Default::default(),
        service: None,
        leaders: Vec::new(),
        stateful_sets: Default::default(),
        revisions: Vec::new(),
        applied: None,
        reported: None,
        gangs: Default::default(),
    }
}

/// A snapshot of a set that has everything: revision, Service, a leader set with (R, cur), and groups by code as in the rollout tables.
pub(crate) fn running(lws: Lws, have: (u32, u32), groups: &str) -> Snapshot {
    let mut snapshot = bare(lws);
    let lws = snapshot.lws.clone();
    snapshot.leader_set = Some(Arc::new(leader_set(&lws, &key_of(&lws), have)));
    snapshot.service = Some(Arc::new(service(build::service::shared_service(&lws))));
    snapshot.revisions = vec![revision(&lws, &key_of(&lws), 1)];
    for (code, index) in groups.chars().zip(0..).filter(|(code, _)| *code != '-') {
        let key = if code.eq_ignore_ascii_case(&'n') {
            key_of(&lws)
        } else {
            "old".to_owned()
        };
        add_group(&mut snapshot, index, &key, code.is_uppercase());
    }
    snapshot
}

/// As [`running`], with the leader set known to be as it was applied.
pub(crate) fn settled(lws: Lws, have: (u32, u32), groups: &str) -> Snapshot {
    let mut snapshot = running(lws, have, groups);
    let pass = pass(&snapshot);
    snapshot.applied = pass.report.applied.clone();
    let mut set = (*snapshot.lws).clone();
    set.status = status_of(&set, &pass.report);
    snapshot.lws = Arc::new(set);
    snapshot
}

fn status_of(lws: &Lws, report: &Report) -> lws_api::leaderworkerset::LeaderWorkerSetStatus {
    let mut object = json!({"status": lws.status});
    for step in &report.steps {
        if let crate::intent::Intent::Patch { body, .. } = &step.intent {
            json_patch::merge(&mut object, body);
        }
    }
    serde_json::from_value(object["status"].clone()).unwrap()
}

pub(crate) fn leader_set(
    lws: &Lws,
    revision_key: &str,
    (replicas, partition): (u32, u32),
) -> StatefulSet {
    let desired_replicas = u32::try_from(lws.spec.replicas()).unwrap();
    let parallel_hint = false;
    let set = LeaderSet {
        lws,
        revision_key,
        desired_replicas,
        replicas,
        partition,
        max_unavailable: 1,
        parallel_hint,
        membership: None,
    };
    let mut object = as_stored(build::leader_set::leader_set(&set));
    object["status"] = json!({"replicas": replicas, "observedGeneration": 1});
    stateful_set(object)
}

/// What the API server adds.
pub(crate) fn as_stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!(format!(
        "{}-set-uid",
        object["metadata"]["name"].as_str().unwrap()
    ));
    object["metadata"]["resourceVersion"] = json!("50");
    object["metadata"]["generation"] = json!(1);
    object
}

pub(crate) fn stateful_set(object: Value) -> StatefulSet {
    serde_json::from_value::<apps::StatefulSet>(object)
        .unwrap()
        .into()
}

pub(crate) fn service(mut object: Value) -> Service {
    object["metadata"]["uid"] = json!("service-uid");
    object["metadata"]["resourceVersion"] = json!("60");
    serde_json::from_value::<core::Service>(object)
        .unwrap()
        .into()
}

pub(crate) fn revision(lws: &Lws, key: &str, number: i64) -> Arc<Revision> {
    let name = format!("demo-{key}-{number}");
    let mut object = build::revision::revision(lws, &name, key, number, &revision_data(&lws.spec));
    object["metadata"]["uid"] = json!(format!("{name}-uid"));
    Arc::new(
        serde_json::from_value::<apps::ControllerRevision>(object)
            .unwrap()
            .into(),
    )
}

/// A leader and its worker set, both ready or not, of one revision.
pub(crate) fn add_group(snapshot: &mut Snapshot, index: u32, revision_key: &str, is_ready: bool) {
    let name = format!("demo-{index}");
    let labels = json!({
        "leaderworkerset.sigs.k8s.io/name": "demo",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
        "leaderworkerset.sigs.k8s.io/group-index": index.to_string(),
        "leaderworkerset.sigs.k8s.io/template-revision-hash": revision_key,
    });
    snapshot
        .leaders
        .push(Arc::new(leader(&name, labels.clone(), is_ready)));
    let workers = stateful_set(json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("{name}-workers"), "labels": labels, "ownerReferences":
            [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": format!("{name}-pod"), "controller": true}]},
        "spec": {"replicas": 2},
        "status": {"availableReplicas": if is_ready { 2 } else { 1 }},
    }));
    snapshot
        .stateful_sets
        .insert(name.as_str().into(), Arc::new(workers));
}

pub(crate) fn leader(name: &str, labels: Value, is_ready: bool) -> Pod {
    let object = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("{name}-pod"), "labels": labels,
            "annotations": {"leaderworkerset.sigs.k8s.io/size": "3"}},
        "spec": {"containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]},
    });
    serde_json::from_value::<core::Pod>(object).unwrap().into()
}

/// A whole pass.
pub(crate) struct Pass {
    pub plan: SetPlan,
    pub outcome: Outcome,
    pub report: Report,
}

impl Pass {
    /// `kind name` of every write of the plan.
    pub fn writes(&self) -> Vec<String> {
        self.plan.plan.steps.iter().map(shown).collect()
    }

    /// The same of the report.
    pub fn follow_up(&self) -> Vec<String> {
        self.report.steps.iter().map(shown).collect()
    }

    /// Texts of all events of plan and writes.
    pub fn events(&self) -> Vec<String> {
        let notices = self.plan.plan.notices.iter().chain(&self.outcome.notices);
        notices
            .map(|notice| {
                format!(
                    "{} {} {}",
                    notice.severity.as_str(),
                    notice.reason,
                    notice.note.text()
                )
            })
            .collect()
    }

    /// Body of the write of this kind of the plan.
    pub fn body(&self, kind: &str) -> Value {
        let step = self
            .plan
            .plan
            .steps
            .iter()
            .find(|step| step.intent.target().kind.name() == kind);
        body(
            &step
                .unwrap_or_else(|| panic!("no {kind} is written"))
                .intent,
        )
    }

    /// (partition, replicas) as written to the leader set.
    pub fn parameters(&self) -> (u64, u64) {
        let spec = self.body("StatefulSet")["spec"].clone();
        (
            spec["updateStrategy"]["rollingUpdate"]["partition"]
                .as_u64()
                .unwrap(),
            spec["replicas"].as_u64().unwrap(),
        )
    }

    /// Status of the report, with what is not in the patch left out.
    pub fn status(&self) -> Value {
        body(&self.report.steps[0].intent)["status"].clone()
    }
}

fn shown(step: &Step) -> String {
    use crate::intent::Intent::{Apply, Create, Delete, Patch, SetCondition};
    let verb = match &step.intent {
        Create { claim: true, .. } => "create+claim",
        Create { claim: false, .. } => "create",
        Apply { claim: true, .. } => "claim+apply",
        Apply { claim: false, .. } => "apply",
        Patch { .. } => "patch",
        SetCondition { .. } => "condition",
        Delete { .. } => "delete",
    };
    format!(
        "{verb} {} {}",
        step.intent.target().kind.name(),
        step.why.as_str()
    )
}

pub(crate) fn body(intent: &crate::intent::Intent) -> Value {
    use crate::intent::Intent::{Apply, Create, Delete, Patch, SetCondition};
    match intent {
        Create { body, .. } | Apply { body, .. } => (**body).clone(),
        Patch { body, .. } => body.clone(),
        SetCondition { condition, .. } => condition.clone(),
        Delete { .. } => Value::Null,
    }
}

/// A pass in which every write succeeds.
pub(crate) fn pass(snapshot: &Snapshot) -> Pass {
    pass_with(snapshot, |_| None)
}

/// A pass in which the writes that `fails` names fail.
pub(crate) fn pass_with(snapshot: &Snapshot, fails: impl Fn(&Request) -> Option<Failure>) -> Pass {
    let plan = plan(snapshot, NOW);
    let mut run = Run::new(plan.plan.steps.clone());
    while let Some(request) = run.next_request() {
        let answer = match fails(&request) {
            Some(failure) => Err(failure),
            None => Ok(answered(snapshot, &request)),
        };
        run.answer(answer);
    }
    let outcome = run.finish();
    let report = report(snapshot, &plan, &outcome, NOW);
    Pass {
        plan,
        outcome,
        report,
    }
}

/// What the API server answers to a write: the object with identity, and a leader set with the status that it has.
fn answered(snapshot: &Snapshot, request: &Request) -> Value {
    let body = match request {
        Request::Create { body, .. } => (**body).clone(),
        Request::Apply { body, .. }
        | Request::Patch { body, .. }
        | Request::MergeStatus { body, .. } => body.clone(),
        Request::Read { .. } | Request::Delete { .. } => json!({}),
    };
    let mut object = body;
    let identity = json!({"metadata": {"name": &*request.target().key.name, "namespace": "ns", "resourceVersion": "99"}});
    json_patch::merge(&mut object, &identity);
    if object["metadata"].get("uid").is_none() {
        object["metadata"]["uid"] = json!(format!("{}-set-uid", request.target().key.name));
    }
    object["metadata"]["generation"] = json!(1);
    if let (Request::Apply { .. }, Some(set)) = (request, &snapshot.leader_set) {
        object["status"] = json!({"replicas": set.status.replicas});
    }
    if let (Request::Apply { .. }, Some(deployment)) = (request, &snapshot.deployment) {
        let status = deployment.status;
        object["status"] = json!({
            "replicas": status.replicas, "readyReplicas": status.ready, "updatedReplicas": status.updated,
            "observedGeneration": status.observed_generation,
        });
    }
    object
}
