use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{demo_with, pass, service, settled};
use crate::build::service::shared_service;
use crate::leaderworkerset::Snapshot;

/// A settled set whose Service has `patch` merged in.
fn with_service(patch: Value) -> Snapshot {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    let mut object = shared_service(&snapshot.lws);
    json_patch::merge(&mut object, &patch);
    snapshot.service = Some(Arc::new(service(object)));
    snapshot
}

#[test]
fn ord_73_missing_service_comes_back() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    snapshot.service = None;
    let pass = pass(&snapshot);
    assert_eq!(pass.writes(), ["create Service service_missing"]);
    assert_eq!(pass.body("Service"), shared_service(&snapshot.lws));
    assert!(pass.events().is_empty());
}

#[test]
fn ord_73_changed_service_is_repaired_on_the_version_that_was_read() {
    for patch in [
        json!({"spec": {"publishNotReadyAddresses": false}}),
        json!({"spec": {"selector": {"app": "x"}}}),
    ] {
        let pass = pass(&with_service(patch));
        assert_eq!(pass.writes(), ["patch Service service_differs"]);
        let crate::intent::Intent::Patch {
            uid,
            resource_version,
            ..
        } = &pass.plan.plan.steps[0].intent
        else {
            panic!("no patch")
        };
        assert_eq!(
            (uid.as_str(), resource_version.as_deref()),
            ("service-uid", Some("60"))
        );
    }
    assert!(
        pass(&with_service(
            json!({"spec": {"ports": [{"port": 80}]}, "metadata": {"labels": {"a": "b"}}})
        ))
        .writes()
        .is_empty()
    );
}

#[test]
fn ord_74_service_without_controller_is_used_if_it_does_the_same() {
    assert!(
        pass(&with_service(
            json!({"metadata": {"ownerReferences": null}})
        ))
        .plan
        .plan
        .errors
        .is_empty()
    );
    for patch in [
        json!({"spec": {"clusterIP": "10.0.0.1"}}),
        json!({"spec": {"selector": {"app": "x"}}}),
    ] {
        let mut patch = patch;
        patch["metadata"] = json!({"ownerReferences": null});
        let pass = pass(&with_service(patch));
        let why = "service ns/demo is not controlled by LeaderWorkerSet demo";
        assert!(pass.writes().is_empty());
        assert_eq!(
            pass.events(),
            [format!(
                "Warning FailedCreate Failed to create headless service for error: {why}"
            )]
        );
        assert_eq!(
            (
                pass.plan.plan.errors[0].message.as_str(),
                pass.plan.plan.errors[0].retry_after
            ),
            (why, Some(Duration::from_secs(30)))
        );
    }
}

#[test]
fn ord_135_leftover_service_is_waited_for() {
    let of_predecessor = json!({"metadata": {"ownerReferences":
        [{"apiVersion": "v", "kind": "LeaderWorkerSet", "name": "demo", "uid": "predecessor", "controller": true}]}});
    for patch in [
        of_predecessor,
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ] {
        let pass = pass(&with_service(patch));
        assert_eq!(pass.plan.plan.wake_after, Some(Duration::from_secs(5)));
        assert!(pass.writes().is_empty() && pass.events().is_empty());
    }
}

/// ORD-75: the Service for all is made with the new policy, before any group rolls, and stays when the policy goes.
#[test]
fn ord_75_switch_of_the_subdomain_policy() {
    let with =
        |policy: &str| demo_with(json!({"spec": {"networkConfig": {"subdomainPolicy": policy}}}));
    for (old, new, writes) in [
        (
            "UniquePerReplica",
            "Shared",
            vec!["create Service service_missing"],
        ),
        ("Shared", "UniquePerReplica", vec![]),
    ] {
        let mut snapshot = settled(with(old), (2, 0), "NN");
        if old == "UniquePerReplica" {
            snapshot.service = None;
        }
        snapshot.lws = Arc::new(with(new));
        let pass = pass(&snapshot);
        assert_eq!(pass.parameters(), (2, 2), "a rollout to {new}");
        let of_services: Vec<_> = pass
            .writes()
            .into_iter()
            .filter(|write| write.contains("Service"))
            .collect();
        assert_eq!(of_services, writes, "to {new}");
    }
}

#[test]
fn ord_71_no_shared_service_with_one_for_each_group() {
    let mut snapshot = settled(
        demo_with(json!({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}})),
        (2, 0),
        "NN",
    );
    snapshot.service = None;
    assert!(pass(&snapshot).writes().is_empty());
}
