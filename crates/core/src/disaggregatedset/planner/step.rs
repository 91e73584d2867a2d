//! The steps that one candidate offers (PLN-18 … PLN-20).

use lws_api::disaggregatedset::DuringRollout;

use super::view::{Row, View};
use super::{Kind, Rollout, Step, drain, growth, shrink};

/// PLN-18: drain and growth within the budgets.
pub(super) fn ordinary(rollout: &Rollout, active: Option<usize>) -> Option<Step> {
    let view = View::of(rollout, active);
    let old = drain::drained(&view);
    let mut target = growth::within(&view, &growth::limits(&view, |row| row.role.surge));
    let may_shrink = match rollout.policy {
        DuringRollout::RolloutCoupled => false,
        DuringRollout::AdvanceRollout => old == active_counts(&view),
    };
    if may_shrink && let Some(shrunk) = shrink::shrunk(rollout, &view) {
        let above = view.rows.iter().map(shrink::is_above);
        for ((count, goal), is_above) in target.iter_mut().zip(shrunk).zip(above) {
            if is_above {
                *count = goal;
            }
        }
    }
    changed(&view, Kind::Ordinary, active, old, target)
}

/// PLN-19: a first group above the budget for roles that cannot get one otherwise. Asked when no ordinary step is left.
pub(super) fn bootstrap(rollout: &Rollout, active: Option<usize>) -> Option<Step> {
    let view = View::of(rollout, active);
    let limits = growth::limits(&view, |row| row.role.surge);
    let mut rows = view.rows.iter().zip(&limits);
    if !rows.any(|(row, limit)| is_stuck(&view, row, *limit)) {
        return None;
    }
    let widened = growth::limits(&view, one_more);
    let rows = view.rows.iter().zip(limits).zip(widened);
    let limits = rows.map(|((row, limit), widened)| {
        if is_stuck(&view, row, limit) {
            widened
        } else {
            limit
        }
    });
    let target = growth::within(&view, &limits.collect::<Vec<_>>());
    let old = active_counts(&view);
    changed(&view, Kind::Bootstrap, active, old, target)
}

/// A role that needs a group, has none yet (or holds up a larger target), and that the budget forbids to grow.
fn is_stuck(view: &View, row: &Row, limit: growth::Limit) -> bool {
    let has = row.target;
    let holds_up = match view.policy {
        DuringRollout::RolloutCoupled => false,
        DuringRollout::AdvanceRollout => {
            row.all_spec() == row.ceiling() && has.committed >= has.spec
        }
    };
    row.role.surge + row.role.unavailable > 0
        && limit.phase > has.spec
        && limit.hard == has.spec
        && (has.spec == 0 || holds_up)
}

/// PLN-19: the surge that lets one group more in.
fn one_more(row: &Row) -> u64 {
    let over = row.old_spec.saturating_sub(row.surge_base);
    row.role.surge.max(over) + 1
}

/// PLN-20: one group of availability given up, where the groups above the ceiling take the room that the target's pods wait for. Asked when
/// nothing else is left.
pub(super) fn fallback(rollout: &Rollout, active: usize) -> Option<Step> {
    let mut view = View::of(rollout, Some(active));
    lower_floors(&mut view);
    let old = drain::drained(&view);
    let mut pairs = view.rows.iter().zip(&old);
    if !pairs.any(|(row, count)| makes_room(row, *count)) {
        return None;
    }
    let target = view.rows.iter().map(|row| row.target.spec).collect();
    changed(&view, Kind::Fallback, Some(active), old, target)
}

/// PLN-20: floors above 1 give way by one.
pub(super) fn lower_floors(view: &mut View) {
    for row in view.rows.iter_mut().filter(|row| row.floor > 1) {
        row.floor -= 1;
    }
}

/// PLN-20: the count drains a role above its ceiling whose pods find no room.
pub(super) fn makes_room(row: &Row, count: u64) -> bool {
    row.role.is_unschedulable && row.all_spec() > row.ceiling() && count < row.active.spec
}

fn active_counts(view: &View) -> Vec<u64> {
    view.rows.iter().map(|row| row.active.spec).collect()
}

fn changed(
    view: &View,
    kind: Kind,
    active: Option<usize>,
    old: Vec<u64>,
    target: Vec<u64>,
) -> Option<Step> {
    let counts = view.rows.iter().zip(old.iter().zip(&target));
    let mut changes =
        counts.map(|(row, (old, target))| *old != row.active.spec || *target != row.target.spec);
    changes.any(|differs| differs).then_some(Step {
        kind,
        active,
        old,
        target,
    })
}
