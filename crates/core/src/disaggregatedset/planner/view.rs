//! What one candidate sees (PLN-1 … PLN-7): per role the groups that are there, those that replace them, and the floor.

use lws_api::disaggregatedset::DuringRollout;

use super::window::{Progress, Window};
use super::{Groups, Role, Rollout, Share};

/// A revision with an entry for every plan role.
#[derive(Clone, Debug, Default)]
pub(super) struct Revision {
    /// Intended sizes; a role is required where this is above 0.
    pub baselines: Vec<u64>,
    /// Its groups.
    pub groups: Vec<Groups>,
}

impl Revision {
    fn old(shares: &[Share], roles: usize) -> Self {
        let shares = padded(shares, roles);
        Self {
            baselines: shares.iter().map(|share| share.baseline()).collect(),
            groups: shares.iter().map(|share| share.groups).collect(),
        }
    }

    fn empty(roles: usize) -> Self {
        Self {
            baselines: vec![0; roles],
            groups: vec![Groups::default(); roles],
        }
    }

    fn has_replicas(&self) -> bool {
        self.groups.iter().any(|groups| groups.spec > 0)
    }

    /// PLN-1: every required role has some, and one is required.
    fn is_full(&self, count: fn(&Groups) -> u64) -> bool {
        let has_some = |(groups, _): (&Groups, &u64)| count(groups) > 0;
        let required = self.groups.iter().zip(&self.baselines);
        let mut required = required.filter(|(_, size)| **size > 0).peekable();
        required.peek().is_some() && required.all(has_some)
    }

    /// PLN-2 `use`: the counts if every required role has some, so that one ready role of an incomplete revision authorises nothing.
    fn usable(&self, count: fn(&Groups) -> u64) -> impl Iterator<Item = u64> {
        self.if_full(count, count)
    }

    /// PLN-2 `str`: the counts if every required role has replicas.
    fn standing(&self, count: fn(&Groups) -> u64) -> impl Iterator<Item = u64> {
        self.if_full(spec, count)
    }

    fn if_full(
        &self,
        full: fn(&Groups) -> u64,
        count: fn(&Groups) -> u64,
    ) -> impl Iterator<Item = u64> {
        let factor = u64::from(self.is_full(full));
        self.groups.iter().map(move |groups| factor * count(groups))
    }
}

fn spec(groups: &Groups) -> u64 {
    groups.spec
}

fn raw(groups: &Groups) -> u64 {
    groups.raw
}

fn committed(groups: &Groups) -> u64 {
    groups.committed
}

fn padded<T: Copy + Default>(values: &[T], length: usize) -> Vec<T> {
    let missing = std::iter::repeat_n(T::default(), length);
    values.iter().copied().chain(missing).take(length).collect()
}

/// One plan role. The letters are those of section 9.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// `d`, `s`, `u`.
    pub role: Role,
    /// `I`: size of the active revision; above 0 the role is required there.
    pub baseline: u64,
    /// `O`: groups of the active revision.
    pub active: Groups,
    /// `N`: groups of the target.
    pub target: Groups,
    /// `OS`: wanted groups of all old revisions.
    pub old_spec: u64,
    /// `Ou`.
    pub active_usable: u64,
    /// `Pu`.
    pub parked_usable: u64,
    /// `Nu`.
    pub target_usable: u64,
    /// `W`.
    pub observed: u64,
    /// `r`.
    pub own_replacement: u64,
    /// `w`.
    pub own_observed: u64,
    /// `B`: availability baseline.
    pub serving_size: u64,
    /// PLN-7: nothing of the target replaces this role one to one.
    pub is_protected: bool,
    /// `S`: surge baseline.
    pub surge_base: u64,
    /// `V`: groups that nothing has replaced yet.
    pub unreplaced: u64,
    /// `F`: groups that have to stay available.
    pub floor: u64,
}

impl Row {
    /// `R`: usable groups that are not the active revision's.
    pub fn replacement(&self) -> u64 {
        self.parked_usable + self.target_usable
    }

    /// All wanted groups of the role.
    pub fn all_spec(&self) -> u64 {
        self.old_spec + self.target.spec
    }

    /// `S + s`: groups that may exist.
    pub fn ceiling(&self) -> u64 {
        self.surge_base + self.role.surge
    }
}

/// All roles as one candidate sees them.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// One per plan role.
    pub rows: Vec<Row>,
    /// How changes of the target are taken.
    pub policy: DuringRollout,
}

impl View {
    /// One old revision is active, the others are parked (9.1); without an active one the target only converges (ROL-10).
    pub fn of(rollout: &Rollout, active: Option<usize>) -> Self {
        let roles = &rollout.roles;
        let mut parked = old_revisions(rollout);
        let active = active.filter(|index| *index < parked.len()).map_or_else(
            || Revision::empty(roles.len()),
            |index| parked.remove(index),
        );
        let mut view = Self::split(rollout, &active, &parked, &target(rollout));
        view.protect_the_unreplaced(parked.iter().chain([&active]));
        view.set_floors();
        view
    }

    /// PLN-22: the target is the revision to reduce, all old ones are parked, and nothing follows it.
    pub fn of_target(rollout: &Rollout) -> Self {
        let parked = old_revisions(rollout);
        let nothing = Revision::empty(rollout.roles.len());
        let mut view = Self::split(rollout, &target(rollout), &parked, &nothing);
        for row in &mut view.rows {
            row.floor = row.role.desired.saturating_sub(row.role.unavailable);
        }
        view
    }

    /// PLN-3, PLN-4.
    fn split(rollout: &Rollout, active: &Revision, parked: &[Revision], target: &Revision) -> Self {
        let rows = rollout.roles.iter().map(|role| Row {
            role: *role,
            ..Row::default()
        });
        let mut view = Self {
            rows: rows.collect(),
            policy: rollout.policy,
        };
        for (row, groups) in view.rows.iter_mut().zip(&active.groups) {
            row.active = *groups;
        }
        for (row, groups) in view.rows.iter_mut().zip(&target.groups) {
            row.target = *groups;
        }
        view.add(|row| &mut row.baseline, active.baselines.iter().copied());
        view.add(|row| &mut row.active_usable, active.usable(committed));
        view.add(|row| &mut row.target_usable, target.usable(committed));
        view.add(|row| &mut row.own_replacement, target.standing(committed));
        for revision in parked {
            view.add(|row| &mut row.parked_usable, revision.usable(committed));
            view.add(|row| &mut row.own_replacement, revision.standing(committed));
        }
        for revision in parked.iter().chain([active]) {
            view.add(|row| &mut row.old_spec, revision.groups.iter().map(spec));
        }
        for revision in parked.iter().chain([active, target]) {
            view.add(|row| &mut row.observed, revision.usable(raw));
            view.add(|row| &mut row.own_observed, revision.standing(raw));
        }
        for row in &mut view.rows {
            row.surge_base = match rollout.policy {
                DuringRollout::RolloutCoupled => row.baseline.max(row.role.desired),
                DuringRollout::AdvanceRollout => row.role.desired,
            };
        }
        view
    }

    fn add(&mut self, field: fn(&mut Row) -> &mut u64, counts: impl Iterator<Item = u64>) {
        for (row, count) in self.rows.iter_mut().zip(counts) {
            *field(row) += count;
        }
    }

    /// `B`, PLN-6, PLN-7.
    fn protect_the_unreplaced<'a>(&mut self, old: impl Iterator<Item = &'a Revision>) {
        for revision in old.filter(|revision| revision.has_replicas()) {
            let has_no_successor = |(row, size): (&Row, &u64)| *size == 0 || row.role.desired == 0;
            let mut roles = self.rows.iter().zip(&revision.baselines);
            let is_disjoint = roles.all(has_no_successor);
            for (row, size) in self.rows.iter_mut().zip(&revision.baselines) {
                row.serving_size = row.serving_size.max(*size);
                row.is_protected |= is_disjoint && *size > 0;
            }
        }
        let replaced = self.rows.iter();
        let replaced = Window::over(replaced.map(|row| (row.role.desired, row.target_usable)));
        let Some(Progress { done, of }) = replaced.map(|window| window.least) else {
            return;
        };
        for row in self.rows.iter_mut().filter(|row| row.is_protected) {
            row.unreplaced = row.serving_size - row.serving_size * done.min(of) / of;
        }
    }

    /// PLN-5.
    fn set_floors(&mut self) {
        for row in &mut self.rows {
            let desired = row.role.desired;
            let serving = match self.policy {
                DuringRollout::RolloutCoupled => row.serving_size.min(desired),
                DuringRollout::AdvanceRollout => desired,
            };
            row.floor = serving
                .max(row.unreplaced)
                .saturating_sub(row.role.unavailable);
        }
    }
}

fn old_revisions(rollout: &Rollout) -> Vec<Revision> {
    let roles = rollout.roles.len();
    let old = rollout.old.iter();
    old.map(|shares| Revision::old(shares, roles)).collect()
}

fn target(rollout: &Rollout) -> Revision {
    Revision {
        baselines: rollout.roles.iter().map(|role| role.desired).collect(),
        groups: rollout.roles.iter().map(|role| role.target).collect(),
    }
}
