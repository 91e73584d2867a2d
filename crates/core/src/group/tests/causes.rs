//! FAIL-100: the cause in events and in the data for the log.

use serde_json::{Value, json};

use super::world::{World, restarted, time};
use crate::group::{Cause, CauseEvent};
use crate::intent::Kind;

/// The text and the cause that follow when worker `x-0-1` fails with this status.
fn cause(status: Value, deleted: bool) -> (String, Cause) {
    let mut world = World::new(json!({}));
    world.group(0);
    world.edit_pod("x-0-1", json!({"status": status}));
    if deleted {
        world.delete(Kind::Pod, "x-0-1");
    }
    let done = world.run("x-0");
    let text = done.events().first().expect("an event").clone();
    let text = text
        .rsplit_once(" to recreate group 0: ")
        .expect("a cause")
        .1
        .to_owned();
    (
        text,
        done.plan.plan.steps[0].cause.clone().expect("a cause"),
    )
}

#[test]
fn fail_100_cause_text() {
    let ended = |name: &str, second: i64, code: i32, reason: &str| {
        json!({"name": name, "restartCount": 2, "image": "i", "imageID": "i", "ready": true,
            "lastState": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": time(second).to_string()}}})
    };
    let unrecorded =
        json!({"name": "c", "restartCount": 3, "image": "i", "imageID": "i", "ready": true});
    let disrupted =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    for (status, deleted, text) in [
        (
            json!({"containerStatuses": [restarted("c", 1)]}),
            false,
            "container c exited with code 137 (OOMKilled), restart count 1",
        ),
        (
            json!({"initContainerStatuses": [restarted("i", 4)]}),
            false,
            "init container i exited with code 137 (OOMKilled), restart count 4",
        ),
        (
            json!({"containerStatuses": [ended("a", 5, 1, "Error"), ended("b", 9, 0, "Completed"), ended("d", 7, 2, "Error")]}),
            false,
            "container b exited with code 0 (Completed), restart count 2",
        ),
        (
            json!({"containerStatuses": [ended("a", 5, 1, "")]}),
            false,
            "container a exited with code 1, restart count 2",
        ),
        (
            json!({"containerStatuses": [unrecorded]}),
            false,
            "container c restarted, restart count 3",
        ),
        (json!({"reason": "Evicted"}), true, "Evicted on node n"),
        (
            json!({"conditions": disrupted}),
            true,
            "PreemptionByScheduler on node n",
        ),
        (json!({}), true, "Deleted on node n"),
        (
            json!({"containerStatuses": [restarted("c", 1)]}),
            true,
            "Deleted on node n, container c exited with code 137 (OOMKilled), restart count 1",
        ),
    ] {
        assert_eq!(cause(status, deleted).0, text);
    }
}

#[test]
fn fail_100_without_node() {
    let mut world = World::new(json!({}));
    world.group(0);
    world.edit_pod("x-0-1", json!({"spec": {"nodeName": null}}));
    world.delete(Kind::Pod, "x-0-1");
    assert!(world.run("x-0").events()[0].ends_with(": Deleted"));
}

#[test]
fn fail_100_a_vanished_pod_is_named_as_last_seen() {
    let mut world = World::new(json!({}));
    world.group(0);
    world.edit_pod("x-0-2", json!({"status": {"reason": "NodeLost"}}));
    world.gone(Kind::Pod, "x-0-2");
    assert!(world.run("x-0").events()[0].ends_with(
        "Worker pod x-0-2 failed, deleted leader pod x-0 to recreate group 0: NodeLost on node n"
    ));
}

#[test]
fn fail_100_log_fields() {
    let (_, cause) = cause(json!({"containerStatuses": [restarted("c", 1)]}), false);
    assert_eq!(
        (&*cause.pod, &*cause.node, cause.reason(), &cause.event),
        ("x-0-1", "n", "OOMKilled", &CauseEvent::Restarted)
    );
    let container = cause.container.expect("a container");
    assert_eq!(
        (&*container.container, container.exit_code, container.count),
        ("c", Some(137), 1)
    );
    for (status, reason) in [
        (json!({}), "Deleted"),
        (json!({"reason": "Evicted"}), "Evicted"),
    ] {
        assert_eq!(self::cause(status, true).1.reason(), reason);
    }
}
