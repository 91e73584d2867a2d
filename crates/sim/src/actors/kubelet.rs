//! Scheduler and kubelet: pods are bound, start, become ready, and end; on a bad day they restart, flap or fail.

use serde_json::{Value, json};

use super::{annotation, is_ready, label, restarts};
use crate::store::{is_terminating, text};

/// Image whose container never becomes ready.
pub const BROKEN: &str = "broken";
/// Annotation of a pod whose status is set by hand.
pub const MANUAL: &str = "e2e.lws/manual-status";

/// Label of a pod that does not become ready.
pub const HELD: &str = "held-unready";

/// What happens to a pod next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It gets a node.
    Bind,
    /// Its containers start.
    Start,
    /// It becomes ready.
    Ready,
    /// Its containers have ended.
    End,
    /// A container is restarted in place.
    Restart,
    /// It stops being ready for a while.
    Flap,
    /// It is evicted.
    Fail,
}

/// What happens to `pod` in the ordinary course of things.
pub fn next(pod: &Value) -> Option<Event> {
    if is_terminating(pod) {
        return (pod["metadata"]["deletionGracePeriodSeconds"] != 0).then_some(Event::End);
    }
    match text(pod, "/status/phase") {
        Some("Failed" | "Succeeded") => None,
        _ if pod["spec"].get("nodeName").is_none() => {
            let is_gated = pod["spec"]["schedulingGates"]
                .as_array()
                .is_some_and(|gates| !gates.is_empty());
            (!is_gated).then_some(Event::Bind)
        }
        _ if !annotation(pod, MANUAL).is_empty() => None,
        Some("Running") if is_ready(pod) => None,
        Some("Running") => {
            let image = text(pod, "/spec/containers/0/image");
            (image != Some(BROKEN) && label(pod, HELD).is_empty()).then_some(Event::Ready)
        }
        _ => Some(Event::Start),
    }
}

/// What may happen to `pod` on a bad day.
pub fn mishaps(pod: &Value) -> &'static [Event] {
    if is_terminating(pod) || text(pod, "/status/phase") != Some("Running") {
        return &[];
    }
    if is_ready(pod) {
        &[Event::Restart, Event::Flap, Event::Fail]
    } else {
        &[Event::Restart, Event::Fail]
    }
}

/// The pod after `event`, as a patch and whether it goes to the status; nothing for [`Event::End`].
pub fn patch(pod: &Value, event: Event, node: &str) -> Option<(bool, Value)> {
    let running = |restarts: i64, ready: bool| {
        let word = if ready { "True" } else { "False" };
        let last = if restarts > 0 {
            json!({"terminated": {"exitCode": 1, "reason": "Error"}})
        } else {
            json!({})
        };
        let containers = json!([{"name": "main", "restartCount": restarts, "lastState": last}]);
        let conditions =
            json!([{"type": "Ready", "status": word}, {"type": "ContainersReady", "status": word}]);
        Some((
            true,
            json!({"status": {"phase": "Running", "conditions": conditions, "containerStatuses": containers}}),
        ))
    };
    match event {
        Event::Bind => Some((false, json!({"spec": {"nodeName": node}}))),
        Event::Start => running(0, false),
        Event::Ready => running(restarts(pod), true),
        Event::Restart => running(restarts(pod) + 1, false),
        Event::Flap => running(restarts(pod), false),
        Event::Fail => Some((
            true,
            json!({"status": {"phase": "Failed", "reason": "Evicted", "conditions": []}}),
        )),
        Event::End => None,
    }
}
