//! DisaggregatedSets in the cluster: what is below their children, what people do to them, and their judge.

use std::sync::Arc;

use super::{Action, World};
use crate::actors::{garbage, stateful_set};
use crate::disaggregated::{self, Below, Ground, children, wanted};
use crate::properties::{Violation, Writing};
use crate::replica::Decision;
use crate::store::{Cascade, Commit, Key, Kind};

impl World {
    pub(super) fn ground(&self) -> Option<Ground> {
        self.setup.ground
    }

    /// What the cluster would do below the children, with the number of the actor.
    pub(super) fn enabled_of_ground(&self, ground: &Ground) -> Vec<(Action, u64)> {
        let mut actions = Vec::new();
        match ground.below {
            Below::Acted => {
                for (key, child) in self.store.list(Kind::LeaderWorkerSet) {
                    let moves = children::moves(&self.store, key, child);
                    actions.extend(
                        moves
                            .into_iter()
                            .map(|step| (Action::Child(key.clone(), step), 3)),
                    );
                }
            }
            Below::Real => {
                for (key, _) in self.store.list(Kind::StatefulSet) {
                    if let Some(write) = stateful_set::next(&self.store, key, self.setup.gate) {
                        actions.push((Action::Sets(write), 3));
                    }
                }
            }
        }
        let has_room = ground
            .room
            .is_none_or(|room| children::placed(&self.store) < room);
        for (key, pod) in self.store.list(Kind::Pod) {
            match children::kubelet(key, pod, has_room) {
                Ok(Some(event)) => actions.push((Action::Kubelet(key.clone(), event), 5)),
                Ok(None) => {}
                Err(step) => actions.push((Action::Child(key.clone(), step), 3)),
            }
        }
        let alive = garbage::by_uid(&self.store);
        for (key, object) in self.store.all() {
            if let Some(write) = garbage::next(&self.store, &alive, key, object) {
                actions.push((Action::Collect(write), 4));
            }
        }
        actions
    }

    /// One that looks only when everybody else is at rest.
    pub(super) fn be_patient(&self, actions: &mut Vec<(Arc<Action>, u64)>) {
        let is_look = |action: &Action| matches!(action, Action::Take(..));
        let is_patient = self.setup.ground.is_some_and(|ground| ground.patient);
        if is_patient && actions.iter().any(|(action, _)| !is_look(action)) {
            actions.retain(|(action, _)| !is_look(action));
        }
    }

    /// Judges a decision about a DisaggregatedSet, and notes the look at it.
    pub(super) fn check_roles(
        facts: &mut disaggregated::Facts,
        decision: &Decision<'_>,
    ) -> Result<(), Violation> {
        let Decision::Roles(seen, steps, at) = decision else {
            return Ok(());
        };
        facts.look(seen);
        disaggregated::check_decision(seen, steps, *at, &mut facts.dips)
    }

    pub(super) fn judge_roles(
        &mut self,
        ground: &Ground,
        commit: &Commit,
        writing: &Writing,
    ) -> Result<(), Violation> {
        if commit.by.starts_with("lws") && commit.key.kind != Kind::Lease {
            self.facts.writes += 1;
        }
        disaggregated::check_commit(&self.store, &mut self.roles, commit, writing, ground.holds)
    }

    pub(super) fn change(&mut self, change: &wanted::Change) {
        if let Some((key, patch)) = change.patch(&self.store) {
            // What the API server refuses, the user learns; nothing follows.
            let _ = crate::api::patch(&mut self.store, "user", &key, &patch);
        }
    }

    /// FM-15.
    pub(super) fn monkey_of_ground(&mut self) {
        if self.random.chance(300) {
            if let Some((key, patch)) = wanted::meddle(&self.store, &mut self.random) {
                // Gone, or another by now: nothing to change.
                let _ = self.store.patch("monkey", &key, false, &patch);
            }
            return;
        }
        let targets: Vec<Key> = self
            .store
            .all()
            .filter(|(key, object)| {
                let kinds = [
                    Kind::LeaderWorkerSet,
                    Kind::StatefulSet,
                    Kind::Pod,
                    Kind::RoleScaler,
                ];
                kinds.contains(&key.kind) && children::is_below(object)
            })
            .map(|(key, _)| key.clone())
            .collect();
        let Some(key) = self.random.pick(&targets).cloned() else {
            return;
        };
        let cascade = match (key.kind, self.random.below(4)) {
            (Kind::LeaderWorkerSet, 0) => Cascade::Orphan,
            (_, 1) => Cascade::Foreground,
            (_, _) => Cascade::Background,
        };
        self.delete("monkey", &key, None, cascade, None);
    }
}
