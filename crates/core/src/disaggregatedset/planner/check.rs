//! ROL-17: a step is judged once more before it is applied, by what holds after it and not by how it was found.

use lws_api::disaggregatedset::DuringRollout;

use super::view::{Row, View};
use super::window::Window;
use super::{Kind, Rollout, Step, drain, growth, step};

/// What is wrong with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It changes nothing.
    #[error("the step changes nothing")]
    Empty,
    /// Counts are missing, an old one rises, or one of the target falls where it may not.
    #[error("a count goes the wrong way")]
    Direction,
    /// More groups than the budget allows.
    #[error("a role grows beyond its budget")]
    Ceiling,
    /// A role gets too far ahead of the others.
    #[error("a role leaves the coordination window")]
    Window,
    /// An old revision loses some of its roles only.
    #[error("an old revision is left without one of its roles")]
    Completeness,
    /// Fewer groups than have to stay available.
    #[error("too few groups stay available")]
    Availability,
    /// It is not of the kind that it says.
    #[error("the step is not what it is marked as")]
    Marker,
}

/// ROL-17: the first rule that `step` breaks.
pub fn check(rollout: &Rollout, step: &Step) -> Result<(), Violation> {
    let view = View::of(rollout, step.active);
    let roles = view.rows.len();
    let has_old = step.old.len() == roles || step.active.is_none() && step.old.is_empty();
    if !has_old || step.target.len() != roles {
        return Err(Violation::Direction);
    }
    let judged = Judged {
        rollout,
        step,
        view: &view,
    };
    let rules = [
        (Violation::Empty, judged.changes()),
        (Violation::Direction, judged.keeps_direction()),
        (Violation::Ceiling, judged.keeps_ceiling()),
        (Violation::Window, judged.keeps_window()),
        (Violation::Completeness, judged.keeps_complete()),
        (Violation::Availability, judged.keeps_available()),
        (Violation::Marker, judged.is_what_it_says()),
    ];
    let broken = rules.into_iter().find(|(_, holds)| !holds);
    broken.map_or(Ok(()), |(violation, _)| Err(violation))
}

struct Judged<'a> {
    rollout: &'a Rollout,
    step: &'a Step,
    view: &'a View,
}

impl Judged<'_> {
    /// Roles with the active revision's next counts; none without one.
    fn old(&self) -> impl Iterator<Item = (&Row, u64)> {
        self.view.rows.iter().zip(self.step.old.iter().copied())
    }

    fn target(&self) -> impl Iterator<Item = (&Row, u64)> {
        self.view.rows.iter().zip(self.step.target.iter().copied())
    }

    fn drains(&self) -> bool {
        self.old().any(|(row, count)| count < row.active.spec)
    }

    fn grows(&self) -> bool {
        self.target().any(|(row, count)| count > row.target.spec)
    }

    fn shrinks(&self) -> bool {
        self.target().any(|(row, count)| count < row.target.spec)
    }

    fn changes(&self) -> bool {
        self.drains() || self.grows() || self.shrinks()
    }

    /// The target shrinks only while no old revision does, down to what is wanted and only where the policy says so.
    fn keeps_direction(&self) -> bool {
        let may_shrink = match self.view.policy {
            DuringRollout::RolloutCoupled => false,
            DuringRollout::AdvanceRollout => !self.drains(),
        };
        let keeps = |(row, count): (&Row, u64)| {
            count >= row.target.spec || may_shrink && row.target.spec > row.role.desired
        };
        self.old().all(|(row, count)| count <= row.active.spec) && self.target().all(keeps)
    }

    fn keeps_ceiling(&self) -> bool {
        let extra = u64::from(self.step.kind == Kind::Bootstrap);
        let keeps = |(row, count): (&Row, u64)| {
            let highest = row.ceiling().max(row.all_spec()) + extra;
            count <= row.target.spec || row.old_spec + count <= highest
        };
        self.target().all(keeps)
    }

    /// PLN-9, PLN-15.
    fn keeps_window(&self) -> bool {
        let phase = |(row, count): (&Row, u64)| {
            let progress = count.max(row.target.spec);
            (growth::phase_target(row), progress)
        };
        let sizes: Vec<(u64, u64)> = self.target().map(phase).collect();
        let window = Window::over(sizes.iter().copied());
        let mut grown = self.target().zip(&sizes);
        let is_within = self.step.kind == Kind::GrowOnly
            || grown.all(|((row, count), (size, _))| {
                count <= row.target.spec || window.is_some_and(|of| count <= of.reach(*size))
            });
        let drained =
            |(row, count): (&Row, u64)| (row.baseline, row.baseline.saturating_sub(count));
        let window = Window::over(self.old().map(drained));
        let mut old = self.old();
        is_within && old.all(|(row, count)| count >= self.lowest_in(window, row))
    }

    fn lowest_in(&self, window: Option<Window>, row: &Row) -> u64 {
        let reach = window.map_or(0, |window| window.reach(row.baseline));
        let held = row.baseline.saturating_sub(reach).min(row.active.spec);
        match self.view.policy {
            DuringRollout::RolloutCoupled => held,
            DuringRollout::AdvanceRollout => {
                let excess = row.all_spec().saturating_sub(row.ceiling());
                held.min(row.active.spec.saturating_sub(excess))
            }
        }
    }

    /// PLN-16.
    fn keeps_complete(&self) -> bool {
        let left = || {
            let required = |row: &Row| row.baseline > 0 && row.active.spec > 0;
            self.old().filter(move |(row, _)| required(row))
        };
        left().all(|(_, count)| count == 0) || left().all(|(_, count)| count > 0)
    }

    /// PLN-13, PLN-20, PLN-22.
    fn keeps_available(&self) -> bool {
        let mut view = self.view.clone();
        if self.step.kind == Kind::Fallback {
            step::lower_floors(&mut view);
        }
        let keeps_old = self.step.old.is_empty() || drain::is_safe(&view, &self.step.old);
        let shrunk = self.target().map(|(row, count)| count.min(row.target.spec));
        let shrunk: Vec<u64> = shrunk.collect();
        let as_active = View::of_target(self.rollout);
        keeps_old && (!self.shrinks() || drain::is_safe(&as_active, &shrunk))
    }

    fn is_what_it_says(&self) -> bool {
        let has_old = self.view.rows.iter().any(|row| row.old_spec > 0);
        let makes_room = || self.old().any(|(row, count)| step::makes_room(row, count));
        match self.step.kind {
            Kind::Ordinary => true,
            Kind::Bootstrap => !self.drains() && !self.shrinks(),
            Kind::Fallback => !self.grows() && !self.shrinks() && makes_room(),
            Kind::GrowOnly => !has_old,
        }
    }
}
