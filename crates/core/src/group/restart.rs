//! What follows from a failure that counts: the group is recreated, waits, or is given up (FAIL-44, FAIL-45, FAIL-64, FAIL-65).
//!
//! Budget and back-off are the live ones (FAIL-5). Nothing is deleted before the count is stored, and everything carries the UID decided on.

use std::time::Duration;

use jiff::Timestamp;
use lws_api::names::{annotation, label};
use serde_json::json;

use super::cause::Cause;
use super::failure::Failed;
use super::{Group, backoff, budget, steps, wake};
use crate::intent::{Plan, PlanError, Step, Why};
use crate::notice::{Action, Notice};

/// FAIL-44, FAIL-45: decides on `failed` and adds what follows to `plan`. An error means that nothing was decided.
pub(super) fn respond(
    group: &Group<'_>,
    failed: &Failed<'_>,
    now: Timestamp,
    plan: &mut Plan,
) -> Result<(), PlanError> {
    let cause = Cause::of(failed);
    let template = &group.lws.spec.leader_worker_template;
    if template.max_group_restarts.is_none() && template.restart_backoff.is_none() {
        plan.steps.push(recreate(group, cause));
        return Ok(());
    }
    let mut counts = budget::counts(group.lws, group.leader)?;
    let (revision, index) = (group.leader.meta.label(label::REVISION), group.index());
    let count = counts.get(revision, index);
    if template
        .max_group_restarts
        .is_some_and(|budget| count >= budget)
    {
        plan.steps.extend(budget::exhaust(group, Some(cause)));
        return Ok(());
    }
    let wait = template
        .restart_backoff
        .as_ref()
        .and_then(|b| backoff::remaining(b, count, group.leader.meta.created, now));
    if let Some(wait) = wait {
        plan.steps.extend(start_wait(group, cause, count, wait));
        wake(plan, wait);
        return Ok(());
    }
    if counts.raise(revision, index, count.saturating_add(1)) {
        let doing = format!(
            "updating group restart count for {}",
            group.leader.key().name
        );
        let step = steps::patch_set(group.lws, counts.patch(), Why::GroupFailed);
        plan.steps.push(step.doing(doing));
    }
    plan.steps.push(recreate(group, cause));
    Ok(())
}

/// FAIL-45, FAIL-46: leader and workers end together.
fn recreate(group: &Group<'_>, cause: Cause) -> Step {
    let note = format!(
        "Worker pod {} failed, deleted leader pod {} to recreate group {}: {cause}",
        cause.pod,
        group.leader.key().name,
        group.index()
    );
    let notice = Notice::normal(group.lws.as_ref(), "RecreateGroup", Action::Delete, note)
        .related(group.leader.as_ref());
    steps::delete_pod(group.leader, Why::GroupFailed)
        .then(notice)
        .caused_by(cause)
}

/// FAIL-64, FAIL-65: the decision is kept on the leader, and told once.
fn start_wait(group: &Group<'_>, cause: Cause, count: i32, wait: Duration) -> Option<Step> {
    if group
        .leader
        .meta
        .annotation(annotation::GROUP_RECREATE_PENDING)
        == "true"
    {
        return None;
    }
    let note = format!(
        "Pod {} failed; recreation of group {} waits {}s (restart backoff, {count} recreations so far): {cause}",
        cause.pod,
        group.index(),
        backoff::whole_seconds(wait)
    );
    let notice = Notice::normal(
        group.lws.as_ref(),
        "GroupRestartBackoff",
        Action::Update,
        note,
    )
    .related(group.leader.as_ref());
    let marker = json!({"metadata": {"annotations": {annotation::GROUP_RECREATE_PENDING: "true"}}});
    Some(
        steps::annotate_pod(group.leader, marker, Why::BackoffStarted)
            .then(notice)
            .caused_by(cause),
    )
}
