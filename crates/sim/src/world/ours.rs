//! Steps of our processes: what watches tell, which keys are taken, and requests on their way to the store, with what befalls them there.

use std::time::Duration;

use lws_core::intent::{Intent, Why};
use lws_core::run::{Class, Failure, Request};

use super::{NAMES, Point, World};
use crate::api;
use crate::candidate::{self, Candidate, Fate};
use crate::planted::Bug;
use crate::properties::{Violation, Writing, check_decision, violated};
use crate::replica::{Controller, Flight, Memory, Watch};
use crate::store::{Cascade, Deletion, Key, Kind};

impl World {
    /// A process starts; with an election it stands for it under a name of its own.
    pub(super) fn start(&mut self, index: usize) {
        let bugs = self.setup.planted;
        let mut memory = Memory::new(bugs, self.setup.duty());
        if self.setup.election {
            self.started += 1;
            let name = NAMES.get(index).copied().unwrap_or("lws");
            memory.candidate = Some(Candidate::new(format!("{name}-{}", self.started), bugs));
        }
        self.set_process(index, Some(memory));
    }

    /// The next stage of an election.
    pub(super) fn elect(&mut self, index: usize) -> Result<(), Violation> {
        let fate = self.fate();
        let (now, wall) = (self.now, self.our_clock());
        let by = NAMES.get(index).copied().unwrap_or("lws");
        let Some(Some(memory)) = self.processes.get_mut(index) else {
            return Ok(());
        };
        let (can_leave, is_done) = (memory.can_leave(), memory.works.is_empty());
        let Some(candidate) = &mut memory.candidate else {
            return Ok(());
        };
        if candidate.has_lost(now) {
            self.crash(index);
            return Ok(());
        }
        if candidate.has_left() && is_done {
            self.end_process(index);
            return Ok(());
        }
        if can_leave {
            candidate.begin_to_leave();
        }
        candidate.step(&mut self.store, by, (now, wall), fate);
        if candidate.is_leader() && !memory.leads {
            memory.lead(now);
        }
        self.judge(&Writing::default())
    }

    /// The watch of the Lease begins, or tells something.
    pub(super) fn see_lease(&mut self, index: usize) {
        let now = self.now;
        let Some(Some(memory)) = self.processes.get_mut(index) else {
            return;
        };
        if let Some(candidate) = &mut memory.candidate {
            candidate.see(&self.store, now);
        }
    }

    /// SHD-1, FM-11: the process of ours that leads is asked to end.
    pub(super) fn stop_leader(&mut self) {
        let leader = self
            .processes
            .iter_mut()
            .flatten()
            .find(|memory| memory.leads);
        if let Some(memory) = leader {
            memory.ends = true;
        }
    }

    fn fate(&mut self) -> Option<Fate> {
        if !self.is_faulty() {
            None
        } else if self.random.chance(self.setup.faults.error) {
            Some(Fate::NotTaken)
        } else {
            let is_lost = self.random.chance(self.setup.faults.lost_answer);
            is_lost.then_some(Fate::NotAnswered)
        }
    }

    /// S-22: whoever writes is whom the Lease names.
    fn only_the_holder_writes(&self, index: usize) -> Result<(), Violation> {
        let memory = self.processes.get(index).and_then(Option::as_ref);
        let writer = memory.and_then(|memory| memory.candidate.as_ref());
        let holder = candidate::holder(&self.store);
        match writer {
            Some(writer) if holder != Some(&writer.me) => Err(violated(
                "S-22",
                format!("{} writes while {holder:?} holds the Lease", writer.me),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The process of ours that leads dies.
    pub fn kill_leader(&mut self) {
        let mut processes = self.processes.iter();
        let leads = |memory: &Option<Memory>| memory.as_ref().is_some_and(|memory| memory.leads);
        if let Some(index) = processes.position(leads) {
            self.crash(index);
        }
    }

    pub(super) fn process(&mut self, index: usize) -> Option<&mut Memory> {
        self.processes.get_mut(index).and_then(Option::as_mut)
    }

    pub(super) fn set_process(&mut self, index: usize, memory: Option<Memory>) {
        if let Some(process) = self.processes.get_mut(index) {
            *process = memory;
        }
    }

    pub(super) fn deliver(&mut self, index: usize, kind: Kind) {
        let (now, coalesce) = (
            self.now,
            self.is_faulty() && self.random.chance(self.setup.faults.coalesce),
        );
        let burst = match (self.exploring, coalesce) {
            (true, _) => 1,
            (false, true) => 1 + self.random.below(12),
            (false, false) => 1 + self.random.below(3),
        };
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
        for commit in self.store.since(version) {
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

    pub(super) fn list(&mut self, index: usize, kind: Kind) {
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

    pub(super) fn take(&mut self, index: usize, controller: Controller) -> Result<(), Violation> {
        let (now, at) = (self.now, self.our_clock());
        let mut verdict = Ok(());
        if let Some(Some(memory)) = self.processes.get_mut(index) {
            memory.take(controller, now, at, &mut |decision| {
                verdict = check_decision(&decision)
                    .and_then(|()| Self::check_roles(&mut self.roles, &decision));
            });
        }
        verdict
    }

    /// The next stage of a request of ours.
    pub(super) fn work(&mut self, index: usize, work: usize) -> Result<(), Violation> {
        let (now, time) = (self.now, self.our_clock());
        let Some(Some(memory)) = self.processes.get_mut(index) else {
            return Ok(());
        };
        let Some((flight, mut request)) =
            (memory.works.get(work)).map(|w| (w.flight.clone(), w.request))
        else {
            return Ok(());
        };
        let mut verdict = Ok(());
        let mut point = None;
        match flight {
            Flight::Idle => {
                let is_sent = memory.send(work, now, time, &mut |decision| {
                    verdict = check_decision(&decision)
                        .and_then(|()| Self::check_roles(&mut self.roles, &decision));
                });
                if is_sent {
                    self.requests += 1;
                    request = self.requests;
                    self.slow_down(index, work);
                    self.number(index, work, request);
                    point = Some(Point::Sent);
                    if self.is_crash(Point::Unsent, request) {
                        self.crash(index);
                        return Ok(());
                    }
                }
            }
            Flight::Sent(_) if memory.is_past_fence(now) => {
                if let Some(work) = memory.works.get_mut(work) {
                    work.flight = Flight::Committed(Err(failure(Class::Unknown, None)));
                }
            }
            Flight::Sent(sent) => {
                self.commit(index, work, &sent)?;
                point = Some(Point::Committed);
            }
            Flight::Committed(answer) => {
                memory.answered(work, answer);
                point = Some(Point::Answered);
            }
        }
        if point.is_some_and(|point| self.is_crash(point, request)) {
            self.crash(index);
        }
        verdict
    }

    /// FM-18.
    fn slow_down(&mut self, index: usize, work: usize) {
        if !self.is_faulty() || !self.random.chance(self.setup.faults.latency) {
            return;
        }
        let until = self.now + Duration::from_millis(1000 + self.random.below(4000));
        let Some(work) = self
            .process(index)
            .and_then(|memory| memory.works.get_mut(work))
        else {
            return;
        };
        work.slow_until = until;
        let why = work.step().map(|step| step.why);
        self.meet("slow", why);
    }

    /// A fault met a request that was made because of `why`.
    pub(super) fn meet(&mut self, fault: &'static str, why: Option<Why>) {
        if let Some(why) = why {
            *self.coverage.entry((fault, why.as_str())).or_default() += 1;
        }
    }

    fn number(&mut self, index: usize, work: usize, request: u64) {
        let memory = self.process(index);
        if let Some(work) = memory.and_then(|memory| memory.works.get_mut(work)) {
            work.request = request;
        }
    }

    fn is_crash(&mut self, point: Point, request: u64) -> bool {
        let is_due = self
            .setup
            .crash
            .is_some_and(|c| c.request + 1 == request && c.point == point);
        if is_due && let Some(crash) = self.setup.crash.take() {
            self.first_lists_behind = crash.behind;
            self.crashed_as_told = true;
        }
        is_due
    }

    pub(super) fn crash(&mut self, index: usize) {
        self.meet_all("crash", Some(index));
        self.end_process(index);
    }

    /// What only this process knew, nobody knows any more.
    pub(super) fn end_process(&mut self, index: usize) {
        self.set_process(index, None);
        self.facts.may_repeat = true;
        self.facts.owed.retain(|_, knew| {
            knew.remove(&index);
            !knew.is_empty()
        });
    }

    fn commit(&mut self, index: usize, work: usize, request: &Request) -> Result<(), Violation> {
        let by = NAMES.get(index).copied().unwrap_or("lws");
        let underway = self
            .processes
            .get(index)
            .and_then(Option::as_ref)
            .and_then(|m| m.works.get(work));
        let seen_revision = underway.and_then(|w| w.seen_revision()).map(str::to_owned);
        let pods_seen = underway.map_or(0, |work| work.pods_seen);
        let seen_roles = underway.and_then(|w| w.seen_roles()).cloned();
        let step = underway.and_then(|w| w.step());
        let why = step.map(|step| step.why);
        let cause = step.and_then(|step| step.cause.as_ref().map(ToString::to_string));
        let decided = match step.map(|step| &step.intent) {
            Some(Intent::Delete { uid, .. }) => Some(uid.as_str().to_owned()),
            _ => None,
        };
        let fault = self.fault_of(request);
        if let Some(fault) = fault {
            self.facts.may_repeat |= fault == "lost answer";
            self.meet(fault, why);
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
            self.only_the_holder_writes(index)?;
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
        self.judge(&Writing {
            why,
            decided,
            seen_revision,
            pods_seen,
            seen_roles,
        })
    }

    /// A fault meets all requests that are on their way, of one process or of all.
    pub(super) fn meet_all(&mut self, fault: &'static str, only: Option<usize>) {
        let processes = self.processes.iter().enumerate();
        let hit = processes.filter(|(index, _)| only.is_none_or(|only| only == *index));
        let works = hit
            .flat_map(|(_, memory)| memory)
            .flat_map(|memory| &memory.works);
        let whys: Vec<Option<Why>> = works
            .filter(|work| !matches!(work.flight, Flight::Idle))
            .map(|work| work.step().map(|step| step.why))
            .collect();
        for why in whys {
            self.meet(fault, why);
        }
    }

    /// FM-9: connections drop. What was on its way is taken or not, and nobody learns which.
    pub(super) fn restart_server(&mut self) -> Result<(), Violation> {
        self.meet_all("server restart", None);
        self.facts.may_repeat = true;
        self.trouble.server_down =
            self.now + Duration::from_millis(1000 + self.random.below(19_000));
        let now = self.now;
        for index in 0..self.processes.len() {
            let Some(memory) = self.process(index) else {
                continue;
            };
            if memory.is_synced() {
                memory.relist_all();
            }
            if let Some(candidate) = &mut memory.candidate {
                candidate.lose_sight(now);
            }
            for work in 0..memory.works.len() {
                self.cut_off(index, work)?;
            }
        }
        Ok(())
    }

    fn cut_off(&mut self, index: usize, work: usize) -> Result<(), Violation> {
        let memory = self.processes.get(index).and_then(Option::as_ref);
        let flight = memory
            .and_then(|memory| memory.works.get(work))
            .map(|work| work.flight.clone());
        match flight {
            Some(Flight::Sent(request)) if self.random.chance(500) => {
                self.commit(index, work, &request)?;
            }
            Some(Flight::Sent(_) | Flight::Committed(_)) => {}
            Some(Flight::Idle) | None => return Ok(()),
        }
        if let Some(work) = self
            .process(index)
            .and_then(|memory| memory.works.get_mut(work))
        {
            work.flight = Flight::Committed(Err(failure(Class::Unknown, None)));
        }
        Ok(())
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
                version: None,
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
        if self.trouble.we_fail > self.now {
            return Some("error");
        }
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
}

fn failure(class: Class, retry_after: Option<Duration>) -> Failure {
    Failure {
        class,
        message: "injected".to_owned(),
        retry_after,
    }
}
