//! What must hold for every decision about a DisaggregatedSet, given what was seen (S-7, D-2, D-4 … D-9, D-11).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lws_core::disaggregatedset::Snapshot;
use lws_core::disaggregatedset::children::Child;
use lws_core::intent::{Intent, Step, Subresource, Why};
use serde_json::{Value, json};

use super::budget;
use super::facts::Dips;
use super::read;
use crate::properties::{Violation, violated};
use crate::store::text;

/// Judges the steps of a plan or of a report. Drains are counted.
pub fn check_decision(
    seen: &Snapshot,
    steps: &[Step],
    at: Timestamp,
    dips: &mut Dips,
) -> Result<(), Violation> {
    if seen.set.meta.is_terminating() && !steps.is_empty() {
        return Err(violated("S-7", "something is written for a set that ends"));
    }
    stays_in_slice(seen, steps)?;
    resolved(seen, steps)?;
    let slices = u32::try_from(seen.set.spec.slices()).unwrap_or_default();
    for slice in 0..slices {
        let of_slice = InSlice::of(seen, slice, steps);
        if read::is_rolling(seen, slice) {
            of_slice.rolls(at, dips)?;
        } else {
            of_slice.follows()?;
        }
    }
    let mut status = steps.iter().filter_map(status_of_set);
    status.try_for_each(|body| tells_the_truth(seen, body))
}

fn replicas(step: &Step) -> Option<i64> {
    match &step.intent {
        Intent::Patch { body, .. } => body.pointer("/spec/replicas")?.as_i64(),
        _ => None,
    }
}

fn child_of<'a>(seen: &'a Snapshot, step: &Step) -> Option<&'a Child> {
    let name = &step.intent.target().key.name;
    seen.children.list.iter().find(|child| child.name() == name)
}

/// D-9: the steps of a slice touch its own children only, and what is removed is above the last slice.
fn stays_in_slice(seen: &Snapshot, steps: &[Step]) -> Result<(), Violation> {
    let slices = u32::try_from(seen.set.spec.slices()).unwrap_or_default();
    for step in steps {
        let Some(child) = child_of(seen, step) else {
            continue;
        };
        let is_removed = step.why == Why::SliceRemoved;
        let is_foreign = step.part > 0 && step.part != child.slice + 1;
        if is_foreign || is_removed != (child.slice >= slices) {
            let name = child.name();
            return Err(violated(
                "D-9",
                format!("{:?} of {name}, slices {slices}", step.why),
            ));
        }
    }
    Ok(())
}

/// REC-6: while a number is not known, no child is changed.
fn resolved(seen: &Snapshot, steps: &[Step]) -> Result<(), Violation> {
    let mut roles = seen.set.spec.roles.iter();
    let is_open = roles.any(|role| read::desired(seen, role).is_none());
    let changes = |step: &&Step| {
        matches!(
            step.why,
            Why::ChildMissing | Why::ChildRolled | Why::RevisionDrained
        ) || replicas(step).is_some()
    };
    match steps.iter().find(changes).filter(|_| is_open) {
        Some(step) => Err(violated(
            "D-8",
            format!("{:?} while a number is not known", step.why),
        )),
        None => Ok(()),
    }
}

/// What is decided about one slice.
struct InSlice<'a> {
    seen: &'a Snapshot,
    slice: u32,
    steps: Vec<&'a Step>,
}

impl<'a> InSlice<'a> {
    fn of(seen: &'a Snapshot, slice: u32, steps: &'a [Step]) -> Self {
        let steps = steps.iter().filter(|step| step.part == slice + 1);
        Self {
            seen,
            slice,
            steps: steps.collect(),
        }
    }

    /// Changes of wanted groups, by child.
    fn changes(&self) -> BTreeMap<&'a str, (&'a Child, i64)> {
        let changed = self.steps.iter().filter_map(|step| {
            let child = child_of(self.seen, step)?;
            Some((&**child.name(), (child, replicas(step)?)))
        });
        changed.collect()
    }

    /// D-8: without a rollout a child has what is wanted, and nothing else.
    fn follows(&self) -> Result<(), Violation> {
        for (name, (child, groups)) in self.changes() {
            let mut roles = self.seen.set.spec.roles.iter();
            let role = roles.find(|role| role.name == child.role());
            let wanted = role.and_then(|role| read::desired(self.seen, role));
            let is_divided = role.is_some_and(|role| role.is_partitioned()) || child.is_divided();
            if !is_divided && wanted != Some(groups) {
                return Err(violated(
                    "D-8",
                    format!("{name} gets {groups} groups of {wanted:?}"),
                ));
            }
        }
        Ok(())
    }

    /// A rollout: new children begin with nothing, and the change of counts is one that the rules permit.
    fn rolls(&self, at: Timestamp, dips: &mut Dips) -> Result<(), Violation> {
        self.starts_at_nothing()?;
        self.cleans_up()?;
        let changes = self.changes();
        if changes.is_empty() {
            return Ok(());
        }
        let Some(slice) = read::slice(self.seen, self.slice, at) else {
            return self.only_divided(&changes);
        };
        let of = |revision: &budget::Revision, role: usize| {
            let row = slice.rows.get(role).map(|row| row.name.as_str());
            let mut of_revision = changes.values();
            let changed = of_revision
                .find(|(child, _)| child.revision() == revision.name && Some(child.role()) == row);
            let has = revision.spec.get(role).copied().unwrap_or(0);
            changed.map_or(has, |(_, groups)| *groups)
        };
        let next = |revision: &budget::Revision| -> Vec<i64> {
            (0..slice.rows.len())
                .map(|role| of(revision, role))
                .collect()
        };
        let changed = slice.old.iter().enumerate();
        let changed: Vec<usize> = changed
            .filter(|(_, old)| next(old) != old.spec)
            .map(|(index, _)| index)
            .collect();
        if changed.len() > 1 {
            return Err(violated("D-5", "more than one old revision changes"));
        }
        let active = changed.first().copied();
        let old = active.and_then(|index| slice.old.get(index));
        let left = old.map(next).unwrap_or_default();
        let rises = old.is_some_and(|old| left.iter().zip(&old.spec).any(|(to, from)| to > from));
        if rises {
            return Err(violated(
                "D-5",
                format!("an old revision grows: {slice:?} → {left:?}"),
            ));
        }
        let grown = next(&slice.new);
        let step = budget::Step {
            active,
            left,
            grown,
        };
        slice.check(&step, dips).map_err(|text| {
            let known = ["D-4", "D-6"].into_iter();
            let property = known.fold(
                "D-5",
                |property, id| {
                    if text.starts_with(id) { id } else { property }
                },
            );
            let told = text.trim_start_matches(property);
            violated(property, told.trim_start_matches(": "))
        })
    }

    /// RDY-2: what is not seen does not change. A slice with sub-roles is not worked out; their counts are judged at every commit.
    fn only_divided(&self, changes: &BTreeMap<&str, (&Child, i64)>) -> Result<(), Violation> {
        let mut roles = self.seen.set.spec.roles.iter();
        let mut children = self.seen.children.in_slice(self.slice);
        let is_divided =
            roles.any(|role| role.is_partitioned()) || children.any(|child| child.is_divided());
        match changes.values().next() {
            Some((child, groups)) if !is_divided => Err(violated(
                "D-4",
                format!(
                    "{} gets {groups} groups although not everything is seen",
                    child.name()
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// D-2.
    fn starts_at_nothing(&self) -> Result<(), Violation> {
        for step in &self.steps {
            if let Intent::Create { body, target, .. } = &step.intent
                && body.pointer("/spec/replicas") != Some(&json!(0))
            {
                let name = &target.key.name;
                return Err(violated(
                    "D-2",
                    format!("{name} begins with groups in a rollout"),
                ));
            }
        }
        Ok(())
    }

    /// D-7, CLN-1 … CLN-3: whole revisions go, when they are drained, and one stays as long as the rollout runs.
    fn cleans_up(&self) -> Result<(), Violation> {
        let deleted: BTreeSet<&str> = self
            .steps
            .iter()
            .filter(|step| step.why == Why::RevisionDrained)
            .map(|step| &*step.intent.target().key.name)
            .collect();
        if deleted.is_empty() {
            return Ok(());
        }
        let old: Vec<&Child> = self
            .seen
            .children
            .in_slice(self.slice)
            .filter(|child| child.revision() != self.seen.target.revision)
            .filter(|child| !child.is_terminating())
            .collect();
        let goes = |child: &&&Child| deleted.contains(&**child.name());
        for child in old.iter().filter(goes) {
            let of_revision = || {
                old.iter()
                    .filter(|other| other.revision() == child.revision())
            };
            if of_revision().any(|other| other.replicas() > 0 || !goes(&other)) {
                let name = child.name();
                return Err(violated(
                    "D-7",
                    format!("{name} goes before its revision is drained"),
                ));
            }
        }
        let is_last = old.iter().all(|child| goes(&child));
        if is_last && !self.is_complete() {
            return Err(violated(
                "D-7",
                "the last drained revision goes before the target is there",
            ));
        }
        Ok(())
    }

    /// ROL-8: every wanted group of the target is there and Ready.
    fn is_complete(&self) -> bool {
        let target = &self.seen.target.revision;
        self.seen.set.spec.roles.iter().all(|role| {
            let mut children = self.seen.children.in_slice(self.slice);
            let child = children.find(|child| {
                child.revision() == target && child.role() == role.name && !child.is_terminating()
            });
            let seen = child.and_then(|child| self.seen.observations.get(child.name()));
            let ready = seen
                .and_then(|seen| seen.as_ref().ok())
                .map(|seen| seen.committed());
            let wanted = read::desired(self.seen, role).unwrap_or(0);
            wanted == 0 || ready.is_some_and(|ready| i64::from(ready) >= wanted)
        })
    }
}

fn status_of_set(step: &Step) -> Option<&Value> {
    match &step.intent {
        Intent::Patch {
            subresource: Subresource::Status,
            target,
            body,
            ..
        } if target.kind == lws_core::intent::Kind::DisaggregatedSet => Some(body),
        _ => None,
    }
}

/// D-11: sums over the children that were seen, and Available only if all of them are as wanted.
fn tells_the_truth(seen: &Snapshot, body: &Value) -> Result<(), Violation> {
    let told = body
        .pointer("/status/roleStatuses")
        .and_then(Value::as_array);
    let told: Vec<&Value> = told.into_iter().flatten().collect();
    let slices = i64::from(seen.set.spec.slices());
    let mut is_available = true;
    for role in seen
        .set
        .spec
        .roles
        .iter()
        .filter(|role| !role.is_partitioned())
    {
        let of_role = |part: fn(&Child) -> i32, revision: Option<&str>| -> i64 {
            let children = seen.children.list.iter();
            children
                .filter(|child| child.role() == role.name)
                .filter(|child| revision.is_none_or(|revision| child.revision() == revision))
                .map(|child| i64::from(part(child)))
                .sum()
        };
        let desired = read::desired(seen, role).map(|wanted| wanted * slices);
        let target = Some(seen.target.revision.as_str());
        let replicas = of_role(|child| child.lws.status.replicas, None);
        let ready = of_role(|child| child.lws.status.ready_replicas, None);
        let updated = of_role(|child| child.lws.status.updated_replicas, target);
        is_available &= [replicas, ready, updated]
            .iter()
            .all(|count| Some(*count) == desired);
        let entry = told
            .iter()
            .find(|entry| text(entry, "/name") == Some(&role.name));
        let entry = entry.copied().unwrap_or(&Value::Null);
        let numbers = [
            ("desiredReplicas", desired.unwrap_or(0)),
            ("replicas", replicas),
            ("readyReplicas", ready),
            ("updatedReplicas", updated),
        ];
        for (name, number) in numbers {
            if entry[name].as_i64().unwrap_or(0) != number {
                return Err(violated(
                    "D-11",
                    format!(
                        "{name} of {} is told as {}, and is {number}",
                        role.name, entry[name]
                    ),
                ));
            }
        }
    }
    let is_divided = seen.set.spec.roles.iter().any(|role| role.is_partitioned());
    let claims = holds(body, "Available");
    if claims && !is_available
        || claims == holds(body, "Progressing")
        || (is_available && !claims && !is_divided)
    {
        return Err(violated(
            "D-11",
            format!("available: {is_available}, told: {body}"),
        ));
    }
    Ok(())
}

/// Whether a condition is True in an object or a patch of it.
pub fn holds(object: &Value, kind: &str) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}
