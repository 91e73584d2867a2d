//! Exclusive placement: workers follow their leader into its topology domain (EX-6, ORD-80 step 20).

use std::ops::ControlFlow;

use lws_api::names::annotation;

use super::{Group, error};
use crate::intent::Plan;

/// The node label and value that the workers must share with the leader, or nothing if the set does not ask for it. Ends the run while
/// the leader has no node, or its node no such label; an empty value counts as none, because it would match any node without domain.
pub(super) fn topology<'a>(
    group: &Group<'a>,
    plan: &mut Plan,
) -> ControlFlow<(), Option<(&'a str, &'a str)>> {
    let key = group.lws.meta.annotation(annotation::EXCLUSIVE_TOPOLOGY);
    if key.is_empty() {
        return ControlFlow::Continue(None);
    }
    if group.leader.node.is_empty() {
        return ControlFlow::Break(());
    }
    let Some(node) = &group.snapshot.node else {
        plan.errors.push(error(format!(
            "getting node {:?}: not found",
            group.leader.node
        )));
        return ControlFlow::Break(());
    };
    match node.meta.label(key) {
        "" => {
            plan.errors
                .push(error(format!("node does not have topology label: {key}")));
            ControlFlow::Break(())
        }
        value => ControlFlow::Continue(Some((key, value))),
    }
}
