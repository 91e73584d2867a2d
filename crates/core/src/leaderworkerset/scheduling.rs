//! What there must be before leaders are applied, when the set asks to be scheduled in gangs (ORD-20 step 10, HASH-12 step 4, gang-scheduling.md E.1).
//!
//! Decides from the spec, the leaders and the stored Workloads and PodGroups. Whatever is wrong keeps the leaders from being applied, since pods
//! without their objects would run ungrouped; findings about single groups do not (NAT-60). The condition that tells of it is in `condition`.

mod cleanup;
mod condition;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use lws_api::names::annotation;
use lws_api::scheduling::Scheduling;

pub(super) use self::condition::Prepared;

use super::pass::Pass;
use crate::admission::{Environment, SchedulerProvider};
use crate::build::group_size;
use crate::cache::Cache;
use crate::gang::{
    self, Fault, Level, Membership, Reason, ensure_pod_group, ensure_workload, find_workload,
    judge_pod_group, templates,
};
use crate::intent::{IfFailed, PlanError, Step};
use crate::model::{Lws, Pod, PodGroup, Workload};

/// Who schedules, and what tells it of the gangs of a set.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Gangs {
    /// Configuration of this process, and what the API server serves.
    pub environment: Environment,
    /// Workloads that the set controls.
    pub workloads: Vec<Arc<Workload>>,
    /// PodGroups that carry the name of the set or are named by its leaders, by name.
    pub pod_groups: BTreeMap<Arc<str>, Arc<PodGroup>>,
    /// Those of them that a pod names.
    pub named: BTreeSet<Arc<str>>,
    /// Since when one of them has not been needed, as far as that is known.
    pub unneeded: BTreeMap<Arc<str>, Timestamp>,
}

impl Gangs {
    /// Nothing but the configuration is looked for without `spec.scheduling`.
    pub(super) fn observe(lws: &Lws, cache: &Cache) -> Self {
        let environment = cache.environment();
        if lws.spec.scheduling.is_none() {
            return Self {
                environment,
                ..Self::default()
            };
        }
        let (key, uid) = (lws.key(), &lws.meta.uid);
        let named_by_leaders = cache
            .leaders_of(key)
            .filter_map(|leader| cache.pod_group(&leader.key().sibling(&leader.scheduling_group)));
        let pod_groups: BTreeMap<_, _> = cache
            .pod_groups_of(key)
            .chain(named_by_leaders)
            .map(|group| (group.key().name.clone(), group.clone()))
            .collect();
        let since = |group: &PodGroup| {
            let since = cache.unneeded_since(group.key(), &group.meta.uid)?;
            Some((group.key().name.clone(), since))
        };
        let is_named = |name: &&Arc<str>| cache.is_named_by_pods(&key.sibling(name));
        Self {
            environment,
            workloads: cache.workloads_by(uid).cloned().collect(),
            named: pod_groups.keys().filter(is_named).cloned().collect(),
            unneeded: pod_groups
                .values()
                .filter_map(|group| since(group))
                .collect(),
            pod_groups,
        }
    }

    /// GATE-4: the PodGroups that a leader needs before it is scheduled are there.
    pub(super) fn has_groups_of(&self, leader: &Pod, lws: &Lws) -> bool {
        let Some(scheduling) = &lws.spec.scheduling else {
            return true;
        };
        let [workload] = &*self.workloads else {
            return false;
        };
        let wanted = gang::of_group(lws, scheduling, workload, leader, size_of(leader, lws));
        wanted.is_ok_and(|wanted| {
            wanted.iter().all(|group| {
                let stored = self.pod_groups.get(group.name.as_str());
                stored.is_some_and(|stored| judge_pod_group(group, stored).is_ok())
            })
        })
    }

    /// NAT-36: the native scheduler is configured.
    fn is_native(&self) -> bool {
        self.environment.scheduler_provider == Some(SchedulerProvider::Kubernetes)
    }
}

/// What leaders are applied with, once that may be.
pub(super) enum Clearance {
    /// They may be applied; pods are told of their gang if they have one.
    Given(Option<Membership>),
    /// They may not.
    Refused,
}

impl Pass<'_> {
    /// NAT-36: Workload, PodGroup of the whole set, cleanup; then the leaders may follow.
    pub fn prepare_gangs(&mut self, now: Timestamp) -> (Clearance, Option<Prepared>) {
        let lws = self.lws;
        let Some(scheduling) = &lws.spec.scheduling else {
            return (Clearance::Given(None), None);
        };
        let mut prepared = Prepared::default();
        let outcome = match self.snapshot.gangs.environment.scheduler_provider {
            None => Err(Fault::no_provider()),
            Some(SchedulerProvider::Volcano) => Err(Fault::new(
                Reason::Unsupported,
                "the provider volcano is not available in this version of lws",
            )),
            Some(SchedulerProvider::Kubernetes) => self.native(scheduling, now, &mut prepared),
        };
        let clearance = match outcome {
            Ok(clearance) => {
                prepared.fault = self.findings(scheduling);
                clearance
            }
            Err(fault) => {
                prepared.fault = Some(fault);
                Clearance::Refused
            }
        };
        let error = prepared.fault.as_ref().map(|fault| PlanError {
            message: fault.message.clone(),
            retry_after: None,
        });
        self.plan.errors.extend(error);
        (clearance, Some(prepared))
    }

    fn native(
        &mut self,
        scheduling: &Scheduling,
        now: Timestamp,
        prepared: &mut Prepared,
    ) -> Result<Clearance, Fault> {
        let (lws, gangs) = (self.lws, &self.snapshot.gangs);
        let served = gangs.environment.served;
        if !served.workload || !served.pod_group {
            return Err(Fault::not_served());
        }
        if !lws
            .meta
            .annotation(annotation::GROUP_TEMPLATE_NAME)
            .is_empty()
        {
            return Err(Fault::new(
                Reason::ParentNotReady,
                "use of the Workload of an ancestor is not available in this version of lws",
            ));
        }
        self.check_leaders()?;
        let sizes = gang::sizes(&lws.spec, &self.group_sizes());
        let (level, templates) = templates(&lws.spec, scheduling, sizes)?;
        let found = find_workload(lws, &gangs.workloads)?;
        let step = ensure_workload(lws, &found, &templates)?;
        self.push_prepared(step, Reason::WorkloadCreateFailed, prepared);
        let workload = found.name().to_owned();
        if level == Level::Set {
            let Some(meta) = found.meta() else {
                // Its PodGroup is owned by it, so that comes in the pass that it wakes.
                prepared.is_unfinished = true;
                return Ok(Clearance::Refused);
            };
            if let Some(wanted) = gang::of_set(lws, meta, &templates) {
                let stored = gangs.pod_groups.get(wanted.name.as_str());
                let step = ensure_pod_group(&wanted, stored)?;
                self.push_prepared(step, Reason::PodGroupCreateFailed, prepared);
            }
        }
        self.clean_up(level, &workload, now, prepared);
        Ok(Clearance::Given(Some(Membership { level, workload })))
    }

    fn push_prepared(&mut self, step: Option<Step>, reason: Reason, prepared: &mut Prepared) {
        if let Some(step) = step {
            let at = self.push(step.if_failed(IfFailed::Report));
            prepared.steps.push((at, reason));
        }
    }

    fn live_leaders(&self) -> impl Iterator<Item = &Arc<Pod>> + use<'_> {
        let leaders = self.snapshot.leaders.iter();
        leaders.filter(|leader| !leader.meta.is_terminating())
    }

    /// NAT-59.
    fn check_leaders(&self) -> Result<(), Fault> {
        let lacks_group = |leader: &&Arc<Pod>| {
            let mode = leader
                .meta
                .annotation(annotation::WORKLOAD_AWARE_SCHEDULING);
            !mode.is_empty() && leader.scheduling_group.is_empty()
        };
        match self.live_leaders().find(lacks_group) {
            Some(leader) => Err(Fault::field_dropped(&leader.key().name)),
            None => Ok(()),
        }
    }

    /// NAT-42: the sizes that the live leaders were made with.
    fn group_sizes(&self) -> Vec<u32> {
        self.live_leaders()
            .filter_map(|leader| leader.meta.annotation(annotation::SIZE).parse().ok())
            .collect()
    }

    /// NAT-60: what is wrong with the PodGroups of single groups, in their order.
    fn findings(&self, scheduling: &Scheduling) -> Option<Fault> {
        let gangs = &self.snapshot.gangs;
        let [workload] = &*gangs.workloads else {
            return None;
        };
        let mut leaders: Vec<_> = self
            .live_leaders()
            .filter(|leader| gangs.is_native() && !leader.scheduling_group.is_empty())
            .collect();
        leaders.sort_by_key(|leader| leader.meta.group_index());
        let mut faults = Vec::new();
        for leader in leaders {
            let size = size_of(leader, self.lws);
            let wanted = gang::of_group(self.lws, scheduling, workload, leader, size);
            let judged = wanted.map(|wanted| {
                wanted
                    .iter()
                    .filter_map(|group| {
                        let stored = gangs.pod_groups.get(group.name.as_str())?;
                        judge_pod_group(group, stored).err()
                    })
                    .collect::<Vec<_>>()
            });
            match judged {
                Ok(found) => faults.extend(found),
                Err(fault) => faults.push(fault),
            }
        }
        Fault::joined(faults)
    }
}

/// Pods of the group of a leader, as it was made.
fn size_of(leader: &Pod, lws: &Lws) -> u32 {
    let size = leader.meta.annotation(annotation::SIZE).parse();
    size.unwrap_or_else(|_| group_size(&lws.spec))
}
