use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::scheduling::v1beta1 as api;
use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use crate::admission::fixture::native;
use crate::admission::{Environment, ServedKinds};
use crate::build::gang::{PodGroupBody, pod_group, workload};
use crate::gang::{self, Part, pod_group_name, workload_name};
use crate::intent::Intent;
use crate::leaderworkerset::tests::fixture::{
    NOW, Pass, bare, demo_with, pass, pass_with, running,
};
use crate::leaderworkerset::{Snapshot, plan};
use crate::model::{Lws, Pairs, Pod, PodGroup, Workload};
use crate::run::{Class, Failure, Request};

const SET_GANG: &str = r#"{"schedulingPolicy": {"gang": {}}}"#;

fn asked(scheduling: &str) -> Value {
    json!({"spec": {"scheduling": serde_json::from_str::<Value>(scheduling).unwrap()}})
}

/// A new set that asks for `scheduling`, with the native scheduler.
fn new(scheduling: &str) -> Snapshot {
    let mut snapshot = bare(demo_with(asked(scheduling)));
    snapshot.gangs.environment = native();
    snapshot
}

fn templates(lws: &Lws) -> Vec<gang::Template> {
    let scheduling = lws.spec.scheduling.as_ref().unwrap();
    gang::templates(&lws.spec, scheduling, gang::sizes(&lws.spec, &[]))
        .unwrap()
        .1
}

fn add_workload(snapshot: &mut Snapshot, patch: Value) {
    let lws = &snapshot.lws;
    let key = lws.key().sibling(&workload_name(lws));
    let mut object = workload(lws, &key, &templates(lws));
    object["metadata"]["uid"] = json!("workload-uid");
    json_patch::merge(&mut object, &patch);
    let stored: Workload = serde_json::from_value::<api::Workload>(object)
        .unwrap()
        .into();
    snapshot.gangs.workloads.push(Arc::new(stored));
}

fn add_group(snapshot: &mut Snapshot, name: &str, patch: Value) {
    let lws = snapshot.lws.clone();
    let stored = snapshot.gangs.workloads[0].clone();
    let template = templates(&lws).remove(0);
    let mut object = pod_group(&PodGroupBody {
        lws: &lws,
        name,
        labels: &[(label::NAME, "demo".to_owned())],
        workload: Some(&stored.meta),
        made_from: (&stored.key().name, template.name),
        terms: &template.terms,
    });
    object["metadata"]["uid"] = json!(format!("{name}-uid"));
    object["metadata"]["resourceVersion"] = json!("80");
    json_patch::merge(&mut object, &patch);
    let group: PodGroup = serde_json::from_value::<api::PodGroup>(object)
        .unwrap()
        .into();
    let name = group.key().name.clone();
    snapshot.gangs.pod_groups.insert(name, Arc::new(group));
}

/// Every leader names a PodGroup `<pod>-group`.
fn admit(snapshot: &mut Snapshot) {
    for leader in &mut snapshot.leaders {
        let mut pod: Pod = (**leader).clone();
        let mut annotations = std::collections::BTreeMap::from([
            (
                annotation::WORKLOAD_AWARE_SCHEDULING.to_owned(),
                "replica".to_owned(),
            ),
            (annotation::SIZE.to_owned(), "3".to_owned()),
        ]);
        annotations.insert(
            annotation::WORKLOAD_NAME.to_owned(),
            workload_name(&snapshot.lws),
        );
        pod.meta.annotations = Pairs::all(Some(&annotations));
        pod.scheduling_group = format!("{}-group", pod.key().name).into();
        *leader = Arc::new(pod);
    }
}

/// Two running groups of a set with replica gangs and everything that this takes.
fn two_groups() -> Snapshot {
    let mut snapshot = running(demo_with(asked("{}")), (2, 0), "NN");
    snapshot.gangs.environment = native();
    add_workload(&mut snapshot, json!({}));
    admit(&mut snapshot);
    for name in ["demo-0-group", "demo-1-group"] {
        add_group(&mut snapshot, name, json!({}));
        snapshot.gangs.named.insert(name.into());
    }
    snapshot
}

fn condition(pass: &Pass) -> (String, String, String) {
    let conditions = pass.status()["conditions"].clone();
    let conditions = conditions.as_array().unwrap().iter();
    let found = conditions
        .filter(|of| of["type"] == "WorkloadSchedulingCreated")
        .map(|of| {
            let text = |member: &str| of[member].as_str().unwrap().to_owned();
            (text("status"), text("reason"), text("message"))
        })
        .collect::<Vec<_>>();
    found.into_iter().next().unwrap_or_default()
}

fn reason(pass: &Pass) -> String {
    condition(pass).1
}

#[test]
fn gang_nat_36_nat_53_the_workload_comes_before_the_leaders() {
    let pass = pass(&new("{}"));
    assert_eq!(
        pass.writes(),
        [
            "create ControllerRevision revision_missing",
            "create Workload workload_missing",
            "create+claim StatefulSet leader_set_missing",
            "create Service service_missing"
        ]
    );
    assert_eq!(
        condition(&pass),
        (
            "True".into(),
            "SchedulingPrerequisitesCreated".into(),
            "Scheduling prerequisites created".into()
        )
    );
    assert_eq!(pass.plan.plan.errors, []);
}

#[test]
fn pod_pt_9_gang_nat_28_leaders_are_told_level_and_workload() {
    let pass = pass(&new("{}"));
    let annotations =
        pass.body("StatefulSet")["spec"]["template"]["metadata"]["annotations"].clone();
    assert_eq!(
        annotations[annotation::WORKLOAD_AWARE_SCHEDULING],
        "replica"
    );
    let name = workload_name(&new("{}").lws);
    assert_eq!(annotations[annotation::WORKLOAD_NAME], json!(name));
    let without = self::pass(&bare(demo_with(json!({}))));
    let annotations =
        without.body("StatefulSet")["spec"]["template"]["metadata"]["annotations"].clone();
    assert_eq!(annotations.get(annotation::WORKLOAD_NAME), None);
    assert_eq!(condition(&without), Default::default());
}

#[test]
fn gang_nat_36_a_whole_set_gets_its_pod_group_before_its_leaders() {
    let mut snapshot = new(SET_GANG);
    let first = pass(&snapshot);
    assert_eq!(
        first.writes(),
        [
            "create ControllerRevision revision_missing",
            "create Workload workload_missing"
        ]
    );
    assert_eq!(
        condition(&first),
        Default::default(),
        "nothing is wrong, and not all is there"
    );
    add_workload(&mut snapshot, json!({}));
    let second = pass(&snapshot);
    assert_eq!(
        second.writes()[1..3],
        [
            "create PodGroup pod_group_missing",
            "create+claim StatefulSet leader_set_missing"
        ]
    );
    let group = second.body("PodGroup");
    let name = workload_name(&snapshot.lws);
    assert_eq!(
        group["metadata"]["name"],
        json!(pod_group_name(&name, Part::Set, "", ""))
    );
    assert_eq!(
        group["spec"]["schedulingPolicy"],
        json!({"gang": {"minCount": 6}})
    );
    assert_eq!(
        group["metadata"]["labels"],
        json!({label::NAME: "demo", label::SCHEDULING_LEVEL: "lws"})
    );
    assert_eq!(reason(&second), "SchedulingPrerequisitesCreated");
}

#[test]
fn gang_nat_42_scale_up_raises_the_count_before_there_are_leaders() {
    let mut snapshot = new(SET_GANG);
    add_workload(&mut snapshot, json!({}));
    let name = pod_group_name(&workload_name(&snapshot.lws), Part::Set, "", "");
    add_group(&mut snapshot, &name, json!({}));
    let mut lws = (*snapshot.lws).clone();
    lws.spec.replicas = Some(4);
    snapshot.lws = Arc::new(lws);
    let scaled = pass(&snapshot);
    assert_eq!(
        scaled.writes()[1..4],
        [
            "patch Workload workload_differs",
            "patch PodGroup pod_group_differs",
            "create+claim StatefulSet leader_set_missing"
        ]
    );
    assert_eq!(
        scaled.body("PodGroup")["spec"],
        json!({"schedulingPolicy": {"gang": {"minCount": 12}}})
    );
}

#[test]
fn gang_nat_43_what_is_as_wanted_costs_no_write() {
    let writes = pass(&two_groups()).writes();
    let of_gangs: Vec<_> = writes
        .iter()
        .filter(|write| write.contains("Workload") || write.contains("PodGroup"))
        .collect();
    assert_eq!(of_gangs, [""; 0]);
}

#[test]
fn gang_nat_53_cfg_1_what_keeps_leaders_from_being_applied() {
    let served = |workload, pod_group| Environment {
        served: ServedKinds {
            workload,
            pod_group,
        },
        ..native()
    };
    let mut several = new("{}");
    add_workload(&mut several, json!({}));
    add_workload(&mut several, json!({"metadata": {"name": "second"}}));
    let mut drifted = new("{}");
    add_workload(
        &mut drifted,
        json!({"spec": {"podGroupTemplates": [{"name": "replica", "schedulingPolicy": {"basic": {}}}]}}),
    );
    let two_levels = r#"{"schedulingPolicy": {"gang": {}}, "replica": {}}"#;
    let with = |environment| {
        let mut snapshot = new("{}");
        snapshot.gangs.environment = environment;
        snapshot
    };
    let mut dropped = two_groups();
    let mut pod = (*dropped.leaders[0]).clone();
    pod.scheduling_group = "".into();
    dropped.leaders[0] = Arc::new(pod);
    for (name, snapshot, expected) in [
        (
            "no provider",
            with(Environment::default()),
            "UnsupportedProviderCapability",
        ),
        ("no Workload", with(served(false, true)), "APINotAvailable"),
        ("no PodGroup", with(served(true, false)), "APINotAvailable"),
        ("NAT-59", dropped, "APINotAvailable"),
        (
            "two levels",
            new(two_levels),
            "InvalidSchedulingConfiguration",
        ),
        ("two Workloads", several, "InvalidSchedulingConfiguration"),
        ("drift", drifted, "InvalidSchedulingConfiguration"),
    ] {
        let pass = pass(&snapshot);
        assert!(
            !pass
                .writes()
                .iter()
                .any(|write| write.contains("StatefulSet")),
            "{name}: {:?}",
            pass.writes()
        );
        let (status, reason, message) = condition(&pass);
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("False", expected),
            "{name}"
        );
        assert_eq!(pass.plan.plan.errors[0].message, message, "{name}");
        let told = pass.report.steps[0].on_success.iter();
        let told: Vec<_> = told.filter(|notice| notice.reason == expected).collect();
        assert_eq!(told.len(), 1, "{name}");
    }
}

#[test]
fn gang_nat_36_a_failed_write_keeps_leaders_back_and_is_told() {
    let failure = Failure {
        class: Class::Rejected,
        message: "no such class".to_owned(),
        retry_after: None,
    };
    let fails =
        |request: &Request| (request.target().kind.name() == "Workload").then(|| failure.clone());
    let failed = pass_with(&new("{}"), fails);
    assert_eq!(
        condition(&failed),
        (
            "False".into(),
            "WorkloadCreateFailed".into(),
            "no such class".into()
        )
    );
    assert_eq!(
        failed.outcome.written.len(),
        1,
        "the revision and nothing else"
    );
}

#[test]
fn gang_nat_60_findings_about_single_groups_are_told_and_hold_nothing_up() {
    let mut snapshot = two_groups();
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    add_group(&mut snapshot, "demo-0-group", gone);
    let foreign = json!({"metadata": {"ownerReferences": []}});
    add_group(&mut snapshot, "demo-1-group", foreign);
    snapshot.applied = None;
    let pass = pass(&snapshot);
    assert_eq!(
        condition(&pass),
        (
            "False".into(),
            "PodGroupCleanupBlocked".into(),
            "PodGroup demo-0-group is being deleted; PodGroup demo-1-group exists and is not controlled by LeaderWorkerSet demo".into()
        )
    );
    assert!(
        pass.writes()
            .iter()
            .any(|write| write.contains("StatefulSet"))
    );
    let mut missing = two_groups();
    missing.gangs.pod_groups.clear();
    assert_eq!(
        reason(&self::pass(&missing)),
        "SchedulingPrerequisitesCreated"
    );
}

/// Writes of the plan about PodGroups, and when to look again.
fn cleaned(snapshot: &Snapshot, now: Timestamp) -> (usize, Option<u64>) {
    let planned = plan(snapshot, now);
    let deletes = planned.plan.steps.iter().filter(|step| {
        let is_fenced = matches!(
            &step.intent,
            Intent::Delete { uid, resource_version, .. }
                if uid.as_str() == "old-uid" && resource_version.as_deref() == Some("80")
        );
        step.intent.target().kind.name() == "PodGroup" && is_fenced
    });
    (
        deletes.count(),
        planned.plan.wake_after.map(|wait| wait.as_secs()),
    )
}

#[test]
fn gang_nat_44_a_pod_group_goes_after_30_s_in_which_nothing_needed_it() {
    let mut snapshot = two_groups();
    add_group(&mut snapshot, "old", json!({}));
    assert_eq!(cleaned(&snapshot, NOW), (0, Some(30)));
    let unneeded = plan(&snapshot, NOW).unneeded;
    assert_eq!(unneeded, ["old-uid".into()]);
    snapshot.gangs.unneeded.insert("old".into(), NOW);
    let later = |seconds| NOW + SignedDuration::from_secs(seconds);
    assert_eq!(cleaned(&snapshot, later(29)), (0, Some(1)));
    assert_eq!(cleaned(&snapshot, later(30)), (1, None));
    for patch in [
        json!({"metadata": {"ownerReferences": []}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ] {
        add_group(&mut snapshot, "old", patch);
        assert_eq!(
            cleaned(&snapshot, later(60)),
            (0, None),
            "foreign, or ending"
        );
    }
    add_group(&mut snapshot, "old", json!({}));
    snapshot.gangs.named.insert("old".into());
    assert_eq!(cleaned(&snapshot, later(60)), (0, None), "a pod names it");
}

#[test]
fn gang_nat_44_the_group_of_a_whole_set_goes_with_its_last_pod() {
    let mut snapshot = new(SET_GANG);
    add_workload(&mut snapshot, json!({}));
    let name = pod_group_name(&workload_name(&snapshot.lws), Part::Set, "", "");
    add_group(&mut snapshot, &name, json!({}));
    assert!(plan(&snapshot, NOW).unneeded.is_empty());
    let mut lws = (*snapshot.lws).clone();
    lws.spec.replicas = Some(0);
    snapshot.lws = Arc::new(lws);
    assert_eq!(plan(&snapshot, NOW).unneeded.len(), 1);
    snapshot.gangs.named.insert(name.as_str().into());
    assert!(plan(&snapshot, NOW).unneeded.is_empty());
}

#[test]
fn gang_nat_46_a_terminating_set_gets_no_scheduling_work() {
    let terminating = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut patch = asked("{}");
    json_patch::merge(&mut patch, &terminating);
    let mut snapshot = bare(demo_with(patch));
    snapshot.gangs.environment = native();
    assert!(pass(&snapshot).writes().is_empty());
}
