//! FAIL-44, FAIL-50 … FAIL-55 and section 7: counts, exhausted groups, recovery, release, teardown.

use lws_api::names::{BUDGET_FINALIZER, annotation, label};
use serde_json::{Value, json};

use super::world::{Done, World, owner};
use crate::intent::{Intent, Kind, Why};

const FOREGROUND: &str = "foregroundDeletion";

fn limited(limit: Value) -> World {
    let mut world = World::new(json!({"leaderWorkerTemplate": {"maxGroupRestarts": limit}}));
    world.group(0);
    world
}

fn store_counts(world: &mut World, counts: &str) {
    world.edit(
        Kind::LeaderWorkerSet,
        "x",
        json!({"metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: counts}}}),
    );
}

fn is_marked(world: &World, pod: &str) -> bool {
    world.pod(pod)["metadata"]["annotations"][annotation::RESTART_BUDGET_EXHAUSTED] == "true"
}

fn is_retained(world: &World, pod: &str) -> bool {
    world.pod(pod)["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| list.contains(&json!(BUDGET_FINALIZER)))
}

/// A group whose budget is used up and whose leader is terminating.
fn exhausted() -> World {
    let mut world = limited(json!(0));
    world.restart("x-0-1");
    world.run("x-0");
    world.edit_pod(
        "x-0",
        json!({"metadata": {"finalizers": [BUDGET_FINALIZER, FOREGROUND]}}),
    );
    world
}

#[track_caller]
fn assert_nothing(done: &Done) {
    assert_eq!(
        (done.writes(), done.events(), done.errors()),
        (vec![], vec![], vec![])
    );
}

#[test]
fn fail_43_44_70_lws_api_13_unit_cases() {
    for (policy, limit, stored, marked, count, exhausted) in [
        ("RecreateGroupOnPodRestart", Value::Null, 0, false, 0, false),
        ("RecreateGroupOnPodRestart", json!(0), 0, false, 0, true),
        ("RecreateGroupOnPodRestart", json!(1), 0, false, 1, false),
        ("RecreateGroupAfterStart", json!(1), 0, false, 1, false),
        ("RecreateGroupOnPodRestart", json!(1), 1, false, 1, true),
        ("RecreateGroupOnPodRestart", json!(2), 1, true, 1, true),
        ("RecreateGroupOnPodRestart", Value::Null, 0, true, 0, true),
    ] {
        let case = format!("{policy} {limit} {stored} {marked}");
        let mut world = World::new(
            json!({"leaderWorkerTemplate": {"restartPolicy": policy, "maxGroupRestarts": limit}}),
        );
        world.group(0);
        if stored > 0 {
            store_counts(&mut world, &json!({"r/0": stored}).to_string());
        }
        if marked {
            world.edit_pod("x-0", json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true"}}}));
        }
        world.restart("x-0-1");
        world.run("x-0");
        assert!(world.is_terminating(Kind::Pod, "x-0"), "{case}");
        let counts = if count == 0 {
            Value::Null
        } else {
            json!(format!(r#"{{"r/0":{count}}}"#))
        };
        assert_eq!(world.counts(), counts, "{case}");
        assert_eq!(is_marked(&world, "x-0"), exhausted, "{case}");
        assert_eq!(is_retained(&world, "x-0"), exhausted, "{case}");
    }
}

#[test]
fn fail_52_a_stale_set_cannot_count() {
    let mut world = limited(json!(1));
    world.restart("x-0-1");
    let snapshot = world.snapshot("x-0");
    store_counts(&mut world, r#"{"r/0":1}"#);
    let done = world.run_from(&snapshot, "x-0");
    assert!(done.outcome.conflict && done.outcome.failure.is_none() && done.events().is_empty());
    assert!(!world.is_terminating(Kind::Pod, "x-0"));
    world.run("x-0");
    assert!(world.is_terminating(Kind::Pod, "x-0") && is_marked(&world, "x-0"));
    assert_eq!(world.counts(), json!(r#"{"r/0":1}"#));
}

#[test]
fn fail_54_a_leader_that_somebody_deleted_meanwhile() {
    let mut world = limited(json!(1));
    world.restart("x-0-1");
    let snapshot = world.snapshot("x-0");
    world.gone(Kind::Pod, "x-0");
    let done = world.run_from(&snapshot, "x-0");
    assert_eq!(done.events(), Vec::<String>::new());
    assert_eq!(
        world.counts(),
        json!(r#"{"r/0":1}"#),
        "counted once, deleted by somebody else"
    );
}

#[test]
fn fail_42_47_a_terminating_leader_is_neither_deleted_nor_counted() {
    let mut world = limited(json!(1));
    world.restart("x-0-1");
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
    assert_eq!(world.counts(), Value::Null);
}

#[test]
fn fail_50_52_two_groups_that_fail_together_keep_both_counts() {
    let mut world = limited(json!(3));
    world.group(1);
    world.restart("x-0-1");
    world.restart("x-1-1");
    let (first, second) = (world.snapshot("x-0"), world.snapshot("x-1"));
    world.run_from(&first, "x-0");
    assert!(world.run_from(&second, "x-1").outcome.conflict);
    world.run("x-1");
    assert_eq!(world.counts(), json!(r#"{"r/0":1,"r/1":1}"#));
}

#[test]
fn fail_38_52_the_count_carries_uid_and_version() {
    let mut world = limited(json!(3));
    world.restart("x-0-1");
    let done = world.run("x-0");
    assert_eq!(done.writes(), ["patch LeaderWorkerSet x", "delete Pod x-0"]);
    let Intent::Patch {
        uid,
        resource_version,
        ..
    } = &done.plan.plan.steps[0].intent
    else {
        panic!("a patch")
    };
    assert!(uid.as_str() == "set" && resource_version.is_some());
}

#[test]
fn fail_44_an_error_of_the_count_says_so() {
    let mut world = limited(json!(3));
    world.restart("x-0-1");
    let done = world.run("x-0");
    let doing: Vec<_> = done
        .plan
        .plan
        .steps
        .iter()
        .map(|step| step.doing.as_deref())
        .collect();
    assert_eq!(doing, [Some("updating group restart count for x-0"), None]);
}

#[test]
fn fail_53_counted_only_with_budget_or_backoff() {
    for (template, counted) in [
        (json!({}), false),
        (json!({"maxGroupRestarts": 5}), true),
        (json!({"restartBackoff": {"baseSeconds": 1}}), true),
    ] {
        let mut world = World::new(json!({"leaderWorkerTemplate": template}));
        world.group(0);
        world.second = 500;
        world.restart("x-0-1");
        world.run("x-0");
        assert_eq!(world.counts() != Value::Null, counted, "{template}");
        assert!(world.is_terminating(Kind::Pod, "x-0"));
    }
}

#[test]
fn fail_5_the_live_budget_counts() {
    let mut world = limited(json!(0));
    world.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 1}}));
    world.restart("x-0-1");
    world.run("x-0");
    assert!(world.is_terminating(Kind::Pod, "x-0") && !is_marked(&world, "x-0"));
}

#[test]
fn fail_51_counts_that_cannot_be_read_delete_nothing() {
    for (stored, error) in [
        (
            "null",
            "reading persisted group restart count for x-0: invalid group restart counts: expected a JSON object",
        ),
        (
            r#"{"r/9":-1}"#,
            r#"reading persisted group restart count for x-0: invalid group restart count for group "r/9": must be non-negative"#,
        ),
    ] {
        let mut world = limited(json!(1));
        store_counts(&mut world, stored);
        world.restart("x-0-1");
        let done = world.run("x-0");
        assert_eq!((done.writes(), done.errors()), (vec![], vec![error]));
    }
}

#[test]
fn fail_72_pod_rst_5_marks_retains_and_deletes_in_this_order() {
    let mut world = limited(json!(0));
    world.edit_pod("x-0", json!({"metadata": {"annotations": {annotation::RECOVER: "true"}, "finalizers": ["theirs/x"]}}));
    world.edit_pod(
        "x-0-2",
        json!({"metadata": {"ownerReferences": owner("StatefulSet", "other", "other")}}),
    );
    world.worker(0, 3, "r", 3);
    world.delete(Kind::Pod, "x-0-3");
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        ["patch Pod x-0", "patch Pod x-0-1", "delete Pod x-0"]
    );
    assert_eq!(
        done.events(),
        [
            "ReplicaRestartBudgetExceeded: Restart budget exhausted; terminated group 0 and stopped automatic recovery"
        ]
    );
    assert_eq!(done.plan.plan.steps[2].why, Why::BudgetExhausted);
    assert_eq!(
        done.plan.plan.steps[2]
            .cause
            .as_ref()
            .map(|cause| &*cause.pod),
        Some("x-0-3")
    );
    let leader = &world.pod("x-0")["metadata"];
    assert_eq!(leader["finalizers"], json!(["theirs/x", BUDGET_FINALIZER]));
    assert_eq!(
        leader["annotations"][annotation::RECOVER],
        Value::Null,
        "a recovery must be asked for afterwards"
    );
    assert!(is_retained(&world, "x-0-1"));
    assert!(!is_retained(&world, "x-0-2"), "not of this leader");
    assert!(!is_retained(&world, "x-0-3"), "terminating");
}

#[test]
fn fail_72_pods_of_other_revisions_are_not_retained() {
    let mut world = limited(json!(0));
    world.edit_pod(
        "x-0-2",
        json!({"metadata": {"labels": {label::REVISION: "older"}}}),
    );
    world.restart("x-0-1");
    world.run("x-0");
    assert!(is_retained(&world, "x-0-1") && !is_retained(&world, "x-0-2"));
}

#[test]
fn fail_49_finalizer_patches_are_fenced() {
    let mut world = limited(json!(0));
    world.restart("x-0-1");
    let snapshot = world.snapshot("x-0");
    world.edit_pod("x-0", json!({"metadata": {"finalizers": ["theirs/x"]}}));
    assert!(world.run_from(&snapshot, "x-0").outcome.conflict);
    assert!(!world.is_terminating(Kind::Pod, "x-0") && !is_marked(&world, "x-0"));
    world.run("x-0");
    assert_eq!(
        world.pod("x-0")["metadata"]["finalizers"],
        json!(["theirs/x", BUDGET_FINALIZER])
    );
}

#[test]
fn fail_78_step_4_finishes_after_a_crash() {
    let mut world = limited(json!(0));
    world.restart("x-0-1");
    world.edit_pod("x-0", json!({"metadata": {"annotations": {annotation::RESTART_BUDGET_EXHAUSTED: "true", annotation::RECOVER: "true"},
        "finalizers": [BUDGET_FINALIZER]}}));
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        ["patch Pod x-0-1", "patch Pod x-0-2", "delete Pod x-0"]
    );
    assert_eq!(
        world.pod("x-0")["metadata"]["annotations"][annotation::RECOVER],
        "true",
        "asked for after the exhaustion"
    );
}

#[test]
fn fail_73_an_exhausted_group_stays() {
    let mut world = exhausted();
    assert_nothing(&world.run("x-0"));
    assert_eq!(world.counts(), Value::Null);
}

#[test]
fn fail_79_user_actions_without_effect() {
    type Action = fn(&mut World);
    let actions: [(&str, Action); 7] = [
        ("raise", |w| {
            w.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 9}}))
        }),
        ("unset", |w| {
            w.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": null}}))
        }),
        ("back-off", |w| {
            w.edit_spec(json!({"leaderWorkerTemplate": {"restartBackoff": {}}}))
        }),
        ("delete worker", |w| w.delete(Kind::Pod, "x-0-1")),
        ("delete leader", |w| w.delete(Kind::Pod, "x-0")),
        ("True", |w| {
            w.edit_pod(
                "x-0",
                json!({"metadata": {"annotations": {annotation::RECOVER: "True"}}}),
            )
        }),
        ("yes", |w| {
            w.edit_pod(
                "x-0",
                json!({"metadata": {"annotations": {annotation::RECOVER: "yes"}}}),
            )
        }),
    ];
    for (name, act) in actions {
        let mut world = exhausted();
        act(&mut world);
        let done = world.run("x-0");
        assert_eq!((done.writes(), done.errors()), (vec![], vec![]), "{name}");
    }
}

#[test]
fn fail_79_budget_changes_before_exhaustion() {
    let mut world = limited(json!(2));
    store_counts(&mut world, r#"{"r/0":2}"#);
    world.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 3}}));
    world.restart("x-0-1");
    world.run("x-0");
    assert_eq!(
        (world.counts(), is_marked(&world, "x-0")),
        (json!(r#"{"r/0":3}"#), false)
    );

    let mut world = limited(json!(5));
    store_counts(&mut world, r#"{"r/0":4}"#);
    world.edit_spec(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 1}}));
    assert_nothing(&world.run("x-0"));
    world.restart("x-0-1");
    world.run("x-0");
    assert!(is_marked(&world, "x-0"));
}

#[test]
fn fail_74_75_recovery_clears_the_count_then_frees_workers_then_the_leader() {
    let mut world = exhausted();
    store_counts(&mut world, r#"{"r/0":2,"r/1":1}"#);
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        [
            "patch LeaderWorkerSet x",
            "patch Pod x-0-1",
            "patch Pod x-0-2",
            "patch Pod x-0"
        ]
    );
    assert_eq!(world.counts(), json!(r#"{"r/1":1}"#));
    let leader = &world.pod("x-0")["metadata"];
    assert_eq!(leader["finalizers"], json!([FOREGROUND]));
    assert_eq!(leader["annotations"][annotation::RECOVER], Value::Null);
    assert!(!is_marked(&world, "x-0"));
    for step in &done.plan.plan.steps {
        let Intent::Patch {
            resource_version, ..
        } = &step.intent
        else {
            panic!("a patch")
        };
        assert!(resource_version.is_some() && step.why == Why::GroupReleased);
    }
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_74_the_last_count_takes_the_annotation_along() {
    let mut world = exhausted();
    store_counts(&mut world, r#"{"r/0":2}"#);
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    world.run("x-0");
    assert_eq!(world.counts(), Value::Null);
}

#[test]
fn fail_74_no_effect_on_a_group_that_is_not_exhausted() {
    let mut world = limited(json!(1));
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    assert_nothing(&world.run("x-0"));
    world.delete(Kind::Pod, "x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_78_teardown_requested() {
    for (replicas, partition, revision, requested) in [
        (1, 0, "r", false),
        (0, 0, "r", true),
        (2, 0, "r2", true),
        (2, 1, "r2", false),
        (2, 0, "", false),
    ] {
        let mut world = exhausted();
        store_counts(&mut world, r#"{"r/0":1}"#);
        world.leader_set(replicas, revision);
        world.edit(
            Kind::StatefulSet,
            "x",
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}}),
        );
        let done = world.run("x-0");
        let expected: &[&str] = if requested {
            &["patch Pod x-0-1", "patch Pod x-0-2", "patch Pod x-0"]
        } else {
            &[]
        };
        assert_eq!(done.writes(), expected, "{replicas} {partition} {revision}");
        assert_eq!(
            world.counts(),
            json!(r#"{"r/0":1}"#),
            "the set controller prunes it"
        );
    }
}

#[test]
fn fail_78_no_leader_set_no_teardown() {
    let mut world = exhausted();
    world.gone(Kind::StatefulSet, "x");
    assert_nothing(&world.run("x-0"));
    world.edit_pod(
        "x-0",
        json!({"metadata": {"annotations": {annotation::RECOVER: "true"}}}),
    );
    assert_eq!(
        world.run("x-0").writes().len(),
        3,
        "it can still be recovered"
    );
}

#[test]
fn fail_78_unparsable_index() {
    let mut world = exhausted();
    world.edit_pod(
        "x-0",
        json!({"metadata": {"labels": {label::GROUP_INDEX: "one"}}}),
    );
    assert_eq!(
        world.run("x-0").errors(),
        ["parsing group index for pod x-0: \"one\" is no index"]
    );
}

#[test]
fn fail_75_release_takes_away_nothing_else() {
    let mut world = exhausted();
    world.edit_pod("x-0-1", json!({"metadata": {"finalizers": ["theirs/x", BUDGET_FINALIZER], "annotations": {"theirs": "y"}}}));
    world.leader_set(0, "r");
    world.run("x-0");
    let pod = &world.pod("x-0-1")["metadata"];
    assert_eq!(
        (&pod["finalizers"], &pod["annotations"]["theirs"]),
        (&json!(["theirs/x"]), &json!("y"))
    );
}

#[test]
fn fail_30_step_2_set_gone() {
    let mut world = exhausted();
    world.gone(Kind::LeaderWorkerSet, "x");
    let done = world.run("x-0");
    assert_eq!(
        done.writes(),
        ["patch Pod x-0-1", "patch Pod x-0-2", "patch Pod x-0"]
    );
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_30_step_2_set_and_leader_gone() {
    let mut world = exhausted();
    world.gone(Kind::LeaderWorkerSet, "x");
    world.gone(Kind::Pod, "x-0");
    assert_eq!(
        world.run("x-0").writes(),
        ["patch Pod x-0-1", "patch Pod x-0-2"]
    );
}

#[test]
fn fail_30_step_3_set_being_deleted_leaves_counts_and_restarts_alone() {
    let mut world = limited(json!(1));
    store_counts(&mut world, r#"{"r/0":1}"#);
    world.delete(Kind::LeaderWorkerSet, "x");
    world.restart("x-0-1");
    world.gone(Kind::Pod, "x-0-2");
    assert_nothing(&world.run("x-0"));
    assert_eq!(world.counts(), json!(r#"{"r/0":1}"#));
}

#[test]
fn fail_90_a_group_of_a_predecessor_of_the_set_is_torn_down() {
    let mut world = exhausted();
    world.second = 100;
    let mut successor = world
        .object(Kind::LeaderWorkerSet, "x")
        .expect("the set")
        .clone();
    successor["metadata"]["uid"] = json!("another set");
    successor["metadata"]["creationTimestamp"] = Value::Null;
    world.gone(Kind::LeaderWorkerSet, "x");
    world.gone(Kind::StatefulSet, "x");
    world.put(Kind::LeaderWorkerSet, successor);
    assert_eq!(
        world.run("x-0").writes(),
        ["patch Pod x-0-1", "patch Pod x-0-2", "patch Pod x-0"]
    );
}

#[test]
fn c36_pods_of_a_set_that_never_was_are_left_alone() {
    let mut world = World::new(json!({}));
    world.leader(0, "r", 1);
    world.gone(Kind::LeaderWorkerSet, "x");
    world.restart("x-0");
    assert_nothing(&world.run("x-0"));
}

#[test]
fn fail_47_failures_of_workers_and_restarts_of_the_leader_count() {
    for (pod, deleted) in [("x-0-1", true), ("x-0-1", false), ("x-0", false)] {
        let mut world = limited(json!(5));
        if deleted {
            world.delete(Kind::Pod, pod);
        } else {
            world.restart(pod);
        }
        world.run("x-0");
        assert_eq!(world.counts(), json!(r#"{"r/0":1}"#), "{pod} {deleted}");
    }
}

#[test]
fn fail_55_a_count_outlives_everything_but_recovery_scaling_and_rollout() {
    let mut world = limited(json!(5));
    world.restart("x-0-1");
    world.run("x-0");
    world.end_group(0);
    world.group(0);
    world.second = 100_000;
    world.run("x-0");
    for template in [
        json!({"maxGroupRestarts": 1}),
        json!({"restartBackoff": {}}),
        json!({"maxGroupRestarts": null, "restartBackoff": null}),
    ] {
        world.edit_spec(json!({"leaderWorkerTemplate": template}));
        assert_nothing(&world.run("x-0"));
    }
    world.delete(Kind::Pod, "x-0");
    world.run("x-0");
    world.delete(Kind::LeaderWorkerSet, "x");
    world.run("x-0");
    assert_eq!(world.counts(), json!(r#"{"r/0":1}"#));
}
