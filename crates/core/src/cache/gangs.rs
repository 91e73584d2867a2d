//! What gang scheduling goes by: who schedules, Workloads, PodGroups, and which of these the pods name.
//!
//! Nothing here decides whether an object is needed; a PodGroup that was found not to be is remembered as such until it is, or a pod names it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::change::{Change, Move, Objects, moves};
use super::index::{Edit, Index};
use super::wakes::Wakes;
use super::{Cache, file, replace};
use crate::admission::Environment;
use crate::intent::Kind;
use crate::model::{Meta, ObjectKey, Pod, PodGroup, Uid, Workload};

#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Gangs {
    environment: Environment,
    workloads: Objects<Workload>,
    /// Controller → Workloads that it controls.
    workloads_by: Index<Uid>,
    pod_groups: Objects<PodGroup>,
    /// Set → PodGroups that carry its name.
    pod_groups_of: Index<ObjectKey>,
    /// PodGroup → pods that name it.
    members: Index<ObjectKey>,
    /// Since when PodGroups have not been needed.
    unneeded: BTreeMap<ObjectKey, (Uid, Timestamp)>,
}

impl Gangs {
    /// A pod came, went or changed.
    pub(super) fn note_member(&mut self, step: &Move<Pod>) {
        for (version, edit) in [(&step.old, Edit::Remove), (&step.new, Edit::Add)] {
            let Some(pod) = version else { continue };
            if pod.scheduling_group.is_empty() {
                continue;
            }
            let group = pod.key().sibling(&pod.scheduling_group);
            self.members.edit(edit, &group, pod.key());
            self.unneeded.remove(&group);
        }
    }
}

impl Cache {
    /// Who schedules, and what the API server serves of it.
    pub fn environment(&self) -> Environment {
        self.gangs.environment
    }

    /// The scheduler and the served kinds are these from now on; what that changes for sets is for them to find out.
    pub fn set_environment(&mut self, environment: Environment) {
        self.gangs.environment = environment;
    }

    /// A Workload.
    pub fn workload(&self, key: &ObjectKey) -> Option<&Arc<Workload>> {
        self.gangs.workloads.get(key)
    }

    /// NAT-37: Workloads that the object with this UID controls.
    pub fn workloads_by<'a>(
        &'a self,
        controller: &Uid,
    ) -> impl Iterator<Item = &'a Arc<Workload>> + use<'a> {
        let keys = self.gangs.workloads_by.at(controller);
        keys.filter_map(|key| self.workload(key))
    }

    /// A PodGroup.
    pub fn pod_group(&self, key: &ObjectKey) -> Option<&Arc<PodGroup>> {
        self.gangs.pod_groups.get(key)
    }

    /// PodGroups that carry the name of `set`.
    pub fn pod_groups_of<'a>(
        &'a self,
        set: &ObjectKey,
    ) -> impl Iterator<Item = &'a Arc<PodGroup>> + use<'a> {
        let keys = self.gangs.pod_groups_of.at(set);
        keys.filter_map(|key| self.pod_group(key))
    }

    /// NAT-44: a pod names the PodGroup.
    pub fn is_named_by_pods(&self, pod_group: &ObjectKey) -> bool {
        self.gangs.members.at(pod_group).next().is_some()
    }

    /// NAT-44: since when the PodGroup with this UID has not been needed, if that is known.
    pub fn unneeded_since(&self, pod_group: &ObjectKey, uid: &Uid) -> Option<Timestamp> {
        let (of, since) = self.gangs.unneeded.get(pod_group)?;
        (of == uid).then_some(*since)
    }

    /// NAT-44: of the PodGroups that carry the name of `set`, those with these UIDs are not needed at `now`.
    pub fn note_unneeded(&mut self, set: &ObjectKey, unneeded: &[Uid], now: Timestamp) {
        let gangs = &mut self.gangs;
        for key in gangs.pod_groups_of.at(set) {
            let uid = gangs.pod_groups.get(key).map(|group| &group.meta.uid);
            match uid.filter(|uid| unneeded.contains(uid)) {
                Some(uid) if gangs.members.at(key).next().is_none() => {
                    let known = gangs.unneeded.get(key).filter(|(of, _)| of == uid);
                    if known.is_none() {
                        gangs.unneeded.insert(key.clone(), (uid.clone(), now));
                    }
                }
                Some(_) | None => {
                    gangs.unneeded.remove(key);
                }
            }
        }
    }

    /// Takes a change of Workloads.
    pub fn apply_workloads(&mut self, change: Change<Workload>) -> Wakes {
        self.note_newest(Kind::Workload, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.gangs.workloads, change) {
            replace(&mut self.gangs.workloads, &step);
            for (version, edit) in [(&step.old, Edit::Remove), (&step.new, Edit::Add)] {
                let meta = version.as_ref().map(|workload| &workload.meta);
                if let Some((meta, owner)) =
                    meta.and_then(|meta| Some((meta, meta.owner.as_ref()?)))
                {
                    self.gangs.workloads_by.edit(edit, &owner.uid, &meta.key);
                }
            }
            self.wake_by_workload(&step, &mut wakes);
        }
        wakes
    }

    /// Takes a change of PodGroups.
    pub fn apply_pod_groups(&mut self, change: Change<PodGroup>) -> Wakes {
        self.note_newest(Kind::PodGroup, &change);
        let mut wakes = Wakes::default();
        for step in moves(&self.gangs.pod_groups, change) {
            replace(&mut self.gangs.pod_groups, &step);
            file(&mut self.gangs.pod_groups_of, &step, Meta::set_key);
            if let (Some(old), None) = (&step.old, &step.new) {
                self.gangs.unneeded.remove(old.key());
            }
            self.wake_by_pod_group(&step, &mut wakes);
        }
        wakes
    }
}
