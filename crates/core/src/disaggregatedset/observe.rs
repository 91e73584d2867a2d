//! What a plan for a DisaggregatedSet is made from: its objects in the cache at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::children::{Child, Children};
use super::readiness::{self, Observation};
use super::revision::Target;
use crate::build::{child_set, role_scaler};
use crate::cache::Cache;
use crate::model::{Ds, Lws, ObjectKey, RoleScaler};

/// A set and everything that its plan and its status are decided from.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The set.
    pub set: Arc<Ds>,
    /// Its children.
    pub children: Children,
    /// The revision that they shall have.
    pub target: Target,
    /// LeaderWorkerSets of others under names that children of the target would have.
    pub occupied: BTreeMap<Arc<str>, Arc<Lws>>,
    /// Scalers that carry the name of the set, by name.
    pub scalers: Vec<Arc<RoleScaler>>,
    /// Scalers under names that those of the set would have, whosoever they are.
    pub named_scalers: BTreeMap<Arc<str>, Arc<RoleScaler>>,
    /// SLC-5: children without slice that were told of already.
    pub told_of: Vec<Arc<str>>,
    /// What is seen of the groups of children, where something depends on it, or why that cannot be said.
    pub observations: BTreeMap<Arc<str>, Result<Observation, String>>,
}

impl Snapshot {
    /// What is seen of the groups of a child.
    pub(super) fn observation(&self, child: &Child) -> Option<&Observation> {
        self.observations.get(child.name())?.as_ref().ok()
    }

    /// Slices that are wanted.
    pub(super) fn slices(&self) -> u32 {
        u32::try_from(self.set.spec.slices()).unwrap_or_default()
    }
}

/// Takes the set `key` from the cache; `None` if it is gone.
pub fn observe(key: &ObjectKey, cache: &Cache) -> Option<Snapshot> {
    let set = cache.disaggregated_set(key)?.clone();
    let children = Children::of(&set.meta.uid, cache.children_of(key));
    let target = Target::of(&set, &children);
    let observations = looked_at(&set, &children)
        .into_iter()
        .map(|child| (child.name().clone(), readiness::observe(&child.lws, cache)))
        .collect();
    Some(Snapshot {
        occupied: occupied(&set, &target, cache),
        scalers: cache.scalers_of(key).cloned().collect(),
        named_scalers: named_scalers(&set, cache),
        told_of: cache.left_alone(&set.meta.uid).to_vec(),
        observations,
        children,
        target,
        set,
    })
}

/// Children in slices with several revisions, between which groups are exchanged, and those that are or shall be divided among sub-roles. The
/// groups of all others are summed up by the status of the child.
fn looked_at<'a>(set: &Ds, children: &'a Children) -> Vec<&'a Child> {
    let mut revisions: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for child in &children.list {
        revisions
            .entry(child.slice)
            .or_default()
            .insert(child.revision());
    }
    let is_partitioned = |name: &str| {
        let role = set.spec.roles.iter().find(|role| role.name == name);
        role.is_some_and(|role| role.is_partitioned())
    };
    let is_of_interest = |child: &&Child| {
        let is_rolling = revisions
            .get(&child.slice)
            .is_some_and(|revisions| revisions.len() > 1);
        is_rolling || is_partitioned(child.role()) || child.is_divided()
    };
    children.list.iter().filter(is_of_interest).collect()
}

fn occupied(set: &Ds, target: &Target, cache: &Cache) -> BTreeMap<Arc<str>, Arc<Lws>> {
    let key = set.key();
    let slices = u32::try_from(set.spec.slices()).unwrap_or_default();
    (0..slices)
        .flat_map(|slice| set.spec.roles.iter().map(move |role| (slice, role)))
        .filter_map(|(slice, role)| {
            let name = child_set::name(&key.name, slice, &target.revision, &role.name);
            cache.set(&key.sibling(&name))
        })
        .filter(|lws| !lws.meta.is_controlled_by(&set.meta.uid))
        .map(|lws| (lws.key().name.clone(), lws.clone()))
        .collect()
}

fn named_scalers(set: &Ds, cache: &Cache) -> BTreeMap<Arc<str>, Arc<RoleScaler>> {
    let key = set.key();
    super::targets::external_leaves(&set.spec)
        .iter()
        .map(|leaf| role_scaler::name(&key.name, &leaf.role, leaf.sub_role.as_deref()))
        .filter_map(|name| cache.scaler(&key.sibling(&name)))
        .map(|scaler| (scaler.key().name.clone(), scaler.clone()))
        .collect()
}
