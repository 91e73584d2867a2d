//! The readiness gate by which a Hash leader is Ready only when its whole group is (HASH-35 … HASH-38).
//!
//! Only this writes the condition, and only that one: the others of the pod are the kubelet's.

use jiff::Timestamp;
use lws_api::leaderworkerset::GroupIdentity;
use lws_api::names::GROUP_READY;
use serde_json::json;

use super::{Group, steps};
use crate::intent::{Intent, Plan, Step, Why};

/// HASH-36: writes the condition if it differs. A group without worker set has no condition yet, or lost its workers.
pub(super) fn sync(group: &Group<'_>, now: Timestamp, plan: &mut Plan) {
    match group.lws.spec.group_identity() {
        GroupIdentity::Ordinal => return,
        GroupIdentity::Hash => {}
    }
    // HASH-37: by the leader's own revision, as its gate is.
    if group.size() == 1 {
        return;
    }
    let workers = group
        .snapshot
        .worker_set
        .as_ref()
        .filter(|set| set.meta.is_controlled_by(&group.leader.meta.uid));
    let is_created = plan
        .steps
        .iter()
        .any(|step| step.why == Why::WorkerSetMissing);
    let stored = group.leader.group_ready;
    let is_ready = workers.is_some_and(|set| set.is_ready());
    let says_nothing = workers.is_none() && !is_created && stored.is_none();
    if stored != Some(is_ready) && !says_nothing {
        plan.steps.push(write(group, is_ready, now));
    }
}

fn write(group: &Group<'_>, is_ready: bool, now: Timestamp) -> Step {
    let (status, reason) = if is_ready {
        ("True", "WorkerStatefulSetReady")
    } else {
        ("False", "WorkerStatefulSetNotReady")
    };
    let intent = Intent::SetCondition {
        target: steps::pod(group.leader),
        uid: group.leader.meta.uid.clone(),
        condition: json!({
            "type": GROUP_READY,
            "status": status,
            "reason": reason,
            "lastTransitionTime": now.to_string(),
        }),
    };
    Step::new(Why::GroupReadyDiffers, intent)
}
