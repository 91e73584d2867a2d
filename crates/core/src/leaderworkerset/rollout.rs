//! Rollout arithmetic (ORD-50 … ORD-59): how many groups the leader set runs now and which of them are updated.
//!
//! Decides from the budget, what the leader set has, and the states of its groups. Groups that do not exist take no room, so that an absurd number of
//! replicas costs nothing. Within one rollout the partition never rises.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lws_api::leaderworkerset::LeaderWorkerSetSpec;

/// Largest number that an `int32` of the API holds.
const API_MAX: u32 = i32::MAX.unsigned_abs();

/// What the user allows, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Wanted groups (L).
    pub desired_replicas: u32,
    /// The user's partition (P): groups below it keep their revision.
    pub user_partition: u32,
    /// Groups that may be missing (U).
    pub max_unavailable: u32,
    /// Groups that may be there in addition (S), never more than wanted.
    pub max_surge: u32,
}

/// ORD-58: a percentage that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: invalid value {text:?}: neither a number nor a percentage")]
pub struct BudgetError {
    field: &'static str,
    text: String,
}

impl Budget {
    /// ORD-22, ORD-58, ORD-59: the budget of a spec; what is negative counts as zero.
    pub fn of(spec: &LeaderWorkerSetSpec) -> Result<Self, BudgetError> {
        let desired_replicas = not_negative(spec.replicas());
        let unavailable = resolve(
            "maxUnavailable",
            &spec.max_unavailable(),
            desired_replicas,
            Round::Down,
        )?;
        let max_surge = resolve("maxSurge", &spec.max_surge(), desired_replicas, Round::Up)?
            .min(desired_replicas);
        let stands_still = unavailable == 0 && max_surge == 0 && desired_replicas > 0;
        let max_unavailable = if stands_still { 1 } else { unavailable };
        Ok(Self {
            desired_replicas,
            user_partition: not_negative(spec.partition()),
            max_unavailable,
            max_surge,
        })
    }

    /// Wanted groups and surge (B).
    pub fn burst_replicas(self) -> u32 {
        self.desired_replicas
            .saturating_add(self.max_surge)
            .min(API_MAX)
    }

    /// ORD-52: groups to run while `unready` of the wanted ones are missing, not ready or not updated.
    pub fn replicas_for(self, unready: u32) -> u32 {
        if unready > self.max_surge {
            return self.burst_replicas();
        }
        self.desired_replicas
            .saturating_add(unready.saturating_sub(self.max_unavailable))
            .min(API_MAX)
    }

    /// ORD-63: leaders that the StatefulSet controller may replace at a time.
    pub fn replaced_at_once(self) -> u32 {
        self.max_unavailable
            .saturating_add(self.max_surge)
            .clamp(1, API_MAX)
    }
}

/// Which way a percentage is rounded.
#[derive(Clone, Copy)]
pub(crate) enum Round {
    /// What may be missing.
    Down,
    /// What may be there in addition.
    Up,
}

fn not_negative(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn resolve(
    field: &'static str,
    value: &IntOrString,
    of: u32,
    round: Round,
) -> Result<u32, BudgetError> {
    resolved(value, of, round).ok_or_else(|| BudgetError {
        field,
        text: match value {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(text) => text.clone(),
        },
    })
}

/// A number, or a percentage of `of`; what is negative counts as zero, and what is neither is `None`.
pub(crate) fn resolved(value: &IntOrString, of: u32, round: Round) -> Option<u32> {
    let text = match value {
        IntOrString::Int(number) => return Some(not_negative(*number)),
        IntOrString::String(text) => text,
    };
    let percent: i32 = text.strip_suffix('%')?.parse().ok()?;
    let scaled = u64::from(not_negative(percent)) * u64::from(of);
    let number = match round {
        Round::Down => scaled / 100,
        Round::Up => scaled.div_ceil(100),
    };
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// What the leader set has before this pass writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// `spec.replicas` (R).
    pub replicas: u32,
    /// Its partition (`cur`).
    pub partition: u32,
    /// ORD-54: wanted groups as of the last apply.
    pub desired_replicas: u32,
}

/// What the leader set shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Lowest group index that is updated.
    pub partition: u32,
    /// Groups to run.
    pub replicas: u32,
}

/// A group that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupState {
    /// ORD-45: all of its pods serve.
    pub is_ready: bool,
    /// ORD-45: it carries the current revision.
    pub is_updated: bool,
}

impl GroupState {
    fn is_done(self) -> bool {
        self.is_ready && self.is_updated
    }
}

/// States of the groups that exist, by index below the replicas of the leader set.
pub type GroupStates = BTreeMap<u32, GroupState>;

/// ORD-50: the decision table, from the top; the first case that holds decides.
pub fn parameters(
    budget: Budget,
    current: Option<Current>,
    template_changed: bool,
    groups: &GroupStates,
) -> Parameters {
    let decided = decide(budget, current, template_changed, groups);
    Parameters {
        partition: decided.partition.max(budget.user_partition).min(API_MAX),
        ..decided
    }
}

fn decide(
    budget: Budget,
    current: Option<Current>,
    template_changed: bool,
    groups: &GroupStates,
) -> Parameters {
    let wanted = budget.desired_replicas;
    let Some(current) = current else {
        return Parameters {
            partition: 0,
            replicas: wanted.min(API_MAX),
        };
    };
    let Current {
        replicas,
        partition,
        desired_replicas,
    } = current;
    if template_changed {
        let all_old = wanted.min(replicas);
        let scales_up = replicas < wanted;
        return Parameters {
            partition: all_old,
            replicas: if scales_up {
                wanted
            } else {
                budget.replicas_for(wanted)
            },
        };
    }
    if replicas < wanted || (partition == 0 && replicas == wanted) {
        return Parameters {
            partition,
            replicas: wanted,
        };
    }
    let replicas_now = budget.replicas_for(unready(wanted, groups));
    if desired_replicas != wanted {
        return Parameters {
            partition: partition.min(budget.burst_replicas()),
            replicas: replicas_now,
        };
    }
    Parameters {
        partition: step(budget, current, groups),
        replicas: replicas_now,
    }
}

/// ORD-51: wanted groups that are missing, not ready or not updated.
fn unready(wanted: u32, groups: &GroupStates) -> u32 {
    wanted.saturating_sub(count(groups, wanted, GroupState::is_done))
}

/// ORD-53: the next partition of a rollout.
fn step(budget: Budget, current: Current, groups: &GroupStates) -> u32 {
    let Current {
        replicas,
        partition,
        desired_replicas: _,
    } = current;
    let done = done_from_the_top(replicas, groups);
    let floor = budget
        .desired_replicas
        .saturating_sub(done)
        .saturating_sub(budget.max_unavailable);
    let broken_below = floor.saturating_sub(count(groups, floor, |group| group.is_ready));
    let wanted = past_broken_groups(floor.saturating_add(broken_below), floor, replicas, groups);
    wanted.min(partition)
}

/// ORD-53 step 1: groups that are ready and updated, from the highest index down to the first that is not.
fn done_from_the_top(replicas: u32, groups: &GroupStates) -> u32 {
    let mut done = 0;
    while let Some(index) = replicas
        .checked_sub(done)
        .and_then(|left| left.checked_sub(1))
    {
        match groups.get(&index) {
            Some(group) if group.is_done() => done += 1,
            Some(_) | None => break,
        }
    }
    done
}

/// ORD-53 step 4: on from `partition` down to `floor` as long as nothing that serves in the old revision would be touched.
fn past_broken_groups(partition: u32, floor: u32, replicas: u32, groups: &GroupStates) -> u32 {
    let Some(start) = replicas.checked_sub(1).map(|last| last.min(partition)) else {
        return partition;
    };
    if start < floor {
        return partition;
    }
    let serves_old = groups
        .range(floor..=start)
        .rev()
        .find(|(_, group)| group.is_ready && !group.is_updated);
    match serves_old {
        Some((index, _)) if *index == start => partition,
        Some((index, _)) => index.saturating_add(1),
        None => floor,
    }
}

fn count(groups: &GroupStates, below: u32, holds: impl Fn(GroupState) -> bool) -> u32 {
    let number = groups
        .range(..below)
        .filter(|(_, group)| holds(**group))
        .count();
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
