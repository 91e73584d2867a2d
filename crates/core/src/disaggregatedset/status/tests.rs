//! The table of section 15, and the conditions of the API document.

use lws_api::names::ds_annotation;

use super::*;
use crate::disaggregatedset::scalers::Scalers;
use crate::disaggregatedset::targets::wanted;
use crate::disaggregatedset::tests::fixture::{child, ds_with, scaler, snapshot};

const LATER: Timestamp = Timestamp::UNIX_EPOCH;

/// A child of role `a` with `(replicas, ready, updated)`.
fn sized(slice: u32, revision: &str, role: &str, numbers: (i32, i32, i32)) -> Child {
    let (replicas, ready, updated) = numbers;
    let status = json!({"replicas": replicas, "readyReplicas": ready, "updatedReplicas": updated});
    let hash = if revision == "new" {
        json!("H")
    } else {
        json!("other")
    };
    child(
        "pd",
        slice,
        revision,
        role,
        json!({"status": status, "metadata": {"annotations": {ds_annotation::CONTENT_HASH: hash}}}),
    )
}

fn role(name: &str, patch: Value) -> Value {
    let mut role = json!({"name": name, "spec": {"replicas": 2}});
    json_patch::merge(&mut role, &patch);
    role
}

/// Status of a set with these roles and children; `new` is the target.
fn status(spec: Value, before: Value, children: Vec<Child>) -> DisaggregatedSetStatus {
    let set = ds_with(
        "pd",
        spec,
        json!({"metadata": {"generation": 7}, "status": before}),
    );
    let mut seen = snapshot(set, children);
    seen.target.revision = "new".to_owned();
    decided(&seen)
}

fn decided(seen: &Snapshot) -> DisaggregatedSetStatus {
    let scalers = Scalers::of(&seen.set, &seen.scalers);
    decide(
        seen,
        &wanted(&seen.set.spec, |leaf| scalers.replicas(leaf)),
        LATER,
    )
}

fn numbers(status: &DisaggregatedSetStatus) -> Vec<(String, [i32; 4])> {
    let entry = |entry: &RoleStatus| {
        let numbers = [
            entry.desired_replicas,
            entry.replicas,
            entry.ready_replicas,
            entry.updated_replicas,
        ];
        (entry.name.clone(), numbers)
    };
    status.role_statuses.iter().map(entry).collect()
}

fn truths(status: &DisaggregatedSetStatus) -> Vec<String> {
    let mut names: Vec<String> = status
        .conditions
        .iter()
        .map(|condition| {
            format!(
                "{}={} {}",
                condition.type_, condition.status, condition.reason
            )
        })
        .collect();
    names.sort();
    names
}

#[test]
fn dsr_sta_1_to_sta_5_table() {
    let two = || json!({"roles": [role("a", json!({}))]});
    let none = json!({"roles": [role("a", json!({"spec": {"replicas": 0}}))]});
    for (what, spec, children, entry, condition) in [
        (
            "at rest",
            two(),
            vec![sized(0, "new", "a", (2, 2, 2))],
            [2, 2, 2, 2],
            "Available=True AllRolesReady",
        ),
        (
            "on the way",
            two(),
            vec![sized(0, "new", "a", (1, 1, 1))],
            [2, 1, 1, 1],
            "Progressing=True RolloutInProgress",
        ),
        (
            "paused",
            none,
            vec![sized(0, "new", "a", (0, 0, 0))],
            [0, 0, 0, 0],
            "Available=True AllRolesReady",
        ),
        (
            "rolling",
            two(),
            vec![
                sized(0, "old", "a", (1, 1, 1)),
                sized(0, "new", "a", (1, 1, 1)),
            ],
            [2, 2, 2, 1],
            "Progressing=True RolloutInProgress",
        ),
        (
            "a role that is gone drains",
            two(),
            vec![
                sized(0, "new", "a", (2, 2, 2)),
                sized(0, "old", "b", (1, 1, 1)),
            ],
            [2, 2, 2, 2],
            "Available=True AllRolesReady",
        ),
    ] {
        let status = status(spec, json!({}), children);
        assert_eq!(numbers(&status), [("a".to_owned(), entry)], "{what}");
        assert_eq!(truths(&status), [condition], "{what}");
        assert_eq!(status.observed_generation, 7);
    }
}

#[test]
fn dsr_sta_3_numbers_are_summed_over_slices() {
    let spec = json!({"slices": 3, "roles": [role("a", json!({}))]});
    let children = (0..3)
        .map(|slice| sized(slice, "new", "a", (2, 2, 2)))
        .collect();
    let status = status(spec, json!({}), children);
    assert_eq!(numbers(&status), [("a".to_owned(), [6, 6, 6, 6])]);
    assert!(truths(&status)[0].starts_with("Available=True"));
}

#[test]
fn dsr_sta_4_an_external_role_without_a_scaler() {
    let spec = json!({"roles": [role("a", json!({"scaling": {"mode": "External"}})), role("b", json!({}))]});
    let status = status(
        spec,
        json!({}),
        vec![
            sized(0, "new", "a", (3, 3, 3)),
            sized(0, "new", "b", (2, 2, 2)),
        ],
    );
    assert_eq!(numbers(&status)[0], ("a".to_owned(), [0, 3, 3, 3]));
    assert_eq!(
        truths(&status),
        ["Progressing=True ReplicaTargetsUnresolved"]
    );
    assert_eq!(
        status.conditions[0].message,
        "DisaggregatedSetRoleScaler could not be created or adopted for roles: a"
    );
}

fn condition(kind: &str, status: &str, reason: &str, generation: i64) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "before", "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Conditions after an evaluation, as `type status reason changed`.
fn after(before: Value, is_available: bool) -> Vec<String> {
    let ready = if is_available { 2 } else { 1 };
    let spec = json!({"roles": [role("a", json!({}))]});
    let status = status(
        spec,
        json!({"conditions": before}),
        vec![sized(0, "new", "a", (ready, ready, ready))],
    );
    let text = |condition: &Condition| {
        let has_changed = condition.last_transition_time == Time(LATER);
        format!(
            "{} {} {} {} {}",
            condition.type_,
            condition.status,
            condition.reason,
            condition.observed_generation.unwrap_or_default(),
            if has_changed { "changed" } else { "kept" }
        )
    };
    status.conditions.iter().map(text).collect()
}

#[test]
fn ds_cnd_1_cnd_2_table() {
    assert_eq!(
        after(json!([]), false),
        ["Progressing True RolloutInProgress 7 changed"]
    );
    assert_eq!(
        after(
            json!([condition("Progressing", "True", "RolloutInProgress", 6)]),
            false
        ),
        ["Progressing True RolloutInProgress 7 kept"]
    );
    assert_eq!(
        after(
            json!([condition("Progressing", "True", "RolloutInProgress", 6)]),
            true
        ),
        [
            "Progressing False AllRolesReady 7 changed",
            "Available True AllRolesReady 7 changed"
        ]
    );
    let both = json!([
        condition("Available", "True", "AllRolesReady", 6),
        condition("Progressing", "False", "Old", 6)
    ]);
    assert_eq!(
        after(both, true),
        [
            "Available True AllRolesReady 7 kept",
            "Progressing False Old 7 kept"
        ]
    );
    let other = json!([condition("Foo", "True", "Bar", 3)]);
    assert_eq!(after(other, false)[0], "Foo True Bar 3 kept");
}

#[test]
fn ds_cnd_4_without_sub_roles_there_is_no_such_condition() {
    let before = json!([condition(
        "SubRolesAssigned",
        "True",
        "AssignmentsConverged",
        6
    )]);
    assert_eq!(
        after(before, true),
        ["Available True AllRolesReady 7 changed"]
    );
}

#[test]
fn ds_scr_2_scr_3_status_of_a_scaler() {
    let spec = json!({"roles": [role("a", json!({"scaling": {"mode": "External"}}))]});
    let mut seen = snapshot(
        ds_with("pd", spec, json!({})),
        vec![
            sized(0, "old", "a", (1, 1, 1)),
            sized(0, "new", "a", (2, 2, 2)),
        ],
    );
    seen.scalers = vec![scaler("pd", "a", "", 2)];
    let leaf = LeafKey {
        role: "a".into(),
        sub_role: None,
    };
    let status = of_scaler(&seen, &leaf, &seen.scalers[0], LATER);
    assert_eq!(status.replicas, 3);
    assert_eq!(
        status.selector,
        "disaggregatedset.x-k8s.io/name=pd,disaggregatedset.x-k8s.io/role=a,leaderworkerset.sigs.k8s.io/worker-index=0"
    );
    let ready = &status.conditions[0];
    assert_eq!(
        (
            ready.type_.as_str(),
            ready.status.as_str(),
            ready.reason.as_str()
        ),
        ("Ready", "True", "Bound")
    );
    let part = LeafKey {
        role: "a".into(),
        sub_role: Some("x".into()),
    };
    assert!(selector("pd", &part).ends_with(
        ",leaderworkerset.sigs.k8s.io/worker-index=0,disaggregatedset.x-k8s.io/subrole=x"
    ));
}

#[test]
fn ds_sts_1_members_that_are_zero_are_removed() {
    let status = status(
        json!({"roles": [role("a", json!({"spec": {"replicas": 0}}))]}),
        json!({}),
        vec![],
    );
    let patch = patch(&status);
    assert_eq!(patch["status"]["roleStatuses"], json!([{"name": "a"}]));
    assert_eq!(patch["status"]["observedGeneration"], 7);
}
