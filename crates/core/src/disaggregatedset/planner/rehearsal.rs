//! A rollout played through in advance: every step, and how many groups serve on the way.
//!
//! Assumes that what is wanted stays the same and that every group is Ready one step after it was asked for; in a cluster steps are the same, but
//! take longer.

use super::view::View;
use super::{Decision, Groups, Kind, Role, Rollout, Share, Step, decide};

/// All steps of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The steps, in order.
    pub scenes: Vec<Scene>,
    /// Per role the fewest groups that serve at a time, the start included.
    pub lowest: Vec<u64>,
}

/// What is there after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Why the step is taken.
    pub kind: Kind,
    /// Wanted groups of the old revisions, newest first, per role.
    pub old: Vec<Vec<u64>>,
    /// Wanted groups of the target, per role.
    pub target: Vec<u64>,
    /// Groups that serve right after the step, before new ones are Ready; those of a revision without one of its roles do not.
    pub serving: Vec<u64>,
}

impl Rollout {
    /// A set at rest whose template changes: `before` is what runs, `roles` what is wanted.
    pub fn from_rest(before: &[u64], roles: Vec<Role>) -> Self {
        let ready = |initial: &u64| Share {
            initial: *initial,
            groups: Groups::all_ready(*initial),
        };
        Self {
            policy: Default::default(),
            old: vec![before.iter().map(ready).collect()],
            roles,
        }
    }

    /// More steps than this are no rollout (section 9, invariants).
    fn longest(&self) -> u64 {
        let old = self.old.iter().flatten().map(|share| share.baseline());
        let new = self.roles.iter().map(|role| role.desired);
        old.chain(new).sum::<u64>() + 10
    }

    fn take(&mut self, step: &Step) {
        let active = step.active.and_then(|index| self.old.get_mut(index));
        for (share, count) in active.into_iter().flatten().zip(&step.old) {
            share.groups.resize(*count);
        }
        for (role, count) in self.roles.iter_mut().zip(&step.target) {
            role.target.resize(*count);
        }
    }

    fn settle(&mut self) {
        let old = self.old.iter_mut().flatten().map(|share| &mut share.groups);
        let new = self.roles.iter_mut().map(|role| &mut role.target);
        for groups in old.chain(new) {
            *groups = Groups::all_ready(groups.spec);
        }
    }

    fn serving(&self) -> Vec<u64> {
        let rows = View::of(self, None).rows;
        rows.iter().map(|row| row.replacement()).collect()
    }

    fn scene(&self, kind: Kind) -> Scene {
        let specs = |shares: &Vec<Share>| shares.iter().map(|share| share.groups.spec).collect();
        Scene {
            kind,
            old: self.old.iter().map(specs).collect(),
            target: self.roles.iter().map(|role| role.target.spec).collect(),
            serving: self.serving(),
        }
    }
}

impl Groups {
    fn all_ready(spec: u64) -> Self {
        Self {
            spec,
            raw: spec,
            committed: spec,
        }
    }

    fn resize(&mut self, spec: u64) {
        *self = Self {
            spec,
            raw: self.raw.min(spec),
            committed: self.committed.min(spec),
        };
    }
}

/// Plays `rollout` to its end.
pub fn rehearse(mut rollout: Rollout) -> Rehearsal {
    let mut rehearsal = Rehearsal {
        scenes: Vec::new(),
        lowest: rollout.serving(),
    };
    for _ in 0..rollout.longest() {
        let Decision::Step(step) = decide(&rollout) else {
            break;
        };
        rollout.take(&step);
        let scene = rollout.scene(step.kind);
        for (lowest, serving) in rehearsal.lowest.iter_mut().zip(&scene.serving) {
            *lowest = (*lowest).min(*serving);
        }
        rehearsal.scenes.push(scene);
        rollout.settle();
    }
    rehearsal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(before: &[u64], after: &[u64], (surge, unavailable): (u64, u64)) -> Rehearsal {
        let role = |desired: &u64| Role {
            desired: *desired,
            surge,
            unavailable,
            ..Role::default()
        };
        let roles = after.iter().map(role).collect();
        rehearse(Rollout::from_rest(before, roles))
    }

    #[test]
    fn dsr_t02_rehearsed_without_an_outage() {
        let Rehearsal { scenes, lowest } = play(&[1, 1], &[1, 1], (1, 0));
        let scene = |old: [u64; 2], target: [u64; 2]| Scene {
            kind: Kind::Ordinary,
            old: vec![old.to_vec()],
            target: target.to_vec(),
            serving: vec![1, 1],
        };
        assert_eq!(scenes, [scene([1, 1], [1, 1]), scene([0, 0], [1, 1])]);
        assert_eq!(lowest, [1, 1]);
    }

    #[test]
    fn dsr_section_10_lowest_capacity_of_the_worked_rollouts() {
        for (before, after, budget, steps, lowest) in [
            (vec![1, 1], vec![1, 1], (0, 1), 2, vec![0, 0]),
            (vec![1, 2], vec![1, 2], (0, 1), 5, vec![1, 1]),
            (vec![1, 2], vec![1, 2], (1, 0), 4, vec![1, 2]),
            (vec![3, 7], vec![3, 7], (0, 1), 14, vec![2, 6]),
            (vec![3, 7], vec![3, 7], (1, 0), 14, vec![3, 7]),
            (vec![8, 4], vec![8, 4], (2, 2), 4, vec![6, 2]),
            (vec![2, 4], vec![0, 0], (1, 0), 1, vec![0, 0]),
            (vec![6, 14], vec![6, 14], (0, 1), 28, vec![5, 13]),
        ] {
            let played = play(&before, &after, budget);
            assert_eq!(
                played.scenes.len(),
                steps,
                "{before:?} to {after:?}, {budget:?}"
            );
            assert_eq!(played.lowest, lowest, "{before:?} to {after:?}, {budget:?}");
            assert_eq!(played.scenes.last().unwrap().target, after);
        }
    }
}
