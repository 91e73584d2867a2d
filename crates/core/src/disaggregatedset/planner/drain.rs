//! Drain of the active revision (PLN-13 … PLN-17).

use lws_api::disaggregatedset::DuringRollout;

use super::view::{Row, View};
use super::window::Window;

/// PLN-17: the counts of the active revision, never above what it has.
pub(super) fn drained(view: &View) -> Vec<u64> {
    let mut counts = lowest_safe(view);
    hold_window(view, &mut counts);
    keep_complete(view, &mut counts);
    hold_window(view, &mut counts);
    if is_safe(view, &counts) {
        counts
    } else {
        view.rows.iter().map(|row| row.active.spec).collect()
    }
}

/// PLN-13: what the reduction takes away may be missed. Every removed group counts as if it had been Ready.
pub(super) fn is_safe(view: &View, counts: &[u64]) -> bool {
    let pairs = || view.rows.iter().zip(counts);
    if pairs().all(|(row, count)| *count >= row.active.spec) {
        return true;
    }
    let left = usable_left(view, counts);
    pairs().zip(left).all(|((row, count), left)| {
        let removed = row.active.spec.saturating_sub(*count);
        let own_left = row.own_replacement + row.active.committed.saturating_sub(removed);
        let keeps_usable =
            removed == 0 && left > 0 || row.replacement() + left >= row.observed.min(row.floor);
        let keeps_own = removed == 0 || own_left >= row.own_observed.min(row.floor);
        keeps_usable && keeps_own
    })
}

/// PLN-13 `Z`: usable Ready groups of the active revision after the reduction; a revision that loses a role loses all of them.
fn usable_left(view: &View, counts: &[u64]) -> Vec<u64> {
    let left = |(row, count): (&Row, &u64)| {
        let removed = row.active.spec.saturating_sub(*count);
        row.active_usable.saturating_sub(removed)
    };
    let left: Vec<u64> = view.rows.iter().zip(counts).map(left).collect();
    let mut required = view.rows.iter().zip(counts).zip(&left);
    let is_complete =
        required.all(|((row, count), left)| row.baseline == 0 || *count > 0 && *left > 0);
    if is_complete {
        left
    } else {
        vec![0; left.len()]
    }
}

/// PLN-14 `M`: the lowest counts that are safe by themselves.
pub(super) fn lowest_safe(view: &View) -> Vec<u64> {
    let nothing = vec![0; view.rows.len()];
    if is_safe(view, &nothing) {
        return nothing;
    }
    let needs = view.rows.iter().map(|row| {
        let kept = row.observed.min(row.floor);
        kept.saturating_sub(row.replacement())
    });
    let needs: Vec<u64> = needs.collect();
    let serves_on = needs.iter().any(|need| *need > 0);
    let lowest = view.rows.iter().zip(needs).map(|(row, need)| {
        let stays_complete = serves_on && row.baseline > 0 && row.active.spec > 0;
        let usable = need.max(u64::from(stays_complete));
        let own = row.own_observed.min(row.floor);
        let own = own.saturating_sub(row.own_replacement);
        let of_usable = keep(row, row.active_usable, usable);
        of_usable.max(keep(row, row.active.committed, own))
    });
    lowest.collect()
}

/// PLN-14: the lowest count that leaves `needed` of `ready` groups if only Ready ones go.
fn keep(row: &Row, ready: u64, needed: u64) -> u64 {
    if needed == 0 {
        return 0;
    }
    row.active.spec.saturating_sub(ready.saturating_sub(needed))
}

/// PLN-15: no role drains far ahead of the others; under `AdvanceRollout` what is above the ceiling may.
fn hold_window(view: &View, counts: &mut [u64]) {
    let drained = |(row, count): (&Row, &mut u64)| {
        let gone = row.baseline.saturating_sub(*count);
        (row.baseline, gone)
    };
    let window = Window::over(view.rows.iter().zip(counts.iter_mut()).map(drained));
    for (row, count) in view.rows.iter().zip(counts) {
        let before = *count;
        let reach = window.map_or(0, |window| window.reach(row.baseline));
        let held = before.max(row.baseline.saturating_sub(reach));
        *count = held.min(row.active.spec);
        match view.policy {
            DuringRollout::RolloutCoupled => {}
            DuringRollout::AdvanceRollout => {
                let excess = row.all_spec().saturating_sub(row.ceiling());
                let released = row.active.spec.saturating_sub(excess);
                *count = (*count).min(before.max(released));
            }
        }
    }
}

/// PLN-16: of the required roles that still have groups all reach 0, or none does.
fn keep_complete(view: &View, counts: &mut [u64]) {
    let is_left = |row: &Row| row.baseline > 0 && row.active.spec > 0;
    let mut pairs = view.rows.iter().zip(counts.iter());
    if pairs.all(|(row, count)| !is_left(row) || *count == 0) {
        return;
    }
    for (row, count) in view.rows.iter().zip(counts) {
        if is_left(row) {
            *count = (*count).max(1);
        }
    }
}
