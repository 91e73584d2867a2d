//! Pods, filed by set, by group and by what they wait for, and the tombstones of those that vanished (FAIL-20 … FAIL-23).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lws_api::names::{BUDGET_FINALIZER, annotation, label};

use super::Cache;
use super::change::{Move, Objects};
use super::index::{Edit, Index};
use crate::identity::parse_ordinal;
use crate::model::{ObjectKey, Owner, Pod, Uid};

/// FAIL-23: how long a standby keeps a tombstone while another replica leads.
pub const TOMBSTONE_LIFE: Duration = Duration::from_secs(60);

/// FAIL-20: what is kept of a worker pod that vanished, until it was handled or the leader incarnation changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The pod as last seen.
    pub pod: Arc<Pod>,
    /// Controller of the pod's StatefulSet as last seen, that is a leader pod by name and UID.
    pub set_owner: Option<Owner>,
    /// When [`Cache::expire`] first saw it.
    aged_from: Option<Duration>,
}

/// What the cache holds of one group; its key is the namespace and name of its leader pod.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Group {
    has_leader: bool,
    workers: BTreeSet<ObjectKey>,
    /// By pod name: only the newest of a name is kept.
    tombstones: BTreeMap<ObjectKey, Tombstone>,
}

impl Group {
    /// Pods of the group that are not its leader, by name.
    pub fn workers<'a>(&'a self, cache: &'a Cache) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.workers.iter().filter_map(|key| cache.pod(key))
    }

    /// Worker pods that vanished and were not handled yet, by name.
    pub fn tombstones(&self) -> impl Iterator<Item = &Tombstone> {
        self.tombstones.values()
    }

    fn is_empty(&self) -> bool {
        !self.has_leader && self.workers.is_empty() && self.tombstones.is_empty()
    }
}

/// FAIL-34: the group of a pod. A worker belongs to the leader that its annotation names, else to the one in its own name;
/// a pod that names no leader is its own group, where it is reported.
pub(super) fn group_of(pod: &Pod) -> ObjectKey {
    if pod.is_leader() {
        return pod.key().clone();
    }
    leader_name(pod).map_or_else(|| pod.key().clone(), |leader| pod.key().sibling(leader))
}

/// RST-2: the leader that a worker names, in its annotation or else by its own name.
pub(crate) fn leader_name(pod: &Pod) -> Option<&str> {
    let named = pod.meta.annotation(annotation::LEADER_NAME);
    if named.is_empty() {
        Some(parse_ordinal(&pod.key().name)?.0)
    } else {
        Some(named)
    }
}

/// Whether a leader carries the replacement gate (ORD-19).
pub(super) fn is_gated(pod: &Pod) -> bool {
    pod.is_leader() && pod.is_gated()
}

/// All pods and the ways to find them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Pods {
    pub(super) objects: Objects<Pod>,
    pub(super) groups: BTreeMap<ObjectKey, Group>,
    /// Set → leader pods.
    pub(super) leaders: Index<ObjectKey>,
    /// Set and label `lws/group-index` → pods.
    pub(super) with_index: Index<(ObjectKey, Box<str>)>,
    /// Set → groups that have a pod of it.
    pub(super) groups_of: Index<ObjectKey>,
    /// Set → groups whose leader is gated.
    pub(super) gated: Index<ObjectKey>,
    /// Set → groups whose leader waits for its back-off (FAIL-64).
    pub(super) pending: Index<ObjectKey>,
    /// Set → groups that have a pod with the budget finalizer.
    pub(super) retained: Index<ObjectKey>,
    /// Node name → groups whose leader is bound to it.
    pub(super) bound: Index<Box<str>>,
}

impl Pods {
    /// Takes a pod from its old places to its new ones. `set_owner` is the controller of its StatefulSet.
    pub(super) fn apply(&mut self, step: &Move<Pod>, set_owner: Option<Owner>) {
        if let Some(old) = &step.old {
            self.objects.remove(old.key());
            self.file(old, Edit::Remove);
        }
        if let Some(new) = &step.new {
            self.objects.insert(new.key().clone(), new.clone());
            self.file(new, Edit::Add);
        }
        if let Some(old) = &step.old {
            match &step.new {
                None if !old.is_leader() => self.bury(old, set_owner),
                _ if old.is_leader() && !step.new.as_deref().is_some_and(is_live_leader) => {
                    self.clear_tombstones(old.key());
                }
                _ => {}
            }
        }
    }

    /// Pods of a set, whatever their group index.
    pub(super) fn of<'a>(
        &'a self,
        set: &'a ObjectKey,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        self.with_index
            .from((set.clone(), Box::default()), move |(of, _)| of == set)
    }

    fn file(&mut self, pod: &Pod, edit: Edit) {
        let group = group_of(pod);
        self.file_in_group(&group, pod, edit);
        if pod.is_leader() && !pod.node.is_empty() {
            self.bound.edit(edit, &pod.node, &group);
        }
        let Some(set) = pod.meta.set_key() else {
            return;
        };
        self.groups_of.edit(edit, &set, &group);
        if pod.meta.has_finalizer(BUDGET_FINALIZER) {
            self.retained.edit(edit, &set, &group);
        }
        if pod.is_leader() {
            self.leaders.edit(edit, &set, pod.key());
        }
        if is_gated(pod) {
            self.gated.edit(edit, &set, &group);
        }
        if pod.is_leader()
            && pod
                .meta
                .annotations
                .get(annotation::GROUP_RECREATE_PENDING)
                .is_some()
        {
            self.pending.edit(edit, &set, &group);
        }
        let index = pod.meta.label(label::GROUP_INDEX);
        self.with_index.edit(edit, &(set, index.into()), pod.key());
    }

    fn file_in_group(&mut self, key: &ObjectKey, pod: &Pod, edit: Edit) {
        let group = self.groups.entry(key.clone()).or_default();
        match (edit, pod.is_leader()) {
            (Edit::Add, true) => group.has_leader = true,
            (Edit::Remove, true) => group.has_leader = false,
            (Edit::Add, false) => {
                group.workers.insert(pod.key().clone());
            }
            (Edit::Remove, false) => {
                group.workers.remove(pod.key());
            }
        }
        self.drop_if_empty(key);
    }

    /// FAIL-20, FAIL-21: a worker leaves a tombstone if its group has a leader that is not on its way out.
    fn bury(&mut self, pod: &Arc<Pod>, set_owner: Option<Owner>) {
        let key = group_of(pod);
        if !self
            .objects
            .get(&key)
            .is_some_and(|leader| is_live_leader(leader))
        {
            return;
        }
        let tombstone = Tombstone {
            pod: pod.clone(),
            set_owner,
            aged_from: None,
        };
        self.groups
            .entry(key)
            .or_default()
            .tombstones
            .insert(pod.key().clone(), tombstone);
    }

    /// Pods and StatefulSets are watched apart: a set may come to light after a pod of it vanished. The chain of the tombstone is
    /// completed then; it is not looked up again once it is known (FAIL-22).
    pub(super) fn complete_chains(&mut self, set: &Uid, leader: &Owner, group: &ObjectKey) {
        let group = self.groups.get_mut(group);
        for tombstone in group
            .into_iter()
            .flat_map(|group| group.tombstones.values_mut())
        {
            if tombstone.set_owner.is_none() && tombstone.pod.meta.is_controlled_by(set) {
                tombstone.set_owner = Some(leader.clone());
            }
        }
    }

    fn clear_tombstones(&mut self, key: &ObjectKey) {
        if let Some(group) = self.groups.get_mut(key) {
            group.tombstones.clear();
        }
        self.drop_if_empty(key);
    }

    /// FAIL-21: the tombstone of this pod was judged, and what followed from that succeeded.
    pub(super) fn handled(&mut self, key: &ObjectKey, pod: &Uid) {
        if let Some(group) = self.groups.get_mut(key) {
            group
                .tombstones
                .retain(|_, tombstone| tombstone.pod.meta.uid != *pod);
        }
        self.drop_if_empty(key);
    }

    /// FAIL-23: ages the tombstones and drops those that are old.
    pub(super) fn expire(&mut self, now: Duration) {
        for group in self.groups.values_mut() {
            group.tombstones.retain(|_, tombstone| {
                now.saturating_sub(*tombstone.aged_from.get_or_insert(now)) <= TOMBSTONE_LIFE
            });
        }
        self.groups.retain(|_, group| !group.is_empty());
    }

    fn drop_if_empty(&mut self, key: &ObjectKey) {
        if self.groups.get(key).is_some_and(Group::is_empty) {
            self.groups.remove(key);
        }
    }
}

fn is_live_leader(pod: &Pod) -> bool {
    pod.is_leader() && !pod.meta.is_terminating()
}
