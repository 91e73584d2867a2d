//! Which work items a change concerns (ORD-10 … ORD-19).
//!
//! Decided from the old and the new version of the object and from the indexes after the change (KRS-44). Some rows wake more than the
//! rule's table: each kind is watched on its own, so whatever a plan reads must wake its key when it comes late.

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::names::{DS_GROUP, GROUP, annotation, ds_label, label};

use super::Cache;
use super::change::{Move, Object};
use super::pods::{group_of, is_gated};
use crate::model::{
    Deployment, Ds, Lws, Meta, Node, ObjectKey, Owner, Pod, PodGroup, ReplicaSet, Service,
    StatefulSet, Workload,
};

/// Work items to plan again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wakes {
    /// LeaderWorkerSets.
    pub sets: BTreeSet<ObjectKey>,
    /// Groups, by leader pod.
    pub groups: BTreeSet<ObjectKey>,
    /// Those of `sets` whose spec is another: their back-off starts anew (KRS-50).
    pub renewed: BTreeSet<ObjectKey>,
    /// DisaggregatedSets.
    pub disaggregated_sets: BTreeSet<ObjectKey>,
    /// Those of `disaggregated_sets` whose spec is another (KRS-50).
    pub renewed_disaggregated_sets: BTreeSet<ObjectKey>,
}

impl Wakes {
    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.groups.is_empty() && self.disaggregated_sets.is_empty()
    }

    fn groups<'a>(&mut self, groups: impl Iterator<Item = &'a ObjectKey>) {
        self.groups.extend(groups.cloned());
    }

    /// WCH-1: the DisaggregatedSet itself.
    pub(super) fn by_disaggregated_set(&mut self, step: &Move<Ds>) {
        let Some(set) = step.versions().next().map(|set| set.key().clone()) else {
            return;
        };
        let generation = |set: &Option<Arc<Ds>>| set.as_ref().map(|set| set.meta.generation);
        if generation(&step.old) != generation(&step.new) {
            self.renewed_disaggregated_sets.insert(set.clone());
        }
        self.disaggregated_sets.insert(set);
    }

    /// WCH-1: the DisaggregatedSet that controls a child set or a scaler, and the one whose name it carries: what is not that
    /// set's own may stand in its way.
    pub(super) fn by_part<T: Object>(&mut self, step: &Move<T>) {
        for version in step.versions() {
            let meta = version.meta();
            self.disaggregated_sets.extend(meta.disaggregated_set_key());
            self.disaggregated_sets.extend(controller(meta, |owner| {
                owner.kind == "DisaggregatedSet" && is_of_group(owner, DS_GROUP)
            }));
        }
    }

    /// WCH-2: what the readiness of a child set and the assignment of its groups are judged by.
    fn by_disaggregated_pod(&mut self, step: &Move<Pod>) {
        let view = |pod: &Option<Arc<Pod>>| {
            pod.as_ref().map(|pod| {
                let label = pod.meta.label(ds_label::SUBROLE).to_owned();
                let is_ready = pod.is_running_and_ready();
                (
                    label,
                    is_ready,
                    pod.meta.is_terminating(),
                    pod.unschedulable_since,
                )
            })
        };
        if view(&step.old) != view(&step.new) {
            let sets = step
                .versions()
                .filter_map(|pod| pod.meta.disaggregated_set_key());
            self.disaggregated_sets.extend(sets);
        }
    }
}

impl Cache {
    /// ORD-10, ORD-18, ORD-19: the set itself; its retained, pending and gated groups when it came, went, or its spec changed. A
    /// set that came wakes all its groups: they may have found none before.
    pub(super) fn wake_by_set(&self, step: &Move<Lws>, wakes: &mut Wakes) {
        let Some(set) = step.versions().next().map(|set| set.key().clone()) else {
            return;
        };
        let concerns_groups = match (&step.old, &step.new) {
            (Some(old), Some(new)) => {
                old.meta.generation != new.meta.generation
                    || old.meta.is_terminating() != new.meta.is_terminating()
            }
            (None, Some(_)) => {
                wakes.groups(self.pods.groups_of.at(&set));
                true
            }
            (Some(_), None) | (None, None) => true,
        };
        if concerns_groups {
            wakes.groups(self.pods.retained.at(&set));
            wakes.groups(self.pods.pending.at(&set));
            wakes.groups(self.pods.gated.at(&set));
        }
        let generation = |set: &Option<Arc<Lws>>| set.as_ref().map(|set| set.meta.generation);
        if generation(&step.old) != generation(&step.new) {
            wakes.renewed.insert(set.clone());
        }
        wakes.by_part(step);
        wakes.sets.insert(set);
    }

    /// ORD-10, ORD-11, ORD-17, ORD-19.
    pub(super) fn wake_by_stateful_set(&self, step: &Move<StatefulSet>, wakes: &mut Wakes) {
        for version in step.versions() {
            let meta = &version.meta;
            wakes.sets.extend(meta.set_key());
            wakes.sets.extend(controlling_set(meta));
            // ORD-15: a group is none of ours without the label.
            if meta.labels.get(label::NAME).is_none() {
                continue;
            }
            wakes.groups.extend(controlling_pod(meta));
            if let Some(set) = controlling_set(meta) {
                wakes.groups(self.pods.retained.at(&set));
                wakes.groups(self.pods.gated.at(&set));
            }
        }
        // A leader counts only with its whole chain: when the link between set and leader set comes to light, all leaders are looked at.
        let linked = linked(step.old.as_deref(), step.new.as_deref(), |set| &set.meta);
        if let Some(set) = linked.and_then(|new| controlling_set(&new.meta)) {
            wakes.groups(self.pods.groups_of.at(&set));
        }
    }

    /// HASH-16: as for the leader set of an Ordinal set. Gated leaders are decided on by their set (HASH-44).
    pub(super) fn wake_by_deployment(&self, step: &Move<Deployment>, wakes: &mut Wakes) {
        for version in step.versions() {
            let meta = &version.meta;
            wakes.sets.extend(meta.set_key());
            wakes.sets.extend(controlling_set(meta));
            if let Some(set) = controlling_set(meta) {
                wakes.groups(self.pods.retained.at(&set));
            }
        }
        let linked = linked(step.old.as_deref(), step.new.as_deref(), |d| &d.meta);
        if let Some(set) = linked.and_then(|new| controlling_set(&new.meta)) {
            wakes.groups(self.pods.groups_of.at(&set));
        }
    }

    /// A leader counts only with its whole chain, of which this is the link in the middle.
    pub(super) fn wake_by_replica_set(&self, step: &Move<ReplicaSet>, wakes: &mut Wakes) {
        let linked = linked(step.old.as_deref(), step.new.as_deref(), |set| &set.meta);
        let Some((new, set)) = linked.and_then(|new| Some((new, new.meta.set_key()?))) else {
            return;
        };
        let made = self
            .leaders_of(&set)
            .filter(|leader| leader.meta.is_controlled_by(&new.meta.uid));
        wakes.groups.extend(made.map(|leader| leader.key().clone()));
        wakes.sets.insert(set);
    }

    /// ORD-10, ORD-73: the controller of the Service, be it a set or the leader of a group. A gated Hash leader waits for it (GATE-4).
    pub(super) fn wake_by_service(&self, step: &Move<Service>, wakes: &mut Wakes) {
        for version in step.versions() {
            wakes.sets.extend(controlling_set(&version.meta));
            let group = controlling_pod(&version.meta);
            let leader = group.as_ref().and_then(|group| self.pod(group));
            let waiting = leader.filter(|leader| is_gated(leader) && leader.is_hash());
            wakes
                .sets
                .extend(waiting.and_then(|leader| leader.meta.set_key()));
            wakes.groups.extend(group);
        }
    }

    /// ORD-12, ORD-16, ORD-19.
    pub(super) fn wake_by_pod(&self, step: &Move<Pod>, wakes: &mut Wakes) {
        let (old, new) = (step.old.as_deref(), step.new.as_deref());
        wakes
            .groups
            .extend(step.versions().map(|pod| group_of(pod)));
        let is_news = old.and_then(set_view) != new.and_then(set_view);
        if is_news || (new.is_none() && old.is_some_and(is_in_gang)) {
            wakes
                .sets
                .extend(step.versions().filter_map(|pod| pod.meta.set_key()));
        }
        wakes.by_disaggregated_pod(step);
        // HASH-68: whether a retained group is surplus depends on the other leaders.
        for pod in step.versions().filter(|pod| is_news && pod.is_hash()) {
            if let Some(set) = pod.meta.set_key() {
                wakes.groups(self.pods.retained.at(&set));
            }
        }
        let left = old.and_then(|pod| pod.meta.set_key());
        let joined = new.and_then(|pod| pod.meta.set_key());
        let gate_came = old.is_none() && new.is_some_and(is_gated);
        if let Some(set) = left.filter(|set| Some(set) != joined.as_ref()) {
            self.wake_gated(set, wakes);
        }
        if let Some(set) = joined.filter(|_| gate_came) {
            self.wake_gated(set, wakes);
        }
    }

    /// ORD-19: the gated groups of a set, and with Hash identity the set, which decides on them (HASH-44).
    fn wake_gated(&self, set: ObjectKey, wakes: &mut Wakes) {
        wakes.groups(self.pods.gated.at(&set));
        let mut gated = self.pods.gated.at(&set).filter_map(|key| self.pod(key));
        if gated.any(|leader| leader.is_hash()) {
            wakes.sets.insert(set);
        }
    }

    /// E.3: the set that controls it, and its groups, whose PodGroups are made from it.
    pub(super) fn wake_by_workload(&self, step: &Move<Workload>, wakes: &mut Wakes) {
        for version in step.versions() {
            if let Some(set) = controlling_set(&version.meta) {
                wakes.groups(self.pods.groups_of.at(&set));
                wakes.sets.insert(set);
            }
        }
    }

    /// E.3: the set, and the group that the PodGroup is of.
    pub(super) fn wake_by_pod_group(&self, step: &Move<PodGroup>, wakes: &mut Wakes) {
        for version in step.versions() {
            let meta = &version.meta;
            let sets = meta.set_key().into_iter().chain(controlling_set(meta));
            for set in sets {
                let pods = self.pods_with_index(&set, meta.label(label::GROUP_INDEX));
                let leaders = pods.filter(|pod| pod.is_leader());
                wakes
                    .groups
                    .extend(leaders.map(|leader| leader.key().clone()));
                wakes.sets.insert(set);
            }
        }
    }

    /// ORD-19: the groups that wait for a label of their leader's node.
    pub(super) fn wake_by_node(&self, step: &Move<Node>, wakes: &mut Wakes) {
        let Some(new) = &step.new else {
            return;
        };
        if step
            .old
            .as_ref()
            .is_some_and(|old| old.meta.labels == new.meta.labels)
        {
            return;
        }
        let bound = self.pods.bound.at(&new.meta.key.name.as_ref().into());
        wakes.groups(bound.filter(|group| self.waits_for_topology(group)));
    }

    /// ORD-80 step 20: the set wants exclusive placement, and the leader has no worker set yet.
    fn waits_for_topology(&self, group: &ObjectKey) -> bool {
        let Some(leader) = self.pod(group) else {
            return false;
        };
        let set = leader.meta.set_key().and_then(|set| self.set(&set));
        let is_exclusive = set.is_some_and(|set| {
            !set.meta
                .annotation(annotation::EXCLUSIVE_TOPOLOGY)
                .is_empty()
        });
        // ORD-4: the worker set is named after the leader's hostname.
        let name = if leader.hostname.is_empty() {
            &group.name
        } else {
            leader.hostname.as_ref()
        };
        let workers = self.stateful_set(&group.sibling(name));
        is_exclusive && !workers.is_some_and(|set| set.meta.is_controlled_by(&leader.meta.uid))
    }
}

/// What the set controller reads of a leader (ORD-45, ORD-103). ORD-12 names coming, going and exhaustion; readiness mostly shows
/// in the leader workload too, but that is another watch, which may be ahead of this one.
#[derive(PartialEq, Eq)]
struct SetView<'a> {
    set: Option<ObjectKey>,
    uid: &'a str,
    index: &'a str,
    revision: &'a str,
    size: &'a str,
    exhausted: &'a str,
    ready: bool,
    gated: bool,
    terminating: bool,
    scheduling_group: &'a str,
}

fn set_view(pod: &Pod) -> Option<SetView<'_>> {
    pod.is_leader().then(|| SetView {
        set: pod.meta.set_key(),
        uid: pod.meta.uid.as_str(),
        index: pod.meta.label(label::GROUP_INDEX),
        revision: pod.meta.label(label::REVISION),
        size: pod.meta.annotation(annotation::SIZE),
        exhausted: pod.meta.annotation(annotation::RESTART_BUDGET_EXHAUSTED),
        ready: pod.is_running_and_ready(),
        gated: pod.is_gated(),
        terminating: pod.meta.is_terminating(),
        scheduling_group: &pod.scheduling_group,
    })
}

/// The new version, if its controller is news.
fn linked<'a, T>(old: Option<&T>, new: Option<&'a T>, meta: impl Fn(&T) -> &Meta) -> Option<&'a T> {
    new.filter(|new| old.is_none_or(|old| meta(old).owner != meta(new).owner))
}

/// ORD-12, NAT-52: the end of a pod in a native gang concerns its set. Only admission for that scheduler writes the annotation.
fn is_in_gang(pod: &Pod) -> bool {
    let is_named = !pod.scheduling_group.is_empty();
    is_named
        || !pod
            .meta
            .annotation(annotation::WORKLOAD_AWARE_SCHEDULING)
            .is_empty()
}

fn controlling_set(meta: &Meta) -> Option<ObjectKey> {
    controller(meta, |owner| {
        owner.kind == "LeaderWorkerSet" && is_of_group(owner, GROUP)
    })
}

fn is_of_group(owner: &Owner, group: &str) -> bool {
    owner
        .api_version
        .split_once('/')
        .is_some_and(|(of, _)| of == group)
}

fn controlling_pod(meta: &Meta) -> Option<ObjectKey> {
    controller(meta, |owner| {
        owner.kind == "Pod" && owner.api_version == "v1"
    })
}

fn controller(meta: &Meta, is_wanted: impl Fn(&Owner) -> bool) -> Option<ObjectKey> {
    let owner = meta.owner.as_ref().filter(|owner| is_wanted(owner))?;
    Some(meta.key.sibling(&owner.name))
}
