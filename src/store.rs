//! The state that watches fill and controllers read: cache, queues and guards of `lws-core` behind one lock.
//!
//! The lock is held for a single change or a single read, never while anything is awaited. What is decided from the cache is decided elsewhere.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use lws_core::admission::Environment;
use lws_core::cache::{Applied, Cache, Change, Wakes};
use lws_core::guard::{Guard, Passage};
use lws_core::intent::{Kind, Target};
use lws_core::model::{Ds, Lws, ObjectKey, RoleScaler, Uid};
use lws_core::queue::{Counts, Queue, Retry, Turn, Verdict};
use lws_core::run::Written;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::watches::{Relists, Watched};

/// KRS-49: keys are looked at again after this time at the earliest if nothing asks for it.
pub const SOONEST_RESYNC: Duration = Duration::from_secs(480);

/// A controller, by what its keys mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Keys are LeaderWorkerSets.
    Sets,
    /// Keys are groups, named after their leader pods.
    Groups,
    /// Keys are DisaggregatedSets.
    DisaggregatedSets,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sets, Self::Groups, Self::DisaggregatedSets];

    /// MET-5.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sets => "leaderworkerset",
            Self::Groups => "pod",
            Self::DisaggregatedSets => "disaggregatedset",
        }
    }
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The object is gone.
    Forget,
    /// It was looked at.
    Done {
        /// What was written.
        written: Vec<Written>,
        /// Whether and when to look again.
        verdict: Verdict,
        /// How long it kept a core busy, as far as that grows with the object.
        busy: Duration,
    },
}

impl Next {
    /// The same, told that it kept a core busy for so long.
    #[must_use]
    pub fn after(self, busy: Duration) -> Self {
        match self {
            Self::Done {
                written, verdict, ..
            } => Self::Done {
                written,
                verdict,
                busy,
            },
            Self::Forget => Self::Forget,
        }
    }

    /// MET-4: the result that it is counted as. Looking again just because time has passed is no result.
    pub fn result(&self) -> &'static str {
        let Self::Done { verdict, .. } = self else {
            return "success";
        };
        match &verdict.retry {
            Some(Retry::Failed { .. } | Retry::After(_)) => "error",
            Some(Retry::Conflict) => "requeue",
            None if verdict.wake_after.is_some_and(|wake| wake < SOONEST_RESYNC) => "requeue_after",
            None => "success",
        }
    }
}

/// What is in a queue now (MET-4).
#[derive(Clone, Debug, PartialEq)]
pub struct QueueState {
    /// Whose queue.
    pub controller: Controller,
    /// Keys that may be worked on at a time.
    pub workers: usize,
    /// Keys that are ready.
    pub depth: usize,
    /// For how long each key under way has been.
    pub running: Vec<Duration>,
    /// What was counted since the start.
    pub counts: Counts,
}

/// See the module.
pub struct Store {
    started: Instant,
    state: Mutex<State>,
    /// Wakes the one task that takes keys of a controller.
    sets_changed: Notify,
    groups_changed: Notify,
    disaggregated_sets_changed: Notify,
    relists: Relists,
    synced: watch::Sender<bool>,
}

struct State {
    cache: Cache,
    sets: Lane,
    groups: Lane,
    disaggregated_sets: Lane,
    /// Kinds whose first list has not come yet.
    unlisted: BTreeSet<Watched>,
    /// Only who leads has work to do; the cache is kept by all (FAIL-23).
    leads: bool,
}

struct Lane {
    workers: usize,
    queue: Queue<ObjectKey>,
    guard: Guard<ObjectKey>,
}

impl Lane {
    fn new(workers: usize) -> Self {
        Self {
            workers,
            queue: Queue::new(workers),
            guard: Guard::default(),
        }
    }

    fn add(&mut self, keys: impl IntoIterator<Item = ObjectKey>, now: Duration) {
        for key in keys {
            self.queue.add(key, now);
        }
    }
}

impl State {
    fn lane(&mut self, controller: Controller) -> (&mut Lane, &Cache) {
        match controller {
            Controller::Sets => (&mut self.sets, &self.cache),
            Controller::Groups => (&mut self.groups, &self.cache),
            Controller::DisaggregatedSets => (&mut self.disaggregated_sets, &self.cache),
        }
    }

    fn guards(&mut self) -> [&mut Guard<ObjectKey>; 3] {
        let Self {
            sets,
            groups,
            disaggregated_sets,
            ..
        } = self;
        [sets, groups, disaggregated_sets].map(|lane| &mut lane.guard)
    }

    fn wake(&mut self, wakes: Wakes, now: Duration) {
        let Wakes {
            sets,
            groups,
            renewed,
            disaggregated_sets,
            renewed_disaggregated_sets,
        } = wakes;
        for key in &renewed {
            self.sets.queue.reset(key);
        }
        for key in &renewed_disaggregated_sets {
            self.disaggregated_sets.queue.reset(key);
        }
        self.sets.add(sets, now);
        self.groups.add(groups, now);
        self.disaggregated_sets.add(disaggregated_sets, now);
    }
}

impl Store {
    /// An empty store for controllers of so many workers (CON-2).
    pub fn new(sets: usize, groups: usize, disaggregated_sets: usize) -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::new(State {
                cache: Cache::default(),
                sets: Lane::new(sets),
                groups: Lane::new(groups),
                disaggregated_sets: Lane::new(disaggregated_sets),
                unlisted: Watched::ALL.into(),
                leads: false,
            }),
            sets_changed: Notify::new(),
            groups_changed: Notify::new(),
            disaggregated_sets_changed: Notify::new(),
            relists: Relists::default(),
            synced: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves complete values behind: each change is made by one call of a pure machine.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn changed(&self, controller: Controller) -> &Notify {
        match controller {
            Controller::Sets => &self.sets_changed,
            Controller::Groups => &self.groups_changed,
            Controller::DisaggregatedSets => &self.disaggregated_sets_changed,
        }
    }

    fn notify(&self) {
        self.sets_changed.notify_one();
        self.groups_changed.notify_one();
        self.disaggregated_sets_changed.notify_one();
    }

    /// Reads the cache.
    pub fn read<T>(&self, read: impl FnOnce(&Cache) -> T) -> T {
        read(&self.state().cache)
    }

    /// KRS-38: all kinds have been listed once.
    pub async fn is_synced(&self) {
        // The sender is part of `self`, so this cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }
}

/// For the metrics.
impl Store {
    /// What is in the queues.
    pub fn queues(&self) -> [QueueState; 3] {
        let now = self.now();
        let state = &mut *self.state();
        Controller::ALL.map(|controller| {
            let (lane, _) = state.lane(controller);
            QueueState {
                controller,
                workers: lane.workers,
                depth: lane.queue.depth(),
                running: lane
                    .queue
                    .running()
                    .map(|(_, since)| now.saturating_sub(since))
                    .collect(),
                counts: lane.queue.counts(),
            }
        })
    }

    /// Each kind, and whether it has been listed.
    pub fn listed(&self) -> Vec<(Watched, bool)> {
        let state = self.state();
        let is_listed = |kind: Watched| (kind, !state.unlisted.contains(&kind));
        Watched::ALL.into_iter().map(is_listed).collect()
    }
}

/// For who finds out what is served.
impl Store {
    /// These kinds must be listed too before the cache is complete.
    pub fn expect(&self, kinds: &[Watched]) {
        let mut state = self.state();
        state.unlisted.extend(kinds);
        self.synced.send_replace(false);
    }

    /// Everything is planned by this from now on.
    pub fn set_environment(&self, environment: Environment) {
        let now = self.now();
        let mut locked = self.state();
        let state = &mut *locked;
        state.cache.set_environment(environment);
        if state.leads {
            let all = state.cache.all();
            state.wake(all, now);
        }
        drop(locked);
        self.notify();
    }
}

/// For the watches.
impl Store {
    /// Tells when a kind is to be listed anew.
    pub fn relist(&self, kind: Watched) -> &Notify {
        self.relists.of(kind)
    }

    /// A list of `kind` begins.
    pub fn listing(&self, kind: Watched) {
        let now = self.now();
        if let Watched::Written(kind) = kind {
            for guard in self.state().guards() {
                guard.listing(kind, now);
            }
        }
    }

    /// Takes a change into the cache, and whatever it concerns into the queues (KRS-44: in this order).
    pub fn apply<T>(
        &self,
        kind: Watched,
        change: Change<T>,
        key: fn(&T) -> &ObjectKey,
        apply: fn(&mut Cache, Change<T>) -> Wakes,
    ) {
        let now = self.now();
        let mut locked = self.state();
        let state = &mut *locked;
        let of = match &change {
            Change::Applied(object) | Change::Deleted(object) => Some(key(object).clone()),
            Change::Relisted(_) => None,
        };
        let wakes = apply(&mut state.cache, change);
        if state.leads {
            state.wake(wakes, now);
        }
        for lane in [
            &mut state.sets,
            &mut state.groups,
            &mut state.disaggregated_sets,
        ] {
            let released = match (kind, &of) {
                (Watched::Written(kind), Some(key)) => lane.guard.settle(
                    &Target {
                        kind,
                        key: key.clone(),
                    },
                    &state.cache,
                ),
                (Watched::Written(kind), None) => lane.guard.listed(kind, &state.cache),
                (Watched::ReplicaSet | Watched::Node, _) => Vec::new(),
            };
            lane.add(released, now);
        }
        if of.is_none() {
            state.unlisted.remove(&kind);
            if state.unlisted.is_empty() {
                self.synced.send_replace(true);
            }
        }
        drop(locked);
        self.notify();
    }

    /// KRS-22: an object that cannot be read counts as none.
    pub fn drop_object(&self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::LeaderWorkerSet => {
                let held = self.read(|cache| cache.set(key).cloned());
                self.drop_held(kind, held, Lws::key, Cache::apply_sets);
            }
            Kind::DisaggregatedSet => {
                let held = self.read(|cache| cache.disaggregated_set(key).cloned());
                self.drop_held(kind, held, Ds::key, Cache::apply_disaggregated_sets);
            }
            Kind::RoleScaler => {
                let held = self.read(|cache| cache.scaler(key).cloned());
                self.drop_held(kind, held, RoleScaler::key, Cache::apply_scalers);
            }
            // Of these kinds whatever the API server stores can be read.
            Kind::StatefulSet
            | Kind::Deployment
            | Kind::ControllerRevision
            | Kind::Service
            | Kind::Pod
            | Kind::Workload
            | Kind::PodGroup => {}
        }
    }

    fn drop_held<T: Clone>(
        &self,
        kind: Kind,
        held: Option<Arc<T>>,
        key: fn(&T) -> &ObjectKey,
        apply: fn(&mut Cache, Change<T>) -> Wakes,
    ) {
        if let Some(held) = held {
            self.apply(
                kind.into(),
                Change::Deleted(Arc::unwrap_or_clone(held)),
                key,
                apply,
            );
        }
    }
}

/// For the controllers.
impl Store {
    /// KRS-68: from now on there is work to do, and at first everything is looked at.
    pub fn lead(&self) {
        let now = self.now();
        let state = &mut *self.state();
        state.leads = true;
        let all = state.cache.all();
        state.wake(all, now);
        self.notify();
    }

    /// The next key to work on, as soon as there is one, its own writes show in the cache, and a worker is free for it.
    pub async fn take(&self, controller: Controller) -> Turn<ObjectKey> {
        loop {
            let deadline = match self.try_take(controller) {
                Ok(turn) => return turn,
                Err(deadline) => deadline,
            };
            let changed = self.changed(controller).notified();
            match deadline {
                Some(deadline) => {
                    // Either way the queue is asked again.
                    let _ = tokio::time::timeout_at(self.started + deadline, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// A key, or when the queue may have one although nothing changes.
    fn try_take(&self, controller: Controller) -> Result<Turn<ObjectKey>, Option<Duration>> {
        let now = self.now();
        let state = &mut *self.state();
        let (lane, cache) = state.lane(controller);
        while let Some(turn) = lane.queue.take(now) {
            match lane.guard.is_open(&turn.key, cache, now) {
                Passage::Open => return Ok(turn),
                Passage::Wait { until } => lane.queue.put_back(&turn.key, until),
                Passage::Relist { kind, until } => {
                    tracing::warn!(kind = kind.name(), key = %turn.key, "own writes do not show, listing anew");
                    lane.queue.put_back(&turn.key, until);
                    self.relist(Watched::Written(kind)).notify_one();
                }
            }
        }
        Err(lane.queue.next_deadline())
    }

    /// The reconcile of `key` ended.
    pub fn done(&self, controller: Controller, key: &ObjectKey, next: Next, jitter: f64) {
        let now = self.now();
        let state = &mut *self.state();
        let (lane, _) = state.lane(controller);
        match next {
            Next::Forget => {
                lane.guard.forget(key);
                lane.queue.forget(key);
                lane.queue.done(key, &Verdict::default(), now, jitter);
            }
            Next::Done {
                written,
                verdict,
                busy,
            } => {
                lane.guard.note(key, written, now);
                lane.queue.rest(key, busy, now);
                lane.queue.done(key, &verdict, now, jitter);
            }
        }
        self.changed(controller).notify_one();
    }

    /// FAIL-21: what vanished from `group` was judged.
    pub fn handled(&self, group: &ObjectKey, judged: &[Uid]) {
        let state = &mut *self.state();
        for uid in judged {
            state.cache.handled(group, uid);
        }
    }

    /// What a pass of a set leaves for the next one: what was applied (KRS-57), and when the status was written.
    pub fn remember(&self, set: &Uid, applied: Option<Applied>, reported: Option<Timestamp>) {
        let cache = &mut self.state().cache;
        cache.remember_applied(set.clone(), applied);
        if let Some(reported) = reported {
            cache.remember_reported(set.clone(), reported);
        }
    }

    /// SLC-5: remembers which children of a DisaggregatedSet it was told are left alone.
    pub fn remember_left_alone(&self, set: Uid, children: Vec<Arc<str>>) {
        self.state().cache.remember_left_alone(set, children);
    }

    /// NAT-44.
    pub fn note_unneeded(&self, set: &ObjectKey, pod_groups: &[Uid], now: Timestamp) {
        self.state().cache.note_unneeded(set, pod_groups, now);
    }

    /// FAIL-23: tombstones do not grow old while another replica leads.
    pub fn expire(&self) {
        let now = self.now();
        let state = &mut *self.state();
        if !state.leads {
            state.cache.expire(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as core;
    use lws_core::model::Pod;
    use lws_core::run::SeenAs;
    use serde_json::json;

    use super::*;

    const PODS: Watched = Watched::Written(Kind::Pod);

    fn pod(name: &str, version: &str) -> Pod {
        let labels = json!({"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/worker-index": "0"});
        let metadata = json!({"namespace": "ns", "name": name, "uid": name, "resourceVersion": version, "labels": labels});
        serde_json::from_value::<core::Pod>(json!({"metadata": metadata}))
            .expect("a pod")
            .into()
    }

    fn tell(store: &Store, change: Change<Pod>) {
        store.apply(PODS, change, |pod| pod.key(), Cache::apply_pods);
    }

    async fn taken(store: &Store) -> Option<ObjectKey> {
        let limit = Duration::from_millis(1);
        tokio::time::timeout(limit, store.take(Controller::Groups))
            .await
            .ok()
            .map(|turn| turn.key)
    }

    fn done(written: Vec<Written>) -> Next {
        Next::Done {
            written,
            verdict: Verdict::default(),
            busy: Duration::ZERO,
        }
    }

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "demo-0")
    }

    /// A write that the cache shows from version 3 on.
    fn written() -> Written {
        let target = Target {
            kind: Kind::Pod,
            key: key(),
        };
        Written {
            target,
            uid: "demo-0".into(),
            seen_as: SeenAs::Version("3".into()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn krs_68_a_standby_keeps_the_cache_and_works_on_everything_once_it_leads() {
        let store = Store::new(1, 1, 1);
        tell(&store, Change::Applied(pod("demo-0", "1")));
        assert_eq!(taken(&store).await, None);
        store.lead();
        assert_eq!(taken(&store).await, Some(key()));
    }

    #[tokio::test(start_paused = true)]
    async fn krs_36_a_key_waits_for_its_own_writes() {
        let store = Store::new(1, 1, 1);
        store.lead();
        tell(&store, Change::Applied(pod("demo-0", "1")));
        assert_eq!(taken(&store).await, Some(key()));
        store.done(Controller::Groups, &key(), done(vec![written()]), 0.0);
        tell(&store, Change::Applied(pod("demo-0", "2")));
        assert_eq!(taken(&store).await, None);
        tell(&store, Change::Applied(pod("demo-0", "3")));
        assert_eq!(taken(&store).await, Some(key()));
    }

    #[tokio::test(start_paused = true)]
    async fn krs_36_after_30_s_the_kind_is_listed_and_the_key_goes_on() {
        let store = Store::new(1, 1, 1);
        store.lead();
        tell(&store, Change::Applied(pod("demo-0", "1")));
        assert_eq!(taken(&store).await, Some(key()));
        let verdict = Verdict {
            wake_after: Some(Duration::ZERO),
            retry: None,
        };
        store.done(
            Controller::Groups,
            &key(),
            Next::Done {
                written: vec![written()],
                verdict,
                busy: Duration::ZERO,
            },
            0.0,
        );
        let relist = store.relist(PODS);
        let asked = async {
            tokio::select! {
                _ = store.take(Controller::Groups) => false,
                () = relist.notified() => true,
            }
        };
        assert!(
            asked.await,
            "a list is asked for before the key is given out"
        );
        assert!(store.started.elapsed() >= Duration::from_secs(30));
        store.listing(PODS);
        tell(&store, Change::Relisted(vec![pod("demo-0", "2")]));
        assert_eq!(taken(&store).await, Some(key()));
    }

    #[tokio::test(start_paused = true)]
    async fn con_2_no_more_keys_than_workers() {
        let store = Store::new(1, 1, 1);
        store.lead();
        tell(
            &store,
            Change::Relisted(vec![pod("demo-0", "1"), pod("demo-1", "1")]),
        );
        assert_eq!(taken(&store).await, Some(key()));
        assert_eq!(taken(&store).await, None);
        store.done(Controller::Groups, &key(), done(vec![]), 0.0);
        assert_eq!(taken(&store).await, Some(ObjectKey::new("ns", "demo-1")));
    }

    #[tokio::test]
    async fn krs_38_synced_when_every_kind_was_listed() {
        let store = Store::new(1, 1, 1);
        let is_synced = |store: &Store| *store.synced.borrow();
        tell(&store, Change::Applied(pod("demo-0", "1")));
        for kind in Watched::ALL {
            assert!(!is_synced(&store), "{kind:?}");
            store.apply(
                kind,
                Change::Relisted(vec![]),
                |pod: &Pod| pod.key(),
                |_, _| Wakes::default(),
            );
        }
        assert!(is_synced(&store));
        store.is_synced().await;
    }
}
