//! What could happen next, with weights, and the one that is picked.

use std::sync::Arc;

use crate::actors::kubelet::{self, Event};
use crate::actors::user::Deed;
use crate::actors::{garbage, namespace, stateful_set};
use crate::disaggregated::children;
use crate::properties::{Violation, Writing};
use crate::replica::{Flight, Memory, Watch, Work};
use crate::store::{Key, Kind};

use super::{Action, World, at};

impl World {
    pub(super) fn enabled(&mut self) -> Vec<(Arc<Action>, u64)> {
        if self.cluster.0 != self.store.version() {
            let all = self.enabled_of_cluster().into_iter();
            let all = all.map(|(action, actor)| (Arc::new(action), actor));
            self.cluster = (self.store.version(), all.collect());
        }
        let mut ours = Vec::new();
        self.enabled_of_ours(&mut ours);
        let ours = ours.into_iter().filter(|(_, weight)| *weight > 0);
        let mut actions: Vec<_> = ours
            .map(|(action, weight)| (Arc::new(action), weight))
            .collect();
        if self.is_server_down() {
            return actions;
        }
        for (action, actor) in &self.cluster.1 {
            if !self.is_waiting(action) && !self.is_paused(*actor) {
                actions.push((
                    action.clone(),
                    self.weight(*actor, 6_u64.saturating_sub(*actor)),
                ));
            }
        }
        match self.deeds.front() {
            Some(Deed::Settle) | None => {}
            Some(_) if self.now < self.wait_until => {}
            Some(Deed::Rows(rows)) if self.roles.course.len() < *rows => {}
            Some(_) => actions.push((Arc::new(Action::Deed), 1)),
        }
        self.be_patient(&mut actions);
        actions
    }

    /// FM-13.
    fn is_paused(&self, actor: u64) -> bool {
        self.trouble.paused.0 == actor && self.trouble.paused.1 > self.now
    }

    fn weight(&self, actor: u64, weight: u64) -> u64 {
        if self.is_paused(actor) {
            0
        } else if self.setup.faults.slow && self.is_faulty() && self.starved == actor {
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
            let is_stopped = self.is_stopped(index);
            for (position, work) in memory.works.iter().enumerate() {
                if self.goes_on(memory, work, is_stopped) {
                    actions.push((Action::Work(index, position), self.weight(2, 6)));
                }
            }
            if is_stopped {
                continue;
            }
            self.enabled_of_election(index, memory, actions);
            for (kind, watch) in &memory.watches {
                match watch {
                    _ if self.is_held(memory, *kind) => {}
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
            let is_free = memory.candidate.is_none() && !somebody_leads;
            if !memory.leads && is_free && memory.is_synced() {
                actions.push((Action::Lead(index), self.weight(0, 2)));
            }
            for controller in self.setup.duty().controllers.iter().copied() {
                if memory.is_synced() && memory.has_work(controller, self.now) {
                    actions.push((Action::Take(index, controller), self.weight(2, 4)));
                }
            }
        }
    }

    fn enabled_of_election(&self, index: usize, memory: &Memory, actions: &mut Vec<(Action, u64)>) {
        let Some(candidate) = &memory.candidate else {
            return;
        };
        let is_cut_off = candidate.needs_server() && self.is_server_down();
        if (candidate.is_due(self.now) || memory.can_leave()) && !is_cut_off {
            actions.push((Action::Elect(index), self.weight(2, 6)));
        }
        if candidate.has_news(&self.store) && !self.is_held(memory, Kind::Lease) {
            actions.push((Action::SeeLease(index), self.weight(1, 4)));
        }
    }

    fn is_held(&self, memory: &Memory, kind: Kind) -> bool {
        let held = memory.held.get(&kind);
        self.is_server_down() || held.is_some_and(|until| *until > self.now)
    }

    /// FM-11: the process stands still.
    fn is_stopped(&self, index: usize) -> bool {
        let until = self.trouble.stopped.get(&index);
        until.is_some_and(|until| *until > self.now)
    }

    /// Whether a reconcile can go on. What was sent goes on without its process; LE-7: nothing is sent after the fence.
    fn goes_on(&self, memory: &Memory, work: &Work, is_stopped: bool) -> bool {
        let is_sent = matches!(work.flight, Flight::Sent(_));
        let is_idle = matches!(work.flight, Flight::Idle);
        let waits = work.slow_until > self.now
            || (is_sent && self.is_server_down())
            || (is_stopped && !is_sent);
        !waits && (!is_idle || memory.may_write(self.now))
    }

    /// What the cluster would do, with the number of the actor.
    fn enabled_of_cluster(&self) -> Vec<(Action, u64)> {
        if let Some(ground) = self.ground() {
            return self.enabled_of_ground(&ground);
        }
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
        actions.extend(
            namespace::next(&self.store)
                .into_iter()
                .map(|write| (Action::Empty(write), 4)),
        );
        for (key, pod) in self.store.list(Kind::Pod) {
            if let Some(event) = kubelet::next(pod) {
                actions.push((Action::Kubelet(key.clone(), event), 5));
            }
        }
        actions
    }

    /// The StatefulSet controller backs off after a failed create, and containers take their time to end.
    fn is_waiting(&self, action: &Action) -> bool {
        if let Action::Kubelet(key, Event::End) = action {
            return self.end_of_pod(key).is_some_and(|end| end > self.now);
        }
        if let Action::Child(_, children::Move::Raise(_)) = action {
            return self.trouble.pods_refused > self.now;
        }
        let Action::Sets(stateful_set::Write::Create(key, body)) = action else {
            return false;
        };
        // A changed set is looked at again at once, and its revision is made before its pods.
        if key.kind != Kind::Pod {
            return false;
        }
        let owner = crate::actors::controller(body).and_then(|o| o["name"].as_str());
        let set = Key::new(Kind::StatefulSet, &key.namespace, owner.unwrap_or_default());
        self.failed_creates
            .get(&set)
            .is_some_and(|(_, until)| *until > self.now)
    }

    pub(super) fn perform(&mut self, action: Action) -> Result<(), Violation> {
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
                self.start(index);
            }
            Action::Elect(index) => return self.elect(index),
            Action::SeeLease(index) => self.see_lease(index),
            Action::Lead(index) => {
                let now = self.now;
                if let Some(memory) = self.process(index) {
                    memory.lead(now);
                }
            }
            Action::Sets(write) => self.stateful_set(write),
            Action::Collect(write) => self.collect(write),
            Action::Empty(write) => self.empty(write),
            Action::Kubelet(key, event) => self.kubelet(&key, event),
            Action::Child(key, step) => {
                let is_bound = self.ground().is_none_or(|ground| ground.room.is_none());
                children::perform(&mut self.store, &key, step, is_bound, at(self.now));
            }
            Action::Deed => {
                if let Some(deed) = self.deeds.pop_front() {
                    self.deed(deed);
                }
            }
        }
        self.judge(&Writing::default())
    }
}
