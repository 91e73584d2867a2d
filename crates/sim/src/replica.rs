//! One process of ours: the real cache, guard, queues and plans, fed by watches that lag, with each request of a run split into sent, committed and
//! answered. A crash drops all of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, scheduling::v1beta1 as scheduling};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::label;
use lws_api::rolescaler::DisaggregatedSetRoleScaler;
use lws_core::cache::{Cache, Change, Wakes};
use lws_core::disaggregatedset;
use lws_core::group::{self, GroupPlan};
use lws_core::guard::{Guard, Passage};
use lws_core::intent::{Plan, Step, Target};
use lws_core::leaderworkerset::{self, SetPlan};
use lws_core::model::{Node, ObjectKey};
use lws_core::queue::{Queue, Verdict};
use lws_core::run::{Outcome, Request, Run};
use serde::Deserialize;
use serde_json::Value;

use crate::candidate::Candidate;
use crate::exhaustive::Fingerprint;
use crate::planted::{Bug, Planted};
use crate::store::{self, Answer, Commit, Key, Kind, Store};

/// Kinds that are watched for LeaderWorkerSets.
pub const WATCHED: [Kind; 6] = [
    Kind::LeaderWorkerSet,
    Kind::StatefulSet,
    Kind::ControllerRevision,
    Kind::Service,
    Kind::Pod,
    Kind::Node,
];

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// Controllers that it runs.
    pub controllers: &'static [Controller],
    /// Kinds that it watches for them.
    pub watched: &'static [Kind],
}

impl Duty {
    /// LeaderWorkerSets and their groups.
    pub const SETS: Self = Self {
        controllers: &[Controller::Sets, Controller::Groups],
        watched: &WATCHED,
    };
}

/// A controller, by what its keys mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// LeaderWorkerSets.
    Sets,
    /// Groups.
    Groups,
    /// DisaggregatedSets.
    DisaggregatedSets,
}

/// Where a watch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It is to list.
    Unlisted,
    /// It has asked for a list, which shows this version.
    Listing(u64),
    /// It has told everything up to this version.
    At(u64),
}

#[derive(Clone, Debug, Default)]
struct Lane {
    queue: Option<Queue<ObjectKey>>,
    guard: Guard<ObjectKey>,
}

impl Lane {
    fn queue(&mut self) -> &mut Queue<ObjectKey> {
        self.queue.get_or_insert_with(|| Queue::new(4))
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub enum Flight {
    /// The next request is to be sent.
    Idle,
    /// Sent, not yet taken by the API server.
    Sent(Request),
    /// Taken; the answer is on its way.
    Committed(Answer),
}

#[derive(Clone, Debug)]
enum Decided {
    Set(Box<(leaderworkerset::Snapshot, SetPlan)>),
    Group(GroupPlan),
    Roles(
        Arc<disaggregatedset::Snapshot>,
        Box<disaggregatedset::SetPlan>,
    ),
}

/// A reconcile under way.
#[derive(Clone, Debug)]
pub struct Work {
    /// Whose.
    pub controller: Controller,
    /// Its key.
    pub key: ObjectKey,
    /// The request.
    pub flight: Flight,
    /// Number of the request among all of the run, from 1.
    pub request: u64,
    /// Up to which version the watch of pods had told when it was decided.
    pub pods_seen: u64,
    /// FM-18: its answer takes until then.
    pub slow_until: Duration,
    decided: Decided,
    run: Run,
    first: Option<Outcome>,
}

impl Work {
    /// The step that is performed.
    pub fn step(&self) -> Option<&Step> {
        self.run.step()
    }

    /// Key of the revision that the leader set had when this was decided.
    pub fn seen_revision(&self) -> Option<&str> {
        match &self.decided {
            Decided::Set(decided) => decided
                .0
                .leader_set
                .as_ref()
                .map(|set| set.meta.label(label::REVISION)),
            Decided::Group(_) | Decided::Roles(..) => None,
        }
    }

    /// The DisaggregatedSet as it was when this was decided.
    pub fn seen_roles(&self) -> Option<&Arc<disaggregatedset::Snapshot>> {
        match &self.decided {
            Decided::Roles(snapshot, _) => Some(snapshot),
            Decided::Set(_) | Decided::Group(_) => None,
        }
    }

    fn plan(&self) -> &Plan {
        match &self.decided {
            Decided::Set(decided) => &decided.1.plan,
            Decided::Group(decided) => &decided.plan,
            Decided::Roles(_, decided) => &decided.plan,
        }
    }
}

/// What was decided, for the judge.
pub enum Decision<'a> {
    /// A plan for a set.
    Set(&'a leaderworkerset::Snapshot, &'a [Step]),
    /// The report on a set.
    Report(&'a leaderworkerset::Snapshot, &'a [Step]),
    /// A plan for a group.
    Group(&'a group::GroupSnapshot, &'a [Step]),
    /// A plan for a DisaggregatedSet, or the report on it.
    Roles(&'a disaggregatedset::Snapshot, &'a [Step], Timestamp),
}

/// The memory of a process.
#[derive(Clone, Debug)]
pub struct Memory {
    /// It works on keys.
    pub leads: bool,
    /// SHD-1: it finishes what it does, and takes nothing more.
    pub ends: bool,
    /// Its part in the election, if there is one.
    pub candidate: Option<Candidate>,
    /// The cache.
    pub cache: Cache,
    /// Watches.
    pub watches: BTreeMap<Kind, Watch>,
    /// Watches that stand still until a time.
    pub held: BTreeMap<Kind, Duration>,
    /// Kinds that have been listed: what they showed is never taken back.
    pub listed: std::collections::BTreeSet<Kind>,
    /// Reconciles under way.
    pub works: Vec<Work>,
    sets: Lane,
    groups: Lane,
    roles: Lane,
    duty: Duty,
    bugs: Planted,
}

impl Memory {
    /// A process that has just started.
    pub fn new(bugs: Planted, duty: Duty) -> Self {
        Self {
            leads: false,
            ends: false,
            candidate: None,
            cache: Cache::default(),
            watches: unlisted(duty),
            held: BTreeMap::new(),
            listed: std::collections::BTreeSet::new(),
            works: Vec::new(),
            sets: Lane::default(),
            groups: Lane::default(),
            roles: Lane::default(),
            duty,
            bugs,
        }
    }

    /// SHD-1: all that it did is done, and it can give the Lease back.
    pub fn can_leave(&self) -> bool {
        let is_done = self.works.is_empty() || self.bugs.is(Bug::LeavesInHaste);
        self.ends && is_done && self.candidate.as_ref().is_some_and(|one| !one.is_leaving())
    }

    /// LE-7: a write may start.
    pub fn may_write(&self, now: Duration) -> bool {
        let Some(candidate) = &self.candidate else {
            return true;
        };
        let is_held = candidate.fence().is_some_and(|fence| now < fence.until);
        is_held || self.bugs.is(Bug::WritesOn)
    }

    /// LE-7: no write goes on.
    pub fn is_past_fence(&self, now: Duration) -> bool {
        let Some(candidate) = &self.candidate else {
            return false;
        };
        let is_past = candidate.fence().is_none_or(|fence| now >= fence.hard);
        is_past && !self.bugs.is(Bug::WritesOn)
    }

    /// All that its future depends on. Where a watch stands is told by what it has still to tell.
    pub fn fingerprint(&self, store: &Store, into: &mut Fingerprint) {
        into.take(&(self.leads, &self.candidate, &self.cache, &self.held));
        into.take(&(&self.listed, &self.works, &self.sets, &self.groups));
        into.take(&self.roles);
        for (kind, watch) in &self.watches {
            let version = match watch {
                Watch::Unlisted => continue,
                Watch::Listing(version) | Watch::At(version) => *version,
            };
            if let Watch::Listing(_) = watch {
                for object in store.list_at(*kind, version).values() {
                    into.hash(&**object);
                }
            }
            into.take(kind);
            for commit in store
                .since(version)
                .filter(|commit| commit.key.kind == *kind)
            {
                into.take(&commit.change);
                into.hash(&*commit.object);
            }
        }
    }

    /// KRS-38: all kinds have been listed once. What lists anew goes on with what it knew.
    pub fn is_synced(&self) -> bool {
        self.listed.len() == self.duty.watched.len()
    }

    fn pods_seen(&self) -> u64 {
        match self.watches.get(&Kind::Pod) {
            Some(Watch::At(version)) => *version,
            Some(Watch::Listing(_) | Watch::Unlisted) | None => 0,
        }
    }

    fn lane(&mut self, controller: Controller) -> &mut Lane {
        match controller {
            Controller::Sets => &mut self.sets,
            Controller::Groups => &mut self.groups,
            Controller::DisaggregatedSets => &mut self.roles,
        }
    }

    /// Connections were cut: everything is listed anew.
    pub fn relist_all(&mut self) {
        self.watches = unlisted(self.duty);
    }

    fn lanes(&mut self) -> [&mut Lane; 3] {
        [&mut self.sets, &mut self.groups, &mut self.roles]
    }

    fn runs(&self, controller: Controller) -> bool {
        self.duty.controllers.contains(&controller)
    }

    /// It begins to lead.
    pub fn lead(&mut self, now: Duration) {
        self.leads = true;
        if self.bugs.is(Bug::LeadWithoutLook) {
            return;
        }
        let all = self.cache.all();
        self.wake(all, now);
    }

    fn wake(&mut self, wakes: Wakes, now: Duration) {
        if !self.leads {
            return;
        }
        let woken = [
            (Controller::Sets, wakes.sets, wakes.renewed),
            (Controller::Groups, wakes.groups, Default::default()),
            (
                Controller::DisaggregatedSets,
                wakes.disaggregated_sets,
                wakes.renewed_disaggregated_sets,
            ),
        ];
        for (controller, keys, renewed) in woken {
            if !self.runs(controller) {
                continue;
            }
            let queue = self.lane(controller).queue();
            for key in &renewed {
                queue.reset(key);
            }
            for key in keys {
                queue.add(key, now);
            }
        }
    }

    /// A list is asked for; the answer shows `version`.
    pub fn begin_list(&mut self, kind: Kind, version: u64, now: Duration) {
        if let Some(kind) = written(kind) {
            for lane in self.lanes() {
                lane.guard.listing(kind, now);
            }
        }
        self.watches.insert(kind, Watch::Listing(version));
    }

    /// The list arrives.
    pub fn end_list(&mut self, store: &Store, kind: Kind, version: u64, now: Duration) {
        let objects: Vec<_> = store
            .list_at(kind, version)
            .into_values()
            .filter(|object| is_selected(kind, object))
            .collect();
        let wakes = relist(&mut self.cache, kind, &objects);
        self.wake(wakes, now);
        self.watches.insert(kind, Watch::At(version));
        self.listed.insert(kind);
        let Some(kind) = written(kind) else { return };
        for lane in [&mut self.sets, &mut self.groups, &mut self.roles] {
            for key in lane.guard.listed(kind, &self.cache) {
                lane.queue().add(key, now);
            }
        }
    }

    /// The watch of a kind tells of some commits; of several of one object only the last one if `coalesce`.
    pub fn deliver(&mut self, kind: Kind, commits: &[Commit], coalesce: bool, now: Duration) {
        for (position, commit) in commits.iter().enumerate() {
            self.watches.insert(kind, Watch::At(commit.version));
            let is_last = commits
                .iter()
                .skip(position + 1)
                .all(|c| c.key != commit.key);
            if commit.key.kind == kind && (is_last || !coalesce) {
                self.tell(commit, now);
            }
        }
    }

    fn tell(&mut self, commit: &Commit, now: Duration) {
        let kind = commit.key.kind;
        let was = commit.before.as_ref().is_some_and(|o| is_selected(kind, o));
        let is = is_selected(kind, &commit.object);
        let gone = commit.change == store::Change::Deleted || (was && !is);
        let is_missed = if gone {
            self.bugs.is(Bug::MissDeletes)
        } else {
            was && kind == Kind::Pod && self.bugs.is(Bug::MissUpdates)
        };
        if !(was || is) || is_missed {
            return;
        }
        let mut wakes = apply(&mut self.cache, kind, &commit.object, gone);
        self.bugs.deafen(kind, &mut wakes);
        if self.bugs.is(Bug::NoTombstones) {
            self.forget_tombstones();
        }
        self.wake(wakes, now);
        let Some(written) = written(kind) else { return };
        let target = Target {
            kind: written,
            key: ObjectKey::new(&commit.key.namespace, &commit.key.name),
        };
        for lane in [&mut self.sets, &mut self.groups, &mut self.roles] {
            for key in lane.guard.settle(&target, &self.cache) {
                lane.queue().add(key, now);
            }
        }
    }

    fn forget_tombstones(&mut self) {
        for group in self.cache.all().groups {
            let buried: Vec<_> = self
                .cache
                .group(&group)
                .into_iter()
                .flat_map(|g| g.tombstones().map(|t| t.pod.meta.uid.clone()))
                .collect();
            for uid in buried {
                self.cache.handled(&group, &uid);
            }
        }
    }

    /// Whether a key of `controller` is ready.
    pub fn has_work(&self, controller: Controller, now: Duration) -> bool {
        let lane = match controller {
            Controller::Sets => &self.sets,
            Controller::Groups => &self.groups,
            Controller::DisaggregatedSets => &self.roles,
        };
        self.leads
            && !self.ends
            && lane.queue.as_ref().is_some_and(|queue| {
                queue.depth() > 0 || queue.next_deadline().is_some_and(|due| due <= now)
            })
    }

    /// When a key becomes ready by itself.
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let of = |lane: &Lane| lane.queue.as_ref().and_then(Queue::next_deadline);
        let held = self.held.values().copied().filter(|until| *until > now);
        let slow = self.works.iter().map(|work| work.slow_until);
        of(&self.sets)
            .into_iter()
            .chain(of(&self.groups))
            .chain(of(&self.roles))
            .chain(held)
            .chain(slow.filter(|until| *until > now))
            .min()
    }

    /// Takes a key and plans it. The decision is shown to `judge`.
    pub fn take(
        &mut self,
        controller: Controller,
        now: Duration,
        at: Timestamp,
        judge: &mut impl FnMut(Decision<'_>),
    ) {
        let no_guard = self.bugs.is(Bug::NoGuard);
        let lane = match controller {
            Controller::Sets => &mut self.sets,
            Controller::Groups => &mut self.groups,
            Controller::DisaggregatedSets => &mut self.roles,
        };
        let Some(turn) = lane.queue().take(now) else {
            return;
        };
        let passage = if no_guard {
            Passage::Open
        } else {
            lane.guard.is_open(&turn.key, &self.cache, now)
        };
        match passage {
            Passage::Open => {}
            Passage::Wait { until } => return lane.queue().put_back(&turn.key, until),
            Passage::Relist { kind, until } => {
                lane.queue().put_back(&turn.key, until);
                self.held.remove(&kind.into());
                self.watches.insert(kind.into(), Watch::Unlisted);
                return;
            }
        }
        let decided = match controller {
            Controller::Sets => self.plan_set(&turn.key, at, judge),
            Controller::Groups => self.plan_group(&turn.key, at, judge),
            Controller::DisaggregatedSets => self.plan_roles(&turn.key, at, judge),
        };
        match decided {
            None => {
                let lane = self.lane(controller);
                lane.guard.forget(&turn.key);
                lane.queue().forget(&turn.key);
                lane.queue().done(&turn.key, &Verdict::default(), now, 0.0);
            }
            Some((decided, steps)) => self.works.push(Work {
                controller,
                key: turn.key,
                flight: Flight::Idle,
                request: 0,
                pods_seen: self.pods_seen(),
                slow_until: Duration::ZERO,
                decided,
                run: Run::new(steps),
                first: None,
            }),
        }
    }

    fn plan_set(
        &mut self,
        key: &ObjectKey,
        at: Timestamp,
        judge: &mut impl FnMut(Decision<'_>),
    ) -> Option<(Decided, Vec<Step>)> {
        let snapshot = leaderworkerset::observe(key, &self.cache)?;
        let mut seen = snapshot.clone();
        self.bugs.blur_set(&mut seen);
        let plan = leaderworkerset::plan(&seen, at);
        let all_ready = snapshot.leaders.iter().all(|leader| leader.ready);
        let steps = self.bugs.steps(&plan.plan.steps, all_ready, at);
        judge(Decision::Set(&snapshot, &steps));
        Some((Decided::Set(Box::new((seen, plan))), steps))
    }

    fn plan_group(
        &mut self,
        key: &ObjectKey,
        at: Timestamp,
        judge: &mut impl FnMut(Decision<'_>),
    ) -> Option<(Decided, Vec<Step>)> {
        let snapshot = group::observe(key, &self.cache)?;
        let mut seen = snapshot.clone();
        self.bugs.blur(&mut seen);
        let at = self.bugs.clock(at);
        let plan = group::plan(&seen, at);
        let steps = self.bugs.steps(&plan.plan.steps, true, at);
        judge(Decision::Group(&snapshot, &steps));
        Some((Decided::Group(plan), steps))
    }

    fn plan_roles(
        &mut self,
        key: &ObjectKey,
        at: Timestamp,
        judge: &mut impl FnMut(Decision<'_>),
    ) -> Option<(Decided, Vec<Step>)> {
        let snapshot = Arc::new(disaggregatedset::observe(key, &self.cache)?);
        let mut seen = (*snapshot).clone();
        self.bugs.blur_roles(&mut seen);
        let plan = disaggregatedset::plan(&seen, at);
        let steps = self.bugs.role_steps(&snapshot, &plan.plan.steps);
        judge(Decision::Roles(&snapshot, &steps, at));
        Some((Decided::Roles(snapshot, Box::new(plan)), steps))
    }

    /// Sends the next request of a reconcile, or ends it; true if there was one.
    pub fn send(
        &mut self,
        index: usize,
        now: Duration,
        at: Timestamp,
        judge: &mut impl FnMut(Decision<'_>),
    ) -> bool {
        let bugs = self.bugs;
        let Some(work) = self.works.get_mut(index) else {
            return false;
        };
        if let Some(request) = work.run.next_request() {
            work.flight = Flight::Sent(bugs.request(request));
            return true;
        }
        let outcome = work.run.outcome().clone();
        let is_first = work.first.is_none();
        if let (Decided::Set(decided), true, false) = (&mut work.decided, is_first, outcome.stopped)
        {
            let (snapshot, plan) = &mut **decided;
            let report = leaderworkerset::report(snapshot, plan, &outcome, at);
            let uid = snapshot.lws.meta.uid.clone();
            let steps = bugs.steps(&report.steps, true, at);
            judge(Decision::Report(snapshot, &steps));
            let wakes = [plan.plan.wake_after, report.wake_after];
            plan.plan.wake_after = wakes.into_iter().flatten().min();
            work.run = Run::new(steps);
            work.first = Some(outcome);
            self.cache.remember_applied(uid.clone(), report.applied);
            if let Some(reported) = report.reported {
                self.cache.remember_reported(uid, reported);
            }
            return false;
        }
        if let (Decided::Roles(snapshot, plan), true, false) =
            (&work.decided, is_first, outcome.stopped)
        {
            let report = disaggregatedset::report(snapshot, plan, &outcome, at);
            let steps = bugs.role_steps(snapshot, &report);
            judge(Decision::Roles(snapshot, &steps, at));
            work.run = Run::new(steps);
            work.first = Some(outcome);
            return false;
        }
        let work = self.works.remove(index);
        if let (Decided::Set(decided), true) = (&work.decided, is_first) {
            let uid = decided.0.lws.meta.uid.clone();
            self.cache.remember_applied(uid, None);
        }
        self.finish(&work, outcome, now);
        false
    }

    fn finish(&mut self, work: &Work, last: Outcome, now: Duration) {
        let passes: Vec<Outcome> = work.first.iter().cloned().chain([last]).collect();
        if let Decided::Group(plan) = &work.decided
            && (passes.iter().all(Outcome::is_complete) || self.bugs.is(Bug::JudgeAnyway))
        {
            for uid in &plan.judged {
                self.cache.handled(&work.key, uid);
            }
        }
        if let Decided::Roles(snapshot, plan) = &work.decided
            && let Some(children) = &plan.left_alone
        {
            let uid = snapshot.set.meta.uid.clone();
            self.cache.remember_left_alone(uid, children.clone());
        }
        let plan = work.plan();
        let refs: Vec<&Outcome> = passes.iter().collect();
        let mut verdict = Verdict::of(plan.wake_after, &plan.errors, &refs);
        if self.bugs.is(Bug::NoRetry) {
            verdict = Verdict::default();
        }
        if self.bugs.is(Bug::NoTimers) {
            verdict.wake_after = None;
        }
        let written = passes.into_iter().flat_map(|pass| pass.written).collect();
        let lane = self.lane(work.controller);
        lane.guard.note(&work.key, written, now);
        lane.queue().done(&work.key, &verdict, now, 0.5);
    }

    /// An answer arrives.
    pub fn answered(&mut self, index: usize, answer: Answer) {
        if let Some(work) = self.works.get_mut(index) {
            work.flight = Flight::Idle;
            work.run.answer(answer.map(|object| (*object).clone()));
        }
    }
}

fn unlisted(duty: Duty) -> BTreeMap<Kind, Watch> {
    let kinds = duty.watched.iter();
    kinds.map(|kind| (*kind, Watch::Unlisted)).collect()
}

/// KRS-37: what a watch is limited to.
fn is_selected(kind: Kind, object: &Value) -> bool {
    match kind {
        Kind::StatefulSet
        | Kind::Deployment
        | Kind::Pod
        | Kind::Service
        | Kind::ControllerRevision
        | Kind::Workload
        | Kind::PodGroup => object["metadata"]["labels"].get(label::NAME).is_some(),
        _ => true,
    }
}

fn written(kind: Kind) -> Option<lws_core::intent::Kind> {
    use lws_core::intent::Kind as Core;
    match kind {
        Kind::LeaderWorkerSet => Some(Core::LeaderWorkerSet),
        Kind::StatefulSet => Some(Core::StatefulSet),
        Kind::Deployment => Some(Core::Deployment),
        Kind::ControllerRevision => Some(Core::ControllerRevision),
        Kind::Service => Some(Core::Service),
        Kind::Pod => Some(Core::Pod),
        Kind::DisaggregatedSet => Some(Core::DisaggregatedSet),
        Kind::RoleScaler => Some(Core::RoleScaler),
        Kind::Workload => Some(Core::Workload),
        Kind::PodGroup => Some(Core::PodGroup),
        Kind::Node | Kind::Namespace | Kind::PersistentVolumeClaim | Kind::Lease => None,
    }
}

fn typed<T: for<'a> Deserialize<'a>>(object: &Value) -> T {
    T::deserialize(object).unwrap_or_else(|error| panic!("{error}: {object}"))
}

fn node(object: &Value) -> Node {
    Node::new(&typed::<ObjectMeta>(&object["metadata"]))
}

fn change<T>(object: T, gone: bool) -> Change<T> {
    if gone {
        Change::Deleted(object)
    } else {
        Change::Applied(object)
    }
}

fn apply(cache: &mut Cache, kind: Kind, object: &Value, gone: bool) -> Wakes {
    match kind {
        Kind::LeaderWorkerSet => {
            cache.apply_sets(change(typed::<LeaderWorkerSet>(object).into(), gone))
        }
        Kind::StatefulSet => {
            cache.apply_stateful_sets(change(typed::<apps::StatefulSet>(object).into(), gone))
        }
        Kind::Deployment => {
            cache.apply_deployments(change(typed::<apps::Deployment>(object).into(), gone))
        }
        Kind::ControllerRevision => cache.apply_revisions(change(
            typed::<apps::ControllerRevision>(object).into(),
            gone,
        )),
        Kind::Service => cache.apply_services(change(typed::<core::Service>(object).into(), gone)),
        Kind::Pod => cache.apply_pods(change(typed::<core::Pod>(object).into(), gone)),
        Kind::DisaggregatedSet => {
            cache.apply_disaggregated_sets(change(typed::<DisaggregatedSet>(object).into(), gone))
        }
        Kind::RoleScaler => cache.apply_scalers(change(
            typed::<DisaggregatedSetRoleScaler>(object).into(),
            gone,
        )),
        Kind::Workload => {
            cache.apply_workloads(change(typed::<scheduling::Workload>(object).into(), gone))
        }
        Kind::PodGroup => {
            cache.apply_pod_groups(change(typed::<scheduling::PodGroup>(object).into(), gone))
        }
        Kind::Node => cache.apply_nodes(change(node(object), gone)),
        Kind::Namespace | Kind::PersistentVolumeClaim | Kind::Lease => Wakes::default(),
    }
}

fn relist(cache: &mut Cache, kind: Kind, objects: &[Arc<Value>]) -> Wakes {
    let all = || objects.iter();
    match kind {
        Kind::LeaderWorkerSet => cache.apply_sets(Change::Relisted(
            all().map(|o| typed::<LeaderWorkerSet>(o).into()).collect(),
        )),
        Kind::StatefulSet => cache.apply_stateful_sets(Change::Relisted(
            all()
                .map(|o| typed::<apps::StatefulSet>(o).into())
                .collect(),
        )),
        Kind::Deployment => cache.apply_deployments(Change::Relisted(
            all().map(|o| typed::<apps::Deployment>(o).into()).collect(),
        )),
        Kind::ControllerRevision => cache.apply_revisions(Change::Relisted(
            all()
                .map(|o| typed::<apps::ControllerRevision>(o).into())
                .collect(),
        )),
        Kind::Service => cache.apply_services(Change::Relisted(
            all().map(|o| typed::<core::Service>(o).into()).collect(),
        )),
        Kind::Pod => cache.apply_pods(Change::Relisted(
            all().map(|o| typed::<core::Pod>(o).into()).collect(),
        )),
        Kind::DisaggregatedSet => cache.apply_disaggregated_sets(Change::Relisted(
            all().map(|o| typed::<DisaggregatedSet>(o).into()).collect(),
        )),
        Kind::RoleScaler => cache.apply_scalers(Change::Relisted(
            all()
                .map(|o| typed::<DisaggregatedSetRoleScaler>(o).into())
                .collect(),
        )),
        Kind::Workload => cache.apply_workloads(Change::Relisted(
            all()
                .map(|o| typed::<scheduling::Workload>(o).into())
                .collect(),
        )),
        Kind::PodGroup => cache.apply_pod_groups(Change::Relisted(
            all()
                .map(|o| typed::<scheduling::PodGroup>(o).into())
                .collect(),
        )),
        Kind::Node => cache.apply_nodes(Change::Relisted(all().map(|o| node(o)).collect())),
        Kind::Namespace | Kind::PersistentVolumeClaim | Kind::Lease => Wakes::default(),
    }
}

/// The key of a work item.
pub fn object_key(key: &Key) -> ObjectKey {
    ObjectKey::new(&key.namespace, &key.name)
}
