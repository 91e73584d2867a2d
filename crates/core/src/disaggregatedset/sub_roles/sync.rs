//! One child set brought in line with what is wanted of its sub-roles (SRL-8 … SRL-15): one step a pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Counts, CountsError, RoutedGroup, Routing, fit, stick};

/// What is wanted of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Wanted counts of the sub-roles in the spec; empty once the role has none; `None` for a role that is not current.
    pub membership: Option<Counts>,
    /// New counts for the groups of this set.
    pub target: Option<Counts>,
    /// A new baseline.
    pub baseline: Option<Counts>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// SRL-8: there is nothing to divide.
    Undivided,
    /// Issued counts, labels and wanted groups agree.
    Settled,
    /// Something is to be done, or waited for.
    Waits(Move),
}

/// What is done in a pass; nothing where groups have to become Ready first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Move {
    /// SRL-14: groups that get another label or lose theirs; workers first, the leader last.
    pub relabelled: BTreeMap<u64, Option<Arc<str>>>,
    /// The patch of the set.
    pub write: Option<Write>,
}

/// What a set holds after its one guarded patch; an annotation that is `None` is taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `spec.replicas`.
    pub replicas: u64,
    /// Annotation `initial-replicas`, the sum of the baseline.
    pub initial: Option<u64>,
    /// Annotation `subrole-replicas`.
    pub issued: Option<Counts>,
    /// Annotation `initial-subrole-replicas`.
    pub baseline: Option<Counts>,
    /// Annotation `subrole-plan`.
    pub plan: Option<Counts>,
}

impl From<Write> for Synced {
    fn from(write: Write) -> Self {
        Self::Waits(Move {
            relabelled: BTreeMap::new(),
            write: Some(write),
        })
    }
}

/// SRL-8 … SRL-13. Finishes an accepted plan before anything that is asked anew.
pub fn sync(routing: &Routing, ask: &Ask) -> Result<Synced, CountsError> {
    let is_asked = ask.membership.as_ref().is_some_and(|of| !of.is_empty());
    let is_divided =
        routing.issued.is_some() || routing.baseline.is_some() || routing.plan.is_some();
    if !is_asked && !is_divided {
        return Ok(Synced::Undivided);
    }
    let is_sum = |issued: &Counts| issued.sum() == routing.spec;
    if !routing.issued.as_ref().is_none_or(is_sum) {
        return Err(CountsError::WrongSum);
    }
    if let Some(plan) = &routing.plan {
        return Ok(Division::new(routing, plan).next(Some(plan)));
    }
    if ask.membership.as_ref().is_some_and(Counts::is_empty) {
        let plan = Some(Counts::undivided(routing.spec));
        return Ok(Write {
            plan,
            ..held(routing)
        }
        .into());
    }
    let completed = completed(routing, ask)?;
    if completed != held(routing) {
        return Ok(completed.into());
    }
    let issued = completed.issued.clone().unwrap_or_default();
    match Division::new(routing, &issued).next(None) {
        Synced::Settled => Ok(retarget(completed, &issued, ask.target.as_ref())),
        waits => Ok(waits),
    }
}

/// What the set holds now.
fn held(routing: &Routing) -> Write {
    Write {
        replicas: routing.spec,
        initial: routing.initial,
        issued: routing.issued.clone(),
        baseline: routing.baseline.clone(),
        plan: routing.plan.clone(),
    }
}

/// SRL-11: with counts for every sub-role.
fn completed(routing: &Routing, ask: &Ask) -> Result<Write, CountsError> {
    let members = ask.membership.clone().unwrap_or_default();
    let known = if members.is_empty() {
        routing.baseline.clone().unwrap_or_default()
    } else {
        members.clone()
    };
    let issued = match &routing.issued {
        Some(issued) => issued.clone(),
        None => fit(&known, routing.spec),
    };
    if issued.sum() != routing.spec {
        return Err(CountsError::WrongSum);
    }
    let baseline = match ask.baseline.as_ref().or(routing.baseline.as_ref()) {
        Some(baseline) => baseline.clone(),
        None => {
            let of = if routing.issued.is_some() {
                &issued
            } else {
                &known
            };
            fit(of, routing.initial.unwrap_or_default().max(routing.spec))
        }
    };
    let baseline = baseline.with_names_of(&members);
    Ok(Write {
        initial: Some(baseline.sum()),
        issued: Some(issued.with_names_of(&members)),
        baseline: Some(baseline),
        ..held(routing)
    })
}

/// SRL-12: labels come before fewer groups, more groups before labels.
fn retarget(held: Write, issued: &Counts, target: Option<&Counts>) -> Synced {
    let Some(target) = target.map(|target| target.clone().with_names_of(issued)) else {
        return Synced::Settled;
    };
    if target == *issued {
        return Synced::Settled;
    }
    if target.is_below(issued) {
        let plan = Some(target);
        return Write { plan, ..held }.into();
    }
    Write {
        replicas: target.sum(),
        issued: Some(target),
        ..held
    }
    .into()
}

/// SRL-13: labels on the way to counts.
struct Division<'a> {
    routing: &'a Routing,
    /// Sub-role of every ordinal that survives; empty when the division ends.
    assigned: BTreeMap<u64, Option<Arc<str>>>,
    ends: bool,
    /// Every survivor is there, Ready and committed.
    is_healthy: bool,
}

impl<'a> Division<'a> {
    /// SRL-13 step 2. A survivor that is missing keeps its place, since it will come back under its ordinal.
    fn new(routing: &'a Routing, counts: &Counts) -> Self {
        let ends = counts.ends_division();
        let survivors = routing.spec.min(counts.sum());
        let ordinals = 0..survivors;
        let group = |ordinal| routing.groups.get(&ordinal);
        let is_healthy = ordinals
            .clone()
            .all(|ordinal| group(ordinal).is_some_and(|group| group.is_ready && group.is_staying));
        let present = ordinals
            .clone()
            .map(|ordinal| group(ordinal)?.sub_role.as_ref());
        let assigned = if ends {
            BTreeMap::new()
        } else {
            ordinals.zip(stick(present, counts)).collect()
        };
        Self {
            routing,
            assigned,
            ends,
            is_healthy,
        }
    }

    fn wanted(&self, ordinal: u64) -> Option<&Arc<str>> {
        self.assigned.get(&ordinal)?.as_ref()
    }

    /// SRL-13 steps 3 to 7.
    fn next(&self, plan: Option<&Counts>) -> Synced {
        let repaired = self.relabel(|ordinal, group| {
            let survives = self.assigned.contains_key(&ordinal);
            !group.is_coherent || survives && group.sub_role.is_none()
        });
        if !repaired.is_empty() {
            return waits(repaired);
        }
        if plan.is_some() && !self.ends && !self.is_healthy {
            return waits(BTreeMap::new());
        }
        let mut relabelled = self.relabel(|ordinal, group| {
            group.sub_role.is_some() && !self.assigned.contains_key(&ordinal)
        });
        let changed = self.relabel(|ordinal, group| {
            self.assigned.contains_key(&ordinal) && group.sub_role.as_ref() != self.wanted(ordinal)
        });
        let waits_for_change = !changed.is_empty();
        if self.is_healthy {
            relabelled.extend(changed.into_iter().take(1));
        }
        if waits_for_change || !relabelled.is_empty() {
            return waits(relabelled);
        }
        match plan {
            Some(plan) => self.accept(plan).into(),
            None if self.routing.is_observed => Synced::Settled,
            None => waits(BTreeMap::new()),
        }
    }

    /// The groups that `differs` names, with the sub-role that they are to have.
    fn relabel(
        &self,
        differs: impl Fn(u64, &RoutedGroup) -> bool,
    ) -> BTreeMap<u64, Option<Arc<str>>> {
        let groups = self.routing.groups.iter();
        let groups = groups.filter(|(ordinal, group)| differs(**ordinal, group));
        groups
            .map(|(ordinal, _)| (*ordinal, self.wanted(*ordinal).cloned()))
            .collect()
    }

    /// SRL-13 step 6: the labels are as the plan wants them.
    fn accept(&self, plan: &Counts) -> Write {
        if self.ends {
            return Write {
                issued: None,
                baseline: None,
                plan: None,
                ..held(self.routing)
            };
        }
        Write {
            replicas: plan.sum(),
            issued: Some(plan.clone()),
            plan: None,
            ..held(self.routing)
        }
    }
}

fn waits(relabelled: BTreeMap<u64, Option<Arc<str>>>) -> Synced {
    Synced::Waits(Move {
        relabelled,
        write: None,
    })
}

#[cfg(test)]
mod tests;
