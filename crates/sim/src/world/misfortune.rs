//! What goes wrong between steps: crashes, bad watches, broken pods, and people who delete and edit.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;

use super::World;
use crate::actors::kubelet::{self, Event};
use crate::actors::label;
use crate::actors::user::Deed;
use crate::disaggregated::wanted;
use crate::faults::Faults;
use crate::properties::{Violation, Writing};
use crate::replica::Watch;
use crate::store::{Cascade, Key, Kind};

impl World {
    /// What goes wrong in this step.
    pub(super) fn misfortune(&mut self) -> Result<(), Violation> {
        let faults = self.setup.faults.clone();
        let index = usize::try_from(self.random.below(self.processes.len() as u64)).unwrap_or(0);
        let kind = *self
            .random
            .pick(self.setup.duty().watched)
            .unwrap_or(&Kind::Pod);
        let now = self.now;
        if self.random.chance(faults.crash) {
            self.crash(index);
        }
        if self.random.chance(faults.lag) {
            let until = self.now + Duration::from_millis(20 * self.random.below(3000));
            if let Some(memory) = self.process(index) {
                memory.held.insert(kind, until);
            }
        }
        // 403, 404: a list is refused for a while.
        let is_refused = self.random.chance(300);
        if self.random.chance(faults.cut)
            && let Some(memory) = self.process(index)
            && memory.is_synced()
        {
            memory.watches.insert(kind, Watch::Unlisted);
            if is_refused {
                memory.held.insert(kind, now + Duration::from_secs(30));
            }
        }
        if self.random.chance(faults.hang)
            && let Some(memory) = self.process(index)
        {
            memory.held.insert(kind, now + Duration::from_secs(300));
        }
        if self.setup.election {
            self.disturb_election(index, &faults);
        } else if self.random.chance(faults.two_leaders) {
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
        self.lasting_trouble(&faults)?;
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

    /// FM-2, FM-5, FM-11: the view of the Lease is bad, a process stands still, or one hands over in good order.
    fn disturb_election(&mut self, index: usize, faults: &Faults) {
        let now = self.now;
        if self.random.chance(faults.two_leaders) {
            let until = now + Duration::from_secs(5 + self.random.below(55));
            self.trouble.stopped.insert(index, until);
        }
        if self.random.chance(faults.two_leaders) {
            self.stop_leader();
        }
        let lags = self.random.chance(faults.lag);
        let until = now + Duration::from_millis(20 * self.random.below(3000));
        let breaks = self.random.chance(faults.cut);
        let Some(memory) = self.process(index) else {
            return;
        };
        if lags {
            memory.held.insert(Kind::Lease, until);
        }
        if let Some(candidate) = memory.candidate.as_mut().filter(|_| breaks) {
            candidate.lose_sight(now);
        }
    }

    /// Faults that last for a while.
    fn lasting_trouble(&mut self, faults: &Faults) -> Result<(), Violation> {
        if self.random.chance(faults.server_restart) && !self.is_server_down() {
            self.restart_server()?;
        }
        if self.random.chance(faults.refuse_pods) {
            self.trouble.pods_refused = self.now + Duration::from_secs(self.random.below(120));
        }
        if self.random.chance(faults.clock) {
            let steps = [-3600, -5, 0, 5, 3600];
            let seconds = self.random.pick(&steps).copied().unwrap_or_default();
            self.trouble.clock_off = SignedDuration::from_secs(seconds);
            self.facts.clock_stepped = true;
        }
        if self.random.chance(faults.pause) {
            let until = self.now + Duration::from_secs(self.random.below(600));
            self.trouble.paused = (self.random.below(6), until);
        }
        Ok(())
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
        if self.ground().is_some() {
            return self.monkey_of_ground();
        }
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
    pub(super) fn edit(&mut self) {
        if self.ground().is_some() {
            let change = wanted::Change::random(&mut self.random);
            return self.change(&change);
        }
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
}
