//! How sets and groups fare (MET-7): recreations, rollouts and starts, told by the controllers as they look at objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lws_core::group::{CauseEvent, GroupSnapshot};
use lws_core::intent::{Plan, Why};
use lws_core::model::{ObjectKey, Uid};
use lws_core::run::Outcome;
use prometheus::{Histogram, HistogramOpts, HistogramVec, Registry};

use super::buckets;

/// More slices of a set are not shown.
const MOST_SLICES: u32 = 256;

/// See the module.
pub struct Progress {
    rollouts: HistogramVec,
    starts: Histogram,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Rollouts that are under way, by kind and set, and since when.
    rolling: BTreeMap<(&'static str, ObjectKey), Timestamp>,
    /// Leaders of groups, and whether their group was ready once.
    groups: BTreeMap<ObjectKey, (Uid, bool)>,
    recreations: BTreeMap<(ObjectKey, &'static str), u64>,
    /// Slices of DisaggregatedSets in which the last pass found no possible step, or did.
    blocked: BTreeMap<ObjectKey, BTreeMap<u32, bool>>,
}

impl Progress {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let rollouts = HistogramVec::new(
            HistogramOpts::new("lws_rollout_duration_seconds", "Time that rollouts took")
                .buckets(buckets::minutes()),
            &["kind", "outcome"],
        )?;
        let starts = Histogram::with_opts(
            HistogramOpts::new(
                "lws_group_ready_duration_seconds",
                "Time from the creation of a leader until its group was ready",
            )
            .buckets(buckets::minutes()),
        )?;
        registry.register(Box::new(rollouts.clone()))?;
        registry.register(Box::new(starts.clone()))?;
        for kind in ["lws", "ds"] {
            rollouts.with_label_values(&[kind, "completed"]);
        }
        Ok(Self {
            rollouts,
            starts,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A set (`lws` or `ds`) was looked at; `rolling` is its condition that a rollout is under way.
    pub fn set_seen(
        &self,
        kind: &'static str,
        key: &ObjectKey,
        rolling: Option<&Condition>,
        now: Timestamp,
    ) {
        let mut state = self.state();
        let of = (kind, key.clone());
        match rolling.filter(|condition| condition.status == "True") {
            Some(condition) => {
                let since = condition.last_transition_time.0;
                state.rolling.entry(of).or_insert(since);
            }
            None => {
                if let Some(since) = state.rolling.remove(&of) {
                    self.rolled(kind, "completed", since, now);
                }
            }
        }
    }

    /// A set is gone.
    pub fn set_gone(&self, kind: &'static str, key: &ObjectKey, now: Timestamp) {
        let mut state = self.state();
        state.blocked.remove(key);
        if let Some(since) = state.rolling.remove(&(kind, key.clone())) {
            self.rolled(kind, "deleted", since, now);
        }
    }

    fn rolled(&self, kind: &str, outcome: &str, since: Timestamp, now: Timestamp) {
        self.rollouts
            .with_label_values(&[kind, outcome])
            .observe(now.duration_since(since).as_secs_f64().max(0.0));
    }

    /// A group was looked at. The start of one that was ready when it was first seen is not known.
    pub fn group_seen(&self, key: &ObjectKey, group: &GroupSnapshot, now: Timestamp) {
        let Some(leader) = &group.leader else {
            return;
        };
        let is_ready = leader.ready && group.worker_set.as_ref().is_none_or(|set| set.is_ready());
        let mut state = self.state();
        let was = state
            .groups
            .get(key)
            .filter(|(uid, _)| *uid == leader.meta.uid);
        let was_ready = was.map(|(_, was_ready)| *was_ready);
        if was_ready == Some(false)
            && is_ready
            && let Some(created) = leader.meta.created
        {
            let took = now.duration_since(created).as_secs_f64();
            self.starts.observe(took.max(0.0));
        }
        let is_ready = is_ready || was_ready == Some(true);
        state
            .groups
            .insert(key.clone(), (leader.meta.uid.clone(), is_ready));
    }

    /// A group is gone.
    pub fn group_gone(&self, key: &ObjectKey) {
        self.state().groups.remove(key);
    }

    /// What was done about a group of `set`.
    pub fn group_done(&self, set: &ObjectKey, plan: &Plan, pass: &Outcome) {
        if !pass
            .notices
            .iter()
            .any(|notice| notice.reason == "RecreateGroup")
        {
            return;
        }
        let causes = plan
            .steps
            .iter()
            .filter(|step| step.why == Why::GroupFailed)
            .filter_map(|step| step.cause.as_ref());
        for cause in causes {
            let cause = match cause.event {
                CauseEvent::Restarted => "container_restarted",
                CauseEvent::Disrupted(_) => "pod_disrupted",
                CauseEvent::Deleted => "pod_deleted",
                CauseEvent::BackoffEnded => "backoff_ended",
            };
            let mut state = self.state();
            *state.recreations.entry((set.clone(), cause)).or_default() += 1;
        }
    }

    /// Recreations by set and cause; those of sets that are gone are forgotten.
    pub(super) fn recreations(
        &self,
        is_there: impl Fn(&ObjectKey) -> bool,
    ) -> BTreeMap<(ObjectKey, &'static str), u64> {
        let mut state = self.state();
        state.recreations.retain(|(set, _), _| is_there(set));
        state.recreations.clone()
    }

    /// The slices of a DisaggregatedSet, and in which of them a rollout cannot go on.
    pub fn slices_seen(&self, set: &ObjectKey, slices: u32, blocked: &[u32]) {
        let slices = (0..slices.min(MOST_SLICES)).map(|slice| (slice, blocked.contains(&slice)));
        self.state().blocked.insert(set.clone(), slices.collect());
    }

    /// Slices by set, and whether a rollout in them cannot go on.
    pub(super) fn blocked(&self) -> BTreeMap<ObjectKey, BTreeMap<u32, bool>> {
        self.state().blocked.clone()
    }
}
