//! The whole simulated cluster at one moment, and its steps. A step is one enabled action, picked by weight; nothing else moves.

mod actions;
mod choices;
mod cluster;
mod misfortune;
mod ours;
mod roles;
mod verdict;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::actors::kubelet::Event;
use crate::actors::user::Deed;
use crate::actors::{garbage, namespace, stateful_set};
use crate::disaggregated::{self, Ground, children};
use crate::faults::Faults;
use crate::planted::Planted;
use crate::properties::{Facts, Violation, violated};
use crate::random::Random;
use crate::replica::{Controller, Duty, Memory};
use crate::store::{Key, Kind, Store};

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
    /// Seconds that containers take to end.
    pub ending: u64,
    /// Pods of groups from this index on are held by a scheduling gate that is not ours.
    pub gated_from: Option<i64>,
    /// Who leads is decided by the real election.
    pub election: bool,
    /// The world is one of DisaggregatedSets.
    pub ground: Option<Ground>,
}

impl Setup {
    /// What processes of ours do.
    pub fn duty(&self) -> Duty {
        self.ground.map_or(Duty::SETS, |ground| ground.duty())
    }

    fn quiet(&self) -> Duration {
        self.ground.map_or(QUIET, |_| Ground::QUIET)
    }
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
            ending: 0,
            gated_from: None,
            election: false,
            ground: None,
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
    Elect(usize),
    SeeLease(usize),
    Sets(stateful_set::Write),
    Collect(garbage::Write),
    Empty(namespace::Write),
    Kubelet(Key, Event),
    Child(Key, children::Move),
    Deed,
}

/// Faults that last.
#[derive(Clone, Debug, Default)]
struct Trouble {
    /// FM-9: the API server is down until then.
    server_down: Duration,
    /// FM-10, FM-17: no pod is admitted until then.
    pods_refused: Duration,
    /// FM-7: all requests of ours fail until then.
    we_fail: Duration,
    /// FM-12: how far our clock is off.
    clock_off: SignedDuration,
    /// FM-13: an actor, and until when it stands still.
    paused: (u64, Duration),
    /// FM-11: processes of ours that stand still, and until when.
    stopped: BTreeMap<usize, Duration>,
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
    /// The same of DisaggregatedSets.
    pub roles: disaggregated::Facts,
    /// Steps taken.
    pub steps: u64,
    /// Requests of ours that were sent.
    pub requests: u64,
    /// Why we wrote, by version.
    pub whys: BTreeMap<u64, String>,
    /// Faults that met a request, by fault and kind of request.
    pub coverage: BTreeMap<(&'static str, &'static str), u64>,
    /// The crash of the setup happened.
    pub crashed_as_told: bool,
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
    trouble: Trouble,
    /// Processes that were started.
    started: u64,
    /// Every order is taken: nothing is left to chance.
    exploring: bool,
    /// What the cluster would do, as of a version of the store.
    cluster: (u64, Vec<(Arc<Action>, u64)>),
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
            roles: disaggregated::Facts::default(),
            steps: 0,
            requests: 0,
            whys: BTreeMap::new(),
            coverage: BTreeMap::new(),
            deeds: setup.deeds.iter().cloned().collect(),
            random,
            crashed_as_told: false,
            faults_over: false,
            last_write: Duration::ZERO,
            wait_until: Duration::ZERO,
            failed_creates: BTreeMap::new(),
            starved,
            first_lists_behind: 0,
            trouble: Trouble::default(),
            started: 0,
            exploring: false,
            cluster: (0, Vec::new()),
            setup,
        }
    }

    /// How it was set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
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
                self.perform(Arc::unwrap_or_clone(action))?;
            }
            None => return self.idle(),
        }
        Ok(true)
    }

    /// FM-12: our clock.
    fn our_clock(&self) -> Timestamp {
        at(self.now) + self.trouble.clock_off
    }

    fn is_server_down(&self) -> bool {
        self.trouble.server_down > self.now
    }

    fn is_faulty(&self) -> bool {
        self.steps < self.setup.fault_steps
    }

    fn end_faults(&mut self) {
        self.faults_over = true;
        // What a watch that stood still held back is written only now.
        self.last_write = self.now;
        self.trouble = Trouble::default();
        for memory in self.processes.iter_mut().flatten() {
            memory.held.clear();
            for work in &mut memory.works {
                work.slow_until = Duration::ZERO;
            }
        }
        self.one_leader();
    }

    /// A replica that lost its lease ends.
    fn one_leader(&mut self) {
        if self.setup.election {
            return;
        }
        let leads = |m: &Option<Memory>| m.as_ref().is_some_and(|m| m.leads);
        if self.processes.iter().filter(|m| leads(m)).count() > 1
            && let Some(first) = self.processes.iter().position(leads)
        {
            self.end_process(first);
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
            .chain(self.ends_of_pods())
            .chain([
                self.wait_until,
                self.trouble.server_down,
                self.trouble.pods_refused,
                self.trouble.paused.1,
            ])
            .chain(self.trouble.stopped.values().copied())
            .filter(|due| *due > self.now)
            .min();
        let is_quiet = self.somebody_leads()
            && deadline
                .is_none_or(|due| due > self.last_write.max(self.wait_until) + self.setup.quiet());
        let deadline = deadline.into_iter().chain(self.next_election()).min();
        if is_quiet && self.is_faulty() {
            return Ok(true);
        }
        if is_quiet {
            match self.deeds.front() {
                None => return Ok(false),
                Some(Deed::Settle) => {
                    self.check_rest()?;
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
}

impl World {
    fn somebody_leads(&self) -> bool {
        self.processes.iter().flatten().any(|memory| memory.leads) || !self.setup.election
    }

    /// When an elector has something to do.
    fn next_election(&self) -> Option<Duration> {
        let processes = self.processes.iter().flatten();
        let candidates = processes.filter_map(|memory| memory.candidate.as_ref());
        let due = candidates.filter_map(|candidate| candidate.deadline(self.now));
        due.filter(|due| *due > self.now).min()
    }
}

/// The clock of the API server.
fn at(now: Duration) -> Timestamp {
    let start = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    start + SignedDuration::try_from(now).unwrap_or_default()
}
