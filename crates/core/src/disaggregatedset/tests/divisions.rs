//! One pass over a set with a partitioned role: annotations and labels as they are written (section 12).

use jiff::Timestamp;
use lws_api::names::{ds_annotation, ds_label};
use serde_json::{Value, json};

use super::fixture::{child, ds, labelled_group, patched, snapshot};
use super::passes::{body, reasons, verbs};
use crate::disaggregatedset::children::Child;
use crate::disaggregatedset::readiness::Observation;
use crate::disaggregatedset::{SetPlan, Snapshot, plan, report};
use crate::intent::{IfFailed, Intent, Step, Why};
use crate::model::Ds;
use crate::run::Outcome;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A set with one role that is divided into `x` and `y`, or not at all if `shares` is null.
fn set(shares: Value, patch: Value) -> Ds {
    let mut role = json!({"name": "a", "subRoles": shares,
        "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}}});
    json_patch::merge(&mut role, &patch);
    ds("pd", json!({"roles": [role]}))
}

fn shares(x: u32, y: u32) -> Value {
    json!([{"name": "x", "replicas": x}, {"name": "y", "replicas": y}])
}

/// The child of `set` at its target revision.
fn current(set: &Ds, replicas: u32, annotations: Value) -> Child {
    let revision = snapshot(set.clone(), vec![]).target.hash;
    let marked = json!({"metadata": {"annotations": {
            ds_annotation::CONTENT_HASH: revision, ds_annotation::INITIAL_REPLICAS: replicas.to_string()}},
        "spec": {"replicas": replicas}});
    let made = child("pd", 0, &revision, "a", marked);
    patched(&made, json!({"metadata": {"annotations": annotations}}))
}

/// Annotations of a settled child.
fn issued(counts: &str) -> Value {
    json!({ds_annotation::SUBROLE_REPLICAS: counts, ds_annotation::INITIAL_SUBROLE_REPLICAS: counts})
}

/// A snapshot in which the groups of the child have these labels, one text per group with one word per pod; `-` is none.
fn seen(set: Ds, child: Child, groups: &[&str]) -> Snapshot {
    let groups = (0..).zip(groups).map(|(ordinal, labels)| {
        let labels = labels.split(' ').map(|label| label.trim_matches('-'));
        labelled_group("c", ordinal, &labels.collect::<Vec<_>>())
    });
    let observation = Observation {
        groups: groups.collect(),
        is_acknowledged: true,
        is_behind: false,
        replicas: child.replicas(),
        unschedulable_since: None,
    };
    let name = child.name().clone();
    let mut seen = snapshot(set, vec![child]);
    seen.observations.insert(name, Ok(observation));
    seen
}

fn planned(seen: &Snapshot) -> SetPlan {
    plan(seen, NOW)
}

fn written(plan: &SetPlan) -> &Value {
    let [step] = plan.plan.steps.as_slice() else {
        panic!("{:?}", verbs(&plan.plan.steps));
    };
    body(step)
}

#[test]
fn dsr_srl_11_a_new_child_gets_counts_and_baseline_in_one_patch() {
    let set = set(shares(2, 1), json!({}));
    let child = current(&set, 3, json!({}));
    let plan = planned(&seen(set, child, &["-", "-", "-"]));
    let counts = r#"{"x":2,"y":1}"#;
    assert_eq!(
        *written(&plan),
        json!({"metadata": {"annotations": issued(counts)}})
    );
    assert_eq!(plan.plan.wake_after.map(|wait| wait.as_secs()), Some(1));
}

#[test]
fn dsr_srl_14_labels_come_on_workers_first_and_only_where_they_differ() {
    let set = set(shares(1, 1), json!({}));
    let child = current(&set, 2, issued(r#"{"x":1,"y":1}"#));
    let plan = planned(&seen(set, child, &["x x x", "- - y"]));
    let steps = &plan.plan.steps;
    assert_eq!(verbs(steps), ["patch Pod c-1-1", "patch Pod c-1"]);
    let label = json!({"metadata": {"labels": {ds_label::SUBROLE: "y"}}});
    assert!(steps.iter().all(|step| *body(step) == label));
    assert!(
        steps
            .iter()
            .all(|step| step.why == Why::GroupReassigned && step.if_failed == IfFailed::Continue)
    );
    let Intent::Patch {
        uid,
        resource_version,
        ..
    } = &steps[0].intent
    else {
        panic!("a patch")
    };
    assert_eq!(
        (uid.as_str(), resource_version.as_deref()),
        ("c-1-1-uid", Some("4"))
    );
}

#[test]
fn dsr_srl_3_counts_and_groups_change_in_one_patch() {
    let set = set(shares(2, 2), json!({}));
    let child = current(&set, 2, issued(r#"{"x":1,"y":1}"#));
    let budget = json!({"spec": {"rolloutStrategy": {"type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxSurge": "50%", "maxUnavailable": 0}}}});
    let plan = planned(&seen(set.clone(), child.clone(), &["x", "y"]));
    let counts = r#"{"x":2,"y":2}"#;
    let baseline = json!({"metadata": {"annotations": {
        ds_annotation::INITIAL_REPLICAS: "4", ds_annotation::INITIAL_SUBROLE_REPLICAS: counts}}});
    assert_eq!(*written(&plan), baseline, "what is intended comes first");
    let mut annotations = issued(r#"{"x":1,"y":1}"#);
    json_patch::merge(&mut annotations, &baseline["metadata"]["annotations"]);
    let child = patched(&current(&set, 2, annotations), budget);
    let plan = planned(&seen(set, child, &["x", "y"]));
    assert_eq!(
        *written(&plan),
        json!({"metadata": {"annotations": {ds_annotation::SUBROLE_REPLICAS: counts}},
            "spec": {"replicas": 4, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1}}}}),
        "OWS-4 as well"
    );
    assert!(plan.plan.steps[0].on_success.is_empty(), "EVT-1");
}

#[test]
fn dsr_srl_12_fewer_groups_are_planned_and_labelled_before_they_go() {
    let set = set(shares(1, 1), json!({}));
    let counts = r#"{"x":2,"y":1}"#;
    let passed = |plan: Option<&str>, groups: &[&str]| {
        let mut annotations = issued(r#"{"x":1,"y":1}"#);
        annotations[ds_annotation::SUBROLE_REPLICAS] = json!(counts);
        annotations[ds_annotation::INITIAL_REPLICAS] = json!("2");
        if let Some(plan) = plan {
            annotations[ds_annotation::SUBROLE_SCALE_PLAN] = json!(plan);
        }
        planned(&seen(set.clone(), current(&set, 3, annotations), groups))
    };
    let plan = r#"{"x":1,"y":1}"#;
    assert_eq!(
        *written(&passed(None, &["x", "x", "y"])),
        json!({"metadata": {"annotations": {ds_annotation::SUBROLE_PLAN: plan}}})
    );
    let next = passed(Some(plan), &["x", "x", "y"]);
    assert_eq!(
        verbs(&next.plan.steps),
        ["patch Pod c-1", "patch Pod c-2"],
        "the last one loses its label, a survivor takes its place"
    );
    let labels = next
        .plan
        .steps
        .iter()
        .map(|step| &body(step)["metadata"]["labels"][ds_label::SUBROLE]);
    assert_eq!(labels.collect::<Vec<_>>(), [&json!("y"), &json!(null)]);
    assert_eq!(
        *written(&passed(Some(plan), &["x", "y", "-"])),
        json!({"metadata": {"annotations": {
                ds_annotation::SUBROLE_REPLICAS: plan, ds_annotation::SUBROLE_SCALE_PLAN: null}},
            "spec": {"replicas": 2}}),
        "the older key goes with the plan that it held"
    );
}

#[test]
fn dsr_srl_10_a_role_that_is_no_longer_partitioned_loses_labels_and_annotations() {
    let set = set(json!(null), json!({"spec": {"replicas": 2}}));
    let counts = r#"{"x":1,"y":1}"#;
    let child = |annotations: Value| current(&set, 2, annotations);
    let plan = planned(&seen(set.clone(), child(issued(counts)), &["x", "y"]));
    let removal = json!({ds_annotation::SUBROLE_PLAN: r#"{"":2}"#});
    assert_eq!(
        *written(&plan),
        json!({"metadata": {"annotations": removal}})
    );
    let mut annotations = issued(counts);
    json_patch::merge(&mut annotations, &removal);
    let plan = planned(&seen(set.clone(), child(annotations.clone()), &["x", "y"]));
    assert_eq!(verbs(&plan.plan.steps), ["patch Pod c-0", "patch Pod c-1"]);
    let plan = planned(&seen(set.clone(), child(annotations), &["-", "-"]));
    let gone = json!({ds_annotation::SUBROLE_REPLICAS: null,
        ds_annotation::INITIAL_SUBROLE_REPLICAS: null, ds_annotation::SUBROLE_PLAN: null});
    assert_eq!(*written(&plan), json!({"metadata": {"annotations": gone}}));
}

#[test]
fn dsr_srl_17_a_rollout_tells_how_it_scales_a_divided_child() {
    let surge = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}});
    let set = set(shares(1, 1), json!({"spec": {"rolloutStrategy": surge}}));
    let old = child(
        "pd",
        0,
        "old",
        "a",
        json!({"metadata": {"annotations": issued(r#"{"x":1,"y":1}"#)}, "spec": {"replicas": 2,
            "startupPolicy": "LeaderReady"}}),
    );
    let old = patched(
        &old,
        json!({"metadata": {"annotations": {ds_annotation::CONTENT_HASH: "old", ds_annotation::INITIAL_REPLICAS: "2"}}}),
    );
    let mut annotations = issued(r#"{"x":0,"y":0}"#);
    annotations[ds_annotation::INITIAL_SUBROLE_REPLICAS] = json!(r#"{"x":1,"y":1}"#);
    annotations[ds_annotation::INITIAL_REPLICAS] = json!("2");
    let new = current(&set, 0, annotations);
    let mut seen = seen(set, old, &["x", "y"]);
    let empty = Observation {
        is_acknowledged: true,
        is_behind: false,
        ..Observation::default()
    };
    seen.observations.insert(new.name().clone(), Ok(empty));
    seen.children.list.push(new.clone());
    seen.target.revision = new.revision().to_owned();
    let plan = planned(&seen);
    assert_eq!(reasons(&plan), Vec::<&str>::new());
    let told = plan.plan.steps.iter().flat_map(|step| &step.on_success);
    let told: Vec<_> = told.map(|notice| notice.reason).collect();
    assert_eq!(told, ["ScalingUp"]);
}

#[test]
fn dsr_rdy_2_no_label_changes_while_groups_are_out_of_sight() {
    let set = set(shares(1, 1), json!({}));
    let child = current(&set, 3, issued(r#"{"x":2,"y":1}"#));
    let mut seen = seen(set, child, &["x", "x", "y"]);
    for observation in seen.observations.values_mut() {
        *observation = Err("leader pod ns/c-0 has no usable size".to_owned());
    }
    let plan = planned(&seen);
    assert!(plan.plan.steps.is_empty());
    assert_eq!(plan.plan.wake_after.map(|wait| wait.as_secs()), Some(1));
    assert_eq!(plan.plan.errors.len(), 1);
}

#[test]
fn dsr_12_2_unusable_counts_stop_the_child_and_are_an_error() {
    let set = set(shares(1, 1), json!({}));
    let child = current(&set, 2, issued(r#"{"x":1,"y":2}"#));
    let name = child.name().clone();
    let plan = planned(&seen(set, child, &["x", "y"]));
    assert!(plan.plan.steps.is_empty());
    assert_eq!(
        plan.plan.errors[0].message,
        format!("slice 0: sub-role counts of {name}: the counts do not add up to spec.replicas")
    );
}

#[test]
fn ds_v_15_nothing_is_written_for_hash_groups_with_sub_roles() {
    let set = set(shares(1, 1), json!({"spec": {"groupIdentity": "Hash"}}));
    let seen = snapshot(set, vec![]);
    let plan = planned(&seen);
    assert!(plan.plan.steps.is_empty());
    assert_eq!(
        plan.plan.errors[0].message,
        "role a: groupIdentity Hash is not supported together with subRoles"
    );
    assert_eq!(
        report(&seen, &plan, &Outcome::default(), NOW),
        Vec::<Step>::new()
    );
}

#[test]
fn dsr_srl_16_a_settled_division_costs_no_request() {
    let set = set(shares(1, 1), json!({}));
    let child = current(&set, 2, issued(r#"{"x":1,"y":1}"#));
    let plan = planned(&seen(set, child, &["y", "x"]));
    assert!(plan.plan.steps.is_empty() && plan.plan.wake_after.is_none());
}
