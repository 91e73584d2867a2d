use serde_json::{Value, json};

use super::*;

fn spec(value: Value) -> LeaderWorkerSetSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn ord_22_absent_members_read_as_defaults() {
    for empty in [
        json!({}),
        json!({"rolloutStrategy": {}, "networkConfig": {}, "leaderWorkerTemplate": {}}),
        json!({"rolloutStrategy": {"rollingUpdateConfiguration": {}}, "networkConfig": null, "replicas": null}),
    ] {
        let spec = spec(empty);
        assert_eq!((spec.replicas(), spec.size(), spec.partition()), (1, 1, 0));
        assert_eq!(
            (spec.max_unavailable(), spec.max_surge()),
            (IntOrString::Int(1), IntOrString::Int(0))
        );
        assert_eq!(spec.subdomain_policy(), SubdomainPolicy::Shared);
        assert_eq!(spec.startup_policy(), StartupPolicy::LeaderCreated);
        assert_eq!(spec.group_identity(), GroupIdentity::Ordinal);
        assert_eq!(
            spec.group_replacement_policy(),
            GroupReplacementPolicy::PostTermination
        );
        assert_eq!(spec.pod_termination_policy(), PodTerminationPolicy::Default);
        assert_eq!(
            spec.leader_worker_template.restart_policy(),
            RestartPolicy::RecreateGroupOnPodRestart
        );
        assert_eq!(spec.leader_worker_template.claim_templates(), []);
    }
}

#[test]
fn ord_22_present_members_win() {
    let spec = spec(json!({
        "replicas": 0,
        "leaderWorkerTemplate": {"size": 4, "restartPolicy": "None", "restartBackoff": {"capSeconds": 20}},
        "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2, "maxUnavailable": "10%", "maxSurge": 3}},
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
        "groupIdentity": "Hash",
    }));
    assert_eq!((spec.replicas(), spec.size(), spec.partition()), (0, 4, 2));
    assert_eq!(spec.max_unavailable(), IntOrString::String("10%".into()));
    assert_eq!(spec.max_surge(), IntOrString::Int(3));
    assert_eq!(spec.subdomain_policy(), SubdomainPolicy::UniquePerReplica);
    assert_eq!(spec.group_identity(), GroupIdentity::Hash);
    assert_eq!(
        spec.leader_worker_template.restart_policy(),
        RestartPolicy::None
    );
    let backoff = spec.leader_worker_template.restart_backoff.unwrap();
    assert_eq!((backoff.base_seconds(), backoff.cap_seconds()), (10, 20));
}

#[test]
fn lws_empty_text_in_an_enum_reads_as_absent() {
    let spec =
        spec(json!({"groupIdentity": "", "startupPolicy": "", "rolloutStrategy": {"type": ""}}));
    assert_eq!((spec.group_identity, spec.startup_policy), (None, None));
    assert_eq!(spec.rollout_strategy.unwrap().type_, None);
    assert!(
        serde_json::from_value::<LeaderWorkerSetSpec>(json!({"groupIdentity": "Numbered"}))
            .is_err()
    );
}

#[test]
fn lws_api_12_default_is_an_alias_of_none() {
    let template = LeaderWorkerTemplate {
        restart_policy: Some(RestartPolicy::Default),
        ..Default::default()
    };
    assert_eq!(template.restart_policy(), RestartPolicy::None);
}

#[test]
fn lws_api_1_templates_survive_a_round_trip_untouched() {
    let written = json!({
        "leaderWorkerTemplate": {
            "leaderTemplate": {"spec": {"fieldOfTheFuture": {"x": [1, null]}}},
            "workerTemplate": {"metadata": {"creationTimestamp": null}, "spec": {"containers": []}},
            "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1Gi"}}}}],
        },
    });
    assert_eq!(
        serde_json::to_value(spec(written.clone())).unwrap(),
        written
    );
}

#[test]
fn lws_api_19_an_empty_status_is_an_empty_object() {
    assert_eq!(
        serde_json::to_value(LeaderWorkerSetStatus::default()).unwrap(),
        json!({})
    );
}

#[test]
fn lws_leaders_use_the_worker_template_when_they_have_none() {
    let spec = spec(
        json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"priorityClassName": "high"}}}}),
    );
    assert_eq!(
        spec.leader_worker_template
            .leader_template()
            .priority_class_name(),
        Some("high")
    );
}
