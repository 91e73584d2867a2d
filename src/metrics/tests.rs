use lws_core::cache::Change;
use lws_core::group::GroupSnapshot;
use lws_core::model::ObjectKey;
use lws_core::queue::{Retry, Verdict};
use lws_core::run::Class;
use serde_json::json;

use super::*;

fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new().expect("no name is taken twice"))
}

fn has(metrics: &Metrics, line: &str) -> bool {
    let text = metrics.text().expect("a text");
    text.lines().any(|found| found == line)
}

fn done(retry: Option<Retry>, wake: u64) -> Next {
    let verdict = Verdict {
        wake_after: Some(Duration::from_secs(wake)),
        retry,
    };
    Next::Done {
        written: Vec::new(),
        verdict,
        busy: Duration::ZERO,
    }
}

fn failed() -> Retry {
    Retry::Failed {
        class: Class::Unknown,
        after: None,
    }
}

#[test]
fn ops_met_4_results_of_reconciles() {
    for (next, result) in [
        (Next::Forget, "success"),
        (done(None, 600), "success"),
        (done(None, 10), "requeue_after"),
        (done(Some(Retry::Conflict), 600), "requeue"),
        (done(Some(failed()), 600), "error"),
        (
            done(Some(Retry::After(Duration::from_secs(1))), 600),
            "error",
        ),
    ] {
        let metrics = metrics();
        let name = "controller_runtime_reconcile_total{controller=\"pod\",result=";
        assert!(
            has(&metrics, &format!("{name}\"{result}\"}} 0")),
            "made at the start"
        );
        metrics.taken(Controller::Groups, Duration::from_secs(2));
        assert!(has(
            &metrics,
            "controller_runtime_active_workers{controller=\"pod\"} 1"
        ));
        metrics.reconciled(Controller::Groups, &next, Duration::from_secs(3));
        assert!(
            has(&metrics, &format!("{name}\"{result}\"}} 1")),
            "{next:?}"
        );
        let errors = u8::from(result == "error");
        let name = "controller_runtime_reconcile_errors_total{controller=\"pod\"}";
        assert!(has(&metrics, &format!("{name} {errors}")));
        assert!(has(
            &metrics,
            "controller_runtime_active_workers{controller=\"pod\"} 0"
        ));
        for (name, sum) in [
            (
                "controller_runtime_reconcile_time_seconds_sum{controller=\"pod\"}",
                3,
            ),
            (
                "workqueue_work_duration_seconds_sum{controller=\"pod\",name=\"pod\"}",
                3,
            ),
            (
                "workqueue_queue_duration_seconds_sum{controller=\"pod\",name=\"pod\"}",
                2,
            ),
        ] {
            assert!(has(&metrics, &format!("{name} {sum}")), "{name}");
        }
    }
}

#[test]
fn ops_met_4_met_7_buckets() {
    let reconcile = buckets::reconcile();
    assert_eq!(reconcile.len(), 40);
    assert!(reconcile.is_sorted());
    assert_eq!(
        reconcile.first().zip(reconcile.last()),
        Some((&0.005, &60.0))
    );
    let powers = buckets::powers_of_ten();
    assert_eq!(
        (powers.len(), powers.first(), powers.last()),
        (12, Some(&1e-8), Some(&1e3))
    );
    assert_eq!(buckets::minutes().last(), Some(&7200.0));
}

#[test]
fn ops_fg_5_feature_gates() {
    let metrics = metrics();
    let given = [("WorkloadAwareScheduling".to_owned(), true)].into();
    metrics
        .features(&FeatureGates::effective(&given))
        .expect("once");
    assert!(has(
        &metrics,
        "lws_feature_enabled{name=\"WorkloadAwareScheduling\",stage=\"ALPHA\"} 1"
    ));
}

fn set(ready: i32) -> lws_core::model::Lws {
    let set = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "demo", "namespace": "ns", "uid": "u"},
        "spec": {"replicas": 3, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {}}}},
        "status": {"readyReplicas": ready, "replicas": 2, "updatedReplicas": 1},
    });
    serde_json::from_value::<lws_api::leaderworkerset::LeaderWorkerSet>(set)
        .expect("a set")
        .into()
}

#[test]
fn ops_met_7_series_of_objects_come_and_go_with_them() {
    let (metrics, store) = (metrics(), Arc::new(Store::new(4, 16, 4)));
    metrics.show(&store).expect("once");
    let sets = lws_core::intent::Kind::LeaderWorkerSet.into();
    let tell = |change| {
        store.apply(
            sets,
            change,
            lws_core::model::Lws::key,
            lws_core::cache::Cache::apply_sets,
        );
    };
    tell(Change::Applied(set(1)));
    for (name, value) in [("desired_", 3), ("", 2), ("ready_", 1), ("updated_", 1)] {
        let sample =
            format!("lws_leaderworkerset_{name}replicas{{name=\"demo\",namespace=\"ns\"}}");
        assert!(has(&metrics, &format!("{sample} {value}")), "{sample}");
    }
    let workers = "controller_runtime_max_concurrent_reconciles{controller=\"pod\"} 16";
    assert!(has(&metrics, workers), "CON-2");
    assert!(has(
        &metrics,
        "lws_cache_synced{kind=\"LeaderWorkerSet\"} 0"
    ));
    assert!(has(
        &metrics,
        "workqueue_depth{controller=\"pod\",name=\"pod\",priority=\"0\"} 0"
    ));
    tell(Change::Relisted(Vec::new()));
    assert!(has(
        &metrics,
        "lws_cache_synced{kind=\"LeaderWorkerSet\"} 1"
    ));
    assert!(!metrics.text().expect("a text").contains("name=\"demo\""));
}

#[test]
fn ops_met_7_rollouts_are_timed_from_their_condition() {
    let metrics = metrics();
    let key = ObjectKey::new("ns", "demo");
    let at = |seconds| jiff::Timestamp::from_second(seconds).expect("a time");
    let rolling = |status: &str| {
        let condition = json!({"type": "UpdateInProgress", "status": status, "reason": "x", "message": "", "lastTransitionTime": at(100).to_string()});
        serde_json::from_value(condition).expect("a condition")
    };
    metrics.progress.set_seen("lws", &key, None, at(90));
    metrics
        .progress
        .set_seen("lws", &key, Some(&rolling("True")), at(110));
    metrics
        .progress
        .set_seen("lws", &key, Some(&rolling("False")), at(160));
    metrics
        .progress
        .set_seen("lws", &key, Some(&rolling("False")), at(170));
    let sum = "lws_rollout_duration_seconds_sum{kind=\"lws\",outcome=\"completed\"} 60";
    assert!(has(&metrics, sum));
    metrics
        .progress
        .set_seen("lws", &key, Some(&rolling("True")), at(180));
    metrics.progress.set_gone("lws", &key, at(200));
    let sum = "lws_rollout_duration_seconds_sum{kind=\"lws\",outcome=\"deleted\"} 100";
    assert!(has(&metrics, sum));
}

/// A group of one pod, the leader, created at second 100.
fn group(uid: &str, is_ready: bool) -> GroupSnapshot {
    let labels = json!({"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/worker-index": "0"});
    let ready = if is_ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"namespace": "ns", "name": "demo-0", "uid": uid, "labels": labels, "creationTimestamp": "1970-01-01T00:01:40Z"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    });
    let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(pod).expect("a pod");
    let mut cache = lws_core::cache::Cache::default();
    cache.apply_pods(Change::Applied(pod.into()));
    lws_core::group::observe(&ObjectKey::new("ns", "demo-0"), &cache).expect("a group")
}

#[test]
fn ops_met_7_start_of_a_group_is_timed_once() {
    let metrics = metrics();
    let key = ObjectKey::new("ns", "demo-0");
    let seen = |uid, is_ready, seconds| {
        let now = jiff::Timestamp::from_second(seconds).expect("a time");
        metrics
            .progress
            .group_seen(&key, &group(uid, is_ready), now);
    };
    seen("a", true, 130);
    assert!(
        has(&metrics, "lws_group_ready_duration_seconds_count 0"),
        "began unseen"
    );
    seen("b", false, 140);
    seen("b", true, 145);
    seen("b", false, 150);
    seen("b", true, 155);
    assert!(has(&metrics, "lws_group_ready_duration_seconds_count 1"));
    assert!(has(&metrics, "lws_group_ready_duration_seconds_sum 45"));
}
