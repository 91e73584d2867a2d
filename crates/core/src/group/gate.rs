//! The scheduling gate that holds an Ordinal leader back until the old group of its index is gone (FAIL-96, GATE-4, GATE-5).

use std::ops::ControlFlow;
use std::time::Duration;

use lws_api::leaderworkerset::GroupIdentity;

use super::{Group, wake};
use crate::gate;
use crate::intent::Plan;

/// ORD-80 step 14: a leader that stays gated gets no workers yet.
pub(super) fn lift(group: &Group<'_>, plan: &mut Plan) -> ControlFlow<()> {
    let leader = group.leader;
    if !leader.is_gated() {
        return ControlFlow::Continue(());
    }
    match group.lws.spec.group_identity() {
        GroupIdentity::Ordinal => {}
        // HASH-44: decided by the set, for all of its leaders at once.
        GroupIdentity::Hash => return ControlFlow::Break(()),
    }
    let mut peers = group.snapshot.peers.iter();
    if peers.any(|pod| pod.meta.uid != leader.meta.uid) {
        plan.notices.push(gate::deferred(group.lws, leader, 1));
        wake(plan, Duration::from_secs(10));
        return ControlFlow::Break(());
    }
    plan.steps.push(gate::lift(group.lws, leader));
    ControlFlow::Continue(())
}
