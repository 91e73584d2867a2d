use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fixture::{
    NOW, Pass, add_group, bare, body, demo_with, key_of, leader, pass, pass_with, revision,
    running, settled,
};
use crate::intent::Intent;
use crate::leaderworkerset::{Snapshot, plan, report};
use crate::run::{Class, Failure, Outcome, Request};

fn change_leader_set(snapshot: &mut Snapshot, change: impl FnOnce(&mut crate::model::StatefulSet)) {
    change(Arc::make_mut(snapshot.leader_set.as_mut().unwrap()));
}

fn refused(kind: &'static str) -> impl Fn(&Request) -> Option<Failure> {
    move |request| {
        let failure = Failure {
            class: Class::Rejected,
            message: "no".to_owned(),
            retry_after: None,
        };
        (request.target().kind.name() == kind).then_some(failure)
    }
}

#[test]
fn ord_20_21_first_pass_creates_everything_in_order() {
    let set = demo_with(json!({}));
    let key = key_of(&set);
    let pass = pass(&bare(set));
    assert_eq!(
        pass.writes(),
        [
            "create ControllerRevision revision_missing",
            "create+claim StatefulSet leader_set_missing",
            "create Service service_missing"
        ]
    );
    assert_eq!(
        pass.events(),
        [
            format!(
                "Normal CreatingRevision Creating revision with key {key} for a newly created LeaderWorkerSet"
            ),
            "Normal GroupsProgressing Created leader statefulset demo".to_owned(),
        ]
    );
    assert_eq!(pass.parameters(), (0, 2));
    assert_eq!(pass.follow_up(), ["patch LeaderWorkerSet status_differs"]);
    let status = pass.status();
    assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    assert_eq!(
        (
            &status["conditions"][0]["type"],
            &status["conditions"][0]["status"]
        ),
        (&json!("Progressing"), &json!("True"))
    );
    assert_eq!(
        (&status["observedGeneration"], &status["replicas"]),
        (&json!(1), &Value::Null)
    );
}

#[test]
fn ord_60_krs_57_settled_set_causes_no_write() {
    let pass = pass(&settled(demo_with(json!({})), (2, 0), "NN"));
    assert_eq!(
        (
            pass.writes().len(),
            pass.follow_up().len(),
            pass.plan.plan.wake_after
        ),
        (0, 0, None)
    );
    assert!(pass.events().is_empty() && pass.plan.plan.errors.is_empty());
}

#[test]
fn ord_60_krs_57_any_change_of_the_live_object_is_applied_over() {
    let changes: [fn(&mut crate::model::StatefulSet); 5] = [
        |set| set.meta.generation += 1,
        |set| set.metadata_hash += 1,
        |set| set.meta.uid = "recreated".into(),
        |set| set.is_unclaimed = true,
        |set| set.replicas = 5,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
        change_leader_set(&mut snapshot, change);
        if number == 4 {
            change_leader_set(&mut snapshot, |set| set.meta.generation += 1);
        }
        let expected = if number == 3 {
            "claim+apply StatefulSet leader_set_differs"
        } else {
            "apply StatefulSet leader_set_differs"
        };
        assert_eq!(pass(&snapshot).writes(), [expected], "change {number}");
    }
}

#[test]
fn ord_60_krs_36_first_apply_of_a_process_is_on_the_version_that_was_read() {
    let version = |snapshot: &Snapshot| {
        let steps = plan(snapshot, NOW).plan.steps;
        steps.iter().find_map(|step| match &step.intent {
            Intent::Apply {
                resource_version, ..
            } => Some(resource_version.is_some()),
            _ => None,
        })
    };
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    change_leader_set(&mut snapshot, |set| set.meta.generation += 1);
    assert_eq!(version(&snapshot), Some(false), "later ones");
    snapshot.applied = None;
    assert_eq!(version(&snapshot), Some(true), "the first");
    change_leader_set(&mut snapshot, |set| set.is_unclaimed = true);
    assert_eq!(version(&snapshot), Some(false), "a claim moves the version");
}

/// It may have been done all the same: the partition of the next one would be that of a leader set that is no more (S-9).
#[test]
fn ord_60_krs_57_after_an_apply_without_answer_nothing_is_known() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    assert!(pass(&snapshot).report.applied.is_some(), "none was needed");
    change_leader_set(&mut snapshot, |set| set.meta.generation += 1);
    let lost = |request: &Request| {
        matches!(request, Request::Apply { .. }).then(|| Failure {
            class: Class::Unknown,
            message: "no answer".to_owned(),
            retry_after: None,
        })
    };
    assert_eq!(pass_with(&snapshot, lost).report.applied, None);
}

#[test]
fn ord_60_krs_57_only_a_write_of_this_pass_is_remembered() {
    let created = pass(&bare(demo_with(json!({})))).report.applied.unwrap();
    assert_eq!(
        (created.uid.as_str(), created.generation),
        ("demo-set-uid", 1)
    );
    let taken = |request: &Request| match request {
        Request::Create { target, .. } if target.kind.name() == "StatefulSet" => Some(Failure {
            class: Class::Exists,
            message: "exists".to_owned(),
            retry_after: None,
        }),
        _ => None,
    };
    assert_eq!(
        pass_with(&bare(demo_with(json!({}))), taken).report.applied,
        None
    );
    assert_eq!(
        pass(&running(demo_with(json!({})), (2, 0), "NN"))
            .report
            .applied
            .map(|a| a.generation),
        Some(1)
    );
}

#[test]
fn ord_36_ord_50_template_change_starts_a_rollout() {
    let old = demo_with(json!({}));
    let mut snapshot = running(old, (2, 0), "NN");
    snapshot.lws = Arc::new(demo_with(
        json!({"metadata": {"generation": 2}, "spec": {"leaderWorkerTemplate": {"size": 4}}}),
    ));
    let key = key_of(&snapshot.lws);
    let pass = pass(&snapshot);
    assert_eq!(
        pass.writes(),
        [
            "create ControllerRevision revision_missing",
            "apply StatefulSet leader_set_differs"
        ]
    );
    assert_eq!(
        pass.events(),
        [format!(
            "Normal CreatingRevision Creating revision with key {key} for updated LWS"
        )]
    );
    assert_eq!(pass.parameters(), (2, 2));
    assert_eq!(
        pass.body("StatefulSet")["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/template-revision-hash"],
        key.as_str()
    );
    let types: Vec<_> = pass.status()["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["type"].clone())
        .collect();
    assert_eq!(types, ["UpdateInProgress", "Progressing", "Degraded"]);
}

#[test]
fn ord_115_rollout_names_the_groups_it_updates() {
    let events = |unavailable: i32, have, groups: &str| {
        let set = demo_with(
            json!({"spec": {"replicas": 4, "rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": unavailable}}}}),
        );
        pass(&running(set, have, groups)).events()
    };
    assert_eq!(
        events(1, (4, 4), "OOOO"),
        ["Normal GroupsUpdating Updating replica 3"]
    );
    assert_eq!(
        events(2, (4, 4), "OOOO"),
        ["Normal GroupsUpdating Updating replicas 2 to 3 (inclusive)"]
    );
    assert!(events(1, (4, 3), "OOOn").is_empty());
}

#[test]
fn ord_56_fewer_groups_are_told() {
    let reclaimed = |have, groups: &str| {
        let set = demo_with(json!({"spec": {"replicas": 2}}));
        pass(&running(set, have, groups)).events()
    };
    assert_eq!(
        reclaimed((3, 0), "NNN"),
        ["Normal GroupsProgressing deleting surge replica demo-2"]
    );
    assert_eq!(
        reclaimed((5, 0), "NNNNN"),
        ["Normal GroupsProgressing deleting surge replicas from demo-2 to demo-4"]
    );
}

#[test]
fn ord_115_a_raised_partition_tells_of_no_update() {
    let set = demo_with(
        json!({"spec": {"replicas": 4, "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 3}}}}),
    );
    let pass = pass(&running(set, (4, 1), "ONNN"));
    assert_eq!(pass.parameters(), (3, 4));
    assert!(pass.events().is_empty());
}

#[test]
fn ord_33_lost_revision_is_made_anew_without_a_rollout() {
    let mut snapshot = running(demo_with(json!({})), (2, 0), "NN");
    let key = key_of(&snapshot.lws);
    snapshot.revisions.clear();
    let pass = pass(&snapshot);
    assert_eq!(
        pass.writes()[0],
        "create ControllerRevision revision_missing"
    );
    assert_eq!(
        pass.events(),
        [format!(
            "Normal CreatingRevision Creating missing revision with key {key} for existing LeaderWorkerSet"
        )]
    );
    assert_eq!(pass.parameters(), (0, 2));
}

#[test]
fn ord_45_46_123_lws_api_21_what_makes_a_group_ready_and_updated() {
    type Change = fn(&mut Snapshot);
    let with_pod = |snapshot: &mut Snapshot, change: fn(&mut crate::model::Pod)| {
        change(Arc::make_mut(&mut snapshot.leaders[0]))
    };
    let cases: [(&str, Change, (bool, bool)); 7] = [
        ("as it should be", |_| {}, (true, true)),
        ("no worker set", |s| s.stateful_sets.clear(), (false, false)),
        (
            "worker set of a predecessor",
            |s| {
                let set = s.stateful_sets.values_mut().next().unwrap();
                Arc::make_mut(set).meta.owner.as_mut().unwrap().uid = "old".into();
            },
            (false, false),
        ),
        (
            "workers not available",
            |s| {
                Arc::make_mut(s.stateful_sets.values_mut().next().unwrap())
                    .status
                    .available = 1
            },
            (false, true),
        ),
        (
            "workers of two revisions",
            |s| {
                Arc::make_mut(s.stateful_sets.values_mut().next().unwrap())
                    .status
                    .update_revision = "x".into()
            },
            (false, true),
        ),
        (
            "leader pending",
            |s| Arc::make_mut(&mut s.leaders[0]).phase = crate::model::Phase::Pending,
            (false, true),
        ),
        (
            "leader not ready",
            |s| Arc::make_mut(&mut s.leaders[0]).ready = false,
            (false, true),
        ),
    ];
    for (name, change, expected) in cases {
        let mut snapshot = running(demo_with(json!({})), (1, 1), "N");
        change(&mut snapshot);
        let key = key_of(&snapshot.lws);
        let states =
            super::super::groups::states(&super::super::groups::groups(&snapshot, &key), 1);
        assert_eq!(
            (states[&0].is_ready, states[&0].is_updated),
            expected,
            "{name}"
        );
    }
    // A leader made for a group of one needs no workers, whatever the live size is.
    let mut snapshot = running(demo_with(json!({})), (1, 1), "N");
    snapshot.stateful_sets.clear();
    with_pod(&mut snapshot, |pod| {
        let meta = json!({"annotations": {"leaderworkerset.sigs.k8s.io/size": "1"}});
        pod.meta.annotations =
            crate::model::Meta::ours(&serde_json::from_value(meta).unwrap()).annotations;
    });
    let groups = super::super::groups::groups(&snapshot, &key_of(&snapshot.lws));
    assert!(groups[0].is_ready && groups[0].is_updated && groups[0].is_complete);
}

#[test]
fn ord_34_several_revisions_of_a_key_are_logged() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    let mut second = (*snapshot.revisions[0]).clone();
    second.meta.key.name = "second".into();
    let expected = format!(
        "several revisions have key {}: {}, second",
        second.key(),
        snapshot.revisions[0].meta.key.name
    );
    snapshot.revisions.push(Arc::new(second));
    assert_eq!(pass(&snapshot).plan.plan.remarks, [expected]);
}

#[test]
fn ord_45_ord_103_misfits_are_left_out_and_logged() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    for (name, index) in [
        ("demo-7", "7"),
        ("demo-x", "x"),
        ("demo-n", "-1"),
        ("stray", "1"),
    ] {
        let labels = json!({"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/group-index": index});
        snapshot.leaders.push(Arc::new(leader(name, labels, false)));
    }
    let groups = super::super::groups::groups(&snapshot, &key_of(&snapshot.lws));
    assert_eq!(
        super::super::groups::states(&groups, 2)
            .keys()
            .collect::<Vec<_>>(),
        [&0, &1]
    );
    let pass = pass(&snapshot);
    assert_eq!(
        pass.plan.plan.remarks,
        [
            r#"leader pod ns/demo-x has group index "x""#,
            r#"leader pod ns/demo-n has group index "-1""#
        ]
    );
    assert!(pass.writes().is_empty() && pass.follow_up().is_empty());
}

#[test]
fn ord_100_replicas_are_those_of_the_answer() {
    let snapshot = running(demo_with(json!({})), (2, 0), "NN");
    let replicas = |answer: Option<Value>| {
        let outcome = Outcome {
            answers: vec![answer],
            ..Outcome::default()
        };
        let report = report(&snapshot, &plan(&snapshot, NOW), &outcome, NOW);
        body(&report.steps[0].intent)["status"]["replicas"].clone()
    };
    assert_eq!(replicas(None), 2, "as of the snapshot");
    assert_eq!(replicas(Some(json!({"status": {"replicas": 7}}))), 7);
    assert_eq!(
        replicas(Some(json!({}))),
        Value::Null,
        "a new set has no status"
    );
    assert_eq!(
        replicas(Some(json!({"status": {"replicas": i64::MAX}}))),
        Value::Null
    );
}

#[test]
fn ord_109_mere_numbers_wait_for_others_and_nothing_else_does() {
    let of = |patch: Value, reported: Option<i64>| {
        let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
        let mut set = (*snapshot.lws).clone();
        let mut status = json!(set.status);
        json_patch::merge(&mut status, &patch);
        set.status = serde_json::from_value(status).unwrap();
        snapshot.lws = Arc::new(set);
        snapshot.reported = reported.map(|milli| Timestamp::from_millisecond(milli).unwrap());
        let report = pass(&snapshot).report;
        let is_written = report.reported == Some(NOW);
        assert_eq!(is_written, !report.steps.is_empty());
        (is_written, report.wake_after.map(|wait| wait.as_millis()))
    };
    let numbers = || json!({"readyReplicas": 1});
    assert_eq!(of(json!({}), Some(0)), (false, None), "nothing changed");
    assert_eq!(of(numbers(), None), (true, None), "the first one");
    for (reported, written, wait) in [
        (0, false, Some(1000)),
        (-400, false, Some(600)),
        (-1000, true, None),
        (-99_000, true, None),
        (1, true, None),
    ] {
        assert_eq!(of(numbers(), Some(reported)), (written, wait), "{reported}");
    }
    for patch in [
        json!({"replicas": 7, "observedGeneration": 0}),
        json!({"readyReplicas": 1, "conditions": []}),
        json!({"hpaPodSelector": ""}),
    ] {
        assert_eq!(of(patch.clone(), Some(0)), (true, None), "{patch}");
    }
}

#[test]
fn ord_23_failures_skip_what_depends_on_them_and_freeze_no_status() {
    let generation = |pass: &Pass| pass.status()["observedGeneration"].clone();
    let set =
        || demo_with(json!({"metadata": {"generation": 4}, "status": {"observedGeneration": 3}}));

    let leader_set = pass_with(&bare(set()), refused("StatefulSet"));
    assert_eq!(
        leader_set.events()[1],
        "Warning FailedCreate Failed to create leader statefulset demo: no"
    );
    assert!(
        leader_set.outcome.answers[2].is_some(),
        "the Service is created all the same"
    );
    assert_eq!(generation(&leader_set), 3);

    let service = pass_with(&bare(set()), refused("Service"));
    assert_eq!(
        service.events()[2],
        "Warning FailedCreate Failed to create headless service for error: no"
    );
    assert_eq!(generation(&service), 3);

    let update = pass_with(&running(set(), (2, 0), "NN"), refused("StatefulSet"));
    assert_eq!(
        update.events(),
        ["Warning FailedUpdate Failed to update leader statefulset demo: no"]
    );
    assert_eq!(
        (generation(&update), &update.status()["readyReplicas"]),
        (json!(3), &json!(2))
    );

    let revision = pass_with(&bare(set()), refused("ControllerRevision"));
    assert!(revision.outcome.stopped && revision.outcome.answers.iter().all(Option::is_none));
}

const COUNTS: &str = "leaderworkerset.sigs.k8s.io/group-restart-counts";

#[test]
fn fail_76_counts_of_scaled_away_groups_go_before_the_leader_set() {
    let key = key_of(&demo_with(json!({})));
    let counts = format!(r#"{{"{key}/0":1,"{key}/4":2}}"#);
    let set = demo_with(json!({"metadata": {"annotations": {COUNTS: counts}}}));
    let snapshot = running(set, (5, 0), "NNNNN");
    let done = pass(&snapshot);
    assert_eq!(done.writes()[0], "patch LeaderWorkerSet counts_obsolete");
    assert_eq!(
        done.body("LeaderWorkerSet")["metadata"]["annotations"][COUNTS],
        format!(r#"{{"{key}/0":1}}"#)
    );
    let crate::intent::Intent::Patch {
        resource_version, ..
    } = &done.report.steps[0].intent
    else {
        panic!("no status")
    };
    assert_eq!(
        resource_version.as_deref(),
        Some("99"),
        "the status goes onto the version that the patch made"
    );

    let failed = pass_with(&snapshot, refused("LeaderWorkerSet"));
    assert!(
        failed.outcome.answers.iter().all(Option::is_none),
        "nothing else is written"
    );
    assert_eq!(failed.follow_up(), ["patch LeaderWorkerSet status_differs"]);
}

#[test]
fn fail_76_unreadable_counts_stop_no_rollout() {
    let set = demo_with(json!({"metadata": {"annotations": {COUNTS: "broken"}}}));
    let pass = pass(&running(set, (5, 0), "NNNNN"));
    assert_eq!(pass.writes(), ["apply StatefulSet leader_set_differs"]);
    assert_eq!(
        pass.plan.plan.remarks,
        ["invalid group restart counts: expected a JSON object"]
    );
}

/// A settled set with a second revision and counts of it.
fn after_rollout(partition: u32) -> Snapshot {
    let annotation = json!({"metadata": {"annotations": {COUNTS: r#"{"old/0":1}"#}},
        "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}}}});
    let mut snapshot = settled(demo_with(annotation), (2, partition), "NN");
    let other = demo_with(json!({"spec": {"leaderWorkerTemplate": {"size": 9}}}));
    let mut foreign = (*revision(&other, "foreign", 3)).clone();
    foreign.meta.owner = None;
    snapshot
        .revisions
        .extend([revision(&other, "old", 2), Arc::new(foreign)]);
    snapshot
}

#[test]
fn ord_40_fail_77_after_a_rollout_what_is_obsolete_goes() {
    let done = pass(&after_rollout(0));
    assert_eq!(
        done.follow_up(),
        [
            "delete ControllerRevision revision_obsolete",
            "patch LeaderWorkerSet counts_obsolete"
        ]
    );
    assert_eq!(
        &*done.report.steps[0].intent.target().key.name,
        "demo-old-2"
    );
    assert_eq!(
        body(&done.report.steps[1].intent)["metadata"]["annotations"][COUNTS],
        Value::Null
    );
}

#[test]
fn ord_40_revisions_stay_while_the_partition_holds_groups_back() {
    assert!(pass(&after_rollout(1)).follow_up().is_empty());
}

#[test]
fn ord_40_revisions_stay_while_kubernetes_may_make_leaders_of_an_old_template() {
    let behind: [fn(&mut crate::model::StatefulSet); 2] = [
        |set| set.status.current_revision = "before".into(),
        |set| set.status.observed_generation = 0,
    ];
    for change in behind {
        let mut snapshot = after_rollout(0);
        change_leader_set(&mut snapshot, change);
        assert_eq!(
            pass(&snapshot).follow_up(),
            ["patch LeaderWorkerSet counts_obsolete"]
        );
    }
}

#[test]
fn ord_20_step_15_waits_for_a_clean_pass_and_counts_for_a_written_status() {
    let mut snapshot = after_rollout(0);
    Arc::make_mut(&mut snapshot.lws).status.ready_replicas = 1;
    assert_eq!(
        pass(&snapshot).follow_up(),
        [
            "patch LeaderWorkerSet status_differs",
            "delete ControllerRevision revision_obsolete"
        ]
    );
    snapshot.applied = None;
    assert_eq!(
        pass_with(&snapshot, refused("StatefulSet")).follow_up(),
        ["patch LeaderWorkerSet status_differs"]
    );
}

#[test]
fn fail_94_hint_follows_the_spec_only_when_leaders_are_made_anew() {
    const HINT: &str = "leaderworkerset.sigs.k8s.io/pod-termination-policy";
    let parallel = || demo_with(json!({"spec": {"podTerminationPolicy": "Parallel"}}));
    let hint = |snapshot: &Snapshot| {
        pass(snapshot).body("StatefulSet")["spec"]["template"]["metadata"]["annotations"]
            .get(HINT)
            .cloned()
    };
    assert_eq!(hint(&bare(parallel())), Some(json!("Parallel")));
    assert_eq!(hint(&bare(demo_with(json!({})))), None);
    assert_eq!(
        hint(&running(parallel(), (2, 0), "NN")),
        None,
        "carried over: there was none"
    );
    let mut with_hint = running(demo_with(json!({})), (2, 0), "NN");
    let meta = serde_json::from_value(json!({"annotations": {HINT: "Parallel"}})).unwrap();
    change_leader_set(&mut with_hint, |set| {
        set.template_annotations = crate::model::Meta::ours(&meta).annotations
    });
    assert_eq!(
        hint(&with_hint),
        Some(json!("Parallel")),
        "carried over: there was one"
    );
    let mut rolled = running(demo_with(json!({})), (2, 0), "NN");
    rolled.lws = Arc::new(demo_with(
        json!({"spec": {"podTerminationPolicy": "Parallel", "leaderWorkerTemplate": {"size": 4}}}),
    ));
    assert_eq!(hint(&rolled), Some(json!("Parallel")), "a new revision");
}

#[test]
fn ord_54_annotation_that_is_no_number_reads_as_wanted() {
    for (text, partition) in [("2", 1), ("x", 1), ("", 1), ("7", 2)] {
        let mut snapshot = running(demo_with(json!({})), (2, 2), "OO");
        let meta = json!({"labels": {"leaderworkerset.sigs.k8s.io/template-revision-hash": key_of(&snapshot.lws)},
            "annotations": {"leaderworkerset.sigs.k8s.io/replicas": text}});
        let meta = crate::model::Meta::ours(&serde_json::from_value(meta).unwrap());
        change_leader_set(&mut snapshot, |set| {
            (set.meta.labels, set.meta.annotations) = (meta.labels, meta.annotations)
        });
        assert_eq!(pass(&snapshot).parameters(), (partition, 2), "{text:?}");
    }
}

#[test]
fn ord_103_an_exhausted_group_degrades_the_set() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "N");
    add_group(&mut snapshot, 1, "old", false);
    let meta = json!({"annotations": {"leaderworkerset.sigs.k8s.io/group-restart-budget-exhausted": "true"}});
    Arc::make_mut(&mut snapshot.leaders[1]).meta.annotations =
        crate::model::Meta::ours(&serde_json::from_value(meta).unwrap()).annotations;
    let status = pass(&snapshot).status();
    let degraded = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["type"] == "Degraded")
        .unwrap()
        .clone();
    assert_eq!(
        (&degraded["status"], &degraded["reason"]),
        (&json!("True"), &json!("ReplicaRestartBudgetExceeded"))
    );
}

/// A set with these metadata whose groups run and were applied without them.
fn with_new_metadata(metadata: Value) -> Snapshot {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    let mut set = demo_with(json!({"metadata": metadata}));
    set.status = snapshot.lws.status.clone();
    snapshot.lws = Arc::new(set);
    snapshot
}

#[test]
fn ord_65_pod_ex_9_a_changed_topology_changes_the_template_without_a_rollout() {
    let topology = "leaderworkerset.sigs.k8s.io/exclusive-topology";
    let snapshot = with_new_metadata(json!({"annotations": {topology: "rack"}}));
    let pass = pass(&snapshot);
    assert_eq!(pass.writes(), ["apply StatefulSet leader_set_differs"]);
    let template = pass.body("StatefulSet")["spec"]["template"]["metadata"].clone();
    assert_eq!(template["annotations"][topology], "rack");
    assert_eq!(
        template["labels"]["leaderworkerset.sigs.k8s.io/template-revision-hash"],
        key_of(&snapshot.lws).as_str()
    );
    assert_eq!(pass.parameters(), (0, 2));
    assert!(pass.follow_up().is_empty(), "the conditions stay");
}

#[test]
fn ord_127_metadata_of_the_set_follow_on_the_leader_set() {
    let pass = pass(&with_new_metadata(
        json!({"labels": {"team": "y"}, "annotations": {"note": "b"}}),
    ));
    assert_eq!(pass.writes(), ["apply StatefulSet leader_set_differs"]);
    let body = pass.body("StatefulSet");
    assert_eq!(
        (
            &body["metadata"]["labels"]["team"],
            &body["metadata"]["annotations"]["note"]
        ),
        (&json!("y"), &json!("b"))
    );
    let template = body["spec"]["template"]["metadata"].to_string();
    assert!(
        !template.contains("team") && !template.contains("note"),
        "{template}"
    );
}

#[test]
fn ord_131_a_deleted_leader_set_comes_back_with_its_revision() {
    let mut snapshot = settled(demo_with(json!({})), (2, 0), "NN");
    snapshot.leader_set = None;
    let pass = pass(&snapshot);
    assert_eq!(
        pass.writes(),
        ["create+claim StatefulSet leader_set_missing"]
    );
    let labels = &pass.body("StatefulSet")["metadata"]["labels"];
    assert_eq!(
        labels["leaderworkerset.sigs.k8s.io/template-revision-hash"],
        key_of(&snapshot.lws).as_str()
    );
}

#[test]
fn ord_rt_20_groups_are_placed_by_their_index() {
    for (indexes, placed) in [
        (vec![3, 1, 0], vec![0, 1, 3]),
        (vec![3, 0, 2, 5, 6, 7, 4], vec![0, 2, 3]),
    ] {
        let mut snapshot = running(demo_with(json!({})), (4, 0), "");
        for index in indexes {
            add_group(&mut snapshot, index, "old", true);
        }
        let groups = super::super::groups::groups(&snapshot, "old");
        let states = super::super::groups::states(&groups, 4);
        assert_eq!(states.into_keys().collect::<Vec<_>>(), placed);
    }
}
