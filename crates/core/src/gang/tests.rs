use std::sync::Arc;

use k8s_openapi::api::scheduling::v1beta1 as api;
use lws_api::names::{annotation, label};
use lws_api::scheduling::Scheduling;
use serde_json::{Value, json};

use super::count::least_of_set;
use super::drift::{Difference, compare};
use super::terms::Sizes;
use super::*;
use crate::build::gang as build;
use crate::intent::Intent;
use crate::leaderworkerset::tests::fixture::{demo_with, leader};
use crate::model::{Lws, Pod, PodGroup, Policy, Terms, Uid, Workload};
use crate::ownership::Ownership;

fn vllm(spec: Value) -> Lws {
    demo_with(json!({
        "metadata": {"name": "vllm", "namespace": "ns", "uid": "11111111-2222-3333-4444-555555555555"},
        "spec": spec,
    }))
}

fn scheduling(value: Value) -> Scheduling {
    serde_json::from_value(value).unwrap()
}

/// Templates of groups of three in a set of six pods.
fn of(value: Value) -> Vec<Template> {
    let sizes = Sizes { set: 6, group: 3 };
    templates(&vllm(json!({})).spec, &scheduling(value), sizes)
        .unwrap()
        .1
}

/// As the API server would show it.
fn stored_workload(mut object: Value) -> Workload {
    object["metadata"]["uid"] = json!("workload-uid");
    object["metadata"]["resourceVersion"] = json!("70");
    serde_json::from_value::<api::Workload>(object)
        .unwrap()
        .into()
}

fn stored_group(mut object: Value) -> PodGroup {
    object["metadata"]["uid"] = json!("group-uid");
    object["metadata"]["resourceVersion"] = json!("80");
    serde_json::from_value::<api::PodGroup>(object)
        .unwrap()
        .into()
}

/// An admitted leader of group 0 in revision `7c9d4f5b8`.
fn admitted(workload: &str, group: &str) -> Pod {
    let labels = json!({label::NAME: "vllm", label::WORKER_INDEX: "0", label::GROUP_INDEX: "0", label::REVISION: "7c9d4f5b8"});
    let mut pod = leader("vllm-0", labels, true);
    pod.meta.annotations = crate::model::Pairs::all(Some(
        &[(annotation::WORKLOAD_NAME.to_owned(), workload.to_owned())].into(),
    ));
    pod.scheduling_group = group.into();
    pod
}

#[test]
fn gang_nat_34_the_workload_is_named_after_set_and_uid() {
    assert_eq!(workload_name(&vllm(json!({}))), "vllm-68d7549f75");
    let long = demo_with(json!({"metadata": {"name": "x".repeat(253)}}));
    assert_eq!(workload_name(&long).len(), 253);
}

#[test]
fn gang_nat_35_pod_group_names() {
    let hash = "c6da7bccdf722954dd7b0470ffb1e81e301267bc";
    let (plain, fresh) = ("vllm-68d7549f75", "vllm-68d7549f75.x7k2p");
    for (workload, part, group, name) in [
        (fresh, Part::Group, "0", format!("{fresh}-0-7c9d4f5b8")),
        (
            fresh,
            Part::Leader,
            "0",
            format!("{fresh}-0-leader-7c9d4f5b8"),
        ),
        (
            fresh,
            Part::Workers,
            "0",
            format!("{fresh}-0-worker-7c9d4f5b8"),
        ),
        (
            plain,
            Part::Group,
            hash,
            format!("{plain}-{hash}-7c9d4f5b8"),
        ),
        (plain, Part::Set, "0", format!("{plain}-lws")),
    ] {
        assert_eq!(pod_group_name(workload, part, group, "7c9d4f5b8"), name);
    }
    assert_eq!(
        pod_group_name(&"x".repeat(253), Part::Set, "", "").len(),
        253
    );
}

#[test]
fn gang_nat_35_workers_carry_the_leaders_value_only_if_it_is_well_formed() {
    let plain = "vllm-68d7549f75";
    for (value, expected) in [
        (plain, plain),
        ("vllm-68d7549f75.x7k2p", "vllm-68d7549f75.x7k2p"),
        ("vllm-68d7549f75.", plain),
        ("vllm-68d7549f75.aaaaa", plain),
        ("vllm-68d7549f75.x7k2p.x7k2p", plain),
        ("other.x7k2p", plain),
        ("", plain),
    ] {
        assert_eq!(carried(&admitted(value, ""), plain), expected, "{value:?}");
    }
}

#[test]
fn gang_nat_42_least_number_while_sizes_are_mixed() {
    for (replicas, size, existing, expected) in [
        (2, 3, vec![], 6),
        (2, 3, vec![3], 6),
        (3, 3, vec![3, 3], 9),
        (2, 3, vec![2, 2], 4),
        (2, 3, vec![2], 4),
        (2, 3, vec![3, 2], 5),
        (2, 3, vec![2, 3, 2], 4),
        (3, 3, vec![3, 2], 7),
        (3, 4, vec![4, 2, 3], 9),
        (2, 2, vec![3, 3], 4),
        (2, 2, vec![2, 3], 4),
        (0, 3, vec![3], 1),
        (u32::MAX, u32::MAX, vec![u32::MAX], i32::MAX.unsigned_abs()),
    ] {
        let count = least_of_set(replicas, size, &existing);
        assert_eq!(count, expected, "{replicas} {size} {existing:?}");
    }
}

#[test]
fn lws_api_5_lws_api_6_gang_nat_33_templates_and_their_defaults() {
    let gang = |min_count| Policy::Gang { min_count };
    for (asked, expected) in [
        (json!({}), vec![("replica", gang(3))]),
        (json!({"replica": {}}), vec![("replica", gang(3))]),
        (
            json!({"replica": {"schedulingPolicy": {"basic": {}}}}),
            vec![("replica", Policy::Basic)],
        ),
        (
            json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}}),
            vec![("lws", Policy::Basic)],
        ),
        (
            json!({"schedulingPolicy": {"gang": {}}}),
            vec![("lws", gang(6))],
        ),
        (
            json!({"replica": {"worker": {"schedulingPolicy": {"gang": {}}}}}),
            vec![("leader", Policy::Basic), ("worker", gang(2))],
        ),
        (
            json!({"replica": {"leader": {"schedulingPolicy": {"gang": {"minCount": 1}}}}}),
            vec![("leader", gang(1)), ("worker", Policy::Basic)],
        ),
    ] {
        let shown: Vec<_> = of(asked.clone())
            .iter()
            .map(|template| (template.name, template.terms.policy))
            .collect();
        assert_eq!(shown, expected, "{asked}");
    }
    let two = scheduling(json!({"schedulingPolicy": {"gang": {}}, "replica": {}}));
    let refused = templates(&vllm(json!({})).spec, &two, Sizes::of_group(3));
    assert_eq!(refused.unwrap_err().reason, Reason::Invalid);
}

#[test]
fn gang_nat_33_a_workload_as_it_is_created() {
    let high = json!({"spec": {"priorityClassName": "high"}});
    let lws =
        vllm(json!({"leaderWorkerTemplate": {"leaderTemplate": high, "workerTemplate": high}}));
    let asked = json!({"replica": {
        "schedulingConstraints": {"topology": [{"key": "rack"}]}, "disruptionMode": {"all": {}},
    }});
    let (_, templates) = templates(&lws.spec, &scheduling(asked), Sizes::of_group(3)).unwrap();
    let Ok(Some(step)) = ensure_workload(&lws, &find_workload(&lws, &[]).unwrap(), &templates)
    else {
        panic!("a write")
    };
    let Intent::Create { body, .. } = &step.intent else {
        panic!("a create")
    };
    assert_eq!(
        **body,
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload",
            "metadata": {
                "name": "vllm-68d7549f75", "namespace": "ns", "labels": {label::NAME: "vllm"},
                "ownerReferences": [{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "vllm",
                    "uid": "11111111-2222-3333-4444-555555555555", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {
                "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "vllm"},
                "podGroupTemplates": [{
                    "name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}, "priorityClassName": "high",
                    "schedulingConstraints": {"topology": [{"key": "rack"}]}, "disruptionMode": {"all": {}},
                }],
            },
        })
    );
}

/// The PodGroups of group 0 of a set with its Workload.
fn groups<'a>(
    lws: &'a Lws,
    workload: &'a Workload,
    asked: &Value,
    size: u32,
) -> Vec<WantedGroup<'a>> {
    let pod = admitted("vllm-68d7549f75.x7k2p", "vllm-68d7549f75.x7k2p-0-7c9d4f5b8");
    of_group(lws, &scheduling(asked.clone()), workload, &pod, size).unwrap()
}

fn workload_for(lws: &Lws, asked: &Value) -> Workload {
    let key = lws.key().sibling(&workload_name(lws));
    stored_workload(build::workload(lws, &key, &of(asked.clone())))
}

fn created(wanted: &WantedGroup<'_>) -> Value {
    let Ok(Some(step)) = ensure_pod_group(wanted, None) else {
        panic!("a write")
    };
    let Intent::Create { body, .. } = step.intent else {
        panic!("a create")
    };
    (*body).clone()
}

#[test]
fn gang_nat_47_a_pod_group_has_the_terms_of_the_template_and_the_size_of_its_group() {
    let (lws, asked) = (vllm(json!({})), json!({}));
    let workload = workload_for(&lws, &asked);
    let wanted = groups(&lws, &workload, &asked, 2);
    assert_eq!(
        wanted.iter().map(created).collect::<Vec<_>>(),
        [json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {
                "name": "vllm-68d7549f75.x7k2p-0-7c9d4f5b8", "namespace": "ns",
                "labels": {label::NAME: "vllm", label::SCHEDULING_LEVEL: "replica", label::GROUP_INDEX: "0", label::REVISION: "7c9d4f5b8"},
                "ownerReferences": [
                    {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "vllm",
                        "uid": "11111111-2222-3333-4444-555555555555", "controller": true, "blockOwnerDeletion": true},
                    {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "vllm-68d7549f75", "uid": "workload-uid"},
                ],
            },
            "spec": {
                "workloadRef": {"workloadName": "vllm-68d7549f75", "templateName": "replica"},
                "schedulingPolicy": {"gang": {"minCount": 2}},
            },
        })]
    );
}

#[test]
fn gang_nat_47_leader_and_workers_have_a_pod_group_each_at_role_level() {
    let lws = vllm(json!({}));
    let gang = json!({"schedulingPolicy": {"gang": {}}});
    let claim = json!([{"name": "net", "resourceClaimTemplateName": "t"}]);
    let mut asked = json!({"replica": {"leader": gang, "worker": gang}});
    asked["replica"]["worker"]["resourceClaims"] = claim.clone();
    let workload = workload_for(&lws, &asked);
    let wanted = groups(&lws, &workload, &asked, 3);
    let shown: Vec<_> = wanted
        .iter()
        .map(|group| {
            let body = created(group);
            let (labels, spec) = (&body["metadata"]["labels"], &body["spec"]);
            (
                group.name.clone(),
                labels[label::ROLE].clone(),
                spec["workloadRef"]["templateName"].clone(),
                spec["schedulingPolicy"]["gang"]["minCount"].clone(),
                spec["resourceClaims"].clone(),
            )
        })
        .collect();
    let named = |name: &str| name.to_owned();
    assert_eq!(
        shown,
        [
            (
                named("vllm-68d7549f75.x7k2p-0-7c9d4f5b8"),
                json!("leader"),
                json!("leader"),
                json!(1),
                json!(null)
            ),
            (
                named("vllm-68d7549f75.x7k2p-0-worker-7c9d4f5b8"),
                json!("worker"),
                json!("worker"),
                json!(2),
                claim
            ),
        ]
    );
    assert_eq!(groups(&lws, &workload, &asked, 1).len(), 1, "no workers");
}

fn terms(value: Value) -> Terms {
    let mut template = json!({"name": "t", "schedulingPolicy": {"gang": {"minCount": 3}}});
    json_patch::merge(&mut template, &value);
    let template: api::PodGroupTemplate = serde_json::from_value(template).unwrap();
    crate::model::StoredTemplate::from(template).terms
}

#[test]
fn gang_nat_39_nat_40_nat_41_what_counts_as_drift() {
    let topology = json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}});
    let other = json!({"schedulingConstraints": {"topology": [{"key": "zone"}]}});
    let claims = json!({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]});
    let class = |name: &str| json!({"priorityClassName": name});
    let mode = |name: &str| json!({"disruptionMode": {name: {}}});
    let basic = json!({"schedulingPolicy": {"gang": null, "basic": {}}});
    let count = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let plain = json!({});
    let (drift, gate) = (Err("drift"), |name| Err(name));
    for (stored, wanted, expected) in [
        (&plain, &plain, Ok(Difference::None)),
        (&count, &plain, Ok(Difference::Count)),
        (&basic, &plain, drift),
        (&plain, &basic, drift),
        (&basic, &basic, Ok(Difference::None)),
        (&mode("single"), &plain, Ok(Difference::None)),
        (&plain, &mode("single"), Ok(Difference::None)),
        (&mode("all"), &plain, drift),
        (&class("global"), &plain, Ok(Difference::None)),
        (&class("global"), &class("high"), drift),
        (
            &json!({"priority": 7, "preemptionPolicy": "Never"}),
            &plain,
            Ok(Difference::None),
        ),
        (&topology, &topology, Ok(Difference::None)),
        (&other, &topology, drift),
        (&topology, &plain, drift),
        (&plain, &topology, gate("TopologyAwareWorkloadScheduling")),
        (&plain, &claims, gate("DRAWorkloadResourceClaims")),
        (&claims, &plain, drift),
    ] {
        let found = compare(&terms(stored.clone()), &terms(wanted.clone()), "it");
        match expected {
            Ok(difference) => assert_eq!(found, Ok(difference), "{stored} {wanted}"),
            Err(word) => {
                let fault = found.unwrap_err();
                assert_eq!(fault.reason, Reason::Invalid);
                assert!(fault.message.contains(word), "{}", fault.message);
            }
        }
    }
}

#[test]
fn gang_nat_37_the_workload_is_found_by_its_owner_whatever_its_name() {
    let (lws, asked) = (vllm(json!({})), json!({}));
    let mut workload = workload_for(&lws, &asked);
    workload.meta.key = lws.key().sibling("of-another-release");
    let one = [Arc::new(workload.clone())];
    let found = find_workload(&lws, &one).unwrap();
    assert_eq!(found.name(), "of-another-release");
    assert_eq!(
        ensure_workload(&lws, &found, &of(asked)),
        Ok(None),
        "no write"
    );
    assert_eq!(find_workload(&lws, &[]).unwrap().name(), "vllm-68d7549f75");
    let two = [one[0].clone(), one[0].clone()];
    assert_eq!(
        find_workload(&lws, &two).unwrap_err().reason,
        Reason::Invalid
    );
    workload.of.as_mut().unwrap().name = "other".into();
    let of_another = [Arc::new(workload)];
    assert_eq!(
        find_workload(&lws, &of_another).unwrap_err().reason,
        Reason::Invalid
    );
}

/// Body of the patch that brings a stored Workload to what is asked for groups of three.
fn patched(lws: &Lws, stored: &Workload, asked: Value) -> Option<Value> {
    let stored = [Arc::new(stored.clone())];
    let step = ensure_workload(lws, &find_workload(lws, &stored).unwrap(), &of(asked)).unwrap()?;
    let Intent::Patch {
        body,
        resource_version,
        ..
    } = step.intent
    else {
        panic!("a patch")
    };
    assert_eq!(resource_version.as_deref(), Some("70"));
    Some(body)
}

#[test]
fn gang_nat_39_nat_43_only_labels_and_counts_of_a_workload_are_written() {
    let lws = vllm(json!({}));
    let key = lws.key().sibling("w");
    let (_, of_two) = templates(&lws.spec, &scheduling(json!({})), Sizes::of_group(2)).unwrap();
    let mut object = build::workload(&lws, &key, &of_two);
    object["metadata"]["labels"] = json!(null);
    object["spec"]["podGroupTemplates"][0]["priority"] = json!(5);
    object["spec"]["podGroupTemplates"][0]["preemptionPolicy"] = json!("Never");
    let stored = stored_workload(object);
    assert_eq!(
        patched(&lws, &stored, json!({})),
        Some(json!({
            "metadata": {"labels": {label::NAME: "vllm"}},
            "spec": {"podGroupTemplates": [{
                "name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 5, "preemptionPolicy": "Never",
            }]},
        }))
    );
    let foreign = [Arc::new(stored)];
    let found = find_workload(&lws, &foreign).unwrap();
    let role = of(json!({"replica": {"leader": {}}}));
    assert_eq!(
        ensure_workload(&lws, &found, &role).unwrap_err().reason,
        Reason::Invalid
    );
}

#[test]
fn gang_nat_40_nat_45_vol_16_what_a_stored_pod_group_allows() {
    let (lws, asked) = (vllm(json!({})), json!({}));
    let workload = workload_for(&lws, &asked);
    let [wanted] = &*groups(&lws, &workload, &asked, 3) else {
        panic!("one")
    };
    let ensured = |patch: Value| {
        let mut object = created(wanted);
        json_patch::merge(&mut object, &patch);
        let step = ensure_pod_group(wanted, Some(&Arc::new(stored_group(object))));
        step.map(|step| {
            step.map(|step| match step.intent {
                Intent::Patch { body, .. } => body,
                other => panic!("{other:?}"),
            })
        })
        .map_err(|fault| fault.reason)
    };
    assert_eq!(ensured(json!({})), Ok(None));
    assert_eq!(
        ensured(json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})),
        Ok(Some(
            json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
        ))
    );
    assert_eq!(
        ensured(json!({"metadata": {"labels": {label::GROUP_INDEX: "7"}}})),
        Ok(Some(
            json!({"metadata": {"labels": {label::GROUP_INDEX: "0"}}})
        ))
    );
    let owners = created(wanted)["metadata"]["ownerReferences"].clone();
    let mut of_old = owners.clone();
    of_old[1]["uid"] = json!("old");
    let Ok(Some(body)) = ensured(json!({"metadata": {"ownerReferences": of_old}})) else {
        panic!("a write")
    };
    let written = &body["metadata"]["ownerReferences"];
    assert_eq!(
        (written.as_array().unwrap().len(), &written[2]),
        (3, &owners[1])
    );
    let blocked = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(ensured(blocked), Err(Reason::CleanupBlocked));
    let foreign = json!({"metadata": {"ownerReferences": []}});
    assert_eq!(ensured(foreign), Err(Reason::PodGroupCreateFailed));
    let elsewhere = json!({"spec": {"workloadRef": {"workloadName": "other"}}});
    assert_eq!(ensured(elsewhere), Err(Reason::Invalid));
}

#[test]
fn gang_nat_38_what_a_create_finds_is_ours_only_by_uid() {
    let lws = vllm(json!({}));
    let step = ensure_workload(&lws, &find_workload(&lws, &[]).unwrap(), &of(json!({})));
    let Intent::Create { accept, .. } = step.unwrap().unwrap().intent else {
        panic!("a create")
    };
    let crate::intent::Accept::Controlled { by, foreign } = accept else {
        panic!("by controller")
    };
    assert_eq!(by.uid, Uid::from("11111111-2222-3333-4444-555555555555"));
    assert!(foreign.contains("not controlled by LeaderWorkerSet vllm"));
    let meta = workload_for(&lws, &json!({})).meta;
    assert_eq!(crate::ownership::judge(&meta, &by), Ownership::Ours);
}
