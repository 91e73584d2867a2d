//! Which step a slice takes (ROL-8 … ROL-11): one old revision at a time may change.

use lws_api::disaggregatedset::DuringRollout;

use super::{Kind, Rollout, Share, Step, step};

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// ROL-8: nothing old is left and the target is ready; drained revisions may go.
    Complete,
    /// ROL-8: the counts are final, groups of the target are not ready yet.
    Settling,
    /// Counts change.
    Step(Step),
    /// ROL-11: nothing may change before groups become ready.
    Blocked,
}

/// ROL-8 … ROL-11: the next step.
pub fn decide(rollout: &Rollout) -> Decision {
    let candidates = candidates(rollout);
    if !candidates.is_empty() {
        return select(rollout, &candidates).map_or(Decision::Blocked, Decision::Step);
    }
    if has_final_counts(rollout) {
        return if is_ready(rollout) {
            Decision::Complete
        } else {
            Decision::Settling
        };
    }
    converge(rollout).map_or(Decision::Blocked, Decision::Step)
}

/// ROL-9: old revisions with replicas; first those without any Ready group, inside each class newest first.
fn candidates(rollout: &Rollout) -> Vec<usize> {
    let has_ready = |share: &Share| share.groups.raw > 0;
    let old = rollout.old.iter().enumerate();
    let with_replicas = old.filter(|(_, shares)| shares.iter().any(|share| share.groups.spec > 0));
    let (ready, unready): (Vec<_>, Vec<_>) =
        with_replicas.partition(|(_, shares)| shares.iter().any(has_ready));
    unready
        .into_iter()
        .chain(ready)
        .map(|(index, _)| index)
        .collect()
}

/// ROL-11.
fn select(rollout: &Rollout, candidates: &[usize]) -> Option<Step> {
    let mut only_shrinks = None;
    for active in candidates {
        match step::ordinary(rollout, Some(*active)) {
            Some(step) if moves_on(rollout, &step) => return Some(step),
            Some(step) => only_shrinks = only_shrinks.or(Some(step)),
            None => {}
        }
    }
    let first = |offer: fn(&Rollout, usize) -> Option<Step>| {
        candidates.iter().find_map(|active| offer(rollout, *active))
    };
    only_shrinks
        .or_else(|| first(|rollout, active| step::bootstrap(rollout, Some(active))))
        .or_else(|| first(step::fallback))
}

/// Whether a step drains or grows, and does not only shrink the target.
fn moves_on(rollout: &Rollout, step: &Step) -> bool {
    let active = step.active.and_then(|index| rollout.old.get(index));
    let mut old = active.into_iter().flatten().zip(&step.old);
    let mut target = rollout.roles.iter().zip(&step.target);
    old.any(|(share, count)| *count < share.groups.spec)
        || target.any(|(role, count)| *count > role.target.spec)
}

/// ROL-8: under `AdvanceRollout` the target may have no group too many either.
fn has_final_counts(rollout: &Rollout) -> bool {
    rollout.roles.iter().all(|role| match rollout.policy {
        DuringRollout::RolloutCoupled => role.target.spec >= role.desired,
        DuringRollout::AdvanceRollout => role.target.spec == role.desired,
    })
}

fn is_ready(rollout: &Rollout) -> bool {
    let mut roles = rollout.roles.iter();
    roles.all(|role| role.target.committed >= role.desired)
}

/// ROL-10: no old replicas are left.
fn converge(rollout: &Rollout) -> Option<Step> {
    match rollout.policy {
        DuringRollout::RolloutCoupled => Some(Step {
            kind: Kind::GrowOnly,
            active: None,
            old: Vec::new(),
            target: (rollout.roles.iter())
                .map(|role| role.desired.max(role.target.spec))
                .collect(),
        }),
        DuringRollout::AdvanceRollout => step::ordinary(rollout, None),
    }
}
