//! The scheduling gate that holds a leader back until the old group of its index is gone (FAIL-96, GATE-4, GATE-5).

use std::ops::ControlFlow;
use std::time::Duration;

use lws_api::names::REPLACEMENT_GATE;
use serde_json::json;

use super::{Group, steps, wake};
use crate::intent::{Plan, Why};
use crate::notice::{Action, Notice};

/// ORD-80 step 14: a leader that stays gated gets no workers yet.
pub(super) fn lift(group: &Group<'_>, plan: &mut Plan) -> ControlFlow<()> {
    let leader = group.leader;
    if !leader
        .gates
        .iter()
        .any(|gate| gate.as_ref() == REPLACEMENT_GATE)
    {
        return ControlFlow::Continue(());
    }
    let notice = |reason, note: String| {
        Notice::normal(group.lws.as_ref(), reason, Action::Update, note).related(leader.as_ref())
    };
    let name = &leader.key().name;
    if group
        .snapshot
        .peers
        .iter()
        .any(|pod| pod.meta.uid != leader.meta.uid)
    {
        let note = format!(
            "Leader pod {name} waits for 1 terminating group(s) to be removed before scheduling"
        );
        plan.notices.push(notice("GroupReplacementDeferred", note));
        wake(plan, Duration::from_secs(10));
        return ControlFlow::Break(());
    }
    let others: Vec<_> = leader
        .gates
        .iter()
        .filter(|gate| gate.as_ref() != REPLACEMENT_GATE)
        .map(|gate| json!({"name": gate}))
        .collect();
    let body = json!({"spec": {"schedulingGates": others}});
    let note = format!("Leader pod {name} admitted for scheduling");
    plan.steps.push(
        steps::patch_pod(leader, body, Why::GateLifted)
            .then(notice("GroupReplacementAdmitted", note)),
    );
    ControlFlow::Continue(())
}
