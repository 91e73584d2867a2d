//! What a replica knows of the cluster: trimmed objects, the ways to find them, and tombstones of vanished workers.
//!
//! Informers write ([`Cache::apply_pods`] and so on) and get the work items that the change concerns; `observe` of each controller reads.
//! Every replica keeps it, leading or not (FAIL-23). It never asks the API server and holds no clock; all lists are ordered by name, so
//! that a plan depends on what is there and on nothing else.

mod change;
mod gangs;
mod index;
mod lost;
mod pods;
mod wakes;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub use self::change::Change;
pub use self::lost::Lost;
pub(crate) use self::pods::leader_name;
pub use self::pods::{Group, TOMBSTONE_LIFE, Tombstone};
pub use self::wakes::Wakes;

use self::change::{Move, Object, Objects, moves};
use self::gangs::Gangs;
use self::index::{Edit, Index};
use self::lost::LostSets;
use self::pods::Pods;
use crate::intent::{Kind, Target};
use crate::model::{
    Deployment, Ds, Lws, Meta, Node, ObjectKey, Owner, Pod, ReplicaSet, Revision, RoleScaler,
    Service, StatefulSet, Uid,
};
use crate::run::{SeenAs, Written};
use crate::version;

/// KRS-57: what was applied last to the leader workload of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Hash of the applied configuration.
    pub desired_hash: u64,
    /// UID of the object that the apply returned.
    pub uid: Uid,
    /// Generation that it returned.
    pub generation: i64,
    /// Hash of the metadata that it returned.
    pub metadata_hash: u64,
}

/// Objects, indexes and tombstones. A clone shares the objects.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cache {
    sets: Objects<Lws>,
    stateful_sets: Objects<StatefulSet>,
    stateful_set_keys: BTreeMap<Uid, ObjectKey>,
    stateful_sets_of: Index<ObjectKey>,
    deployments: Objects<Deployment>,
    replica_sets: Objects<ReplicaSet>,
    replica_sets_of: Index<ObjectKey>,
    services: Objects<Service>,
    revisions: Objects<Revision>,
    revisions_of: Index<ObjectKey>,
    nodes: Objects<Node>,
    disaggregated_sets: Objects<Ds>,
    /// DisaggregatedSet → LeaderWorkerSets that carry its name.
    children_of: Index<ObjectKey>,
    scalers: Objects<RoleScaler>,
    /// DisaggregatedSet → scalers that carry its name.
    scalers_of: Index<ObjectKey>,
    pods: Pods,
    lost: LostSets,
    gangs: Gangs,
    applied: BTreeMap<Uid, Applied>,
    left_alone: BTreeMap<Uid, Vec<Arc<str>>>,
    reported: BTreeMap<Uid, Timestamp>,
    newest: BTreeMap<Kind, Arc<str>>,
}

impl Cache {
    /// A LeaderWorkerSet.
    pub fn set(&self, key: &ObjectKey) -> Option<&Arc<Lws>> {
        self.sets.get(key)
    }

    /// A StatefulSet.
    pub fn stateful_set(&self, key: &ObjectKey) -> Option<&Arc<StatefulSet>> {
        self.stateful_sets.get(key)
    }

    /// The StatefulSet that an owner reference means.
    pub fn stateful_set_by_uid(&self, uid: &Uid) -> Option<&Arc<StatefulSet>> {
        self.stateful_sets.get(self.stateful_set_keys.get(uid)?)
    }

    /// A Deployment.
    pub fn deployment(&self, key: &ObjectKey) -> Option<&Arc<Deployment>> {
        self.deployments.get(key)
    }

    /// A ReplicaSet.
    pub fn replica_set(&self, key: &ObjectKey) -> Option<&Arc<ReplicaSet>> {
        self.replica_sets.get(key)
    }

    /// A Service.
    pub fn service(&self, key: &ObjectKey) -> Option<&Arc<Service>> {
        self.services.get(key)
    }

    /// A Node.
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(&ObjectKey::new("", name))
    }

    /// A pod.
    pub fn pod(&self, key: &ObjectKey) -> Option<&Arc<Pod>> {
        self.pods.objects.get(key)
    }

    /// ORD-84: pods named `<parent>-<ordinal>`, whatever they belong to, with that ordinal.
    pub fn pods_below(&self, parent: &ObjectKey) -> impl Iterator<Item = (u32, &Arc<Pod>)> {
        let prefix = format!("{}-", parent.name);
        let first = parent.sibling(&prefix);
        let namespace = first.namespace.clone();
        let ordinal = |text: &str| text.parse().ok().filter(|n: &u32| n.to_string() == text);
        self.pods
            .objects
            .range(first..)
            .map_while(move |(key, pod)| {
                let rest = key.name.strip_prefix(&prefix)?;
                (key.namespace == namespace).then_some((ordinal(rest), pod))
            })
            .filter_map(|(ordinal, pod)| Some((ordinal?, pod)))
    }

    /// Leader pods that carry the name of `set`.
    pub fn leaders_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        self.pods.leaders.at(set).filter_map(|key| self.pod(key))
    }

    /// StatefulSets that carry the name of `set`, the leader set included.
    pub fn stateful_sets_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<StatefulSet>> + use<'a> {
        self.stateful_sets_of
            .at(set)
            .filter_map(|key| self.stateful_set(key))
    }

    /// ReplicaSets that carry the name of `set`.
    pub fn replica_sets_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<ReplicaSet>> + use<'a> {
        self.replica_sets_of
            .at(set)
            .filter_map(|key| self.replica_set(key))
    }

    /// ControllerRevisions that carry the name of `set`.
    pub fn revisions_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<Revision>> + use<'a> {
        self.revisions_of
            .at(set)
            .filter_map(|key| self.revisions.get(key))
    }

    /// The group of the leader pod `leader`, as long as a pod or a tombstone of it is there.
    pub fn group(&self, leader: &ObjectKey) -> Option<&Group> {
        self.pods.groups.get(leader)
    }

    /// Pods of `set` with this label `lws/group-index`.
    pub fn pods_with_index<'a>(
        &'a self,
        set: &ObjectKey,
        group_index: &str,
    ) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        let at = (set.clone(), group_index.into());
        self.pods.with_index.at(&at).filter_map(|key| self.pod(key))
    }

    /// Pods that carry the name of `set`, by group index, then by name.
    pub fn pods_of<'a>(
        &'a self,
        set: &'a ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        self.pods.of(set).filter_map(|key| self.pod(key))
    }

    /// Groups that have a pod of `set`.
    pub fn groups_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        self.pods.groups_of.at(set)
    }

    /// A DisaggregatedSet.
    pub fn disaggregated_set(&self, key: &ObjectKey) -> Option<&Arc<Ds>> {
        self.disaggregated_sets.get(key)
    }

    /// LeaderWorkerSets that carry the name of the DisaggregatedSet `set`.
    pub fn children_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<Lws>> + use<'a> {
        self.children_of.at(set).filter_map(|key| self.set(key))
    }

    /// A scaler.
    pub fn scaler(&self, key: &ObjectKey) -> Option<&Arc<RoleScaler>> {
        self.scalers.get(key)
    }

    /// Scalers that carry the name of the DisaggregatedSet `set`.
    pub fn scalers_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<RoleScaler>> + use<'a> {
        self.scalers_of.at(set).filter_map(|key| self.scaler(key))
    }

    /// All work items: what a replica that begins to lead has to look at (KRS-68).
    pub fn all(&self) -> Wakes {
        Wakes {
            sets: self.sets.keys().cloned().collect(),
            groups: self.pods.groups.keys().cloned().collect(),
            disaggregated_sets: self.disaggregated_sets.keys().cloned().collect(),
            ..Wakes::default()
        }
    }

    /// Worker StatefulSets of the leader with this UID that vanished.
    pub fn lost_worker_sets(&self, leader: &Uid) -> Option<&Lost> {
        self.lost.of(leader)
    }

    /// What was applied last to the leader workload of the set with this UID.
    pub fn applied(&self, set: &Uid) -> Option<&Applied> {
        self.applied.get(set)
    }

    /// SLC-5: children of the DisaggregatedSet with this UID that it was told are left alone.
    pub fn left_alone(&self, set: &Uid) -> &[Arc<str>] {
        self.left_alone.get(set).map_or(&[], Vec::as_slice)
    }

    /// When the status of the set with this UID was written last from here.
    pub fn reported(&self, set: &Uid) -> Option<Timestamp> {
        self.reported.get(set).copied()
    }

    /// KRS-36: the cache shows what `written` left behind. Versions that cannot be compared count as seen. A watch reports in the order
    /// of versions, so a newer version of any object of the kind shows it too, for instance when the object is gone again.
    pub fn sees(&self, written: &Written) -> bool {
        let held = self.meta(&written.target);
        match &written.seen_as {
            SeenAs::Version(version) => {
                let newest = self.newest.get(&written.target.kind);
                let held = held.map(|held| &held.resource_version);
                held.into_iter()
                    .chain(newest)
                    .any(|known| version::compare(known, version) != Some(Ordering::Less))
            }
            SeenAs::Deleted => {
                held.is_none_or(|held| held.uid != written.uid || held.is_terminating())
            }
            SeenAs::NotVersion(version) => {
                held.is_none_or(|held| held.resource_version != *version)
            }
        }
    }

    /// FAIL-22: the chain of the tombstone is known, or the StatefulSets are seen to be later than its pod, so that the one not seen is gone.
    /// Until then nothing is said about it: the watch of the StatefulSets may stand still.
    pub fn may_judge(&self, tombstone: &Tombstone) -> bool {
        let pod = &tombstone.pod.meta;
        let is_in_set = pod.owner.as_ref().is_some_and(|o| o.kind == "StatefulSet");
        let newest = self.newest.get(&Kind::StatefulSet);
        let is_behind = newest.is_none_or(|newest| {
            version::compare(newest, &pod.resource_version) == Some(Ordering::Less)
        });
        tombstone.set_owner.is_some() || !is_in_set || !is_behind
    }

    fn meta(&self, target: &Target) -> Option<&Meta> {
        match target.kind {
            Kind::LeaderWorkerSet => meta_in(&self.sets, &target.key),
            Kind::StatefulSet => meta_in(&self.stateful_sets, &target.key),
            Kind::Deployment => meta_in(&self.deployments, &target.key),
            Kind::ControllerRevision => meta_in(&self.revisions, &target.key),
            Kind::Service => meta_in(&self.services, &target.key),
            Kind::Pod => meta_in(&self.pods.objects, &target.key),
            Kind::DisaggregatedSet => meta_in(&self.disaggregated_sets, &target.key),
            Kind::RoleScaler => meta_in(&self.scalers, &target.key),
            Kind::Workload => self.workload(&target.key).map(|workload| &workload.meta),
            Kind::PodGroup => self.pod_group(&target.key).map(|group| &group.meta),
        }
    }
}

fn meta_in<'a, T: Object + 'a>(objects: &'a Objects<T>, key: &ObjectKey) -> Option<&'a Meta> {
    objects.get(key).map(|object| object.meta())
}

/// What the informers and the controllers write.
impl Cache {
    /// Takes a change of LeaderWorkerSets.
    pub fn apply_sets(&mut self, change: Change<Lws>) -> Wakes {
        self.note_newest(Kind::LeaderWorkerSet, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.sets, change) {
            replace(&mut self.sets, &step);
            file(&mut self.children_of, &step, Meta::disaggregated_set_key);
            if let (Some(old), None) = (&step.old, &step.new) {
                self.applied.remove(&old.meta.uid);
                self.reported.remove(&old.meta.uid);
            }
            self.wake_by_set(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of StatefulSets.
    pub fn apply_stateful_sets(&mut self, change: Change<StatefulSet>) -> Wakes {
        self.note_newest(Kind::StatefulSet, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.stateful_sets, change) {
            replace(&mut self.stateful_sets, &step);
            file(&mut self.stateful_sets_of, &step, Meta::set_key);
            if let Some(old) = &step.old {
                self.stateful_set_keys.remove(&old.meta.uid);
                if step.new.is_none() {
                    self.note_lost(old);
                }
            }
            if let Some(new) = &step.new {
                self.stateful_set_keys
                    .insert(new.meta.uid.clone(), new.key().clone());
                self.complete_chains(&new.meta);
            }
            self.wake_by_stateful_set(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of Deployments.
    pub fn apply_deployments(&mut self, change: Change<Deployment>) -> Wakes {
        self.note_newest(Kind::Deployment, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.deployments, change) {
            replace(&mut self.deployments, &step);
            self.wake_by_deployment(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of ReplicaSets.
    pub fn apply_replica_sets(&mut self, change: Change<ReplicaSet>) -> Wakes {
        let mut wakes = Wakes::default();
        for step in moves(&self.replica_sets, change) {
            replace(&mut self.replica_sets, &step);
            file(&mut self.replica_sets_of, &step, Meta::set_key);
            self.wake_by_replica_set(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of Services.
    pub fn apply_services(&mut self, change: Change<Service>) -> Wakes {
        self.note_newest(Kind::Service, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.services, change) {
            replace(&mut self.services, &step);
            self.wake_by_service(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of ControllerRevisions, which wakes nothing (ORD-13).
    pub fn apply_revisions(&mut self, change: Change<Revision>) -> Wakes {
        self.note_newest(Kind::ControllerRevision, &change);
        for step in moves(&self.revisions, change) {
            replace(&mut self.revisions, &step);
            file(&mut self.revisions_of, &step, Meta::set_key);
        }
        Wakes::default()
    }

    /// Takes a change of DisaggregatedSets.
    pub fn apply_disaggregated_sets(&mut self, change: Change<Ds>) -> Wakes {
        self.note_newest(Kind::DisaggregatedSet, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.disaggregated_sets, change) {
            replace(&mut self.disaggregated_sets, &step);
            if let (Some(old), None) = (&step.old, &step.new) {
                self.left_alone.remove(&old.meta.uid);
            }
            wakes.by_disaggregated_set(&step);
        }
        wakes
    }

    /// Takes a change of scalers.
    pub fn apply_scalers(&mut self, change: Change<RoleScaler>) -> Wakes {
        self.note_newest(Kind::RoleScaler, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.scalers, change) {
            replace(&mut self.scalers, &step);
            file(&mut self.scalers_of, &step, Meta::disaggregated_set_key);
            wakes.by_part(&step);
        }
        wakes
    }

    /// Takes a change of Nodes.
    pub fn apply_nodes(&mut self, change: Change<Node>) -> Wakes {
        let mut wakes = Wakes::default();
        for step in moves(&self.nodes, change) {
            replace(&mut self.nodes, &step);
            self.wake_by_node(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of pods.
    pub fn apply_pods(&mut self, change: Change<Pod>) -> Wakes {
        self.note_newest(Kind::Pod, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.pods.objects, change) {
            let set_owner = step.old.as_ref().and_then(|pod| self.set_owner(pod));
            self.pods.apply(&step, set_owner);
            self.gangs.note_member(&step);
            if let (Some(old), None) = (&step.old, &step.new) {
                self.lost.forget(&old.meta.uid);
            }
            self.wake_by_pod(&step, &mut wakes);
        }
        wakes
    }

    /// FAIL-21: the vanished pod `uid` was judged in a run of `group`, and what followed from that succeeded.
    pub fn handled(&mut self, group: &ObjectKey, uid: &Uid) {
        self.pods.handled(group, uid);
    }

    /// FAIL-23: drops tombstones that are older than [`TOMBSTONE_LIFE`]. Called from time to time while another replica leads; the
    /// age of a tombstone counts from the first call that finds it.
    pub fn expire(&mut self, now: Duration) {
        self.pods.expire(now);
    }

    /// KRS-57: remembers what was applied to the leader workload of the set with this UID, until that set is gone or it is no longer known.
    pub fn remember_applied(&mut self, set: Uid, applied: Option<Applied>) {
        match applied {
            Some(applied) => self.applied.insert(set, applied),
            None => self.applied.remove(&set),
        };
    }

    /// SLC-5: remembers which children of the DisaggregatedSet with this UID it was told are left alone, until that set is gone.
    pub fn remember_left_alone(&mut self, set: Uid, children: Vec<Arc<str>>) {
        self.left_alone.insert(set, children);
    }

    /// Remembers when the status of the set with this UID was written, until that set is gone.
    pub fn remember_reported(&mut self, set: Uid, at: Timestamp) {
        self.reported.insert(set, at);
    }

    fn note_lost(&mut self, set: &StatefulSet) {
        let owner = set.meta.owner.as_ref().filter(|owner| owner.kind == "Pod");
        let leader = owner.and_then(|owner| self.pods.objects.get(&set.key().sibling(&owner.name)));
        if let Some(leader) = leader {
            self.lost.note(set, &leader.meta);
        }
    }

    fn note_newest<T: Object>(&mut self, kind: Kind, change: &Change<T>) {
        for object in change.objects() {
            let version = &object.meta().resource_version;
            let known = self.newest.entry(kind).or_insert_with(|| version.clone());
            if version::compare(known, version) == Some(Ordering::Less) {
                *known = version.clone();
            }
        }
    }

    /// The controller of the pod's StatefulSet, as the cache knows it now.
    fn set_owner(&self, pod: &Pod) -> Option<Owner> {
        let set = self.stateful_set_by_uid(&pod.meta.owner.as_ref()?.uid)?;
        set.meta.owner.clone()
    }

    fn complete_chains(&mut self, set: &Meta) {
        if let Some(owner) = set.owner.as_ref().filter(|owner| owner.kind == "Pod") {
            self.pods
                .complete_chains(&set.uid, owner, &set.key.sibling(&owner.name));
        }
    }
}

fn replace<T: Object>(objects: &mut Objects<T>, step: &Move<T>) {
    if let Some(old) = &step.old {
        objects.remove(&old.meta().key);
    }
    if let Some(new) = &step.new {
        objects.insert(new.meta().key.clone(), new.clone());
    }
}

/// Files an object under the set that its label names.
fn file<T: Object>(
    index: &mut Index<ObjectKey>,
    step: &Move<T>,
    set: fn(&Meta) -> Option<ObjectKey>,
) {
    for (version, edit) in [(&step.old, Edit::Remove), (&step.new, Edit::Add)] {
        let meta = version.as_ref().map(|object| object.meta());
        if let Some((meta, set)) = meta.and_then(|meta| Some((meta, set(meta)?))) {
            index.edit(edit, &set, &meta.key);
        }
    }
}
