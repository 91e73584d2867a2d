//! One step of a cluster at a time, chosen from outside, and what tells two clusters apart.

use std::sync::Arc;

use super::World;
use crate::actors::user::Deed;
use crate::exhaustive::Fingerprint;
use crate::properties::Violation;
use crate::random::Random;

impl World {
    /// From now on steps are chosen from outside, and time stands still while there are any. People do `deeds`.
    pub fn explore_with(&mut self, deeds: &[Deed]) {
        self.exploring = true;
        self.deeds.extend(deeds.iter().cloned());
        self.setup.fault_steps = 0;
    }

    /// Chance takes over again.
    pub fn leave_to_chance(&mut self, random: Random) {
        self.exploring = false;
        self.random = random;
        self.steps = 0;
    }

    /// How many steps can be chosen from; when nothing can happen, the one is that time passes.
    pub fn choices(&mut self) -> usize {
        self.enabled().len().max(1)
    }

    /// Takes a step, and says which.
    pub fn choose(&mut self, number: usize) -> (String, Result<(), Violation>) {
        // Whatever is left to chance within a step comes out the same in every state.
        self.random = Random::new(0);
        match self.enabled().into_iter().nth(number) {
            Some((action, _)) => {
                let name = format!("{action:?}");
                (name, self.perform(Arc::unwrap_or_clone(action)))
            }
            None => {
                let rest = self.idle().and_then(|goes_on| match goes_on {
                    true => Ok(()),
                    false => self.check_rest(),
                });
                ("time passes".to_owned(), rest)
            }
        }
    }

    /// A process of ours that leads is there to be killed.
    pub fn is_running(&self) -> bool {
        self.processes.iter().flatten().any(|memory| memory.leads)
    }

    /// All that the future depends on.
    pub fn fingerprint(&self, into: &mut Fingerprint) {
        into.take(&self.now);
        for (key, object) in self.store.all() {
            into.hash(key);
            into.hash(&**object);
        }
        for memory in &self.processes {
            match memory {
                Some(memory) => memory.fingerprint(&self.store, into),
                None => into.take(&"down"),
            }
        }
        into.take(&self.deeds.len());
        into.take(&(&self.failed_creates, self.wait_until, self.last_write));
        let facts = &self.facts;
        into.take(&(&facts.incidents, &facts.owed, &facts.deleted_leaders));
        into.take(&(&facts.recreations, &facts.pod_ends, facts.may_repeat));
        into.take(&facts.ready_leaders);
    }
}
