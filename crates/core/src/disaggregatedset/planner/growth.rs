//! Growth of the target (PLN-10 … PLN-12).

use super::view::{Row, View};
use super::window::Window;

/// What one role of the target may grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// `T`: what this phase needs.
    pub phase: u64,
    /// `H`: what the budget allows.
    pub hard: u64,
}

/// PLN-10, PLN-11 per role; `surge` says how many groups more a role may have.
pub(super) fn limits(view: &View, surge: impl Fn(&Row) -> u64) -> Vec<Limit> {
    let sizes = view.rows.iter();
    let largest = sizes.map(size).max().unwrap_or_default();
    let waits_for_ready = view.rows.iter().any(|row| row.unreplaced > 0);
    let limit = |row: &Row| Limit {
        phase: phase_target(row),
        hard: hard_limit(row, surge(row), largest, waits_for_ready),
    };
    view.rows.iter().map(limit).collect()
}

/// PLN-12: the counts of the target, never below what it has.
pub(super) fn within(view: &View, limits: &[Limit]) -> Vec<u64> {
    let proposal = |limit: &Limit| limit.phase.min(limit.hard);
    let window = Window::over(limits.iter().map(|limit| (limit.phase, proposal(limit))));
    let grown = view.rows.iter().zip(limits).map(|(row, limit)| {
        let reach = window.map_or(u64::MAX, |window| window.reach(limit.phase));
        proposal(limit).min(reach).max(row.target.spec)
    });
    grown.collect()
}

/// `C`.
fn size(row: &Row) -> u64 {
    row.baseline.max(row.role.desired)
}

/// PLN-10: complete parked revisions reduce what the target needs now; each role still gets a first group.
pub(super) fn phase_target(row: &Row) -> u64 {
    let desired = row.role.desired;
    let needed = desired.saturating_sub(row.parked_usable);
    needed.max(desired.min(1)).max(row.target.spec)
}

/// PLN-11.
fn hard_limit(row: &Row, surge: u64, largest: u64, waits_for_ready: bool) -> u64 {
    let room = (row.surge_base + surge).saturating_sub(row.old_spec);
    let paced = if row.old_spec > 0 || waits_for_ready {
        room.min(row.target.committed + pending(size(row), surge + row.role.unavailable, largest))
    } else {
        room
    };
    row.role.desired.min(paced).max(row.target.spec)
}

/// PLN-11 `pend`: groups that may be on the way at a time, in proportion to the size of the role.
fn pending(size: u64, budget: u64, largest: u64) -> u64 {
    if largest == 0 {
        return 0;
    }
    size.saturating_mul(budget).div_ceil(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsr_pln_11_pending_of_the_worked_rows() {
        for (sizes, budget, expected) in [
            ([8, 4], 4, [4, 2]),
            ([3, 7], 1, [1, 1]),
            ([1, 5], 1, [1, 1]),
        ] {
            let largest = sizes.into_iter().max().unwrap();
            let all = sizes.map(|size| pending(size, budget, largest));
            assert_eq!(all, expected, "{sizes:?} with {budget}");
        }
    }

    #[test]
    fn dsr_pln_11_nothing_is_pending_without_size_or_budget() {
        assert_eq!(pending(0, 4, 8), 0);
        assert_eq!(pending(8, 0, 8), 0);
        assert_eq!(pending(0, 4, 0), 0);
    }
}
