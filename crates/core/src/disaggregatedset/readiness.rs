//! How many groups of a child set are Ready, and how many of them stay (reconcile-disaggregatedset section 11).
//!
//! Judged from cached objects alone, and by owner UIDs, never by labels. A reduction that the leader workload has not taken up yet leaves nothing that
//! can be relied on: which groups it will take is not known before.

mod workload;

use std::sync::Arc;

use jiff::Timestamp;
use lws_api::names::{annotation, ds_label};

use self::workload::Workload;
use crate::cache::Cache;
use crate::model::{Lws, Phase, Pod, StatefulSet};

/// One group of a child set.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its leader.
    pub leader: Arc<Pod>,
    /// Pods of its worker set, by name.
    pub workers: Vec<Arc<Pod>>,
    /// Position of a group with Ordinal identity, from the leader's name.
    pub ordinal: Option<u32>,
    /// RDY-3: all of its pods are there, Running and Ready.
    pub is_ready: bool,
    /// RDY-5: nothing of it is on its way out, no issued reduction takes it, and its worker set has been taken up.
    pub is_staying: bool,
}

impl Group {
    /// Leader and workers.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        std::iter::once(&self.leader).chain(&self.workers)
    }

    /// SRL-4: all pods of the group say the same about its sub-role.
    pub fn is_coherent(&self) -> bool {
        let label = self.leader.meta.label(ds_label::SUBROLE);
        self.pods()
            .all(|pod| pod.meta.label(ds_label::SUBROLE) == label)
    }

    /// SRL-4: the sub-role that all pods of the group belong to.
    pub fn sub_role(&self) -> Option<&str> {
        let label = self.leader.meta.label(ds_label::SUBROLE);
        (!label.is_empty() && self.is_coherent()).then_some(label)
    }
}

/// What is seen of the groups of one child set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The groups, by leader name.
    pub groups: Vec<Group>,
    /// RDY-5: the wanted number of groups has reached the pods' controller.
    pub is_acknowledged: bool,
    /// Wanted groups.
    pub replicas: u32,
    /// RDY-6: fewer groups are seen Ready than the child's status tells of, so what is seen is old.
    pub is_behind: bool,
    /// ROL-13: since when the first pod of it finds no place.
    pub unschedulable_since: Option<Timestamp>,
}

impl Observation {
    /// RDY-4: Ready groups.
    pub fn raw(&self) -> u32 {
        count(self.groups.iter().filter(|group| group.is_ready))
    }

    /// RDY-5: Ready groups that no issued reduction takes.
    pub fn committed(&self) -> u32 {
        if !self.is_acknowledged {
            return 0;
        }
        let stays = |group: &&Group| group.is_ready && group.is_staying;
        count(self.groups.iter().filter(stays)).min(self.replicas)
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// RDY-2: looks at the groups of `child`.
///
/// # Errors
/// A leader that does not say how large its group is.
pub fn observe(child: &Lws, cache: &Cache) -> Result<Observation, String> {
    let replicas = u32::try_from(child.spec.replicas()).unwrap_or_default();
    let Some(workload) = Workload::of(child, cache) else {
        return Ok(Observation {
            replicas,
            is_behind: surely_ready(child) > 0,
            ..Observation::default()
        });
    };
    let mut groups: Vec<Group> = cache
        .leaders_of(child.key())
        .filter(|leader| workload.controls(leader))
        .map(|leader| group(leader, child, cache))
        .collect::<Result<_, _>>()?;
    workload.mark_leaving(&mut groups, replicas);
    let waiting = groups
        .iter()
        .flat_map(Group::pods)
        .filter_map(|pod| waits_since(pod));
    let is_acknowledged = !child.meta.is_terminating()
        && child.status.observed_generation >= child.meta.generation
        && workload.has_taken_up(replicas);
    let mut seen = Observation {
        is_acknowledged,
        unschedulable_since: waiting.min(),
        groups,
        replicas,
        is_behind: false,
    };
    seen.is_behind = seen.raw() < surely_ready(child);
    Ok(seen)
}

/// RDY-6: so many groups are Ready by the status of `child`, whichever ones an issued reduction took since. A watch of pods or StatefulSets that stands
/// still shows none of them, and a revision that looks dead is drained at once.
fn surely_ready(child: &Lws) -> u32 {
    let status = &child.status;
    let wanted = child.spec.replicas();
    let leaving = status.replicas.saturating_sub(wanted).max(0);
    let ready = status.ready_replicas.saturating_sub(leaving).min(wanted);
    u32::try_from(ready).unwrap_or_default()
}

fn has_observed(set: &StatefulSet) -> bool {
    set.status.observed_generation >= set.meta.generation
}

fn group(leader: &Arc<Pod>, child: &Lws, cache: &Cache) -> Result<Group, String> {
    let size: u32 = leader
        .meta
        .annotation(annotation::SIZE)
        .parse()
        .ok()
        .filter(|size| *size > 0)
        .ok_or_else(|| format!("leader pod {} has no usable size", leader.key()))?;
    let key = leader.key();
    let name = if leader.hostname.is_empty() {
        &key.name
    } else {
        leader.hostname.as_ref()
    };
    let worker_set = cache
        .stateful_set(&key.sibling(name))
        .filter(|set| set.meta.is_controlled_by(&leader.meta.uid));
    let workers: Vec<Arc<Pod>> = (1..size)
        .filter_map(|index| cache.pod(&key.sibling(&format!("{name}-{index}"))))
        .filter(|pod| worker_set.is_some_and(|set| pod.meta.is_controlled_by(&set.meta.uid)))
        .cloned()
        .collect();
    let has_workers = size > 1;
    let set_holds = |holds: &dyn Fn(&StatefulSet) -> bool| {
        !has_workers || worker_set.is_some_and(|set| holds(set))
    };
    let is_whole = 1 + count(workers.iter()) == size;
    let all = |holds: &dyn Fn(&Pod) -> bool| holds(leader) && workers.iter().all(|pod| holds(pod));
    let is_ready = is_whole
        && set_holds(&|set| u32::try_from(set.replicas) == Ok(size - 1) && set.is_ready())
        && all(&Pod::is_running_and_ready);
    let is_staying = all(&|pod| !pod.meta.is_terminating())
        && set_holds(&|set| !set.meta.is_terminating() && has_observed(set))
        && leader.meta.annotation(annotation::RESTART_BUDGET_EXHAUSTED) != "true";
    Ok(Group {
        leader: leader.clone(),
        workers,
        ordinal: ordinal(&key.name, &child.key().name),
        is_ready,
        is_staying,
    })
}

/// The number in `<set>-<number>`.
fn ordinal(pod: &str, set: &str) -> Option<u32> {
    pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

/// ROL-13.
fn waits_since(pod: &Pod) -> Option<Timestamp> {
    pod.unschedulable_since
        .filter(|_| pod.phase == Phase::Pending && !pod.meta.is_terminating())
}

#[cfg(test)]
mod tests;
