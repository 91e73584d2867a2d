//! A leader set that names a revision which the cache does not show: it is gone, it never was, or its watch lags.

use std::sync::Arc;

use lws_api::names::label;
use serde_json::{Value, json};

use super::fixture::{as_stored, demo_with, key_of, pass, running, stateful_set};
use crate::build::leader_set::{LeaderSet, leader_set};
use crate::leaderworkerset::Snapshot;
use crate::model::Lws;

/// A set whose leader set names a key without revision and was made of `template`.
fn with_unseen_revision(stored: Value) -> Snapshot {
    let mut snapshot = running(demo_with(json!({})), (2, 0), "NN");
    snapshot.revisions.clear();
    snapshot.applied = None;
    let mut object = as_stored(stored);
    object["metadata"]["labels"][label::REVISION] = json!("unseen");
    object["spec"]["template"]["metadata"]["labels"][label::REVISION] = json!("unseen");
    snapshot.leader_set = Some(Arc::new(stateful_set(object)));
    snapshot
}

fn stored_leader_set(lws: &Lws) -> Value {
    leader_set(&LeaderSet {
        lws,
        revision_key: "unseen",
        desired_replicas: 2,
        replicas: 2,
        partition: 0,
        max_unavailable: 1,
        parallel_hint: false,
        membership: None,
    })
}

#[test]
fn ord_33_upg_3_leaders_that_the_api_server_completed_are_not_rolled() {
    let mut object = stored_leader_set(&demo_with(json!({})));
    let template = &mut object["spec"]["template"];
    template["metadata"]["creationTimestamp"] = Value::Null;
    template["spec"]["dnsPolicy"] = json!("ClusterFirst");
    template["spec"]["containers"][0]["terminationMessagePath"] = json!("/dev/termination-log");
    let pass = pass(&with_unseen_revision(object));
    assert_eq!(pass.parameters(), (0, 2));
    assert_eq!(
        pass.body("ControllerRevision")["metadata"]["labels"][label::REVISION],
        "unseen"
    );
}

#[test]
fn ord_33_36_an_edit_under_an_unseen_revision_starts_a_rollout() {
    let edits = [
        json!({"spec": {"leaderWorkerTemplate": {"size": 4}}}),
        json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {"containers": [{"name": "c", "image": "before"}]}}}}}),
    ];
    for before in edits {
        let snapshot = with_unseen_revision(stored_leader_set(&demo_with(before.clone())));
        let pass = pass(&snapshot);
        assert_eq!(pass.parameters(), (2, 2), "{before}");
        assert_eq!(
            pass.body("StatefulSet")["metadata"]["labels"][label::REVISION],
            key_of(&snapshot.lws)
        );
    }
}
