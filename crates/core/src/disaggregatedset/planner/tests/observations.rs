//! Tables 10.5 to 10.7: one observation, one step.

use super::super::*;
use super::fixture::counts;

/// One role list as it is seen at a time.
#[derive(Clone)]
struct Seen {
    policy: DuringRollout,
    sizes: &'static str,
    baseline: &'static str,
    budgets: Vec<(u64, u64)>,
    unschedulable: &'static [usize],
    old: (&'static str, &'static str, &'static str),
    target: (&'static str, &'static str, &'static str),
}

/// Old Spec with raw and committed Ready, target Spec with raw and committed Ready.
fn seen(
    sizes: &'static str,
    budget: (u64, u64),
    old: (&'static str, &'static str, &'static str),
    target: (&'static str, &'static str, &'static str),
) -> Seen {
    Seen {
        policy: DuringRollout::RolloutCoupled,
        sizes,
        baseline: sizes,
        budgets: vec![budget; counts(sizes).len()],
        unschedulable: &[],
        old,
        target,
    }
}

/// All Ready that is wanted.
fn ready(spec: &'static str) -> (&'static str, &'static str, &'static str) {
    (spec, spec, spec)
}

fn some_ready(
    spec: &'static str,
    ready: &'static str,
) -> (&'static str, &'static str, &'static str) {
    (spec, ready, ready)
}

fn groups((spec, raw, committed): (&str, &str, &str)) -> Vec<Groups> {
    let counts = counts(spec)
        .into_iter()
        .zip(counts(raw))
        .zip(counts(committed));
    let groups = counts.map(|((spec, raw), committed)| Groups {
        spec,
        raw,
        committed,
    });
    groups.collect()
}

impl Seen {
    fn rollout(&self) -> Rollout {
        let desired = counts(self.sizes);
        let budgets = self.budgets.iter();
        let roles = desired
            .iter()
            .zip(budgets)
            .zip(groups(self.target))
            .enumerate();
        let roles = roles.map(|(index, ((desired, budget), target))| Role {
            desired: *desired,
            surge: budget.0,
            unavailable: budget.1,
            is_unschedulable: self.unschedulable.contains(&index),
            target,
        });
        let shares = counts(self.baseline).into_iter().zip(groups(self.old));
        let shares = shares.map(|(initial, groups)| Share { initial, groups });
        Rollout {
            policy: self.policy,
            roles: roles.collect(),
            old: vec![shares.collect()],
        }
    }

    /// The step gives these counts to the old revision and the target.
    fn gives(&self, kind: Kind, old: &str, target: &str) {
        let Decision::Step(step) = decide(&self.rollout()) else {
            panic!("no step from {:?} | {:?}", self.old, self.target);
        };
        let from = format!("from {:?} | {:?}", self.old, self.target);
        assert_eq!(check(&self.rollout(), &step), Ok(()), "{from}");
        let old_counts = if step.old.is_empty() {
            counts(self.old.0)
        } else {
            step.old
        };
        assert_eq!(
            (step.kind, old_counts, step.target),
            (kind, counts(old), counts(target)),
            "{from}"
        );
    }

    fn is_blocked(&self) {
        assert_eq!(
            decide(&self.rollout()),
            Decision::Blocked,
            "from {:?} | {:?}",
            self.old,
            self.target
        );
    }
}

#[test]
fn dsr_10_5_slow_readiness_with_two_of_both() {
    let at = |old, target| seen("8/4", (2, 2), ready(old), target);
    at("8/4", ready("0/0")).gives(Kind::Ordinary, "6/2", "2/2");
    at("6/2", some_ready("2/2", "0/0")).gives(Kind::Ordinary, "6/2", "4/2");
    at("6/2", some_ready("4/2", "0/0")).is_blocked();
    at("6/2", some_ready("4/2", "0/2")).gives(Kind::Ordinary, "6/2", "4/3");
    at("6/2", some_ready("4/2", "1/2")).gives(Kind::Ordinary, "5/2", "4/3");
    at("6/2", some_ready("4/2", "4/2")).gives(Kind::Ordinary, "2/1", "4/3");
}

#[test]
fn dsr_10_5_more_is_issued_ahead_in_large_roles() {
    seen("20/20", (2, 2), ready("18/18"), some_ready("2/2", "0/0")).gives(
        Kind::Ordinary,
        "18/18",
        "4/4",
    );
}

#[test]
fn dsr_10_5_a_group_that_is_slow_holds_the_rollout_back() {
    let at = |old, target| seen("2/4", (1, 0), ready(old), target);
    for (old, target, was, next_old, next_target) in [
        ("2/4", "1/1", "0/0", "1/3", "1/1"),
        ("1/3", "2/2", "1/1", "1/2", "2/2"),
        ("1/2", "2/3", "2/2", "1/1", "2/3"),
        ("1/1", "2/4", "2/3", "0/0", "2/4"),
    ] {
        at(old, some_ready(target, was)).is_blocked();
        at(old, ready(target)).gives(Kind::Ordinary, next_old, next_target);
    }
    at("2/4", ready("0/0")).gives(Kind::Ordinary, "2/4", "1/1");
    at("1/3", ready("1/1")).gives(Kind::Ordinary, "1/3", "2/2");
    at("1/2", ready("2/2")).gives(Kind::Ordinary, "1/2", "2/3");
    at("1/1", ready("2/3")).gives(Kind::Ordinary, "1/1", "2/4");
}

#[test]
fn dsr_10_6_groups_that_are_still_terminating_allow_no_drain() {
    seen("4/4", (1, 0), ("3/3", "4/4", "3/3"), ready("1/1")).gives(Kind::Ordinary, "3/3", "2/2");
}

#[test]
fn dsr_10_6_a_partial_write_is_caught_up() {
    seen("4/4", (1, 0), ready("3/4"), ready("1/1")).gives(Kind::Ordinary, "3/3", "2/1");
}

#[test]
fn dsr_10_6_an_incomplete_revision_goes_whole() {
    seen("4/4", (1, 0), ready("0/2"), ready("3/3")).gives(Kind::Ordinary, "0/0", "4/3");
}

#[test]
fn dsr_10_6_unready_groups_may_go() {
    seen("2/4", (1, 0), some_ready("2/4", "2/0"), ready("0/0")).gives(Kind::Ordinary, "2/2", "1/1");
}

#[test]
fn dsr_10_6_the_window_holds_a_role_that_is_ahead() {
    let at = |target| seen("8/4", (2, 2), ready("2/1"), target);
    at(some_ready("6/1", "6/0")).gives(Kind::Ordinary, "2/1", "6/2");
    at(ready("6/1")).gives(Kind::Ordinary, "1/1", "8/3");
}

#[test]
fn dsr_10_6_no_fallback_without_a_floor() {
    Seen {
        unschedulable: &[0],
        ..seen("1/5", (0, 1), ready("1/4"), some_ready("1/1", "0/1"))
    }
    .is_blocked();
}

#[test]
fn dsr_10_6_fallback_where_no_room_is_found() {
    Seen {
        budgets: vec![(1, 0), (0, 1)],
        unschedulable: &[0],
        ..seen("3/5", (1, 0), ready("3/4"), some_ready("2/3", "0/2"))
    }
    .gives(Kind::Fallback, "2/3", "2/3");
}

#[test]
fn dsr_10_7_advancing() {
    let at = |sizes, old, target| Seen {
        policy: DuringRollout::AdvanceRollout,
        ..seen(sizes, (1, 0), ready(old), target)
    };
    at("4/4", "4/4", ready("5/5")).gives(Kind::Ordinary, "0/0", "5/5");
    at("4/4", "4/4", some_ready("5/5", "0/0")).gives(Kind::Ordinary, "4/4", "1/1");
    at("4/2", "0/0", ready("5/3")).gives(Kind::Ordinary, "0/0", "4/2");
    at("0/0", "0/0", ready("2/3")).gives(Kind::Ordinary, "0/0", "0/0");
    at("1/4", "0/0", some_ready("1/5", "0/4")).is_blocked();
    at("1/4", "0/0", some_ready("1/5", "0/5")).gives(Kind::Ordinary, "0/0", "1/4");
    at("2/4", "0/0", some_ready("1/5", "0/4")).gives(Kind::Ordinary, "0/0", "2/5");
    at("8/4", "0/0", ready("4/8")).gives(Kind::Ordinary, "0/0", "8/4");
    let larger = Seen {
        baseline: "4/4",
        ..at("8/8", "4/4", ready("1/1"))
    };
    larger.gives(Kind::Ordinary, "4/4", "2/2");
    let larger = Seen {
        baseline: "8/8",
        budgets: vec![(2, 2); 2],
        ..at("12/12", "8/8", some_ready("2/2", "0/0"))
    };
    larger.gives(Kind::Ordinary, "8/8", "4/4");
    let stuck = Seen {
        baseline: "2/3",
        budgets: vec![(2, 0), (0, 2)],
        ..at("6/4", "2/2", ready("4/2"))
    };
    stuck.gives(Kind::Bootstrap, "2/2", "6/3");
}

#[test]
fn dsr_10_7_only_an_advancing_target_gives_up_what_is_too_much() {
    let coupled = seen("3/3", (1, 0), ready("0/0"), ("5/5", "5/5", "4/4"));
    assert_eq!(decide(&coupled.rollout()), Decision::Complete);
    let advancing = Seen {
        policy: DuringRollout::AdvanceRollout,
        ..coupled
    };
    advancing.gives(Kind::Ordinary, "0/0", "4/4");
}

#[test]
fn dsr_pln_17_a_drain_that_the_window_makes_unsafe_is_left_out() {
    // Under AdvanceRollout what is above the ceiling may leave the window, but not where the target's Ready groups are about to go.
    Seen {
        policy: DuringRollout::AdvanceRollout,
        baseline: "2/0",
        budgets: vec![(2, 0), (0, 1)],
        ..seen("1/2", (0, 1), ready("2/0"), ("1/1", "1/1", "0/0"))
    }
    .gives(Kind::Ordinary, "2/0", "1/2");
}

#[test]
fn dsr_pln_19_only_a_ready_target_is_carried_over_the_budget() {
    let at = |committed| Seen {
        policy: DuringRollout::AdvanceRollout,
        baseline: "2",
        ..seen("2", (0, 1), ready("1"), ("1", "1", committed))
    };
    at("0").is_blocked();
    at("1").gives(Kind::Ordinary, "0", "1");
}

#[test]
fn dsr_pln_22_a_shrinking_target_keeps_a_group_of_each_role_and_what_serves() {
    Seen {
        policy: DuringRollout::AdvanceRollout,
        baseline: "0/4",
        budgets: vec![(0, 2), (1, 0)],
        ..seen(
            "1/1",
            (1, 0),
            ("0/2", "0/2", "0/1"),
            some_ready("0/2", "0/0"),
        )
    }
    .gives(Kind::Ordinary, "0/2", "1/1");
    Seen {
        policy: DuringRollout::AdvanceRollout,
        ..seen("1", (1, 0), ready("0"), some_ready("3", "2"))
    }
    .gives(Kind::Ordinary, "0", "2");
}

/// Adds an older revision.
fn beside(
    newest: &Seen,
    baseline: &'static str,
    old: (&'static str, &'static str, &'static str),
) -> Rollout {
    let mut rollout = newest.rollout();
    let older = Seen {
        baseline,
        old,
        ..newest.clone()
    };
    rollout.old.extend(older.rollout().old);
    rollout
}

/// Position of the active revision, its next counts and those of the target.
fn chosen(rollout: &Rollout) -> (Option<usize>, Vec<u64>, Vec<u64>) {
    let Decision::Step(step) = decide(rollout) else {
        panic!("no step");
    };
    assert_eq!(check(rollout, &step), Ok(()));
    (step.active, step.old, step.target)
}

#[test]
fn dsr_rol_9_a_revision_without_ready_groups_goes_before_newer_ones() {
    let newest = seen("4", (1, 0), ready("2"), ready("1"));
    let unready = beside(&newest, "4", some_ready("2", "0"));
    assert_eq!(chosen(&unready), (Some(1), vec![0], vec![1]));
    let both_ready = beside(&newest, "4", ready("2"));
    assert_eq!(chosen(&both_ready), (Some(0), vec![1], vec![1]));
}

#[test]
fn dsr_rol_11_a_step_that_only_shrinks_the_target_comes_after_every_drain() {
    let newest = Seen {
        policy: DuringRollout::AdvanceRollout,
        baseline: "2/1",
        ..seen("2/0", (1, 1), some_ready("2/1", "1/0"), ready("0/1"))
    };
    let rollout = beside(&newest, "1/3", some_ready("1/0", "1/0"));
    assert_eq!(chosen(&rollout), (Some(1), vec![0, 0], vec![0, 1]));
}
