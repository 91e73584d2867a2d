//! One pass over a set: what is written, in which order, and what is told.

use std::sync::Arc;

use jiff::Timestamp;
use lws_api::names::ds_annotation;
use serde_json::{Value, json};

use super::fixture::{
    built_child, child, ds, ds_with, lws, nginx, patched, patched_scaler, scaler, snapshot,
    upstream_child,
};
use crate::disaggregatedset::children::Child;
use crate::disaggregatedset::readiness::Observation;
use crate::disaggregatedset::{SetPlan, Snapshot, plan, report};
use crate::intent::{IfFailed, Intent, Step, Why};
use crate::model::Ds;
use crate::run::{Class, Failure, Outcome, Run};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const OURS: &str = "907fa611";

fn planned(seen: &Snapshot) -> SetPlan {
    plan(seen, NOW)
}

/// Verb, kind and name of each step.
pub(super) fn verbs(steps: &[Step]) -> Vec<String> {
    let verb = |step: &Step| {
        let verb = match &step.intent {
            Intent::Create { .. } => "create",
            Intent::Apply { .. } => "apply",
            Intent::Patch { .. } => "patch",
            Intent::SetCondition { .. } => "condition",
            Intent::Delete { .. } => "delete",
        };
        let target = step.intent.target();
        format!("{verb} {} {}", target.kind.name(), target.key.name)
    };
    steps.iter().map(verb).collect()
}

pub(super) fn body(step: &Step) -> &Value {
    match &step.intent {
        Intent::Create { body, .. } | Intent::Apply { body, .. } => body,
        Intent::Patch { body, .. } => body,
        Intent::SetCondition { condition, .. } => condition,
        Intent::Delete { .. } => &Value::Null,
    }
}

pub(super) fn reasons(plan: &SetPlan) -> Vec<&'static str> {
    plan.plan
        .notices
        .iter()
        .map(|notice| notice.reason)
        .collect()
}

fn both(set: &Ds, revision: &str) -> Vec<Child> {
    ["prefill", "decode"]
        .map(|role| built_child(set, 0, revision, role))
        .to_vec()
}

#[test]
fn dsr_cur_1_a_new_set_gets_its_children_in_spec_order() {
    let plan = planned(&snapshot(nginx(json!({}), json!({})), vec![]));
    let steps = &plan.plan.steps;
    assert_eq!(
        verbs(steps),
        [
            "create LeaderWorkerSet nginx-disagg-0-907fa611-prefill",
            "create LeaderWorkerSet nginx-disagg-0-907fa611-decode",
        ]
    );
    assert_eq!(body(&steps[1])["spec"]["replicas"], 2);
    assert_eq!(
        body(&steps[1])["metadata"]["annotations"][ds_annotation::INITIAL_REPLICAS],
        "2"
    );
    assert!(
        steps
            .iter()
            .all(|step| step.if_failed == IfFailed::Continue),
        "CUR-8"
    );
    assert!(
        reasons(&plan).is_empty() && steps.iter().all(|step| step.on_success.is_empty()),
        "EVT-1"
    );
}

#[test]
fn dsr_rev_6_a_set_is_marked_before_its_first_child() {
    let mut set = nginx(json!({}), json!({}));
    set.meta.annotations = Default::default();
    let seen = snapshot(set, vec![]);
    let plan = planned(&seen);
    assert_eq!(
        verbs(&plan.plan.steps)[0],
        "patch DisaggregatedSet nginx-disagg"
    );
    assert_eq!(plan.plan.steps[0].if_failed, IfFailed::Stop);
    let mut outcome = Outcome::default();
    outcome
        .answers
        .push(Some(json!({"metadata": {"resourceVersion": "77"}})));
    let status = report(&seen, &plan, &outcome, NOW);
    let Intent::Patch {
        resource_version, ..
    } = &status[0].intent
    else {
        panic!("a status")
    };
    assert_eq!(
        resource_version.as_deref(),
        Some("77"),
        "the version that the mark left"
    );
}

#[test]
fn dsr_rec_1_a_set_that_ends_is_left_alone() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let seen = snapshot(
        ds_with("pd", json!({"roles": [{"name": "a", "spec": {}}]}), gone),
        vec![],
    );
    let plan = planned(&seen);
    assert_eq!(plan, SetPlan::default());
    assert!(report(&seen, &plan, &Outcome::default(), NOW).is_empty());
}

#[test]
fn dsr_cur_2_cur_3_size_and_baseline_go_in_one_patch() {
    let set = nginx(json!({"replicas": 5}), json!({}));
    let children = both(&nginx(json!({}), json!({})), OURS);
    let plan = planned(&snapshot(set, children));
    assert_eq!(
        verbs(&plan.plan.steps),
        ["patch LeaderWorkerSet nginx-disagg-0-907fa611-prefill"]
    );
    let wanted = json!({"metadata": {"annotations": {ds_annotation::INITIAL_REPLICAS: "5"}}, "spec": {"replicas": 5}});
    assert_eq!(*body(&plan.plan.steps[0]), wanted);
}

#[test]
fn dsr_sta_6_a_settled_set_costs_no_request() {
    let set = nginx(json!({}), json!({}));
    let ready = |child: Child, n: i32| {
        patched(
            &child,
            json!({"status": {"replicas": n, "readyReplicas": n, "updatedReplicas": n}}),
        )
    };
    let children: Vec<Child> = both(&set, OURS)
        .into_iter()
        .zip([1, 2])
        .map(|(child, n)| ready(child, n))
        .collect();
    let seen = snapshot(set, children.clone());
    let first = planned(&seen);
    assert!(first.plan.steps.is_empty() && first.plan.wake_after.is_none());
    let written = report(&seen, &first, &Outcome::default(), NOW);
    let status = body(&written[0])["status"].clone();
    let settled = ds_with(
        "nginx-disagg",
        json!(seen.set.spec),
        json!({"status": status}),
    );
    let seen = snapshot(settled, children);
    assert!(report(&seen, &planned(&seen), &Outcome::default(), NOW).is_empty());
}

#[test]
fn dsr_rev_7_children_of_upstream_are_marked_before_anything_else() {
    let set = nginx(json!({"replicas": 9}), json!({}));
    let old = nginx(json!({}), json!({}));
    let children = ["prefill", "decode"]
        .map(|role| upstream_child(&old, 0, "69150551", role))
        .to_vec();
    let plan = planned(&snapshot(set, children));
    assert_eq!(
        verbs(&plan.plan.steps),
        [
            "patch LeaderWorkerSet nginx-disagg-0-69150551-prefill",
            "patch LeaderWorkerSet nginx-disagg-0-69150551-decode",
        ]
    );
    assert_eq!(
        *body(&plan.plan.steps[0]),
        json!({"metadata": {"annotations": {ds_annotation::CONTENT_HASH: OURS}}})
    );
    assert_eq!(plan.basis, None);
}

#[test]
fn dsr_rev_7_a_takeover_that_was_interrupted_goes_on() {
    let set = nginx(json!({}), json!({}));
    let children = ["prefill", "decode"].map(|role| upstream_child(&set, 0, "69150551", role));
    let marked = json!({"metadata": {"annotations": {ds_annotation::CONTENT_HASH: OURS}}});
    let half = vec![patched(&children[0], marked.clone()), children[1].clone()];
    let plan = planned(&snapshot(set.clone(), half));
    assert_eq!(
        verbs(&plan.plan.steps),
        ["patch LeaderWorkerSet nginx-disagg-0-69150551-decode"]
    );
    assert_eq!(*body(&plan.plan.steps[0]), marked);
    let whole = children.map(|child| patched(&child, marked.clone()));
    let seen = snapshot(set, whole.to_vec());
    assert!(!seen.target.is_adopted && seen.target.revision == "69150551");
}

#[test]
fn dsr_slc_3_children_of_removed_slices_go_whatever_their_revision() {
    let set = nginx(json!({}), json!({}));
    let mut children = both(&set, OURS);
    children.push(built_child(&set, 1, OURS, "decode"));
    children.push(child("nginx-disagg", 2, "old", "x", json!({})));
    children.push(child(
        "nginx-disagg",
        3,
        "old",
        "y",
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ));
    let plan = planned(&snapshot(set, children));
    assert_eq!(
        verbs(&plan.plan.steps),
        [
            "delete LeaderWorkerSet nginx-disagg-1-907fa611-decode",
            "delete LeaderWorkerSet nginx-disagg-2-old-x"
        ]
    );
    assert_eq!(plan.plan.steps[0].on_success[0].reason, "LWSDeleted");
}

#[test]
fn dsr_slc_5_children_without_slice_are_told_of_and_left() {
    let set = nginx(json!({}), json!({}));
    let mut seen = snapshot(set, vec![]);
    seen.children.without_slice = vec!["nginx-disagg-69150551-decode".into()];
    let plan = planned(&seen);
    assert_eq!(reasons(&plan), ["LegacyChildIgnored"]);
    assert!(
        plan.plan.notices[0]
            .note
            .text()
            .contains("nginx-disagg-69150551-decode")
    );
    assert_eq!(plan.plan.steps.len(), 2, "slice 0 is created beside them");
}

#[test]
fn dsr_slc_5_they_are_told_of_once_and_when_others_are_meant() {
    let name: Arc<str> = "nginx-disagg-69150551-decode".into();
    for (told, found, expected, remembered) in [
        (vec![], vec![], vec![], None),
        (
            vec![],
            vec![name.clone()],
            vec!["LegacyChildIgnored"],
            Some(vec![name.clone()]),
        ),
        (vec![name.clone()], vec![name.clone()], vec![], None),
        (
            vec!["other".into()],
            vec![name.clone()],
            vec!["LegacyChildIgnored"],
            Some(vec![name.clone()]),
        ),
        (vec![name.clone()], vec![], vec![], Some(vec![])),
    ] {
        let mut seen = snapshot(nginx(json!({}), json!({})), vec![]);
        seen.told_of = told;
        seen.children.without_slice = found;
        let plan = planned(&seen);
        assert_eq!(reasons(&plan), expected);
        assert_eq!(plan.left_alone, remembered);
    }
}

#[test]
fn dsr_slc_5_what_was_told_is_remembered_as_long_as_the_set_is_there() {
    use crate::cache::{Cache, Change};
    let set = nginx(json!({}), json!({}));
    let mut cache = Cache::default();
    cache.apply_disaggregated_sets(Change::Applied(set.clone()));
    cache.remember_left_alone(set.meta.uid.clone(), vec!["a".into()]);
    let seen = crate::disaggregatedset::observe(set.key(), &cache).expect("a set");
    assert_eq!(seen.told_of, ["a".into()]);
    cache.apply_disaggregated_sets(Change::Deleted(set.clone()));
    assert!(cache.left_alone(&set.meta.uid).is_empty());
}

#[test]
fn dsr_ows_3_a_foreign_object_in_the_way_is_told_and_other_roles_go_on() {
    let set = nginx(json!({}), json!({}));
    let mut seen = snapshot(set, vec![]);
    let name = "nginx-disagg-0-907fa611-prefill";
    seen.occupied.insert(name.into(), lws(name, json!({})));
    let plan = planned(&seen);
    assert_eq!(
        verbs(&plan.plan.steps),
        ["create LeaderWorkerSet nginx-disagg-0-907fa611-decode"]
    );
    assert_eq!(reasons(&plan), ["LWSConflict"]);
    assert_eq!(
        plan.plan.errors[0].retry_after.map(|wait| wait.as_secs()),
        Some(30)
    );
    assert!(plan.basis.is_some(), "the status is written");
}

#[test]
fn dsr_cur_4_live_members_follow_the_role() {
    let live = json!({"leaderWorkerTemplate": {"maxGroupRestarts": 3, "restartBackoff": {"baseSeconds": 5}}});
    let (with, without) = (nginx(live, json!({})), nginx(json!({}), json!({})));
    let plan = planned(&snapshot(with.clone(), both(&without, OURS)));
    let wanted = json!({"spec": {"leaderWorkerTemplate": {
        "maxGroupRestarts": 3, "restartBackoff": {"baseSeconds": 5, "capSeconds": 300},
    }}});
    assert_eq!(*body(&plan.plan.steps[0]), wanted);
    assert_eq!(plan.plan.steps.len(), 1);
    let plan = planned(&snapshot(without, both(&with, OURS)));
    assert_eq!(
        *body(&plan.plan.steps[0]),
        json!({"spec": {"leaderWorkerTemplate": {"maxGroupRestarts": null, "restartBackoff": null}}})
    );
    assert!(
        planned(&snapshot(with.clone(), both(&with, OURS)))
            .plan
            .steps
            .is_empty()
    );
    let hash = nginx(
        json!({"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate"}),
        json!({}),
    );
    let plain = nginx(json!({"groupIdentity": "Hash"}), json!({}));
    let revision = snapshot(hash.clone(), vec![]).target.hash;
    let plan = planned(&snapshot(hash, both(&plain, &revision)));
    assert!(
        plan.plan
            .steps
            .iter()
            .any(|step| body(step)["spec"]["groupReplacementPolicy"] == "Immediate")
    );
}

/// A slice in the middle of a rollout from `old` to the revision of the set, with `(old, new)` groups per role, all Ready.
fn rolling(set: &Ds, sizes: [(i32, i32); 2]) -> Snapshot {
    let mut children = Vec::new();
    for (role, (old, new)) in ["prefill", "decode"].into_iter().zip(sizes) {
        let sized = |revision: &str, groups: i32| {
            let child = built_child(set, 0, revision, role);
            patched(
                &child,
                json!({"spec": {"replicas": groups}, "metadata": {"annotations": {ds_annotation::CONTENT_HASH: revision}}}),
            )
        };
        children.extend([sized("old", old), sized(OURS, new)]);
    }
    let mut seen = snapshot(set.clone(), children.clone());
    for child in children {
        let groups = (0..child.replicas())
            .map(crate::disaggregatedset::tests::fixture::ready_group)
            .collect();
        let observation = Observation {
            groups,
            is_acknowledged: true,
            is_behind: false,
            replicas: child.replicas(),
            unschedulable_since: None,
        };
        seen.observations
            .insert(child.name().clone(), Ok(observation));
    }
    seen
}

#[test]
fn dsr_rdy_6_nothing_moves_while_what_is_seen_is_old() {
    let set = nginx(json!({}), json!({}));
    let mut seen = rolling(&set, [(1, 0), (2, 0)]);
    let is_changed = |seen: &Snapshot| {
        let steps = planned(seen).plan.steps;
        steps.iter().any(|step| step.why == Why::ChildRolled)
    };
    assert!(is_changed(&seen));
    for observation in seen.observations.values_mut().flatten().take(1) {
        observation.is_behind = true;
    }
    assert!(!is_changed(&seen));
    assert_eq!(reasons(&planned(&seen)), ["RevisionDrainBlocked"]);
}

#[test]
fn dsr_rol_3_a_rollout_begins_with_empty_children() {
    let set = nginx(json!({}), json!({}));
    let old = ["prefill", "decode"].map(|role| {
        let child = built_child(&set, 0, "old", role);
        patched(&child, json!({"spec": {"startupPolicy": "LeaderReady"}}))
    });
    let plan = planned(&snapshot(set, old.to_vec()));
    assert_eq!(reasons(&plan), ["RollingUpdateStarted"]);
    let created: Vec<_> = plan
        .plan
        .steps
        .iter()
        .map(|step| &body(step)["spec"]["replicas"])
        .collect();
    assert_eq!(created, [0, 0]);
    assert_eq!(plan.plan.wake_after.map(|wait| wait.as_secs()), Some(1));
}

#[test]
fn dsr_rol_12_a_step_is_written_with_its_events() {
    let set = nginx(json!({}), json!({"replicas": 2}));
    let plan = planned(&rolling(&set, [(1, 0), (2, 0)]));
    assert_eq!(
        verbs(&plan.plan.steps),
        ["patch LeaderWorkerSet nginx-disagg-0-old-decode"]
    );
    assert_eq!(body(&plan.plan.steps[0])["spec"]["replicas"], 1);
    assert_eq!(plan.plan.steps[0].on_success[0].reason, "ScalingDown");
    assert_eq!(plan.plan.steps[0].if_failed, IfFailed::LeavePart);
}

#[test]
fn dsr_rol_7_without_sight_of_the_groups_nothing_changes() {
    let set = nginx(json!({}), json!({}));
    let mut seen = rolling(&set, [(1, 0), (2, 0)]);
    for observation in seen.observations.values_mut() {
        *observation = Err("leader pod ns/x has no usable size".to_owned());
    }
    let plan = planned(&seen);
    assert!(plan.plan.steps.is_empty());
    assert_eq!(reasons(&plan), ["RevisionDrainBlocked"]);
    assert_eq!(
        plan.plan.errors[0].message,
        "leader pod ns/x has no usable size"
    );
}

#[test]
fn dsr_rol_8_at_the_end_the_old_children_go_together() {
    let set = nginx(json!({}), json!({}));
    let plan = planned(&rolling(&set, [(0, 1), (0, 2)]));
    assert_eq!(reasons(&plan), ["RollingUpdateCompleted"]);
    assert_eq!(
        verbs(&plan.plan.steps),
        [
            "delete LeaderWorkerSet nginx-disagg-0-old-prefill",
            "delete LeaderWorkerSet nginx-disagg-0-old-decode"
        ]
    );
}

#[test]
fn dsr_ows_5_a_drained_child_goes_only_as_it_was_seen() {
    let set = nginx(json!({}), json!({}));
    let seen = rolling(&set, [(0, 1), (0, 2)]);
    for step in planned(&seen).plan.steps {
        let Intent::Delete {
            target,
            resource_version,
            ..
        } = step.intent
        else {
            panic!("{step:?}");
        };
        let mut children = seen.children.list.iter();
        let child = children.find(|child| *child.name() == target.key.name);
        let version = child.map(|child| child.lws.meta.resource_version.clone());
        assert_eq!(resource_version, version);
        assert!(version.is_some());
    }
}

#[test]
fn dsr_ows_4_percentages_become_numbers_with_the_next_scale() {
    let budget = json!({"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": "25%", "maxUnavailable": "0%"}}});
    let set = nginx(
        json!({"replicas": 3, "rolloutStrategy": budget["rolloutStrategy"]}),
        json!({}),
    );
    let mut children = both(&nginx(json!({}), json!({})), OURS);
    children[0] = patched(&children[0], json!({"spec": budget}));
    let plan = planned(&snapshot(set, children));
    assert_eq!(
        body(&plan.plan.steps[0])["spec"],
        json!({"replicas": 3, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}})
    );
}

fn external() -> Ds {
    ds(
        "pd",
        json!({"roles": [{"name": "a", "scaling": {"mode": "External"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": {}}}}]}),
    )
}

#[test]
fn dsr_scl_5_a_scaler_is_made_before_anything_depends_on_it() {
    let plan = planned(&snapshot(external(), vec![]));
    assert_eq!(
        verbs(&plan.plan.steps),
        ["create DisaggregatedSetRoleScaler pd-a"]
    );
    assert_eq!(plan.plan.steps[0].on_success[0].reason, "ScalerCreated");
    assert_eq!(body(&plan.plan.steps[0])["spec"]["replicas"], 1);
    assert_eq!(plan.basis, None, "no status before the scaler was seen");
}

#[test]
fn dsr_scl_6_a_foreign_scaler_holds_up_the_whole_set() {
    let mut seen = snapshot(external(), vec![]);
    let foreign = patched_scaler(
        &scaler("pd", "a", "", 4),
        json!({"metadata": {"ownerReferences": null}}),
    );
    seen.named_scalers.insert("pd-a".into(), foreign);
    let plan = planned(&seen);
    assert!(plan.plan.steps.is_empty());
    assert_eq!(reasons(&plan), ["ScalerConflict"]);
    assert_eq!(plan.plan.wake_after.map(|wait| wait.as_secs()), Some(1));
    assert!(plan.basis.is_some());
}

#[test]
fn dsr_scl_8_children_follow_the_scaler_and_its_status_follows_them() {
    let mut seen = snapshot(external(), vec![]);
    seen.scalers = vec![scaler("pd", "a", "", 4)];
    let plan = planned(&seen);
    assert_eq!(body(&plan.plan.steps[0])["spec"]["replicas"], 4);
    let written = report(&seen, &plan, &Outcome::default(), NOW);
    assert_eq!(
        verbs(&written),
        [
            "patch DisaggregatedSetRoleScaler pd-a",
            "patch DisaggregatedSet pd"
        ]
    );
}

#[test]
fn dsr_scl_3_a_scaler_of_a_static_role_goes() {
    let set = ds(
        "pd",
        json!({"roles": [{"name": "a", "spec": {"replicas": 2, "leaderWorkerTemplate": {"workerTemplate": {}}}}]}),
    );
    let mut seen = snapshot(set, vec![]);
    seen.scalers = vec![scaler("pd", "a", "", 4)];
    let plan = planned(&seen);
    assert_eq!(
        verbs(&plan.plan.steps)[0],
        "delete DisaggregatedSetRoleScaler pd-a"
    );
    assert_eq!(plan.plan.steps[0].on_success[0].reason, "ScalerDeleted");
    assert_eq!(body(&plan.plan.steps[1])["spec"]["replicas"], 2);
}

#[test]
fn dsr_rec_7_a_failed_write_leaves_the_rest_of_its_slice_and_no_other() {
    let set = nginx(json!({"replicas": 2}), json!({"replicas": 2}));
    let mut spec = json!(set.spec);
    spec["slices"] = json!(2);
    let two = ds("nginx-disagg", spec);
    let plan = planned(&snapshot(two, vec![]));
    let parts: Vec<_> = plan.plan.steps.iter().map(|step| step.part).collect();
    assert_eq!(parts, [1, 1, 2, 2]);
    let mut steps = plan.plan.steps;
    for step in &mut steps {
        step.if_failed = IfFailed::LeavePart;
    }
    let mut run = Run::new(steps);
    let mut asked = Vec::new();
    while let Some(request) = run.next_request() {
        asked.push(request.target().key.name.to_string());
        let refused = Failure {
            class: Class::Rejected,
            message: "quota".into(),
            retry_after: None,
        };
        run.answer(Err(refused));
    }
    assert_eq!(
        asked,
        [
            "nginx-disagg-0-907fa611-prefill",
            "nginx-disagg-1-907fa611-prefill"
        ]
    );
    let outcome = run.finish();
    assert_eq!(outcome.notices[0].reason, "LWSCreateFailed");
    assert!(!outcome.stopped, "the status is written");
}

#[test]
fn dsr_wch_1_snapshots_hold_children_scalers_and_what_is_in_the_way() {
    use crate::cache::{Cache, Change};
    let set = external();
    let key = set.key().clone();
    let mut cache = Cache::default();
    assert_eq!(crate::disaggregatedset::observe(&key, &cache), None);
    let hash = snapshot(set.clone(), vec![]).target.hash;
    let larger = json!({"spec": {"leaderWorkerTemplate": {"size": 2}}});
    let ours = child("pd", 0, "old", "a", larger);
    let foreign = lws(&format!("pd-0-{hash}-a"), json!({}));
    let wakes = cache.apply_disaggregated_sets(Change::Applied(set));
    assert!(
        wakes.disaggregated_sets.contains(&key) && wakes.renewed_disaggregated_sets.contains(&key)
    );
    let wakes = cache.apply_sets(Change::Applied(Arc::unwrap_or_clone(ours.lws.clone())));
    assert!(wakes.disaggregated_sets.contains(&key));
    cache.apply_sets(Change::Applied(Arc::unwrap_or_clone(foreign)));
    let wakes = cache.apply_scalers(Change::Applied(Arc::unwrap_or_clone(scaler(
        "pd", "a", "", 1,
    ))));
    assert!(wakes.disaggregated_sets.contains(&key));
    let seen = crate::disaggregatedset::observe(&key, &cache).expect("a set");
    assert_eq!(seen.children.list, [ours]);
    assert_eq!(seen.occupied.len(), 1);
    assert_eq!((seen.scalers.len(), seen.named_scalers.len()), (1, 1));
    assert!(cache.all().disaggregated_sets.contains(&key));
}
