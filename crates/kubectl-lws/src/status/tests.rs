use jiff::Timestamp;
use lws_api::names::{BUDGET_FINALIZER, REPLACEMENT_GATE, annotation, label};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::render;
use super::report::{Report, Seen, report, summary};
use crate::output::Paint;

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn merged(mut object: Value, patch: Value) -> Value {
    merge(&mut object, patch);
    object
}

fn merge(object: &mut Value, patch: Value) {
    match patch {
        Value::Object(members) => members
            .into_iter()
            .for_each(|(name, value)| merge(&mut object[name], value)),
        other => *object = other,
    }
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": format!("{name}-uid"), "controller": true}])
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status})
}

fn pod(name: &str, group: &str, index: &str, patch: Value) -> Value {
    let labels = json!({label::NAME: "llm", label::GROUP_INDEX: group, label::WORKER_INDEX: index, label::REVISION: "r1"});
    let object = json!({
        "metadata": {"name": name, "uid": format!("{name}-uid"), "labels": labels, "annotations": {annotation::SIZE: "2"}, "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running", "conditions": [condition("Ready", "True")]},
    });
    merged(object, patch)
}

fn stateful_set(name: &str, owner: Value) -> Value {
    json!({"metadata": {"name": name, "uid": format!("{name}-sts-uid"), "ownerReferences": owner, "labels": {label::REVISION: "r1"}},
        "spec": {"replicas": 1, "serviceName": "llm", "selector": {}, "template": {}}})
}

/// A set of one group of two, all of it ready.
fn healthy() -> Seen {
    let set = json!({
        "metadata": {"namespace": "demo", "name": "llm", "uid": "set-uid"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": []}}}},
        "status": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
    });
    let of_set = json!([{"apiVersion": "v1", "kind": "LeaderWorkerSet", "name": "llm", "uid": "set-uid", "controller": true}]);
    Seen {
        set: from(set),
        pods: vec![
            from(pod("llm-0", "0", "0", json!({}))),
            from(pod("llm-0-1", "0", "1", json!({}))),
        ],
        stateful_sets: vec![
            from(stateful_set("llm", of_set)),
            from(stateful_set("llm-0", owner("Pod", "llm-0"))),
        ],
        deployment: None,
        services: Vec::new(),
        events: Vec::new(),
        nodes: vec![from(
            json!({"metadata": {"name": "n1"}, "status": {"conditions": [condition("Ready", "True")]}}),
        )],
        now: Timestamp::from_second(100).unwrap(),
    }
}

fn unready() -> Value {
    json!({"status": {"conditions": [condition("Ready", "False")]}})
}

/// All reasons of a report.
fn reasons(report: &Report) -> String {
    let mut all = report.reasons.clone();
    for group in &report.groups {
        all.extend(group.reasons.clone());
        all.extend(group.pods.iter().filter_map(|pod| pod.reason.clone()));
    }
    all.join("\n")
}

#[test]
fn kc_status_of_a_healthy_set() {
    let seen = healthy();
    let report = report(&seen);
    assert_eq!(reasons(&report), "");
    let expected = "LeaderWorkerSet demo/llm: 1 of 1 groups ready, 1 up to date
NAME            READY   STATUS    REVISION   RESTARTS   NODE
└─ group 0      2/2     Ready     r1         0
   ├─ llm-0     yes     Running   r1         0          n1
   └─ llm-0-1   yes     Running   r1         0          n1
";
    assert_eq!(render::trees(&[report], false, Paint::default()), expected);
    let listed = render::list(&[summary(&seen.set)], true, Paint::default());
    assert!(
        listed.contains("demo        llm    1       1         1            Ordinal"),
        "{listed}"
    );
}

/// What a worker can lack, and the words for it.
#[test]
fn kc_status_says_why_a_pod_is_not_ready() {
    let waiting = |reason: &str, message: &str| {
        let status = json!({"name": "c", "image": "registry/engine:1", "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": reason, "message": message}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}});
        json!({"status": {"conditions": [], "containerStatuses": [status]}})
    };
    let gate = |name: &str| json!({"status": {"conditions": []}, "spec": {"schedulingGates": [{"name": name}]}});
    for (patch, words) in [
        (
            json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}}),
            "not scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        ),
        (
            gate(REPLACEMENT_GATE),
            "gated: it is scheduled when the group that it replaces is gone",
        ),
        (
            gate("kueue.x-k8s.io/admission"),
            "gated: it waits for Kueue to admit its group",
        ),
        (gate("example.com/a"), "gated by example.com/a"),
        (
            waiting("ImagePullBackOff", "not found"),
            "container c: image registry/engine:1 cannot be pulled (ImagePullBackOff): not found",
        ),
        (
            waiting("CrashLoopBackOff", "back-off 5m"),
            "container c crashes (exit code 137, OOMKilled): back-off 5m",
        ),
        (
            waiting("CreateContainerConfigError", "no secret"),
            "container c waits (CreateContainerConfigError): no secret",
        ),
        (
            merged(unready(), json!({"spec": {"nodeName": "n9"}})),
            "node n9 is gone",
        ),
        (
            json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}),
            "it is terminating",
        ),
        (
            json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": [BUDGET_FINALIZER]}}),
            "it is kept for inspection",
        ),
        (
            json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "conditions": []}}),
            "failed: Evicted: low on memory",
        ),
    ] {
        let mut seen = healthy();
        seen.pods[1] = from(pod("llm-0-1", "0", "1", patch.clone()));
        let report = report(&seen);
        assert!(
            reasons(&report).contains(words),
            "{patch}: {}",
            reasons(&report)
        );
        assert_eq!(report.groups[0].ready, 1, "{patch}");
    }
}

#[test]
fn kc_status_says_why_workers_are_missing() {
    let without_workers = || {
        let mut seen = healthy();
        seen.pods.truncate(1);
        seen.stateful_sets.truncate(1);
        seen
    };
    assert!(reasons(&report(&without_workers())).contains("its workers are not created yet"));

    let mut seen = without_workers();
    seen.set.spec.startup_policy = from(json!("LeaderReady"));
    seen.pods[0] = from(pod("llm-0", "0", "0", unready()));
    assert!(
        reasons(&report(&seen))
            .contains("wait for the leader to be ready (startupPolicy LeaderReady)")
    );

    let mut seen = without_workers();
    let exclusive = json!({"metadata": {"annotations": {annotation::EXCLUSIVE_TOPOLOGY: "rack"}}});
    seen.pods[0] = from(pod("llm-0", "0", "0", exclusive.clone()));
    assert!(reasons(&report(&seen)).contains("node n1 of the leader to get the label rack"));
    seen.pods[0] = from(pod(
        "llm-0",
        "0",
        "0",
        merged(exclusive, json!({"spec": {"nodeName": null}})),
    ));
    assert!(reasons(&report(&seen)).contains("wait for the leader to be scheduled"));

    let mut seen = without_workers();
    seen.stateful_sets.push(from(stateful_set(
        "llm-0",
        owner("LeaderWorkerSet", "other"),
    )));
    assert!(
        reasons(&report(&seen))
            .contains("StatefulSet llm-0 is in the way: it belongs to LeaderWorkerSet other")
    );

    let mut seen = healthy();
    seen.pods.truncate(1);
    let message = "create Pod llm-0-1 failed error: failed calling webhook \"mpod.kb.io\": connection refused";
    seen.events = vec![from(
        json!({"metadata": {}, "type": "Warning", "reason": "FailedCreate", "message": message, "involvedObject": {"uid": "llm-0-sts-uid"}}),
    )];
    assert!(
        reasons(&report(&seen)).contains("a webhook fails, see kubectl lws doctor: create Pod")
    );
}

#[test]
fn kc_status_says_what_is_wrong_with_the_set() {
    let mut seen = healthy();
    seen.pods.clear();
    seen.stateful_sets = vec![from(stateful_set("llm", Value::Null))];
    let foreign = report(&seen);
    assert!(reasons(&foreign).contains("StatefulSet llm is in the way: nobody controls it"));
    assert!(reasons(&foreign).contains("it has no leader pod"));
    seen.stateful_sets.clear();
    assert!(reasons(&report(&seen)).contains("does the manager run?"));

    let mut seen = healthy();
    seen.pods.clear();
    let message = "create Pod llm-0 failed error: pods \"llm-0\" is forbidden: exceeded quota: q";
    seen.events = vec![from(
        json!({"metadata": {}, "type": "Warning", "reason": "FailedCreate", "message": message, "involvedObject": {"uid": "llm-sts-uid"}}),
    )];
    assert!(reasons(&report(&seen)).contains("the quota of the namespace is used up: create Pod"));
}

#[test]
fn kc_status_shows_budget_and_back_off() {
    let mut seen = healthy();
    let group = &mut seen.set.spec.leader_worker_template;
    group.max_group_restarts = Some(3);
    group.restart_backoff = from(json!({"baseSeconds": 100, "capSeconds": 300}));
    seen.set.metadata.annotations = from(json!({annotation::GROUP_RESTART_COUNTS: "{\"r1/0\":1}"}));
    let pending =
        json!({"metadata": {"annotations": {annotation::GROUP_RECREATE_PENDING: "true"}}});
    seen.pods[0] = from(pod("llm-0", "0", "0", merged(pending, unready())));
    let waiting = report(&seen);
    let group = &waiting.groups[0];
    assert_eq!(
        (group.restarts, group.budget_left, group.backoff_seconds),
        (1, Some(2), Some(100))
    );
    let text = render::trees(std::slice::from_ref(&waiting), true, Paint::default());
    assert!(
        text.contains("BackOff 100s") && text.contains("1, 2 left") && text.contains("100s\n"),
        "{text}"
    );

    let exhausted =
        json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}}});
    seen.pods[0] = from(pod("llm-0", "0", "0", merged(exhausted, unready())));
    assert!(reasons(&report(&seen)).contains("kubectl lws recover llm 0"));
}

#[test]
fn kc_status_shows_old_revisions_and_missing_groups() {
    let mut seen = healthy();
    seen.stateful_sets[0].spec.replicas = Some(2);
    seen.pods[0] = from(pod(
        "llm-0",
        "0",
        "0",
        json!({"metadata": {"labels": {label::REVISION: "r0"}}}),
    ));
    let report = report(&seen);
    let indices: Vec<&str> = report
        .groups
        .iter()
        .map(|group| group.index.as_str())
        .collect();
    assert_eq!(indices, ["0", "1"]);
    assert!(!report.groups[0].is_updated && report.groups[1].leader.is_none());
    assert!(render::trees(&[report], false, Paint::default()).contains("r0 (old)"));
}
