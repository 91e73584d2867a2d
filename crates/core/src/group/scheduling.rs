//! The PodGroups of one group (ORD-80 step 13, NAT-47), and groups whose workers do not join them (NAT-50).
//!
//! The Workload that they are made from is the set controller's, and so is the PodGroup of a whole set; here neither is written.

use std::ops::ControlFlow;

use lws_api::names::annotation;
use lws_api::scheduling::Scheduling;

use super::{Group, error, steps};
use crate::admission::SchedulerProvider;
use crate::gang::{
    Fault, Level, Membership, Reason, carried, ensure_pod_group, find_workload, of_group,
};
use crate::intent::{Plan, Step, Why};
use crate::model::StatefulSet;
use crate::notice::{Action, Note, Notice};

/// A group whose PodGroups are not good gets neither a place nor workers.
pub(super) fn ensure(group: &Group<'_>, plan: &mut Plan) -> ControlFlow<()> {
    let Some(scheduling) = &group.lws.spec.scheduling else {
        return ControlFlow::Continue(());
    };
    let ensured = match group.snapshot.gangs.environment.scheduler_provider {
        None => Err(Fault::no_provider()),
        Some(SchedulerProvider::Volcano) => Err(Fault::new(
            Reason::Unsupported,
            "the provider volcano is not available in this version of lws",
        )),
        Some(SchedulerProvider::Kubernetes) => native(group, scheduling),
    };
    match ensured {
        Ok(Some(steps)) => {
            plan.steps.extend(steps);
            return ControlFlow::Continue(());
        }
        Ok(None) => {
            let message = "the Workload of the set does not exist yet";
            plan.errors.push(error(message.to_owned()));
        }
        Err(fault) => {
            plan.notices
                .push(notice(group, fault.reason, fault.message.clone()));
            plan.errors.push(error(fault.message));
        }
    }
    ControlFlow::Break(())
}

/// `None` while the set controller has not made the Workload (NAT-51).
fn native(group: &Group<'_>, scheduling: &Scheduling) -> Result<Option<Vec<Step>>, Fault> {
    let (view, leader) = (&group.snapshot.gangs, group.leader);
    let served = view.environment.served;
    if !served.workload || !served.pod_group {
        return Err(Fault::not_served());
    }
    if leader.scheduling_group.is_empty() {
        return Err(Fault::field_dropped(&leader.key().name));
    }
    find_workload(group.lws, &view.workloads)?;
    let Some(workload) = view.workloads.first() else {
        return Ok(None);
    };
    let mut steps = Vec::new();
    for wanted in of_group(group.lws, scheduling, workload, leader, group.size())? {
        let stored = view.pod_groups.get(wanted.name.as_str());
        let failed = format!("Failed to write PodGroup {}", wanted.name);
        let failed = notice(group, Reason::PodGroupCreateFailed, failed);
        let step = ensure_pod_group(&wanted, stored)?;
        steps.extend(step.map(|step| step.or_else(failed)));
    }
    Ok(Some(steps))
}

/// NAT-60: the set's condition is the set controller's; what is wrong here is told in an event.
fn notice(group: &Group<'_>, reason: Reason, note: impl Into<Note>) -> Notice {
    Notice::warning(group.lws.as_ref(), reason.as_str(), Action::Create, note)
        .related(group.leader.as_ref())
}

/// PT-16: what the workers of the group are told of their gang.
pub(super) fn membership(group: &Group<'_>) -> Option<Membership> {
    let scheduling = group.lws.spec.scheduling.as_ref()?;
    let view = &group.snapshot.gangs;
    let is_native = view.environment.scheduler_provider == Some(SchedulerProvider::Kubernetes);
    let workload = view.workloads.first().filter(|_| is_native)?;
    Some(Membership {
        level: Level::of(scheduling)?,
        workload: carried(group.leader, &workload.key().name).to_owned(),
    })
}

/// NAT-50, FAIL-98: the leader of a group whose worker set was made for another name goes, as long as no worker has a place.
pub(super) fn mend_split(group: &Group<'_>, set: &StatefulSet, plan: &mut Plan) {
    let Some(wanted) = membership(group) else {
        return;
    };
    let leader = group.leader;
    let mode = leader
        .meta
        .annotation(annotation::WORKLOAD_AWARE_SCHEDULING);
    let is_whole = set.template_annotations.text(annotation::WORKLOAD_NAME) == wanted.workload;
    let is_out_of_question =
        mode.is_empty() || leader.is_hash() || is_whole || set.meta.is_terminating();
    let mut workers = group.snapshot.workers.iter();
    if is_out_of_question || workers.any(|worker| !worker.node.is_empty()) {
        return;
    }
    let note = format!(
        "Worker statefulset {} was created by a previous LWS version and its workers do not join the PodGroups of leader pod {}, deleted the leader pod to recreate group {}",
        set.key().name,
        leader.key().name,
        group.index()
    );
    let notice = Notice::normal(group.lws.as_ref(), "RecreateGroup", Action::Delete, note)
        .related(leader.as_ref());
    plan.steps
        .push(steps::delete_pod(leader, Why::GroupSplit).then(notice));
}
