//! The whole simulated cluster at one moment, and its steps. A step is one enabled action, picked by weight; nothing else moves.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lws_core::intent::{Intent, Why};
use lws_core::model::ObjectKey;
use lws_core::run::{Class, Failure, Request};
use serde_json::{Value, json};

use crate::actors::kubelet::{self, Event};
use crate::actors::user::{self, Deed};
use crate::actors::{garbage, label, stateful_set, uid};
use crate::api;
use crate::faults::Faults;
use crate::planted::{Bug, Planted};
use crate::properties::{Facts, Violation, Writing, check_commit, check_decision, violated};
use crate::random::Random;
use crate::replica::{Controller, Flight, Memory, WATCHED, Watch};
use crate::store::{Cascade, Change, Deletion, Key, Kind, Store, is_terminating};

const NAMES: [&str; 2] = ["lws-a", "lws-b"];
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// Virtual time of a step.
const STEP: Duration = Duration::from_millis(5);
/// Nothing was written for so long: all is quiet, whatever timers there are.
const QUIET: Duration = Duration::from_secs(1500);

/// Where in a request the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before it is sent.
    Unsent,
    /// Sent, not taken.
    Sent,
    /// Taken, not answered.
    Committed,
    /// Answered.
    Answered,
}

/// One crash.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// At which request, counted from 0.
    pub request: u64,
    /// Where.
    pub point: Point,
    /// So many versions behind are the first lists of the next process.
    pub behind: u64,
}

/// How a world is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Seed of everything.
    pub seed: u64,
    /// What people do.
    pub deeds: Vec<Deed>,
    /// What goes wrong.
    pub faults: Faults,
    /// For so many steps.
    pub fault_steps: u64,
    /// Processes of ours.
    pub processes: usize,
    /// Feature MaxUnavailableStatefulSet.
    pub gate: bool,
    /// One crash at an exact place.
    pub crash: Option<Crash>,
    /// A planted bug.
    pub planted: Planted,
    /// Every step is printed.
    pub trace: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            deeds: Vec::new(),
            faults: Faults::default(),
            fault_steps: 0,
            processes: 1,
            gate: true,
            crash: None,
            planted: Planted::default(),
            trace: false,
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Deliver(usize, Kind),
    List(usize, Kind),
    Take(usize, Controller),
    Work(usize, usize),
    Start(usize),
    Lead(usize),
    Sets(stateful_set::Write),
    Collect(garbage::Write),
    Kubelet(Key, Event),
    Deed,
}

/// The cluster.
#[derive(Clone, Debug)]
pub struct World {
    /// The API server.
    pub store: Store,
    /// Virtual time since the start.
    pub now: Duration,
    /// Our processes; `None` is one that is down.
    pub processes: Vec<Option<Memory>>,
    /// History for the judge.
    pub facts: Facts,
    /// Steps taken.
    pub steps: u64,
    /// Requests of ours that were sent.
    pub requests: u64,
    /// Why we wrote, by version.
    pub whys: BTreeMap<u64, String>,
    /// Faults that met a request, by fault and kind of request.
    pub coverage: BTreeMap<(&'static str, &'static str), u64>,
    setup: Setup,
    deeds: VecDeque<Deed>,
    random: Random,
    faults_over: bool,
    judged: usize,
    last_write: Duration,
    wait_until: Duration,
    failed_creates: BTreeMap<Key, (u32, Duration)>,
    starved: u64,
    first_lists_behind: u64,
    /// What the cluster would do, as of a version of the store.
    cluster: (u64, Vec<(Action, u64)>),
}

impl World {
    /// The cluster before anything happens: three nodes, our processes not yet started.
    pub fn new(setup: Setup) -> Self {
        let mut store = Store::new(at(Duration::ZERO));
        for name in NODES {
            let body = json!({"metadata": {"labels": {"rack": name}}});
            let made = store.create("admin", Key::new(Kind::Node, "", name), body);
            assert!(made.is_ok(), "an empty store takes a node");
        }
        let mut random = Random::new(setup.seed);
        let starved = random.below(6);
        Self {
            judged: store.log().len(),
            store,
            now: Duration::ZERO,
            processes: vec![None; setup.processes],
            facts: Facts::default(),
            steps: 0,
            requests: 0,
            whys: BTreeMap::new(),
            coverage: BTreeMap::new(),
            deeds: setup.deeds.iter().cloned().collect(),
            random,
            faults_over: false,
            last_write: Duration::ZERO,
            wait_until: Duration::ZERO,
            failed_creates: BTreeMap::new(),
            starved,
            first_lists_behind: 0,
            cluster: (0, Vec::new()),
            setup,
        }
    }

    /// Runs until all is quiet and nobody has anything left to do, or a property is violated.
    pub fn run(&mut self) -> Result<(), Violation> {
        let limit = self.setup.fault_steps + 30_000;
        while self.steps < limit {
            if !self.step()? {
                return Ok(());
            }
        }
        Err(violated("L-1", "it never comes to rest"))
    }

    /// One step; false when there is nothing to do.
    fn step(&mut self) -> Result<bool, Violation> {
        self.steps += 1;
        self.now += STEP;
        self.store.set_now(at(self.now));
        if self.is_faulty() {
            self.misfortune()?;
        } else if !self.faults_over {
            self.end_faults();
        }
        let actions = self.enabled();
        let total: u64 = actions.iter().map(|(_, weight)| weight).sum();
        let mut draw = self.random.below(total);
        let chosen = actions.into_iter().find(|(_, weight)| {
            let hit = draw < *weight;
            draw = draw.saturating_sub(*weight);
            hit
        });
        match chosen {
            Some((action, _)) => {
                if self.setup.trace {
                    println!("{:>10.3}s {action:?}", self.now.as_secs_f64());
                }
                self.perform(action)?;
            }
            None => return self.idle(),
        }
        Ok(true)
    }

    fn is_faulty(&self) -> bool {
        self.steps < self.setup.fault_steps
    }

    fn end_faults(&mut self) {
        self.faults_over = true;
        for memory in self.processes.iter_mut().flatten() {
            memory.held.clear();
        }
        self.one_leader();
    }

    /// A replica that lost its lease ends.
    fn one_leader(&mut self) {
        let leads = |m: &Option<Memory>| m.as_ref().is_some_and(|m| m.leads);
        if self.processes.iter().filter(|m| leads(m)).count() > 1
            && let Some(first) = self.processes.iter_mut().find(|m| leads(m))
        {
            *first = None;
        }
    }

    /// Nothing is enabled: the next deed that waited for this, or time passes.
    fn idle(&mut self) -> Result<bool, Violation> {
        let deadline = self
            .processes
            .iter()
            .flatten()
            .filter_map(|memory| memory.next_deadline(self.now))
            .chain(self.failed_creates.values().map(|(_, until)| *until))
            .chain((self.wait_until > self.now).then_some(self.wait_until))
            .filter(|due| *due > self.now)
            .min();
        let is_quiet =
            deadline.is_none_or(|due| due > self.last_write.max(self.wait_until) + QUIET);
        if is_quiet && self.is_faulty() {
            return Ok(true);
        }
        if is_quiet {
            match self.deeds.front() {
                None => return Ok(false),
                Some(Deed::Settle) => {
                    crate::properties::check_rest(&self.store, &self.facts)?;
                    self.deeds.pop_front();
                }
                Some(_) => {}
            }
            self.last_write = self.now;
            return Ok(true);
        }
        if let Some(due) = deadline {
            self.now = due;
            self.store.set_now(at(self.now));
        }
        Ok(true)
    }

    fn enabled(&mut self) -> Vec<(Action, u64)> {
        if self.cluster.0 != self.store.version() {
            self.cluster = (self.store.version(), self.enabled_of_cluster());
        }
        let mut actions = Vec::new();
        self.enabled_of_ours(&mut actions);
        for (action, actor) in &self.cluster.1 {
            if !self.is_waiting(action) {
                actions.push((
                    action.clone(),
                    self.weight(*actor, 6_u64.saturating_sub(*actor)),
                ));
            }
        }
        match self.deeds.front() {
            Some(Deed::Settle) | None => {}
            Some(_) if self.now < self.wait_until => {}
            Some(_) => actions.push((Action::Deed, 1)),
        }
        actions
    }

    fn weight(&self, actor: u64, weight: u64) -> u64 {
        if self.setup.faults.slow && self.is_faulty() && self.starved == actor {
            1
        } else {
            weight * 20
        }
    }

    fn enabled_of_ours(&self, actions: &mut Vec<(Action, u64)>) {
        for (index, process) in self.processes.iter().enumerate() {
            let Some(memory) = process else {
                actions.push((Action::Start(index), self.weight(0, 1)));
                continue;
            };
            for (kind, watch) in &memory.watches {
                let is_held = memory.held.get(kind).is_some_and(|until| *until > self.now);
                match watch {
                    _ if is_held => {}
                    Watch::Unlisted | Watch::Listing(_) => {
                        actions.push((Action::List(index, *kind), self.weight(1, 4)));
                    }
                    Watch::At(version) if *version < self.store.version() => {
                        actions.push((Action::Deliver(index, *kind), self.weight(1, 4)));
                    }
                    Watch::At(_) => {}
                }
            }
            let somebody_leads = self.processes.iter().flatten().any(|m| m.leads);
            if !memory.leads && !somebody_leads && memory.is_synced() {
                actions.push((Action::Lead(index), self.weight(0, 2)));
            }
            for controller in [Controller::Sets, Controller::Groups] {
                if memory.is_synced() && memory.has_work(controller, self.now) {
                    actions.push((Action::Take(index, controller), self.weight(2, 4)));
                }
            }
            for work in 0..memory.works.len() {
                actions.push((Action::Work(index, work), self.weight(2, 6)));
            }
        }
    }

    /// What the cluster would do, with the number of the actor.
    fn enabled_of_cluster(&self) -> Vec<(Action, u64)> {
        let mut actions = Vec::new();
        for (key, _) in self.store.list(Kind::StatefulSet) {
            if let Some(write) = stateful_set::next(&self.store, key, self.setup.gate) {
                actions.push((Action::Sets(write), 3));
            }
        }
        let alive = garbage::by_uid(&self.store);
        for (key, object) in self.store.all() {
            if let Some(write) = garbage::next(&self.store, &alive, key, object) {
                actions.push((Action::Collect(write), 4));
            }
        }
        for (key, pod) in self.store.list(Kind::Pod) {
            if let Some(event) = kubelet::next(pod) {
                actions.push((Action::Kubelet(key.clone(), event), 5));
            }
        }
        actions
    }

    /// The StatefulSet controller backs off after a failed create.
    fn is_waiting(&self, action: &Action) -> bool {
        let Action::Sets(stateful_set::Write::Create(key, body)) = action else {
            return false;
        };
        let owner = crate::actors::controller(body).and_then(|o| o["name"].as_str());
        let set = Key::new(Kind::StatefulSet, &key.namespace, owner.unwrap_or_default());
        self.failed_creates
            .get(&set)
            .is_some_and(|(_, until)| *until > self.now)
    }

    fn perform(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Deliver(index, kind) => self.deliver(index, kind),
            Action::List(index, kind) => self.list(index, kind),
            Action::Take(index, controller) => return self.take(index, controller),
            Action::Work(index, work) => return self.work(index, work),
            Action::Start(index) => {
                let behind = if self.is_faulty() && self.random.chance(self.setup.faults.old_lists)
                {
                    self.random.below(50)
                } else {
                    0
                };
                self.first_lists_behind = self.first_lists_behind.max(behind);
                self.set_process(index, Some(Memory::new(self.setup.planted)));
            }
            Action::Lead(index) => {
                let now = self.now;
                if let Some(memory) = self.process(index) {
                    memory.lead(now);
                }
            }
            Action::Sets(write) => self.stateful_set(write),
            Action::Collect(write) => self.collect(write),
            Action::Kubelet(key, event) => self.kubelet(&key, event),
            Action::Deed => {
                if let Some(deed) = self.deeds.pop_front() {
                    self.deed(deed);
                }
            }
        }
        self.judge(&Writing::default())
    }

    fn process(&mut self, index: usize) -> Option<&mut Memory> {
        self.processes.get_mut(index).and_then(Option::as_mut)
    }

    fn set_process(&mut self, index: usize, memory: Option<Memory>) {
        if let Some(process) = self.processes.get_mut(index) {
            *process = memory;
        }
    }

    fn deliver(&mut self, index: usize, kind: Kind) {
        let (now, coalesce) = (
            self.now,
            self.is_faulty() && self.random.chance(self.setup.faults.coalesce),
        );
        let burst = 1 + self.random.below(if coalesce { 12 } else { 3 });
        let Some(Watch::At(version)) = self
            .processes
            .get(index)
            .and_then(Option::as_ref)
            .and_then(|m| m.watches.get(&kind))
            .copied()
        else {
            return;
        };
        let mut commits = Vec::new();
        let mut of_kind = 0;
        let start = self.store.log().partition_point(|c| c.version <= version);
        for commit in self.store.log().iter().skip(start) {
            let is_of_kind = commit.key.kind == kind;
            if is_of_kind && of_kind == burst {
                break;
            }
            of_kind += u64::from(is_of_kind);
            commits.push(commit.clone());
        }
        if let Some(memory) = self.process(index) {
            memory.deliver(kind, &commits, coalesce, now);
        }
    }

    fn list(&mut self, index: usize, kind: Kind) {
        let now = self.now;
        let newest = self.store.version();
        let behind = self.first_lists_behind;
        let Some(Some(memory)) = self.processes.get_mut(index) else {
            return;
        };
        match memory.watches.get(&kind) {
            Some(Watch::Unlisted) => {
                // Only a new process may see an older snapshot; it has shown nothing and written nothing yet.
                let is_new = !memory.listed.contains(&kind);
                let version = if is_new {
                    newest.saturating_sub(behind).max(1)
                } else {
                    newest
                };
                memory.begin_list(kind, version, now);
            }
            Some(Watch::Listing(version)) => {
                let version = *version;
                memory.end_list(&self.store, kind, version, now);
                if memory.is_synced() {
                    self.first_lists_behind = 0;
                }
            }
            Some(Watch::At(_)) | None => {}
        }
    }

    fn take(&mut self, index: usize, controller: Controller) -> Result<(), Violation> {
        let (now, at) = (self.now, at(self.now));
        let mut verdict = Ok(());
        if let Some(memory) = self.process(index) {
            memory.take(controller, now, at, &mut |decision| {
                verdict = check_decision(&decision);
            });
        }
        verdict
    }

    /// The next stage of a request of ours.
    fn work(&mut self, index: usize, work: usize) -> Result<(), Violation> {
        let (now, time) = (self.now, at(self.now));
        let Some(memory) = self.process(index) else {
            return Ok(());
        };
        let Some(flight) = memory.works.get(work).map(|w| w.flight.clone()) else {
            return Ok(());
        };
        let mut verdict = Ok(());
        let mut point = None;
        match flight {
            Flight::Idle => {
                memory.send(work, now, time, &mut |decision| {
                    verdict = check_decision(&decision);
                });
                let is_sent = memory
                    .works
                    .get(work)
                    .is_some_and(|w| matches!(w.flight, Flight::Sent(_)));
                if is_sent {
                    self.requests += 1;
                    point = Some(Point::Sent);
                    if self.is_crash(Point::Unsent) {
                        self.crash(index);
                        return Ok(());
                    }
                }
            }
            Flight::Sent(request) => {
                self.commit(index, work, &request)?;
                point = Some(Point::Committed);
            }
            Flight::Committed(answer) => {
                memory.answered(work, answer);
                point = Some(Point::Answered);
            }
        }
        if point.is_some_and(|point| self.is_crash(point)) {
            self.crash(index);
        }
        verdict
    }

    fn is_crash(&mut self, point: Point) -> bool {
        let is_due = self
            .setup
            .crash
            .is_some_and(|c| c.request + 1 == self.requests && c.point == point);
        if is_due && let Some(crash) = self.setup.crash.take() {
            self.first_lists_behind = crash.behind;
        }
        is_due
    }

    fn crash(&mut self, index: usize) {
        self.set_process(index, None);
        self.facts.may_repeat = true;
        let is_watched = self.processes.iter().flatten().any(Memory::is_synced);
        if !is_watched {
            self.facts.owed.clear();
        }
    }

    fn commit(&mut self, index: usize, work: usize, request: &Request) -> Result<(), Violation> {
        let by = NAMES.get(index).copied().unwrap_or("lws");
        let step = self
            .processes
            .get(index)
            .and_then(Option::as_ref)
            .and_then(|m| m.works.get(work))
            .and_then(|w| w.step());
        let why = step.map(|step| step.why);
        let cause = step.and_then(|step| step.cause.as_ref().map(ToString::to_string));
        let decided = match step.map(|step| &step.intent) {
            Some(Intent::Delete { uid, .. }) => Some(uid.as_str().to_owned()),
            _ => None,
        };
        let fault = self.fault_of(request);
        if let Some(fault) = fault {
            self.facts.may_repeat |= fault == "lost answer";
            *self.coverage.entry((fault, name_of(request))).or_default() += 1;
        }
        let answer = match fault {
            Some("conflict") => Err(failure(Class::Conflict, None)),
            Some("error") => Err(failure(Class::Unknown, None)),
            Some("throttled") => Err(failure(Class::Throttled, Some(Duration::from_secs(2)))),
            Some(_) => {
                let answer = self.send_to_store(by, request);
                answer.and_then(|_| Err(failure(Class::Unknown, None)))
            }
            None => self.send_to_store(by, request),
        };
        if self.store.log().len() > self.judged {
            let text = format!(
                "{}{}",
                why.map_or("", Why::as_str),
                cause.map_or(String::new(), |c| format!(": {c}"))
            );
            self.whys.insert(self.store.version(), text);
        }
        if let Some(memory) = self.process(index)
            && let Some(work) = memory.works.get_mut(work)
        {
            work.flight = Flight::Committed(answer);
        }
        self.judge(&Writing { why, decided })
    }

    fn send_to_store(&mut self, by: &'static str, request: &Request) -> crate::store::Answer {
        if let Request::Delete { propagation, .. } = request
            && self.setup.planted.is(Bug::NoUidOnDelete)
        {
            let cascade = match propagation {
                lws_core::intent::Propagation::Background => Cascade::Background,
                lws_core::intent::Propagation::Foreground => Cascade::Foreground,
            };
            let deletion = Deletion {
                uid: None,
                cascade,
                grace: None,
            };
            return self
                .store
                .delete(by, &Key::from(request.target()), &deletion);
        }
        api::perform(&mut self.store, by, request)
    }

    fn fault_of(&mut self, request: &Request) -> Option<&'static str> {
        if !self.is_faulty() {
            return None;
        }
        let is_fenced = matches!(request, Request::Patch { body, .. } if body["metadata"].get("resourceVersion").is_some());
        let faults = self.setup.faults.clone();
        if is_fenced && self.random.chance(faults.conflict) {
            return Some("conflict");
        }
        if self.random.chance(faults.error) {
            return Some(if self.random.chance(500) {
                "error"
            } else {
                "throttled"
            });
        }
        (request.is_write() && self.random.chance(faults.lost_answer)).then_some("lost answer")
    }

    fn stateful_set(&mut self, write: stateful_set::Write) {
        let by = "statefulset-controller";
        match write {
            stateful_set::Write::Create(key, body) => {
                let owner = crate::actors::controller(&body)
                    .and_then(|o| o["name"].as_str())
                    .unwrap_or_default();
                let set = Key::new(Kind::StatefulSet, &key.namespace, owner);
                match api::create(&mut self.store, by, key.clone(), body) {
                    Ok(_) => {
                        self.failed_creates.remove(&set);
                    }
                    Err(_) => {
                        let of_group = self.store.get(&set).is_some_and(|set| {
                            crate::actors::controller(set).is_some_and(|o| o["kind"] == "Pod")
                        });
                        let (attempts, until) = self.failed_creates.entry(set).or_default();
                        *attempts += 1;
                        *until = self.now
                            + Duration::from_millis(5)
                                .saturating_mul(1 << (*attempts).min(17))
                                .min(Duration::from_secs(1000));
                        if !of_group {
                            return;
                        }
                        let at = self.now.as_secs();
                        let all = self
                            .facts
                            .failed_creates
                            .entry(key.name.to_string())
                            .or_default();
                        all.retain(|second| second + 60 > at);
                        all.push(at);
                    }
                }
            }
            stateful_set::Write::Delete(key, uid) => {
                self.delete(by, &key, Some(uid), Cascade::Background, None)
            }
            stateful_set::Write::Adopt(key, patch) => self.patch(by, &key, false, &patch),
            stateful_set::Write::Status(key, patch) => self.patch(by, &key, true, &patch),
        }
    }

    fn collect(&mut self, write: garbage::Write) {
        let by = "garbage-collector";
        match write {
            garbage::Write::Delete(key, uid, cascade) => {
                self.delete(by, &key, Some(uid), cascade, None)
            }
            garbage::Write::Release(key, patch) | garbage::Write::Orphan(key, patch) => {
                self.patch(by, &key, false, &patch);
            }
        }
    }

    fn kubelet(&mut self, key: &Key, event: Event) {
        let node = *self.random.pick(&NODES).unwrap_or(&"node-a");
        let patch = self
            .store
            .get(key)
            .and_then(|pod| kubelet::patch(pod, event, node));
        match patch {
            Some((status, patch)) => self.patch("kubelet", key, status, &patch),
            None => self.store.end("kubelet", key),
        }
    }

    fn deed(&mut self, deed: Deed) {
        let demo = user::key(Kind::LeaderWorkerSet, "demo");
        // What the API server refuses, the user learns; nothing follows.
        let _ = match deed {
            Deed::Apply(wanted) => {
                let made = api::create(&mut self.store, "user", demo, wanted.manifest());
                assert!(made.is_ok(), "the set of a scenario is valid: {made:?}");
                made
            }
            Deed::Edit(spec) => api::edit(&mut self.store, &demo, &spec),
            Deed::Patch(key, patch) => self.store.patch("user", &key, false, &patch),
            Deed::Create(key, body) => api::create(&mut self.store, "user", key, body),
            Deed::Delete(key, cascade, grace) => {
                return self.delete("user", &key, None, cascade, grace);
            }
            Deed::Wait(seconds) => {
                self.wait_until = self.now + Duration::from_secs(seconds);
                return;
            }
            Deed::Settle => return,
        };
    }

    fn delete(
        &mut self,
        by: &'static str,
        key: &Key,
        uid: Option<String>,
        cascade: Cascade,
        grace: Option<i64>,
    ) {
        // Gone, or another by now: nothing to delete.
        let _ = self.store.delete(
            by,
            key,
            &Deletion {
                uid,
                cascade,
                grace,
            },
        );
    }

    fn patch(&mut self, by: &'static str, key: &Key, status: bool, patch: &Value) {
        // A conflict is tried again when the actor comes next.
        let _ = self.store.patch(by, key, status, patch);
    }

    /// What goes wrong in this step.
    fn misfortune(&mut self) -> Result<(), Violation> {
        let faults = self.setup.faults.clone();
        let index = usize::try_from(self.random.below(self.processes.len() as u64)).unwrap_or(0);
        let kind = *self.random.pick(&WATCHED).unwrap_or(&Kind::Pod);
        if self.random.chance(faults.crash) {
            self.crash(index);
        }
        if self.random.chance(faults.lag) {
            let until = self.now + Duration::from_millis(20 * self.random.below(3000));
            if let Some(memory) = self.process(index) {
                memory.held.insert(kind, until);
            }
        }
        if self.random.chance(faults.cut)
            && let Some(memory) = self.process(index)
            && memory.is_synced()
        {
            memory.watches.insert(kind, Watch::Unlisted);
        }
        if self.random.chance(faults.two_leaders) {
            let now = self.now;
            if let Some(memory) = self.process(index)
                && memory.is_synced()
                && !memory.leads
            {
                memory.lead(now);
                self.facts.may_repeat = true;
            }
        } else if self.random.chance(faults.two_leaders * 5) {
            self.one_leader();
        }
        if self.random.chance(faults.mishap) {
            self.mishap();
        }
        if self.random.chance(faults.monkey) {
            self.monkey();
        }
        if self.random.chance(faults.edit) {
            self.edit();
        }
        self.judge(&Writing::default())
    }

    fn mishap(&mut self) {
        let pods: Vec<(Key, &'static [Event])> = self
            .store
            .list(Kind::Pod)
            .map(|(key, pod)| (key.clone(), kubelet::mishaps(pod)))
            .collect();
        let Some((key, events)) = self.random.pick(&pods).cloned() else {
            return;
        };
        if let Some(event) = self.random.pick(events).copied() {
            self.kubelet(&key, event);
        }
    }

    /// FM-15.
    fn monkey(&mut self) {
        let targets: Vec<Key> = self
            .store
            .all()
            .filter(|(key, object)| {
                !label(object, lws_api::names::label::NAME).is_empty()
                    && key.kind != Kind::ControllerRevision
            })
            .map(|(key, _)| key.clone())
            .collect();
        let Some(key) = self.random.pick(&targets).cloned() else {
            return;
        };
        let cascade = match (key.kind, self.random.below(4)) {
            (Kind::Pod, _) | (_, 0 | 1) => Cascade::Background,
            (_, 2) => Cascade::Foreground,
            (_, _) => Cascade::Orphan,
        };
        let grace = (key.kind == Kind::Pod && self.random.chance(400)).then_some(0);
        self.delete("monkey", &key, None, cascade, grace);
    }

    /// FM-19.
    fn edit(&mut self) {
        let spec = match self.random.below(6) {
            0 | 1 => json!({"replicas": self.random.below(4)}),
            2 => {
                let image = *self.random.pick(&["v1", "v2", "v3"]).unwrap_or(&"v1");
                json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
            }
            3 => json!({"leaderWorkerTemplate": {"size": 1 + self.random.below(3)}}),
            4 => {
                json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": self.random.below(3), "maxUnavailable": 1 + self.random.below(2)}}})
            }
            _ => {
                json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": self.random.below(3)}}})
            }
        };
        self.deed(Deed::Edit(spec));
    }

    /// Judges all commits that were not judged yet.
    fn judge(&mut self, writing: &Writing) -> Result<(), Violation> {
        while let Some(commit) = self.store.log().get(self.judged).cloned() {
            self.judged += 1;
            self.last_write = self.now;
            let before = match commit.key.kind {
                Kind::Pod => self.facts.incidents.clone(),
                _ => BTreeMap::new(),
            };
            check_commit(&self.store, &mut self.facts, &commit, writing)?;
            let ends = commit.change == Change::Deleted || is_terminating(&commit.object);
            if commit.key.kind == Kind::StatefulSet && ends {
                let leader = crate::actors::controller(&commit.object);
                self.facts
                    .owed
                    .remove(leader.and_then(|o| o["uid"].as_str()).unwrap_or_default());
            }
            if commit.key.kind == Kind::Pod && self.facts.incidents != before {
                self.owe(&commit, &before);
            }
        }
        match self
            .facts
            .failed_creates
            .iter()
            .find(|(_, at)| at.len() > 10)
        {
            Some((name, _)) => Err(violated(
                "S-20",
                format!("pod {name} could not be created more than 10 times in a minute"),
            )),
            None => Ok(()),
        }
    }

    /// L-3: a synced replica knew the pod when it failed, and its set wants groups recreated.
    fn owe(&mut self, commit: &crate::store::Commit, before: &BTreeMap<String, u32>) {
        let pod = ObjectKey::new(&commit.key.namespace, &commit.key.name);
        let knows = self.processes.iter().flatten().any(|memory| {
            memory.is_synced()
                && memory
                    .cache
                    .pod(&pod)
                    .is_some_and(|known| known.meta.uid.as_str() == uid(&commit.object))
        });
        let set = label(&commit.object, lws_api::names::label::NAME);
        let lws = self
            .store
            .get(&Key::new(Kind::LeaderWorkerSet, &commit.key.namespace, set));
        let recreates = lws.is_some_and(|lws| {
            lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
                && !is_terminating(lws)
        });
        // FAIL-36: without the StatefulSet of the pod there is no chain to the leader.
        let owner = crate::actors::controller(&commit.object).and_then(|o| o["uid"].as_str());
        let has_set = self
            .store
            .list(Kind::StatefulSet)
            .any(|(_, set)| Some(uid(set)) == owner && !is_terminating(set));
        if !knows || !recreates || !has_set || commit.by == "garbage-collector" {
            return;
        }
        let new = self
            .facts
            .incidents
            .iter()
            .filter(|(leader, count)| before.get(*leader) != Some(count))
            .map(|(leader, _)| leader.clone());
        // FAIL-35: a leftover of another revision is no worker of this leader.
        let revision = label(&commit.object, lws_api::names::label::REVISION);
        let is_same = |leader: &String| {
            self.store.list(Kind::Pod).any(|(_, pod)| {
                uid(pod) == leader && label(pod, lws_api::names::label::REVISION) == revision
            })
        };
        let new: Vec<String> = new.filter(is_same).collect();
        self.facts.owed.extend(new);
    }

    /// Pods that ended, whoever ended them.
    pub fn pod_ends(&self) -> u64 {
        self.facts.pod_ends.values().map(|n| u64::from(*n)).sum()
    }

    /// Groups that ended, by their leaders.
    pub fn group_ends(&self) -> u64 {
        let is_leader = |name: &str| name.matches('-').count() == 1;
        let ends = self.facts.pod_ends.iter();
        ends.filter(|(name, _)| is_leader(name))
            .map(|(_, n)| u64::from(*n))
            .sum()
    }

    /// The last commits, for a report.
    pub fn last_commits(&self, number: usize) -> String {
        let log = self.store.log();
        let lines = log.iter().skip(log.len().saturating_sub(number)).map(|c| {
            let what = match c.change {
                Change::Added => "+",
                Change::Modified if is_terminating(&c.object) => "x",
                Change::Modified => "~",
                Change::Deleted => "-",
            };
            let why = self.whys.get(&c.version).map_or("", String::as_str);
            format!(
                "{:>6} {:>10.3}s {what} {:<24} {:<40} {} {why}\n",
                c.version,
                c.at.duration_since(at(Duration::ZERO)).as_secs_f64(),
                c.by,
                c.key.to_string(),
                uid(&c.object)
            )
        });
        lines.collect()
    }
}

fn at(now: Duration) -> Timestamp {
    let start = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    start + SignedDuration::try_from(now).unwrap_or_default()
}

fn failure(class: Class, retry_after: Option<Duration>) -> Failure {
    Failure {
        class,
        message: "injected".to_owned(),
        retry_after,
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Create { .. } => "create",
        Request::Read { .. } => "read",
        Request::Apply { .. } => "apply",
        Request::Patch { .. } => "patch",
        Request::Delete { .. } => "delete",
    }
}
