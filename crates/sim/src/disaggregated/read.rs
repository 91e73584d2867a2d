//! What a snapshot says, read without the controller's own judgement.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lws_api::disaggregatedset::{DuringRollout, Role, ScalingMode};
use lws_core::disaggregatedset::Snapshot;
use lws_core::disaggregatedset::children::Child;

use super::budget::{Revision, Row, Slice};

/// ROL-13.
const UNSCHEDULABLE: SignedDuration = SignedDuration::from_secs(60);

/// SCL-8: groups that a role shall have per slice; `None` while that is not known, or when the role is divided.
pub fn desired(seen: &Snapshot, role: &Role) -> Option<i64> {
    if role.is_partitioned() {
        let children = role.sub_roles().iter();
        let counts = children.map(|child| match child.scaling_mode() {
            ScalingMode::Static => Some(i64::from(child.replicas())),
            ScalingMode::External => scaled(seen, &role.name, &child.name),
        });
        return counts.sum();
    }
    match role.scaling_mode() {
        ScalingMode::Static => Some(role.spec.as_ref().map_or(1, |spec| spec.replicas().into())),
        ScalingMode::External => scaled(seen, &role.name, ""),
    }
}

fn scaled(seen: &Snapshot, role: &str, sub_role: &str) -> Option<i64> {
    let scaler = seen.scalers.iter().find(|scaler| {
        scaler.meta.is_controlled_by(&seen.set.meta.uid)
            && !scaler.meta.is_terminating()
            && scaler.drives() == (role, sub_role)
    });
    scaler.map(|scaler| scaler.replicas.into())
}

/// API-4.
fn limits(role: &Role, replicas: i64) -> (i64, i64) {
    let strategy = role
        .spec
        .as_ref()
        .and_then(|spec| spec.rollout_strategy.as_ref());
    let limits = strategy.and_then(|strategy| strategy.rolling_update_configuration.as_ref());
    let of = |value: Option<&IntOrString>, missing: i64, rest: i64| match value {
        None => missing,
        Some(IntOrString::Int(number)) => i64::from(*number),
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (replicas * percent + rest) / 100
        }
    };
    let surge = of(limits.and_then(|of| of.max_surge.as_ref()), 0, 99);
    let unavailable = of(limits.and_then(|of| of.max_unavailable.as_ref()), 1, 0);
    if surge == 0 && unavailable == 0 {
        (1, 0)
    } else {
        (surge, unavailable)
    }
}

/// Children of a slice that count, by revision and role.
fn by_revision(seen: &Snapshot, slice: u32) -> BTreeMap<&str, BTreeMap<&str, &Child>> {
    let mut all: BTreeMap<&str, BTreeMap<&str, &Child>> = BTreeMap::new();
    let children = seen.children.list.iter();
    for child in children.filter(|child| child.slice == slice && !child.is_terminating()) {
        let of_revision = all.entry(child.revision()).or_default();
        of_revision.insert(child.role(), child);
    }
    all
}

/// Whether a rollout runs in a slice (ROL-1).
pub fn is_rolling(seen: &Snapshot, slice: u32) -> bool {
    let revisions = by_revision(seen, slice);
    revisions.keys().any(|name| *name != seen.target.revision)
}

/// The slice in numbers; `None` where sub-roles, an open target or an observation that is missing leave them open.
pub fn slice(seen: &Snapshot, slice: u32, at: Timestamp) -> Option<Slice> {
    let spec = &seen.set.spec;
    let mut revisions = by_revision(seen, slice);
    let target = revisions.remove(&*seen.target.revision).unwrap_or_default();
    let current = spec.roles.iter().map(|role| role.name.as_str());
    let mut names: Vec<&str> = current.collect();
    let mut gone: Vec<&str> = revisions
        .values()
        .flat_map(|of| of.keys().copied())
        .collect();
    gone.retain(|role| !names.contains(role));
    gone.sort_unstable();
    gone.dedup();
    names.extend(gone);
    let is_divided = |child: &&Child| child.is_divided();
    let mut all = revisions.values().flat_map(BTreeMap::values).copied();
    if spec.roles.iter().any(Role::is_partitioned) || all.any(|child| is_divided(&child)) {
        return None;
    }
    let old: Option<Vec<Revision>> = revisions
        .iter()
        .map(|(name, of)| revision(seen, name, of, &names))
        .collect();
    let mut old = old?;
    old.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name)));
    let new = revision(seen, &seen.target.revision, &target, &names)?;
    let is_coupled = spec.during_rollout() == DuringRollout::RolloutCoupled;
    let mut rows = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let role = spec.roles.iter().find(|role| role.name == **name);
        let Some(role) = role else {
            rows.push(Row::gone(name));
            continue;
        };
        let mut wanted = desired(seen, role)?;
        let (surge, unavailable) = limits(role, wanted);
        let old_groups: i64 = old.iter().filter_map(|old| old.spec.get(index)).sum();
        if is_coupled && role.scaling_mode() == ScalingMode::External && old_groups > 0 {
            wanted = wanted.max(new.spec.get(index).copied().unwrap_or(0));
        }
        rows.push(Row {
            name: (*name).to_owned(),
            wanted,
            surge,
            unavailable,
            waits: target.get(name).is_some_and(|child| waits(seen, child, at)),
        });
    }
    Some(Slice {
        advances: !is_coupled,
        rows,
        old,
        new,
    })
}

fn waits(seen: &Snapshot, child: &Child, at: Timestamp) -> bool {
    let seen = seen
        .observations
        .get(child.name())
        .and_then(|seen| seen.as_ref().ok());
    let since = seen.and_then(|seen| seen.unschedulable_since);
    since.is_some_and(|since| at.duration_since(since) >= UNSCHEDULABLE)
}

fn revision(
    seen: &Snapshot,
    name: &str,
    children: &BTreeMap<&str, &Child>,
    roles: &[&str],
) -> Option<Revision> {
    let mut revision = Revision {
        name: name.to_owned(),
        created: children
            .values()
            .filter_map(|child| child.lws.meta.created)
            .max(),
        ..Revision::default()
    };
    for role in roles {
        let Some(child) = children.get(role) else {
            for list in [
                &mut revision.baseline,
                &mut revision.spec,
                &mut revision.raw,
                &mut revision.committed,
            ] {
                list.push(0);
            }
            continue;
        };
        let observation = seen.observations.get(child.name())?.as_ref().ok()?;
        let spec = i64::from(child.replicas());
        if i64::from(observation.raw()) < told(child) {
            return None;
        }
        let initial = child.initial_replicas().map_or(spec, i64::from);
        revision.baseline.push(initial.max(spec));
        revision.spec.push(spec);
        revision.raw.push(observation.raw().into());
        revision.committed.push(observation.committed().into());
    }
    Some(revision)
}

/// RDY-6: groups that are Ready by the child's own status, without those that go because fewer are wanted by now.
fn told(child: &Child) -> i64 {
    let (status, wanted) = (&child.lws.status, i64::from(child.replicas()));
    let leaving = (i64::from(status.replicas) - wanted).max(0);
    wanted.min((i64::from(status.ready_replicas) - leaving).max(0))
}

/// The roles that are scaled by the set, with how many groups of each may be missing.
pub fn budgets(seen: &Snapshot) -> impl Iterator<Item = (&Role, i64)> {
    seen.set.spec.roles.iter().map(|role| {
        let wanted = desired(seen, role).unwrap_or(0);
        (role, limits(role, wanted).1)
    })
}
