//! Metrics that are read off the cache and the queues when they are asked for (MET-4, MET-7).

use std::sync::Arc;

use lws_core::cache::Cache;
use lws_core::model::{Ds, Lws, ObjectKey};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts};

use super::Metrics;
use crate::store::{QueueState, Store};
use crate::watches::Watched;

const SET: &[&str] = &["namespace", "name"];
const QUEUE: &[&str] = &["name", "controller"];

/// Collects them anew each time, so that nothing of an object stays behind.
pub(super) struct Objects {
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    descriptions: Vec<Desc>,
}

impl Objects {
    pub(super) fn new(store: Arc<Store>, metrics: Arc<Metrics>) -> prometheus::Result<Self> {
        let descriptions = Families::new()?.descriptions();
        Ok(Self {
            store,
            metrics,
            descriptions,
        })
    }
}

impl Collector for Objects {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // They could be made when they were described.
        let Ok(families) = Families::new() else {
            return Vec::new();
        };
        self.store.read(|cache| families.fill(cache, &self.metrics));
        for state in self.store.queues() {
            families.fill_queue(&state);
        }
        for (kind, is_synced) in self.store.listed() {
            families.fill_kind(kind, is_synced);
        }
        families.collect()
    }
}

struct Families {
    desired: IntGaugeVec,
    replicas: IntGaugeVec,
    ready: IntGaugeVec,
    updated: IntGaugeVec,
    exhausted: IntGaugeVec,
    recreations: IntCounterVec,
    roles: IntGaugeVec,
    blocked: IntGaugeVec,
    synced: IntGaugeVec,
    depth: IntGaugeVec,
    workers: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
}

impl Families {
    fn new() -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            IntGaugeVec::new(Opts::new(name, help), labels)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        let seconds = |name: &str, help: &str| GaugeVec::new(Opts::new(name, help), QUEUE);
        let lws = |name: &str| format!("lws_leaderworkerset_{name}");
        Ok(Self {
            desired: gauges(
                &lws("desired_replicas"),
                "Groups that a set shall have",
                SET,
            )?,
            replicas: gauges(&lws("replicas"), "Groups of a set", SET)?,
            ready: gauges(&lws("ready_replicas"), "Ready groups of a set", SET)?,
            updated: gauges(
                &lws("updated_replicas"),
                "Groups of a set as it is written now",
                SET,
            )?,
            exhausted: gauges(
                "lws_group_restart_budget_exhausted",
                "Groups of a set that were given up because they failed too often",
                SET,
            )?,
            recreations: counters(
                "lws_group_recreations_total",
                "Groups that were made anew, by what had failed",
                &["namespace", "name", "cause"],
            )?,
            roles: gauges(
                "disaggregatedset_role_replicas",
                "Groups of the roles of a DisaggregatedSet",
                &["namespace", "name", "role", "state"],
            )?,
            blocked: gauges(
                "disaggregatedset_rollout_blocked",
                "Whether a rollout in a slice cannot go on",
                &["namespace", "name", "slice"],
            )?,
            synced: gauges(
                "lws_cache_synced",
                "Whether a kind has been listed",
                &["kind"],
            )?,
            depth: gauges(
                "workqueue_depth",
                "Items that are ready",
                &["name", "controller", "priority"],
            )?,
            workers: gauges(
                "controller_runtime_max_concurrent_reconciles",
                "Reconciles that may be under way at a time",
                &["controller"],
            )?,
            adds: counters("workqueue_adds_total", "Items that became ready", QUEUE)?,
            retries: counters("workqueue_retries_total", "Items to be tried again", QUEUE)?,
            unfinished: seconds(
                "workqueue_unfinished_work_seconds",
                "Time that items under way have been worked on, together",
            )?,
            longest: seconds(
                "workqueue_longest_running_processor_seconds",
                "Time that the item longest under way has been worked on",
            )?,
        })
    }

    fn all(&self) -> [&dyn Collector; 15] {
        [
            &self.desired,
            &self.replicas,
            &self.ready,
            &self.updated,
            &self.exhausted,
            &self.recreations,
            &self.roles,
            &self.blocked,
            &self.synced,
            &self.depth,
            &self.workers,
            &self.adds,
            &self.retries,
            &self.unfinished,
            &self.longest,
        ]
    }

    fn descriptions(&self) -> Vec<Desc> {
        let all = self.all();
        all.iter()
            .flat_map(|family| family.desc())
            .cloned()
            .collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let families = self.all().into_iter().flat_map(|family| family.collect());
        families
            .filter(|family| !family.get_metric().is_empty())
            .collect()
    }

    fn fill(&self, cache: &Cache, metrics: &Metrics) {
        let all = cache.all();
        for set in all.sets.iter().filter_map(|key| cache.set(key)) {
            self.fill_set(set, cache);
        }
        for set in all
            .disaggregated_sets
            .iter()
            .filter_map(|key| cache.disaggregated_set(key))
        {
            self.fill_roles(set);
        }
        let is_there = |set: &ObjectKey| cache.set(set).is_some();
        for ((set, cause), count) in metrics.progress.recreations(is_there) {
            let labels = [&*set.namespace, &*set.name, cause];
            self.recreations.with_label_values(&labels).inc_by(count);
        }
        for (set, slices) in metrics.progress.blocked() {
            for (slice, is_blocked) in slices {
                let slice = slice.to_string();
                let labels = [&*set.namespace, &*set.name, slice.as_str()];
                self.blocked
                    .with_label_values(&labels)
                    .set(i64::from(is_blocked));
            }
        }
    }

    fn fill_set(&self, set: &Lws, cache: &Cache) {
        let key = set.key();
        let labels = [&*key.namespace, &*key.name];
        let exhausted = cache.leaders_of(key).filter(|leader| leader.is_exhausted());
        let exhausted = i64::try_from(exhausted.count()).unwrap_or(i64::MAX);
        for (gauges, value) in [
            (&self.desired, i64::from(set.spec.replicas())),
            (&self.replicas, i64::from(set.status.replicas)),
            (&self.ready, i64::from(set.status.ready_replicas)),
            (&self.updated, i64::from(set.status.updated_replicas)),
            (&self.exhausted, exhausted),
        ] {
            gauges.with_label_values(&labels).set(value);
        }
    }

    fn fill_roles(&self, set: &Ds) {
        let key = set.key();
        for role in &set.status.role_statuses {
            for (state, value) in [
                ("desired", role.desired_replicas),
                ("current", role.replicas),
                ("ready", role.ready_replicas),
                ("updated", role.updated_replicas),
            ] {
                let labels = [&*key.namespace, &*key.name, role.name.as_str(), state];
                self.roles.with_label_values(&labels).set(i64::from(value));
            }
        }
    }

    fn fill_queue(&self, queue: &QueueState) {
        let name = queue.controller.name();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.depth
            .with_label_values(&[name, name, "0"])
            .set(number(queue.depth));
        self.workers
            .with_label_values(&[name])
            .set(number(queue.workers));
        let labels = [name, name];
        self.adds
            .with_label_values(&labels)
            .inc_by(queue.counts.adds);
        self.retries
            .with_label_values(&labels)
            .inc_by(queue.counts.retries);
        let times = || queue.running.iter().map(|time| time.as_secs_f64());
        self.unfinished
            .with_label_values(&labels)
            .set(times().sum());
        self.longest
            .with_label_values(&labels)
            .set(times().fold(0.0, f64::max));
    }

    fn fill_kind(&self, kind: Watched, is_synced: bool) {
        self.synced
            .with_label_values(&[kind.name()])
            .set(i64::from(is_synced));
    }
}
