//! The scheduling gate of a leader: how it is lifted and what is told about it (GATE-5, HASH-41, HASH-42, FAIL-96).
//!
//! Whether a leader may go is decided by the controllers: that of groups for Ordinal leaders, that of sets for Hash leaders.

use lws_api::names::{REPLACEMENT_GATE, annotation};
use serde_json::{Value, json};

use crate::intent::{Intent, Kind, Step, Subresource, Target, Why};
use crate::model::{Lws, Pod};
use crate::notice::{Action, Notice};

/// What marks a gated leader as the first to be removed (HASH-47). Another value is the user's.
const COST_WHILE_GATED: &str = "-100";

/// GATE-5: takes our gate away, in the version that was read, and with it the deletion cost that came with it.
pub(crate) fn lift(lws: &Lws, leader: &Pod) -> Step {
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::Pod,
            key: leader.key().clone(),
        },
        uid: leader.meta.uid.clone(),
        resource_version: Some(leader.meta.resource_version.clone()),
        subresource: Subresource::None,
        body: without_gate(leader),
    };
    let note = format!("Leader pod {} admitted for scheduling", leader.key().name);
    Step::new(Why::GateLifted, intent).then(notice(lws, leader, "GroupReplacementAdmitted", note))
}

/// HASH-42: the leader waits for as many groups.
pub(crate) fn deferred(lws: &Lws, leader: &Pod, groups: usize) -> Notice {
    let note = format!(
        "Leader pod {} waits for {groups} terminating group(s) to be removed before scheduling",
        leader.key().name
    );
    notice(lws, leader, "GroupReplacementDeferred", note)
}

fn notice(lws: &Lws, leader: &Pod, reason: &'static str, note: String) -> Notice {
    Notice::normal(lws, reason, Action::Update, note).related(leader)
}

fn without_gate(leader: &Pod) -> Value {
    let others: Vec<_> = leader
        .gates
        .iter()
        .filter(|gate| gate.as_ref() != REPLACEMENT_GATE)
        .map(|gate| json!({"name": gate}))
        .collect();
    let spec = json!({"schedulingGates": others});
    if leader.meta.annotation(annotation::POD_DELETION_COST) == COST_WHILE_GATED {
        json!({"metadata": {"annotations": {annotation::POD_DELETION_COST: null}}, "spec": spec})
    } else {
        json!({"spec": spec})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(annotations: Value, gates: &[&str]) -> Pod {
        let gates: Vec<_> = gates.iter().map(|gate| json!({"name": gate})).collect();
        let object = json!({"metadata": {"annotations": annotations}, "spec": {"containers": [], "schedulingGates": gates}});
        serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object)
            .expect("a pod")
            .into()
    }

    #[test]
    fn pod_gate_5_only_our_gate_goes() {
        let gated = leader(json!({}), &["theirs", REPLACEMENT_GATE, "another"]);
        assert_eq!(
            without_gate(&gated),
            json!({"spec": {"schedulingGates": [{"name": "theirs"}, {"name": "another"}]}})
        );
    }

    #[test]
    fn hash_47_our_deletion_cost_goes_with_the_gate_and_a_users_stays() {
        let cost = |value: &str| {
            let gated = leader(
                json!({annotation::POD_DELETION_COST: value}),
                &[REPLACEMENT_GATE],
            );
            without_gate(&gated).get("metadata").cloned()
        };
        let removed = json!({"annotations": {annotation::POD_DELETION_COST: null}});
        assert_eq!(cost("-100"), Some(removed));
        assert_eq!(cost("-10"), None);
    }
}
