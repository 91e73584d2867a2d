//! MET-4, MET-7: alerts, dashboard and the file for kube-state-metrics name only what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::documents::root;

/// Each metric that is used, with its labels.
const METRICS: [(&str, &str); 28] = [
    ("controller_runtime_reconcile_total", "controller result"),
    ("controller_runtime_reconcile_errors_total", "controller"),
    ("controller_runtime_reconcile_panics_total", "controller"),
    (
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller le",
    ),
    ("workqueue_depth", "name controller priority"),
    (
        "workqueue_queue_duration_seconds_bucket",
        "name controller le",
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "name controller",
    ),
    ("rest_client_requests_total", "code method host"),
    ("leader_election_master_status", "name"),
    ("controller_runtime_webhook_requests_total", "webhook code"),
    (
        "controller_runtime_webhook_latency_seconds_bucket",
        "webhook le",
    ),
    ("process_cpu_seconds_total", ""),
    ("process_resident_memory_bytes", ""),
    ("lws_build_info", "version git_commit build_date platform"),
    ("lws_leaderworkerset_replicas", "namespace name"),
    ("lws_leaderworkerset_ready_replicas", "namespace name"),
    ("lws_leaderworkerset_updated_replicas", "namespace name"),
    ("lws_leaderworkerset_desired_replicas", "namespace name"),
    ("lws_group_recreations_total", "namespace name cause"),
    ("lws_group_restart_budget_exhausted", "namespace name"),
    ("lws_rollout_duration_seconds_bucket", "kind outcome le"),
    ("lws_group_ready_duration_seconds_bucket", "le"),
    ("lws_admission_denied_total", "kind field"),
    ("lws_certificate_expiry_timestamp_seconds", "kind"),
    (
        "disaggregatedset_role_replicas",
        "namespace name role state",
    ),
    ("disaggregatedset_rollout_blocked", "namespace name slice"),
    ("lws_cache_synced", "kind"),
    ("lws_events_dropped_total", "controller"),
];
/// Labels that Prometheus gives every target.
const OF_TARGET: [&str; 2] = ["job", "pod"];
const FUNCTIONS: [&str; 3] = ["histogram_quantile", "min_over_time", "__rate_interval"];

/// The words of an expression outside of quotes.
fn words(expression: &str) -> BTreeSet<String> {
    let unquoted: String = expression
        .split('"')
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ");
    let words = unquoted.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words between each pair of the brackets.
fn inside(expression: &str, open: &str, close: char) -> BTreeSet<String> {
    let parts = expression.split(open).skip(1);
    let parts = parts.filter_map(|part| part.split_once(close));
    parts.flat_map(|(part, _)| words(part)).collect()
}

fn check(expression: &str) {
    let known: BTreeMap<_, _> = METRICS.into();
    let words = words(expression);
    let metrics: Vec<_> = words
        .iter()
        .filter(|word| word.contains('_') && !FUNCTIONS.contains(&word.as_str()))
        .collect();
    assert!(!metrics.is_empty(), "{expression} uses no metric");
    let mut labels = BTreeSet::from(OF_TARGET.map(str::to_owned));
    for metric in metrics {
        let of_metric = known
            .get(metric.as_str())
            .unwrap_or_else(|| panic!("{metric} of {expression} does not exist"));
        labels.extend(of_metric.split_whitespace().map(str::to_owned));
    }
    let mut used = inside(expression, "{", '}');
    used.extend(inside(expression, "by (", ')'));
    assert!(
        used.is_subset(&labels),
        "{used:?} of {expression} are not all among {labels:?}"
    );
    for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
        let count = |bracket| expression.matches(bracket).count();
        assert_eq!(count(open), count(close), "{expression}");
    }
}

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).expect(path);
    serde_saphyr::from_str(&text).expect("YAML")
}

#[test]
fn ops_met_4_met_7_alerts_use_metrics_that_exist() {
    let rules = yaml("config/components/prometheus/rules.yaml");
    let groups = rules["spec"]["groups"].as_array().expect("groups");
    let rules: Vec<_> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .collect();
    assert!(rules.len() > 10);
    let names: BTreeSet<_> = rules
        .iter()
        .map(|rule| rule["alert"].as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), rules.len(), "names are unique");
    for rule in rules {
        check(rule["expr"].as_str().expect("an expression"));
        let severity = rule["labels"]["severity"].as_str();
        assert!(
            severity.is_some_and(|severity| ["critical", "warning", "info"].contains(&severity)),
            "{rule}"
        );
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
    }
}

#[test]
fn ops_met_4_met_7_dashboard_uses_metrics_that_exist() {
    let text = fs::read_to_string(root().join("config/components/prometheus/dashboard.json"))
        .expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets: Vec<_> = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
        .collect();
    assert!(targets.len() > 15);
    for target in targets {
        check(target["expr"].as_str().expect("an expression"));
    }
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len());
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter()
        .skip(1)
    {
        let query = variable["query"].as_str().expect("a query");
        let words = words(query);
        let metrics = METRICS.map(|(metric, _)| metric);
        assert!(
            metrics.iter().any(|metric| words.contains(*metric)),
            "{query}"
        );
    }
}

/// The paths of the file exist in the CRDs.
#[test]
fn ops_kube_state_metrics_reads_fields_that_exist() {
    let file = yaml("config/kube-state-metrics/custom-resource-state.yaml");
    let resources = file["spec"]["resources"].as_array().expect("resources");
    assert_eq!(resources.len(), 2);
    for resource in resources {
        let group = resource["groupVersionKind"]["group"]
            .as_str()
            .expect("a group");
        let kind = resource["groupVersionKind"]["kind"]
            .as_str()
            .expect("a kind")
            .to_lowercase();
        let crd = yaml(&format!("crds/{group}_{kind}s.yaml"));
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for metric in resource["metrics"].as_array().expect("metrics") {
            let each = &metric["each"];
            let path = each["gauge"]["path"]
                .as_array()
                .or(each["stateSet"]["path"].as_array())
                .expect("a path");
            let found = path.iter().try_fold(schema, |schema, member| {
                schema.pointer(&format!("/properties/{}", member.as_str()?))
            });
            assert!(found.is_some(), "{path:?} is not in the schema of {kind}");
        }
    }
}
