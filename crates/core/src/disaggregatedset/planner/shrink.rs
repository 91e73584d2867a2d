//! Shrinking the target while a rollout runs (PLN-22, `AdvanceRollout` only).

use super::Rollout;
use super::drain;
use super::view::{Row, View};

/// Counts of the target after the reduction, for the roles that have more than is wanted; `None` where none may be taken away safely.
///
/// What the same step lets grow gives no Ready credit.
pub(super) fn shrunk(rollout: &Rollout, view: &View) -> Option<Vec<u64>> {
    let as_active = View::of_target(rollout);
    let lowest = drain::lowest_safe(&as_active);
    let goals = view.rows.iter().zip(lowest).map(|(row, lowest)| {
        if is_above(row) {
            goal(row).max(lowest)
        } else {
            row.target.spec
        }
    });
    let goals: Vec<u64> = goals.collect();
    drain::is_safe(&as_active, &goals).then_some(goals)
}

/// Whether the target has more of the role than is wanted.
pub(super) fn is_above(row: &Row) -> bool {
    row.target.spec > row.role.desired
}

fn goal(row: &Row) -> u64 {
    let desired = row.role.desired;
    let wanted = if row.old_spec == 0 {
        desired
    } else {
        (desired + row.role.surge).saturating_sub(row.old_spec)
    };
    wanted.max(desired.min(1)).min(row.target.spec)
}
