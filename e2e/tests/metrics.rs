//! What a scrape shows, and to whom.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lws_e2e::{Bench, Kind, Manifest, Roles, Scraper, on_own_cluster, scrape, until};
use serde_json::json;

/// A name, and the labels that its samples have.
type Family = (&'static str, &'static [&'static str]);

const CONTROLLER: &[&str] = &["controller"];
const QUEUE: &[&str] = &["controller", "name"];
const OBJECT: &[&str] = &["name", "namespace"];
const WEBHOOK: &[&str] = &["webhook"];
const FAMILIES: [Family; 51] = [
    (
        "controller_runtime_reconcile_total",
        &["controller", "result"],
    ),
    ("controller_runtime_reconcile_errors_total", CONTROLLER),
    (
        "controller_runtime_terminal_reconcile_errors_total",
        CONTROLLER,
    ),
    ("controller_runtime_reconcile_panics_total", CONTROLLER),
    ("controller_runtime_reconcile_timeouts_total", CONTROLLER),
    (
        "controller_runtime_reconcile_time_seconds_count",
        CONTROLLER,
    ),
    ("controller_runtime_max_concurrent_reconciles", CONTROLLER),
    ("controller_runtime_active_workers", CONTROLLER),
    ("workqueue_depth", &["controller", "name", "priority"]),
    ("workqueue_adds_total", QUEUE),
    ("workqueue_retries_total", QUEUE),
    ("workqueue_queue_duration_seconds_count", QUEUE),
    ("workqueue_work_duration_seconds_count", QUEUE),
    ("workqueue_unfinished_work_seconds", QUEUE),
    ("workqueue_longest_running_processor_seconds", QUEUE),
    ("rest_client_requests_total", &["code", "host", "method"]),
    ("leader_election_master_status", &["name"]),
    ("leader_election_slowpath_total", &["name"]),
    (
        "controller_runtime_webhook_requests_total",
        &["code", "webhook"],
    ),
    ("controller_runtime_webhook_requests_in_flight", WEBHOOK),
    ("controller_runtime_webhook_latency_seconds_count", WEBHOOK),
    ("controller_runtime_webhook_panics_total", &[]),
    ("controller_runtime_conversion_webhook_panics_total", &[]),
    ("certwatcher_read_certificate_total", &[]),
    ("certwatcher_read_certificate_errors_total", &[]),
    ("process_cpu_seconds_total", &[]),
    ("process_resident_memory_bytes", &[]),
    ("process_virtual_memory_bytes", &[]),
    ("process_open_fds", &[]),
    ("process_max_fds", &[]),
    ("process_start_time_seconds", &[]),
    (
        "lws_build_info",
        &["build_date", "git_commit", "platform", "version"],
    ),
    ("lws_leaderworkerset_replicas", OBJECT),
    ("lws_leaderworkerset_ready_replicas", OBJECT),
    ("lws_leaderworkerset_updated_replicas", OBJECT),
    ("lws_leaderworkerset_desired_replicas", OBJECT),
    (
        "lws_group_recreations_total",
        &["cause", "name", "namespace"],
    ),
    ("lws_group_restart_budget_exhausted", OBJECT),
    ("lws_rollout_duration_seconds_count", &["kind", "outcome"]),
    ("lws_group_ready_duration_seconds_count", &[]),
    ("lws_admission_denied_total", &["field", "kind"]),
    ("lws_certificate_expiry_timestamp_seconds", &["kind"]),
    (
        "disaggregatedset_role_replicas",
        &["name", "namespace", "role", "state"],
    ),
    (
        "disaggregatedset_rollout_blocked",
        &["name", "namespace", "slice"],
    ),
    ("lws_cache_synced", &["kind"]),
    ("lws_events_dropped_total", CONTROLLER),
    ("lws_feature_enabled", &["name", "stage"]),
    ("controller_runtime_reconcile_time_seconds_sum", CONTROLLER),
    ("controller_runtime_webhook_latency_seconds_sum", WEBHOOK),
    ("workqueue_queue_duration_seconds_sum", QUEUE),
    ("workqueue_work_duration_seconds_sum", QUEUE),
];

type Samples = BTreeMap<String, f64>;

/// The labels of the samples of a name; `None` if there is none.
fn labels(samples: &Samples, name: &str) -> Option<Vec<String>> {
    let mut found = samples.keys().filter_map(|sample| {
        let rest = sample.strip_prefix(name)?;
        match rest.strip_prefix('{') {
            Some(labels) => Some(labels.trim_end_matches('}')),
            None => rest.is_empty().then_some(""),
        }
    });
    let labels = found.next()?.split("\",").filter(|label| !label.is_empty());
    let mut labels: Vec<String> = labels
        .filter_map(|label| label.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect();
    labels.sort();
    Some(labels)
}

/// The families that are not there, or have other labels.
fn others(samples: &Samples) -> Vec<(&'static str, Option<Vec<String>>)> {
    let found = FAMILIES
        .iter()
        .map(|(name, wanted)| (*name, *wanted, labels(samples, name)));
    found
        .filter(|(_, wanted, labels)| labels.as_ref().is_none_or(|labels| labels != wanted))
        .map(|(name, _, labels)| (name, labels))
        .collect()
}

/// Things happen, so that every family has something to tell.
async fn live(bench: &Bench) -> Result<()> {
    bench.create(Manifest::new("demo", 2, 2)).await?;
    bench.until_available("demo").await?;
    let before = bench.world().uids("demo", 0);
    bench.restart("demo-0-1", "c").await?;
    bench
        .until("the group is made anew", |world| {
            world.is_replaced("demo", 0, &before)
        })
        .await?;
    bench.update_image("demo", "nginx:1.28").await?;
    bench.until_available("demo").await?;
    let nothing = json!({"maxUnavailable": 0, "maxSurge": 0});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": nothing});
    let strategy = json!({"rolloutStrategy": strategy});
    let stuck = Manifest::new("stuck", 1, 2).spec(strategy);
    bench.refused(stuck).await?;
    bench
        .create(Roles::new("split", &[("prefill", 1), ("decode", 1)]))
        .await?;
    bench
        .until("the roles have sets", |world| {
            world.names(Kind::Set).len() >= 3
        })
        .await
}

#[tokio::test]
async fn ops_11_12_met_4_met_5_met_7_scrape() -> Result<()> {
    on_own_cluster("metrics", async |bench| {
        let (target, port) = (bench.plant().target(), bench.plant().metrics_port()?);
        let (bound, unbound) = (Scraper::bound(target)?, Scraper::unbound(target, "nobody")?);
        assert_eq!(scrape(port, None).await?.0, 401);
        assert_eq!(scrape(port, Some(&unbound)).await?.0, 403);
        assert_eq!(scrape(port, Some(&bound)).await?.0, 200);

        live(bench).await?;
        let mut missing = Vec::new();
        until("every family is there", async || {
            missing = others(&bound.samples(port).await?);
            Ok(missing.is_empty())
        })
        .await
        .with_context(|| format!("not as they should be: {missing:?}"))?;
        let samples = bound.samples(port).await?;
        let of_demo = format!("{{name=\"demo\",namespace=\"{}\"}}", bench.namespace());
        assert_eq!(
            samples[&format!("lws_leaderworkerset_ready_replicas{of_demo}")],
            2.0
        );
        for controller in ["leaderworkerset", "pod", "disaggregatedset", "cert-rotator"] {
            for result in ["success", "error", "requeue", "requeue_after"] {
                let sample = format!("controller_runtime_reconcile_total{{controller=\"{controller}\",result=\"{result}\"}}");
                assert!(samples.contains_key(&sample), "{sample}");
            }
        }
        assert_eq!(
            samples["leader_election_master_status{name=\"b8b2488c.x-k8s.io\"}"],
            1.0
        );

        bench.delete(Kind::Set, "demo").await?;
        bench.until_gone("demo").await?;
        until("series of what is deleted vanish", async || {
            let samples = bound.samples(port).await?;
            Ok(!samples.keys().any(|sample| sample.contains("name=\"demo\"")))
        })
        .await
    })
    .await
}
