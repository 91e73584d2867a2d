//! What holds on every way through a rollout, whatever sizes, budgets and changes meet (D-4 … D-7, D-L1, invariants of section 9).

use super::super::view::View;
use super::super::*;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % (most + 1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.up_to(many - 1) == 0
    }
}

/// A revision and how many of its groups are Ready.
#[derive(Clone, Debug)]
struct Revision {
    initial: Vec<u64>,
    spec: Vec<u64>,
    ready: Vec<u64>,
}

impl Revision {
    fn empty(roles: usize) -> Self {
        Self {
            initial: vec![0; roles],
            spec: vec![0; roles],
            ready: vec![0; roles],
        }
    }

    fn groups(&self, role: usize) -> Groups {
        Groups {
            spec: self.spec[role],
            raw: self.ready[role],
            committed: self.ready[role],
        }
    }

    fn set(&mut self, spec: &[u64]) {
        self.spec = spec.to_vec();
        for (ready, spec) in self.ready.iter_mut().zip(spec) {
            *ready = (*ready).min(*spec);
        }
    }

    fn is_ready(&self) -> bool {
        self.ready == self.spec
    }

    fn is_drained(&self) -> bool {
        self.spec.iter().all(|spec| *spec == 0)
    }

    /// D-6: some required roles are there and others are not.
    fn is_orphaned(&self) -> bool {
        let required = || (0..self.spec.len()).filter(|role| self.initial[*role] > 0);
        required().any(|role| self.spec[role] == 0) && required().any(|role| self.spec[role] > 0)
    }
}

#[derive(Clone, Debug)]
struct World {
    policy: DuringRollout,
    desired: Vec<u64>,
    budgets: Vec<(u64, u64)>,
    target: Revision,
    /// Newest first.
    old: Vec<Revision>,
}

impl World {
    /// A set at rest whose template changes, maybe with interrupted rollouts behind it.
    fn random(dice: &mut Dice) -> Self {
        let roles = usize::try_from(1 + dice.up_to(3)).unwrap();
        let paused = dice.one_in(20);
        let size = |dice: &mut Dice| {
            if paused || dice.one_in(12) {
                0
            } else {
                1 + dice.up_to(11)
            }
        };
        let desired: Vec<u64> = (0..roles).map(|_| size(dice)).collect();
        let budgets = (0..roles).map(|_| match (dice.up_to(3), dice.up_to(3)) {
            (0, 0) => (1, 0),
            budget => budget,
        });
        let budgets = budgets.collect();
        let mut old = Vec::new();
        for _ in 0..=dice.up_to(2) {
            let initial: Vec<u64> = if dice.one_in(2) {
                desired.clone()
            } else {
                (0..roles).map(|_| dice.up_to(10)).collect()
            };
            let part = |all: &u64| {
                if *all == 0 {
                    0
                } else {
                    1 + dice.up_to(*all - 1)
                }
            };
            let spec: Vec<u64> = initial.iter().map(part).collect();
            old.push(Revision {
                initial,
                ready: spec.clone(),
                spec,
            });
        }
        Self {
            policy: if dice.one_in(3) {
                DuringRollout::AdvanceRollout
            } else {
                DuringRollout::RolloutCoupled
            },
            budgets,
            target: Revision::empty(roles),
            old,
            desired,
        }
    }

    fn rollout(&self) -> Rollout {
        let roles = 0..self.desired.len();
        let role = |role: usize| Role {
            desired: self.desired[role],
            surge: self.budgets[role].0,
            unavailable: self.budgets[role].1,
            is_unschedulable: false,
            target: self.target.groups(role),
        };
        let shares = |old: &Revision| {
            let share = |role| Share {
                initial: old.initial[role],
                groups: old.groups(role),
            };
            roles.clone().map(share).collect()
        };
        Rollout {
            policy: self.policy,
            old: self.old.iter().map(shares).collect(),
            roles: roles.clone().map(role).collect(),
        }
    }

    fn apply(&mut self, step: &Step) {
        if let Some(active) = step.active {
            self.old[active].set(&step.old);
        }
        self.target.set(&step.target);
    }

    /// All that was issued becomes Ready.
    fn settle(&mut self) {
        for revision in self.old.iter_mut().chain([&mut self.target]) {
            revision.ready.clone_from(&revision.spec);
        }
    }

    /// A group here and there becomes Ready.
    fn warm_up(&mut self, dice: &mut Dice) {
        for revision in self.old.iter_mut().chain([&mut self.target]) {
            for (ready, spec) in revision.ready.iter_mut().zip(&revision.spec) {
                *ready += dice.up_to(*spec - *ready);
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.target.is_ready() && self.old.iter().all(Revision::is_ready)
    }

    fn drop_drained(&mut self) {
        if self.old.iter().any(|old| !old.is_drained()) {
            self.old.retain(|old| !old.is_drained());
        }
    }

    /// A new template: what was the target is old from now on, with its intended size.
    fn change_template(&mut self) {
        let roles = self.desired.len();
        let mut interrupted = std::mem::replace(&mut self.target, Revision::empty(roles));
        interrupted.initial.clone_from(&self.desired);
        self.old.insert(0, interrupted);
    }

    /// The newest old revision is wanted again.
    fn roll_back(&mut self) {
        let mut interrupted = std::mem::replace(&mut self.target, self.old.remove(0));
        interrupted.initial.clone_from(&self.desired);
        self.old.insert(0, interrupted);
    }

    fn change_sizes(&mut self, dice: &mut Dice) {
        for desired in &mut self.desired {
            *desired = dice.up_to(12);
        }
    }

    fn has_orphans(&self) -> Vec<bool> {
        self.old.iter().map(Revision::is_orphaned).collect()
    }
}

/// More of them with `LWS_FULL`.
fn seeds() -> impl Iterator<Item = (u64, Dice)> {
    let is_full = std::env::var_os("LWS_FULL").is_some();
    let many = if is_full { 6_000 } else { 400 };
    (1..=many).map(|seed| (seed, Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))))
}

/// Everything that one step promises.
fn judge(before: &World, step: &Step, seed: u64) {
    let rollout = before.rollout();
    assert_eq!(check(&rollout, step), Ok(()), "seed {seed}: {before:?}");
    let mut after = before.clone();
    after.apply(step);
    for (role, count) in step.target.iter().enumerate() {
        let has = before.target.spec[role];
        match before.policy {
            DuringRollout::RolloutCoupled => assert!(*count >= has, "D-5, seed {seed}"),
            DuringRollout::AdvanceRollout => {}
        }
    }
    for (old, was) in after.old.iter().zip(&before.old) {
        assert!(
            old.spec.iter().zip(&was.spec).all(|(now, was)| now <= was),
            "D-5, seed {seed}"
        );
    }
    let changed = after
        .old
        .iter()
        .zip(&before.old)
        .filter(|(now, was)| now.spec != was.spec);
    assert!(changed.count() <= 1, "ROL-12, seed {seed}");
    for (now, was) in after.has_orphans().into_iter().zip(before.has_orphans()) {
        assert!(!now || was, "D-6, seed {seed}: {before:?} {step:?}");
    }
    keeps_order(&rollout, step, seed);
    keeps_available(before, &after, step, seed);
}

/// D-7: an older revision changes only if no newer one of its kind could have been drained and nothing grows beside it.
fn keeps_order(rollout: &Rollout, step: &Step, seed: u64) {
    let Some(active) = step.active else {
        return;
    };
    let has = |index: usize, count: fn(&Groups) -> u64| {
        rollout.old[index]
            .iter()
            .any(|share| count(&share.groups) > 0)
    };
    let is_ready = has(active, |groups| groups.raw);
    for newer in (0..active).filter(|newer| has(*newer, |groups| groups.spec)) {
        if has(newer, |groups| groups.raw) == is_ready {
            let drained = drain::drained(&View::of(rollout, Some(newer)));
            let spec = rollout.old[newer].iter().map(|share| share.groups.spec);
            assert!(
                drained.into_iter().eq(spec),
                "D-7, seed {seed}: {rollout:?} {step:?}"
            );
        }
    }
}

/// With instant readiness as many groups serve as before, or as many as have to.
fn keeps_available(before: &World, after: &World, step: &Step, seed: u64) {
    let mut after = after.clone();
    after.settle();
    let usable = |world: &World| {
        let rows = View::of(&world.rollout(), step.active).rows;
        let usable = rows.iter().map(|row| row.active_usable + row.replacement());
        usable.collect::<Vec<_>>()
    };
    let floors = View::of(&before.rollout(), step.active).rows;
    for ((was, is), row) in usable(before).iter().zip(usable(&after)).zip(floors) {
        assert!(
            is >= row.floor.min(*was),
            "D-4, seed {seed}: {before:?} {step:?}"
        );
    }
}

/// Steps until the rollout is complete; `None` if it takes more than `most`.
fn finish(world: &mut World, most: u64, seed: u64) -> Option<u64> {
    for steps in 0..=most {
        world.drop_drained();
        match decide(&world.rollout()) {
            Decision::Complete => return Some(steps),
            Decision::Step(step) => {
                judge(world, &step, seed);
                world.apply(&step);
                world.settle();
            }
            Decision::Settling | Decision::Blocked => return None,
        }
    }
    None
}

fn bound(world: &World) -> u64 {
    let old = world.old.iter().flat_map(|old| &old.initial).sum::<u64>();
    old + world.desired.iter().sum::<u64>() + 10
}

#[test]
fn dsr_d_l1_every_rollout_ends_in_bounded_steps() {
    for (seed, mut dice) in seeds() {
        let mut world = World::random(&mut dice);
        let start = world.clone();
        let steps = finish(&mut world, bound(&start), seed);
        assert!(steps.is_some(), "seed {seed}: {start:?} stops at {world:?}");
        assert!(world.old.iter().all(Revision::is_drained), "seed {seed}");
        let has_all = |(spec, desired): (&u64, &u64)| spec >= desired;
        assert!(
            world.target.spec.iter().zip(&world.desired).all(has_all),
            "seed {seed}"
        );
    }
}

#[test]
fn dsr_d_4_bounds_hold_while_groups_become_ready_slowly() {
    for (seed, mut dice) in seeds() {
        let mut world = World::random(&mut dice);
        let start = world.clone();
        let mut patience = 60 * bound(&start);
        loop {
            world.drop_drained();
            match decide(&world.rollout()) {
                Decision::Complete => break,
                Decision::Step(step) => {
                    judge(&world, &step, seed);
                    world.apply(&step);
                }
                Decision::Settling | Decision::Blocked => {
                    assert!(
                        !world.is_ready(),
                        "seed {seed}: {start:?} stops at {world:?}"
                    );
                }
            }
            world.warm_up(&mut dice);
            patience -= 1;
            assert!(patience > 0, "seed {seed}: {start:?} goes on at {world:?}");
        }
    }
}

#[test]
fn dsr_d_l2_a_target_that_never_serves_leaves_the_old_groups_and_is_replaced() {
    for (seed, mut dice) in seeds() {
        let mut world = World::random(&mut dice);
        world.old.truncate(1);
        let usable = |world: &World| {
            let rows = View::of(&world.rollout(), None).rows;
            rows.iter().map(|row| row.parked_usable).collect::<Vec<_>>()
        };
        let before = usable(&world);
        let floors = View::of(&world.rollout(), None).rows;
        let mut patience = bound(&world);
        while let Decision::Step(step) = decide(&world.rollout()) {
            judge(&world, &step, seed);
            world.apply(&step);
            patience -= 1;
            assert!(patience > 0, "seed {seed}: {world:?}");
        }
        for ((was, is), row) in before.iter().zip(usable(&world)).zip(floors) {
            assert!(is >= row.floor.min(*was), "seed {seed}: {world:?}");
        }
        world.change_template();
        world.drop_drained();
        let start = world.clone();
        let steps = finish(&mut world, bound(&start), seed);
        assert!(steps.is_some(), "seed {seed}: {start:?} stops at {world:?}");
    }
}

#[test]
fn dsr_d_l1_rollouts_end_after_changes_on_the_way() {
    for (seed, mut dice) in seeds() {
        let mut world = World::random(&mut dice);
        for _ in 0..=dice.up_to(4) {
            for _ in 0..=dice.up_to(6) {
                if let Decision::Step(step) = decide(&world.rollout()) {
                    judge(&world, &step, seed);
                    world.apply(&step);
                }
                world.warm_up(&mut dice);
                world.drop_drained();
            }
            match dice.up_to(3) {
                0 => world.change_template(),
                1 if !world.old.is_empty() => world.roll_back(),
                _ => world.change_sizes(&mut dice),
            }
        }
        world.settle();
        let start = world.clone();
        let steps = finish(&mut world, bound(&start), seed);
        assert!(steps.is_some(), "seed {seed}: {start:?} stops at {world:?}");
    }
}
