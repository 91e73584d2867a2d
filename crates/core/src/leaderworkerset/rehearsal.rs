//! A rollout of a set with Ordinal identity played through in advance: every pair that the leader set gets, and the fewest groups that serve meanwhile.
//!
//! Decides with the very table of [`rollout`]. Assumes that nobody changes the set on the way, that new groups become ready one after the other,
//! the highest index first, and that Kubernetes and the controller have done all they can before the next one does. In a cluster several groups may
//! become ready at once: then steps are skipped, and no more groups are missing than here.

use std::collections::BTreeSet;

use lws_api::leaderworkerset::LeaderWorkerSetSpec;

use super::groups;
use super::meaning::meaning;
use super::observe::Snapshot;
use super::ordinal::have;
use super::pass::current_revision;
use super::rollout::{self, Budget, BudgetError, Current, GroupState, GroupStates, Parameters};
use super::workload::{Found, Workload};
use crate::build::revision::revision_data;
use crate::intent::Kind;

/// Where a rollout starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// What the leader set has; `None` before it exists.
    pub current: Option<Current>,
    /// The template is another one than that of the leader set.
    pub template_changed: bool,
    /// The groups that exist.
    pub groups: GroupStates,
}

/// Why nothing can be foretold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The numbers of the rollout are none.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// ORD-135: what has the name of the set is not the set's.
    #[error("the StatefulSet of that name does not belong to the set")]
    Foreign,
    /// ORD-20 step 5: what has the name of the set is being deleted.
    #[error("the StatefulSet of that name is being deleted")]
    Leftover,
}

impl Start {
    /// A set that does not exist yet.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// A set that runs `old` with every group ready, and gets `new`.
    pub fn at_rest(old: &LeaderWorkerSetSpec, new: &LeaderWorkerSetSpec) -> Self {
        let is_same = meaning(&revision_data(old)) == meaning(&revision_data(new));
        Self::healthy(old, !is_same)
    }

    /// A set that runs `spec` with every group ready, and gets another template.
    pub fn new_template(spec: &LeaderWorkerSetSpec) -> Self {
        Self::healthy(spec, true)
    }

    fn healthy(spec: &LeaderWorkerSetSpec, template_changed: bool) -> Self {
        let number = |number: i32| u32::try_from(number).unwrap_or_default();
        let replicas = number(spec.replicas());
        let group = GroupState {
            is_ready: true,
            is_updated: !template_changed,
        };
        Self {
            current: Some(Current {
                replicas,
                partition: number(spec.partition()),
                desired_replicas: replicas,
            }),
            template_changed,
            groups: (0..replicas).map(|index| (index, group)).collect(),
        }
    }

    /// What runs now. The set of the snapshot may have another spec than the stored one.
    ///
    /// # Errors
    /// When the leader set is not the set's, or the budget cannot be read.
    pub fn of(snapshot: &Snapshot) -> Result<Self, Unclear> {
        let lws = &*snapshot.lws;
        let set = snapshot.leader_set.as_deref();
        let found = Found::judge(lws, set.map(Workload::from)).ok_or(Unclear::Leftover)?;
        let budget = Budget::of(&lws.spec)?;
        let workload = match found {
            Found::Nothing => return Ok(Self::nothing()),
            Found::Foreign => return Err(Unclear::Foreign),
            Found::Ours(workload) => workload,
        };
        let revision = current_revision(snapshot, Kind::StatefulSet, Some(workload));
        let current = set.map(|set| have(set, budget));
        let groups = groups::groups(snapshot, &revision.key);
        Ok(Self {
            current,
            template_changed: revision.template_changed,
            groups: groups::states(&groups, current.map_or(0, |current| current.replicas)),
        })
    }
}

/// All steps of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The steps, in order.
    pub scenes: Vec<Scene>,
    /// Groups that are ready at the start.
    pub ready: u32,
    /// The fewest groups that are ready at a time, the start included.
    pub lowest: u32,
}

impl Rehearsal {
    /// Groups of the start that are made anew.
    pub fn rolled(&self) -> BTreeSet<u32> {
        let scenes = self.scenes.iter();
        scenes.flat_map(|scene| scene.replaced.clone()).collect()
    }
}

/// What a write to the leader set leads to, until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// What the leader set gets.
    pub parameters: Parameters,
    /// Groups that come into being.
    pub created: Vec<u32>,
    /// Groups that are removed.
    pub removed: Vec<u32>,
    /// Groups that are replaced by one of the new revision.
    pub replaced: Vec<u32>,
    /// The fewest groups that are ready at a time.
    pub ready: u32,
}

/// Plays a rollout to its end. One that stands still ends there.
pub fn rehearse(budget: Budget, start: Start) -> Rehearsal {
    let ready = ready(&start.groups);
    let mut play = Play {
        budget,
        current: start.current,
        template_changed: start.template_changed,
        groups: start.groups,
        scenes: Vec::new(),
    };
    while play.advance() {}
    let lowest = play.scenes.iter().map(|scene| scene.ready);
    Rehearsal {
        ready,
        lowest: lowest.fold(ready, u32::min),
        scenes: play.scenes,
    }
}

struct Play {
    budget: Budget,
    current: Option<Current>,
    template_changed: bool,
    groups: GroupStates,
    scenes: Vec<Scene>,
}

impl Play {
    /// One pass of the controller, or if it has nothing to do, one group that becomes ready. Every write lowers the partition or changes the
    /// replicas towards the wanted ones, and every group becomes ready once: so this ends.
    fn advance(&mut self) -> bool {
        let want = rollout::parameters(
            self.budget,
            self.current,
            self.template_changed,
            &self.groups,
        );
        let wanted = Current {
            replicas: want.replicas,
            partition: want.partition,
            desired_replicas: self.budget.desired_replicas,
        };
        let is_new = self.current != Some(wanted) || self.template_changed;
        if is_new {
            self.write(want, wanted);
        } else if !self.make_ready() {
            return false;
        }
        self.settle();
        true
    }

    fn write(&mut self, want: Parameters, wanted: Current) {
        let had = self.current.replace(wanted);
        self.template_changed = false;
        let is_same = had.is_some_and(|had| {
            (had.replicas, had.partition) == (wanted.replicas, wanted.partition)
        });
        if !is_same {
            self.scenes.push(Scene {
                parameters: want,
                created: Vec::new(),
                removed: Vec::new(),
                replaced: Vec::new(),
                ready: u32::MAX,
            });
        }
    }

    fn make_ready(&mut self) -> bool {
        let unready = self.groups.values_mut().rev().find(|group| !group.is_ready);
        let found = unready.map(|group| group.is_ready = true);
        found.is_some()
    }

    /// What Kubernetes makes of the leader set.
    fn settle(&mut self) {
        let Some(current) = self.current else {
            return;
        };
        let removed: Vec<u32> = self
            .groups
            .split_off(&current.replicas)
            .into_keys()
            .collect();
        let missing = (0..current.replicas).filter(|index| !self.groups.contains_key(index));
        let created: Vec<u32> = missing.collect();
        for index in &created {
            let born = GroupState {
                is_ready: false,
                is_updated: *index >= current.partition,
            };
            self.groups.insert(*index, born);
        }
        let replaced = self.replace(current.partition);
        let ready = ready(&self.groups);
        if let Some(scene) = self.scenes.last_mut() {
            scene.removed.extend(removed);
            scene.created.extend(created);
            scene.replaced.extend(replaced);
            scene.ready = scene.ready.min(ready);
        }
    }

    /// ORD-63: old groups that do not serve go at once, of those that serve as many as may be missing.
    fn replace(&mut self, partition: u32) -> Vec<u32> {
        let at_once = self.budget.replaced_at_once();
        let mut replaced = Vec::new();
        loop {
            let old = |serves: bool| {
                let groups = self.groups.range(partition..).rev();
                let mut old = groups.filter(|(_, group)| !group.is_updated);
                old.find(|(_, group)| group.is_ready == serves)
                    .map(|(index, _)| *index)
            };
            let has_room = missing(&self.groups) < at_once;
            let next = old(false).or_else(|| old(true).filter(|_| has_room));
            let Some(index) = next else {
                return replaced;
            };
            let made_anew = GroupState {
                is_ready: false,
                is_updated: true,
            };
            self.groups.insert(index, made_anew);
            replaced.push(index);
        }
    }
}

fn ready(groups: &GroupStates) -> u32 {
    count(groups, true)
}

fn missing(groups: &GroupStates) -> u32 {
    count(groups, false)
}

fn count(groups: &GroupStates, is_ready: bool) -> u32 {
    let groups = groups.values().filter(|group| group.is_ready == is_ready);
    u32::try_from(groups.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use lws_api::leaderworkerset::{RollingUpdateConfiguration, RolloutStrategy};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::leaderworkerset::tests::fixture::{bare, demo_with, running};

    fn spec(
        replicas: i32,
        (surge, unavailable): (i32, i32),
        partition: i32,
    ) -> LeaderWorkerSetSpec {
        LeaderWorkerSetSpec {
            replicas: Some(replicas),
            rollout_strategy: Some(RolloutStrategy {
                type_: None,
                rolling_update_configuration: Some(RollingUpdateConfiguration {
                    partition: Some(partition),
                    max_unavailable: Some(IntOrString::Int(unavailable)),
                    max_surge: Some(IntOrString::Int(surge)),
                }),
            }),
            ..LeaderWorkerSetSpec::default()
        }
    }

    fn pairs(rehearsal: &Rehearsal) -> Vec<(u32, u32)> {
        let scenes = rehearsal.scenes.iter();
        scenes
            .map(|scene| (scene.parameters.replicas, scene.parameters.partition))
            .collect()
    }

    fn update(spec: &LeaderWorkerSetSpec) -> Rehearsal {
        rehearse(Budget::of(spec).unwrap(), Start::new_template(spec))
    }

    /// The sequences that e2e/tests/rollout.rs sees on a control plane.
    #[test]
    fn ord_50_rehearsed_sequences_are_those_of_the_control_plane() {
        for (replicas, surge, unavailable, sequence, lowest) in [
            (4, 2, 2, vec![(6, 4), (6, 2), (6, 1), (6, 0), (4, 0)], 2),
            (1, 1, 0, vec![(2, 1), (2, 0), (1, 0)], 1),
            (4, 0, 1, vec![(4, 4), (4, 3), (4, 2), (4, 1), (4, 0)], 3),
            (4, 0, 2, vec![(4, 4), (4, 2), (4, 1), (4, 0)], 2),
            (
                4,
                1,
                1,
                vec![(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (4, 0)],
                3,
            ),
            (2, 0, 1, vec![(2, 2), (2, 1), (2, 0)], 1),
        ] {
            let rehearsal = update(&spec(replicas, (surge, unavailable), 0));
            assert_eq!(
                pairs(&rehearsal),
                sequence,
                "{replicas} +{surge} -{unavailable}"
            );
            assert_eq!(
                rehearsal.lowest, lowest,
                "{replicas} +{surge} -{unavailable}"
            );
            assert_eq!(rehearsal.rolled(), (0..replicas.unsigned_abs()).collect());
        }
    }

    #[test]
    fn ord_50_rehearsed_partition_stops_there() {
        let rehearsal = update(&spec(4, (0, 1), 2));
        assert_eq!(pairs(&rehearsal), [(4, 4), (4, 3), (4, 2)]);
        assert_eq!(rehearsal.rolled(), [2, 3].into());
    }

    #[test]
    fn ord_53_rehearsed_broken_groups_do_not_block() {
        for (budget, sequence) in [
            ((1, 0), vec![(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (4, 0)]),
            ((0, 1), vec![(4, 4), (4, 3), (4, 2), (4, 1), (4, 0)]),
        ] {
            let spec = spec(4, budget, 0);
            let mut start = Start::new_template(&spec);
            for group in start.groups.values_mut() {
                group.is_ready = false;
            }
            let rehearsal = rehearse(Budget::of(&spec).unwrap(), start);
            assert_eq!(pairs(&rehearsal), sequence, "{budget:?}");
        }
    }

    #[test]
    fn ord_50_rehearsed_scaling_with_and_without_an_update() {
        let (two, three) = (spec(2, (1, 0), 0), spec(3, (1, 0), 0));
        let budget = Budget::of(&three).unwrap();
        let grown = rehearse(budget, Start::at_rest(&two, &three));
        assert_eq!(pairs(&grown), [(3, 0)]);
        assert_eq!((grown.rolled().len(), grown.lowest), (0, 2));
        let both = rehearse(budget, Start::new_template(&two));
        assert_eq!(pairs(&both), [(3, 2), (4, 2), (4, 1), (4, 0), (3, 0)]);
        assert_eq!(both.lowest, 2);
        let born = rehearse(budget, Start::nothing());
        assert_eq!(pairs(&born), [(3, 0)]);
        assert_eq!(born.scenes[0].created, [0, 1, 2]);
        let shrunk = rehearse(Budget::of(&two).unwrap(), Start::at_rest(&three, &two));
        assert_eq!(shrunk.scenes[0].removed, [2]);
    }

    #[test]
    fn ord_37_rehearsed_at_rest_sees_what_carries_meaning() {
        let old = demo_with(json!({})).spec;
        assert!(!Start::at_rest(&old, &old).template_changed);
        let size = demo_with(json!({"spec": {"leaderWorkerTemplate": {"size": 7}}})).spec;
        assert!(Start::at_rest(&old, &size).template_changed);
        let budget = json!({"spec": {"leaderWorkerTemplate": {"maxGroupRestarts": 7}}});
        assert!(!Start::at_rest(&old, &demo_with(budget).spec).template_changed);
    }

    #[test]
    fn ord_36_rehearsed_start_of_a_running_set() {
        let set = demo_with(json!({"spec": {"replicas": 2}}));
        assert_eq!(Start::of(&bare(set.clone())), Ok(Start::nothing()));
        let mut snapshot = running(set, (2, 0), "Nn");
        let same = Start::of(&snapshot).unwrap();
        assert!(!same.template_changed && same.groups[&0].is_updated);
        assert!(same.groups[&0].is_ready && !same.groups[&1].is_ready);
        let other = json!({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 9}}});
        snapshot.lws = Arc::new(demo_with(other));
        let changed = Start::of(&snapshot).unwrap();
        assert!(changed.template_changed && !changed.groups[&0].is_updated);
    }

    proptest! {
        /// ORD-53: whatever the budget, a rehearsal ends with all groups new, and never has fewer groups ready than allowed.
        #[test]
        fn ord_53_rehearsals_end_within_the_budget(replicas in 0..12i32, surge in 0..5i32, unavailable in 0..5i32, before in 0..12i32) {
            let new = spec(replicas, (surge, unavailable), 0);
            let budget = Budget::of(&new).unwrap();
            let old = spec(before, (0, 1), 0);
            let rehearsal = rehearse(budget, Start::new_template(&old));
            let floor = budget.desired_replicas.min(before.unsigned_abs()).saturating_sub(budget.max_unavailable);
            prop_assert!(rehearsal.lowest >= floor, "{rehearsal:?}");
            if replicas > 0 && before > 0 {
                let last = rehearsal.scenes.last().unwrap();
                prop_assert_eq!((last.parameters.replicas, last.parameters.partition), (budget.desired_replicas, 0));
            }
        }
    }
}
