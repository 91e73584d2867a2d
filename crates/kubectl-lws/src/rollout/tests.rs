use super::*;

fn set(patch: Value) -> LeaderWorkerSet {
    let mut object = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "llm", "generation": 2, "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 4, "leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}},
        "status": {
            "observedGeneration": 2, "replicas": 4, "readyReplicas": 4, "updatedReplicas": 4,
            "conditions": [condition("Available", "True"), condition("UpdateInProgress", "False")],
        },
    });
    merge(&mut object, &patch);
    serde_json::from_value(object).unwrap()
}

fn merge(object: &mut Value, patch: &Value) {
    match patch.as_object() {
        Some(members) => {
            for (name, value) in members {
                merge(&mut object[name], value);
            }
        }
        None => *object = patch.clone(),
    }
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn updating() -> Value {
    json!({"conditions": [condition("Available", "True"), condition("UpdateInProgress", "True")]})
}

fn partition(value: i32) -> Value {
    json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": value}}})
}

fn leaders(partition: i32) -> StatefulSet {
    let strategy = json!({"rollingUpdate": {"partition": partition}});
    serde_json::from_value(json!({"metadata": {}, "spec": {"serviceName": "llm", "selector": {}, "template": {}, "updateStrategy": strategy}})).unwrap()
}

#[test]
fn kc_rollout_status_of_a_set() {
    for (patch, is_done, text) in [
        (json!({}), true, "llm is rolled out: 4 groups are ready"),
        (
            json!({"metadata": {"generation": 3}}),
            false,
            "Waiting for the controller to see the change of llm",
        ),
        (
            json!({"status": {"updatedReplicas": 1, "readyReplicas": 3}}),
            false,
            "1 of 4 groups of llm are updated, 3 of 4 are ready",
        ),
        (
            json!({"status": {"readyReplicas": 3}}),
            false,
            "3 of 4 groups of llm are ready",
        ),
        (
            json!({"status": {"replicas": 5}}),
            false,
            "1 groups of llm are still to be removed",
        ),
        (
            json!({"status": {"updatedReplicas": 1}, "spec": partition(3)}),
            true,
            "llm is rolled out down to partition 3: 4 groups are ready",
        ),
        (
            json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "readyReplicas": 0, "updatedReplicas": 0}}),
            true,
            "llm is rolled out: 0 groups are ready",
        ),
    ] {
        let progress = progress(&set(patch.clone()));
        assert_eq!(
            (matches!(progress, Progress::Done(_)), progress.text()),
            (is_done, text),
            "{patch}"
        );
    }
}

#[test]
fn kc_rollout_status_of_roles() {
    let set = |ready: i32, updated: i32| -> DisaggregatedSet {
        let role = json!({"name": "a", "desiredReplicas": 2, "replicas": 2, "readyReplicas": ready, "updatedReplicas": updated});
        serde_json::from_value(json!({"metadata": {"name": "pd"}, "spec": {"roles": []},
            "status": {"roleStatuses": [role], "conditions": [condition("Available", "True")]}}))
        .unwrap()
    };
    assert_eq!(
        progress_of_roles(&set(2, 2)),
        Progress::Done("pd is rolled out: a: 2 updated and 2 ready of 2".to_owned())
    );
    assert_eq!(
        progress_of_roles(&set(1, 2)),
        Progress::Going("pd: a: 2 updated and 1 ready of 2".to_owned())
    );
}

#[test]
fn kc_rollout_pause_takes_the_partition_that_is_reached() {
    for (patch, reached, expected) in [
        (json!({"status": updating()}), 2, Ok(2)),
        (
            json!({"status": updating()}),
            0,
            Err("its last groups are being updated"),
        ),
        (
            json!({"status": updating(), "spec": partition(2)}),
            2,
            Err("paused already"),
        ),
        (json!({}), 0, Ok(4)),
        (json!({"spec": partition(4)}), 4, Err("paused already")),
        (
            json!({"spec": {"groupIdentity": "Hash"}}),
            0,
            Err("there is no partition"),
        ),
    ] {
        let outcome = pause(&set(patch.clone()), Some(&leaders(reached)));
        match expected {
            Ok(partition) => assert_eq!(outcome, Ok(partition), "{patch}"),
            Err(part) => assert!(
                outcome.clone().unwrap_err().contains(part),
                "{patch}: {outcome:?}"
            ),
        }
    }
}

#[test]
fn kc_rollout_resume() {
    assert_eq!(resume(&set(json!({"spec": partition(3)})), 0), Ok(0));
    assert_eq!(resume(&set(json!({"spec": partition(3)})), 1), Ok(1));
    assert!(resume(&set(json!({"spec": partition(3)})), 3).is_err());
    assert!(
        resume(&set(json!({})), 0)
            .unwrap_err()
            .contains("not paused")
    );
    let patch = partition_patch(&set(json!({})), 3);
    assert_eq!(
        patch["metadata"],
        json!({"uid": "u", "resourceVersion": "7"})
    );
}

#[test]
fn kc_rollout_restart_changes_every_template() {
    let now = Timestamp::UNIX_EPOCH;
    let template = json!({"metadata": {"annotations": {RESTARTED_AT: "1970-01-01T00:00:00Z"}}});
    assert_eq!(
        restart(&set(json!({})), now)["spec"]["leaderWorkerTemplate"],
        json!({"workerTemplate": template})
    );
    let both = set(
        json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {"containers": []}}}}}),
    );
    assert_eq!(
        restart(&both, now)["spec"]["leaderWorkerTemplate"],
        json!({"workerTemplate": template, "leaderTemplate": template})
    );
    let roles = json!({"metadata": {"resourceVersion": "9"}, "spec": {"roles": [{"name": "a", "spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"labels": {"x": "y"}}}}}}]}});
    let patch = restart_roles(roles, now);
    assert_eq!(patch["metadata"]["resourceVersion"], "9");
    let metadata =
        &patch["spec"]["roles"][0]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"];
    assert_eq!(metadata["annotations"], template["metadata"]["annotations"]);
    assert_eq!(metadata["labels"], json!({"x": "y"}));
}

#[test]
fn kc_rollout_timeouts() {
    assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
    assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
    assert!(duration("-1s").is_err() && duration("soon").is_err());
}
