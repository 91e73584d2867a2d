//! A rollout of one slice (ROL-1 … ROL-17): what to do before and after the planner is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plan_roles::{PlanRole, plan_roles};
use super::revisions::{ByRole, Old, Revisions};
use super::routing::{Routed, route};
use super::{Act, Child, Event, Fault, Pass, Rest, Scale, Slice};
use crate::disaggregatedset::planner::{self, Decision, Groups, Kind, Rollout, Step};
use crate::disaggregatedset::sub_roles::{Ask, Counts};
use crate::disaggregatedset::targets::{LeafKey, RoleTarget};

/// The reason while the readiness of a child is not known.
const PENDING: &str = "waiting for observation";

/// ROL-2 … ROL-12 and the clean-up of drained revisions.
pub(super) fn pass(slice: &Slice) -> Pass {
    let transition = Transition {
        slice,
        revisions: Revisions::of(slice),
    };
    let mut draft = Draft::default();
    transition.repair_baselines(&mut draft);
    if !transition.complete_target(&mut draft) {
        return draft.unfinished(Rest::GoesOn);
    }
    let roles = plan_roles(slice, &transition.revisions);
    if !transition.settle_divisions(&roles, &mut draft) {
        return draft.unfinished(Rest::IsLeft);
    }
    transition.follow_targets(&roles, &mut draft);
    let Some(rollout) = transition.rollout(&roles) else {
        draft.blocked(PENDING);
        return draft.unfinished(Rest::IsLeft);
    };
    let decision = planner::decide(&rollout);
    let is_complete = decision == Decision::Complete;
    match decision {
        Decision::Complete => draft.events.push(Event::Completed),
        Decision::Settling => {}
        Decision::Blocked => draft.blocked(&transition.waited_for(&roles, &rollout)),
        Decision::Step(step) => match planner::check(&rollout, &step) {
            Ok(()) => transition.apply(&step, &roles, &mut draft),
            Err(violation) => draft.faults.push(violation.into()),
        },
    }
    transition.clean_up(is_complete, &mut draft);
    if is_complete {
        draft.finished()
    } else {
        draft.unfinished(Rest::IsLeft)
    }
}

/// What the planner would be asked about a slice, and the roles in its order; `None` while an observation is pending.
pub(in crate::disaggregatedset) fn rollout_of(slice: &Slice) -> (Vec<LeafKey>, Option<Rollout>) {
    let transition = Transition {
        slice,
        revisions: Revisions::of(slice),
    };
    let roles = plan_roles(slice, &transition.revisions);
    let rollout = transition.rollout(&roles);
    (roles.into_iter().map(|role| role.key).collect(), rollout)
}

/// What a pass has come to so far.
#[derive(Default)]
struct Draft {
    /// Baselines to write, by child; one that is scaled as well is written once.
    baselines: BTreeMap<Arc<str>, u64>,
    acts: Vec<Act>,
    events: Vec<Event>,
    faults: Vec<Fault>,
}

impl Draft {
    fn blocked(&mut self, reason: &str) {
        let reason = reason.to_owned();
        self.events.push(Event::DrainBlocked { reason });
    }

    fn scale(&mut self, child: &Child, to: u64) {
        let replicas = Scale {
            from: child.spec,
            to,
            is_told: true,
        };
        self.acts.push(Act::Update {
            child: child.name.clone(),
            initial: self.baselines.remove(&child.name),
            replicas: Some(replicas),
        });
    }

    fn unfinished(self, on_failure: Rest) -> Pass {
        let is_unfinished = true;
        self.pass(on_failure, is_unfinished)
    }

    fn finished(self) -> Pass {
        let is_unfinished = false;
        self.pass(Rest::IsLeft, is_unfinished)
    }

    /// Baselines come first, so that a crash in the middle leaves none behind what the counts already follow.
    fn pass(self, on_failure: Rest, is_unfinished: bool) -> Pass {
        let baselines = self.baselines.into_iter();
        let baselines = baselines.map(|(child, replicas)| Act::Update {
            child,
            initial: Some(replicas),
            replicas: None,
        });
        Pass {
            acts: baselines.chain(self.acts).collect(),
            on_failure,
            events: self.events,
            is_unfinished,
            faults: self.faults,
        }
    }
}

struct Transition<'a> {
    slice: &'a Slice,
    revisions: Revisions<'a>,
}

impl Transition<'_> {
    /// ROL-2: an old child without a usable baseline gets its replicas for one. Divided children have theirs from their counts (SRL-11).
    fn repair_baselines(&self, draft: &mut Draft) {
        let old = self.revisions.old.iter();
        let children = old.flat_map(|old| &old.children);
        for child in children.filter(|child| child.initial.is_none() && child.routing.is_none()) {
            draft.baselines.insert(child.name.clone(), child.spec);
            draft.events.push(Event::InitialReplicasMissing {
                child: child.name.clone(),
                replicas: child.spec,
            });
        }
    }

    /// ROL-3, ROL-16: whether every current role has a child of the target revision to plan with.
    fn complete_target(&self, draft: &mut Draft) -> bool {
        let found = &self.revisions.target;
        let missing = self.slice.roles.iter();
        let missing = missing.filter(|target| !found.contains_key(&target.role));
        draft.acts.extend(missing.map(|target| Act::Create {
            role: target.role.clone(),
            starting: 0,
            intended: target.replicas,
        }));
        if found.is_empty() && !draft.acts.is_empty() {
            draft.events.push(Event::Started);
        }
        draft.acts.is_empty() && !found.values().any(|child| child.is_terminating)
    }

    /// SRL-17: whether the groups of every child are divided as their counts say; nothing is planned before.
    fn settle_divisions(&self, roles: &[PlanRole<'_>], draft: &mut Draft) -> bool {
        let old = self.revisions.old.iter().flat_map(|old| &old.by_role);
        let old = old.map(|(role, child)| (child, self.membership(role), None));
        let target = self.revisions.target.iter().map(|(role, child)| {
            let baseline = counts(roles, role, roles.iter().map(|planned| planned.desired));
            let is_divided = !baseline.is_empty();
            (child, self.membership(role), is_divided.then_some(baseline))
        });
        let mut is_settled = true;
        for (child, membership, baseline) in old.chain(target) {
            let target = None;
            let ask = Ask {
                membership,
                target,
                baseline,
            };
            match route(child, &ask, true) {
                Routed::Undivided | Routed::Settled => continue,
                Routed::Waits(act) => draft.acts.extend(act),
                Routed::Faulty(fault) => draft.faults.push(fault),
            }
            is_settled = false;
        }
        is_settled
    }

    /// SRL-17: wanted counts of a current role.
    fn membership(&self, role: &str) -> Option<Counts> {
        let mut roles = self.slice.roles.iter();
        roles
            .find(|target| *target.role == *role)
            .map(RoleTarget::counts)
    }

    /// ROL-6: the baseline of the target follows what is wanted, so that it is right once the revision is old.
    fn follow_targets(&self, roles: &[PlanRole<'_>], draft: &mut Draft) {
        let children = self.revisions.target.iter();
        for (role, child) in children.filter(|(_, child)| child.routing.is_none()) {
            let of_role = roles.iter().filter(|planned| planned.key.role == **role);
            let wanted = of_role.map(|planned| planned.desired).sum();
            if child.initial != Some(wanted) {
                draft.baselines.insert(child.name.clone(), wanted);
            }
        }
    }

    /// ROL-7: what the planner is asked; `None` while an observation is pending.
    fn rollout(&self, roles: &[PlanRole<'_>]) -> Option<Rollout> {
        let planned = roles.iter().map(PlanRole::planned);
        let share = |old: &Old<'_>| roles.iter().map(|role| role.share(&old.by_role)).collect();
        Some(Rollout {
            policy: self.slice.policy,
            roles: planned.collect::<Option<_>>()?,
            old: self
                .revisions
                .old
                .iter()
                .map(share)
                .collect::<Option<_>>()?,
        })
    }

    /// ROL-12: first the reductions of the old revision in plan order, then the target.
    fn apply(&self, step: &Step, roles: &[PlanRole<'_>], draft: &mut Draft) {
        let active = step.active.and_then(|index| self.revisions.old.get(index));
        let drained = active.map(|old| self.resize(roles, &old.by_role, &step.old, draft));
        let grown = self.resize(roles, &self.revisions.target, &step.target, draft);
        draft.events.extend(match (step.kind, active) {
            (Kind::Bootstrap, _) => Some(Event::BootstrapSurge { roles: grown }),
            (Kind::Fallback, Some(old)) => Some(Event::AvailabilityFallback {
                revision: old.revision.clone(),
                roles: drained.unwrap_or_default(),
            }),
            (Kind::Ordinary | Kind::Fallback | Kind::GrowOnly, _) => None,
        });
    }

    /// Gives the children of a revision these counts; the keys of the roles that change.
    fn resize(
        &self,
        roles: &[PlanRole<'_>],
        by_role: &ByRole<'_>,
        next: &[u64],
        draft: &mut Draft,
    ) -> Vec<String> {
        let mut keys = Vec::new();
        let mut divided = BTreeSet::new();
        for (planned, count) in roles.iter().zip(next) {
            let LeafKey { role, sub_role } = &planned.key;
            let child = by_role.get(role);
            let Some(child) = child.filter(|child| child.spec_of(sub_role.as_ref()) != *count)
            else {
                continue;
            };
            keys.push(planned.key.to_string());
            if sub_role.is_none() {
                draft.scale(child, *count);
            } else if divided.insert(role) {
                let next = counts(roles, role, next.iter().copied());
                draft.acts.extend(self.divide(child, next));
            }
        }
        keys
    }

    /// SRL-12, SRL-17: all counts of a divided child together.
    fn divide(&self, child: &Child, counts: Counts) -> Option<Act> {
        let ask = Ask {
            membership: self.membership(&child.role),
            target: Some(counts),
            baseline: None,
        };
        match route(child, &ask, true) {
            Routed::Waits(act) => act,
            Routed::Undivided | Routed::Settled | Routed::Faulty(_) => None,
        }
    }

    /// ROL-11: roles of the target that are not ready, with what they have and need.
    fn waited_for(&self, roles: &[PlanRole<'_>], rollout: &Rollout) -> String {
        let waiting = roles.iter().zip(&rollout.roles);
        let waiting = waiting.filter(|(_, planned)| planned.target.committed < planned.target.spec);
        let waiting = waiting.map(|(role, planned)| {
            let Groups {
                spec, committed, ..
            } = planned.target;
            format!("{}: {committed}/{spec}", role.key)
        });
        let waiting: Vec<String> = waiting.collect();
        if waiting.is_empty() {
            "no role may change yet".to_owned()
        } else {
            waiting.join(", ")
        }
    }

    /// CLN-1 … CLN-3: until the end the newest drained revision marks the running transition, unless another one still has replicas.
    fn clean_up(&self, is_complete: bool, draft: &mut Draft) {
        let (drained, alive): (Vec<&Old<'_>>, Vec<&Old<'_>>) =
            self.revisions.old.iter().partition(|old| old.is_drained());
        let kept = usize::from(alive.is_empty() && !is_complete);
        let obsolete = drained.into_iter().skip(kept);
        let children = obsolete.flat_map(|old| &old.children);
        draft.acts.extend(children.map(|child| Act::Delete {
            child: child.name.clone(),
        }));
    }
}

/// Numbers of the plan roles as counts of the sub-roles of one role.
fn counts(roles: &[PlanRole<'_>], role: &str, numbers: impl Iterator<Item = u64>) -> Counts {
    let numbers = roles.iter().zip(numbers);
    let of_role = numbers.filter(|(planned, _)| *planned.key.role == *role);
    let counts =
        of_role.filter_map(|(planned, number)| Some((planned.key.sub_role.clone()?, number)));
    counts.collect()
}
