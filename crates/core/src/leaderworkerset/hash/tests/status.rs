//! HASH-71, HASH-72, HASH-74.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lws_api::names::label;
use serde_json::{Value, json};

use super::*;
use crate::leaderworkerset::Snapshot;
use crate::leaderworkerset::hash::pass::Counted;
use crate::leaderworkerset::hash::state;
use crate::leaderworkerset::status::decide;
use crate::leaderworkerset::tests::fixture::{NOW, bare, demo_with};
use crate::model::Deployment;

/// A Deployment of revision `r1` with status `replicas/ready/updated`; `is_observed` says whether the status is about its spec.
fn deployment(numbers: &str, is_observed: bool) -> Deployment {
    let numbers: Vec<i32> = numbers.split('/').map(|n| n.parse().unwrap()).collect();
    let object = json!({
        "metadata": {"name": "demo", "namespace": "ns", "generation": 2, "labels": {label::REVISION: REVISION}},
        "spec": {"selector": {}, "template": {}},
        "status": {
            "replicas": numbers[0], "readyReplicas": numbers[1], "updatedReplicas": numbers[2],
            "observedGeneration": if is_observed { 2 } else { 1 },
        },
    });
    serde_json::from_value::<k8s_openapi::api::apps::v1::Deployment>(object)
        .unwrap()
        .into()
}

fn snapshot(wanted: u32, deployment: Option<Deployment>, leaders: Vec<Arc<Pod>>) -> Snapshot {
    let spec = json!({"groupIdentity": "Hash", "replicas": wanted});
    Snapshot {
        deployment: deployment.map(Arc::new),
        leaders,
        ..bare(demo_with(json!({"spec": spec})))
    }
}

fn conditions(snapshot: &Snapshot, before: &[&str]) -> Vec<Condition> {
    let replicas = u32::try_from(snapshot.lws.spec.replicas()).unwrap();
    let counted = Counted {
        replicas,
        is_deployment_ours: true,
    };
    let mut lws = (*snapshot.lws).clone();
    let stored: Vec<Value> = before
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "reason": "Old", "message": "old", "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .collect();
    lws.status.conditions = serde_json::from_value(json!(stored)).unwrap();
    let state = state(snapshot, &counted, None);
    decide(&lws, &state, true, NOW).status.conditions
}

/// `Available=T …` for the conditions that are there, by name.
fn shown(conditions: &[Condition]) -> String {
    let mut list: Vec<_> = conditions
        .iter()
        .map(|c| format!("{}={}", c.type_, &c.status[..1]))
        .collect();
    list.sort();
    list.join(" ")
}

fn old(group: &str) -> Arc<Pod> {
    labelled(admitted(group), label::REVISION, "r0")
}

fn live(number: usize) -> Vec<Arc<Pod>> {
    (0..number).map(|n| admitted(&format!("a{n}"))).collect()
}

/// R, `replicas/ready/updated`, whether these are about the present spec, leaders, conditions.
type Row<'a> = (u32, &'a str, bool, Vec<Arc<Pod>>, &'a str);

#[test]
fn hash_74_table_of_conditions() {
    let with_exhausted = |number: usize| {
        let mut leaders = live(number);
        leaders.push(exhausted("x", 0));
        leaders
    };
    let rows: [Row<'_>; 10] = [
        (2, "2/2/2", true, live(2), "Available=T Degraded=F"),
        (
            2,
            "3/2/1",
            true,
            vec![old("a"), old("b"), admitted("c")],
            "Degraded=F Progressing=T UpdateInProgress=T",
        ),
        (
            2,
            "2/2/2",
            false,
            vec![old("a"), old("b")],
            "Degraded=F Progressing=T UpdateInProgress=T",
        ),
        (3, "2/2/2", false, live(2), "Degraded=F Progressing=T"),
        (2, "0/0/0", false, vec![], "Degraded=F Progressing=T"),
        (2, "2/1/2", true, live(2), "Degraded=F Progressing=T"),
        (
            2,
            "2/1/2",
            true,
            with_exhausted(2),
            "Available=F Degraded=T Progressing=F UpdateInProgress=F",
        ),
        (
            3,
            "3/1/3",
            true,
            with_exhausted(3),
            "Available=F Degraded=T Progressing=T UpdateInProgress=F",
        ),
        (0, "0/0/0", true, vec![], "Available=T Degraded=F"),
        (2, "4/4/4", true, live(4), "Degraded=F Progressing=T"),
    ];
    for (row, (wanted, numbers, is_observed, leaders, expected)) in rows.into_iter().enumerate() {
        let snapshot = snapshot(wanted, Some(deployment(numbers, is_observed)), leaders);
        let conditions = conditions(&snapshot, &[]);
        assert_eq!(shown(&conditions), expected, "row {}", row + 1);
    }
}

#[test]
fn hash_72_what_was_true_before_becomes_false() {
    let rolling = snapshot(2, Some(deployment("3/2/1", true)), vec![old("a"), old("b")]);
    assert_eq!(
        shown(&conditions(&rolling, &["Available"])),
        "Available=F Degraded=F Progressing=T UpdateInProgress=T"
    );
    let available = snapshot(2, Some(deployment("2/2/2", true)), live(2));
    assert_eq!(
        shown(&conditions(
            &available,
            &["Progressing", "UpdateInProgress"]
        )),
        "Available=T Degraded=F Progressing=F UpdateInProgress=F"
    );
    let progressing = snapshot(2, Some(deployment("2/1/2", true)), live(2));
    assert_eq!(
        shown(&conditions(&progressing, &["UpdateInProgress"])),
        "Degraded=F Progressing=T UpdateInProgress=T",
        "unchanged until the set is available"
    );
}

#[test]
fn hash_72_rolling_and_degraded() {
    let told = |numbers: &str| {
        let leaders = vec![old("a"), admitted("b"), exhausted("x", 0)];
        let snapshot = snapshot(2, Some(deployment(numbers, true)), leaders);
        let conditions = conditions(&snapshot, &[]);
        let told = conditions
            .iter()
            .map(|c| format!("{} {} {}: {}", c.type_, c.status, c.reason, c.message));
        told.collect::<Vec<_>>()
    };
    let not_available = "Available False ReplicaRestartBudgetExceeded: Not all replicas are ready";
    let updating = "UpdateInProgress True GroupsUpdating: Rolling Upgrade is in progress";
    let degraded = "Degraded True ReplicaRestartBudgetExceeded: Automatic recovery is stopped for one or more replicas";
    assert_eq!(
        told("3/1/1"),
        [
            not_available,
            "Progressing True GroupsProgressing: Replicas are progressing",
            updating,
            degraded
        ]
    );
    assert_eq!(
        told("2/1/1"),
        [
            not_available,
            "Progressing False ReplicaRestartBudgetExceeded: Automatic recovery is stopped for one or more replicas",
            updating,
            degraded
        ]
    );
}

#[test]
fn hash_71_an_exhausted_leader_that_is_still_ready_does_not_count() {
    let marked = with(
        &admitted("x"),
        &json!({
            "metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    let mut leaders = live(2);
    leaders.push(marked);
    let snapshot = snapshot(3, Some(deployment("3/3/3", true)), leaders);
    assert_eq!(
        shown(&conditions(&snapshot, &[])),
        "Available=F Degraded=T Progressing=F UpdateInProgress=F"
    );
}

#[test]
fn hash_71_without_deployment_or_with_a_foreign_one_all_numbers_are_zero() {
    let counted = |is_deployment_ours| Counted {
        replicas: 2,
        is_deployment_ours,
    };
    let none = snapshot(2, None, Vec::new());
    let foreign = snapshot(2, Some(deployment("2/2/2", true)), Vec::new());
    for (snapshot, is_ours) in [(none, true), (foreign, false)] {
        let state = state(&snapshot, &counted(is_ours), None);
        assert_eq!((state.replicas, state.ready, state.updated), (0, 0, 0));
        assert!(!state.is_update_done);
    }
}

#[test]
fn hash_71_the_answer_to_this_pass_counts() {
    let snapshot = snapshot(2, Some(deployment("2/2/2", true)), live(2));
    let counted = Counted {
        replicas: 2,
        is_deployment_ours: true,
    };
    assert!(state(&snapshot, &counted, None).is_update_done);
    let written = deployment("2/2/2", false);
    assert!(!state(&snapshot, &counted, Some(written)).is_update_done);
}
