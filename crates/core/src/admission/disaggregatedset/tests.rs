//! The tables of api-disaggregatedset section 12, row by row.

use serde_json::{Value, json};

use super::*;
use crate::admission::fixture::{heads, native};

/// A set of one role `decode` of two groups, with merge patches of the whole object and of the role.
fn set_with(patch: Value, role: Value) -> Value {
    let mut object = json!({
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": "demo", "namespace": "t1"},
        "spec": {"slices": 1},
    });
    json_patch::merge(&mut object, &patch);
    if object["spec"].get("roles").is_none() {
        object["spec"]["roles"] = json!([role_with("decode", role)]);
    }
    object
}

fn role_with(name: &str, patch: Value) -> Value {
    let template = json!({"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}});
    let mut role = json!({"name": name, "spec": {"replicas": 2, "leaderWorkerTemplate": template}});
    json_patch::merge(&mut role, &patch);
    role
}

fn role(patch: Value) -> Value {
    set_with(json!({}), patch)
}

fn spec(patch: Value) -> Value {
    role(json!({"spec": patch}))
}

fn rollout(replicas: i64, surge: Value, unavailable: Value) -> Value {
    let configuration = json!({"maxSurge": surge, "maxUnavailable": unavailable});
    json!({"spec": {"replicas": replicas, "rolloutStrategy": {"rollingUpdateConfiguration": configuration}}})
}

fn of_roles(roles: &[Value]) -> Value {
    set_with(json!({"spec": {"roles": roles}}), json!({}))
}

/// `path: Type` of every finding of a create.
fn create(object: &Value) -> Vec<String> {
    heads(&created(object))
}

fn created(object: &Value) -> Findings {
    validate(object, None, &native())
}

fn update(old: &Value, new: &Value) -> Vec<String> {
    heads(&validate(new, Some(old), &native()))
}

/// The whole text of the only finding of a create.
fn text(object: &Value) -> String {
    let findings = created(object);
    assert_eq!(findings.iter().count(), 1, "{findings}");
    findings.to_string()
}

const CONFIGURATION: &str = "spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration";

#[test]
fn ds_api_3_a_role_without_spec() {
    let bad = json!({"spec": null, "metadata": {"labels": {ds_label::SUBROLE: "x"}}, "scaling": {"mode": "External"}});
    assert_eq!(
        text(&role(bad)),
        "spec.roles[0].spec: Required value: a role needs the spec of its LeaderWorkerSets"
    );
}

#[test]
fn ds_v_1_rollout_type() {
    let of = |kind: Value| spec(json!({"rolloutStrategy": {"type": kind}}));
    assert_eq!(
        text(&of(json!("OnDelete"))),
        "spec.roles[0].spec.rolloutStrategy.type: Unsupported value: \"OnDelete\": supported values: \"RollingUpdate\""
    );
    for kind in [json!("RollingUpdate"), json!(""), json!(null)] {
        assert!(create(&of(kind)).is_empty());
    }
}

#[test]
fn ds_v_2_partition() {
    let of = |partition: Value| {
        spec(
            json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition, "maxUnavailable": 1}}}),
        )
    };
    assert_eq!(
        text(&of(json!(1))),
        format!(
            "{CONFIGURATION}.partition: Forbidden: a DisaggregatedSet rolls its roles out itself"
        )
    );
    for partition in [json!(0), json!(null)] {
        assert!(create(&of(partition)).is_empty());
    }
}

#[test]
fn ds_v_3_v_4_rollout_budgets() {
    let surge = format!("{CONFIGURATION}.maxSurge: Invalid value");
    let unavailable = format!("{CONFIGURATION}.maxUnavailable: Invalid value");
    for (replicas, with_surge, with_unavailable, found) in [
        (2, json!(0), json!(0), vec![&unavailable]),
        (2, json!("0%"), json!("0%"), vec![&unavailable]),
        (2, json!(0), json!("25%"), vec![&unavailable]),
        (4, json!(0), json!("25%"), vec![]),
        (0, json!(0), json!(0), vec![]),
        (0, json!(0), json!("abc"), vec![&unavailable]),
        (2, json!(0), json!(1), vec![]),
        (2, json!(1), json!("110%"), vec![&unavailable]),
        (2, json!("abc"), json!(-1), vec![&unavailable, &surge]),
        (2, json!("1"), json!(1), vec![&surge]),
        (2, json!("100%"), json!(0), vec![]),
    ] {
        let object = role(rollout(
            replicas,
            with_surge.clone(),
            with_unavailable.clone(),
        ));
        let found: Vec<String> = found.into_iter().cloned().collect();
        assert_eq!(
            create(&object),
            found,
            "{replicas} {with_surge} {with_unavailable}"
        );
    }
    assert_eq!(
        text(&role(rollout(2, json!(0), json!(0)))),
        format!(
            "{CONFIGURATION}.maxUnavailable: Invalid value: 0: must not be 0 when `maxSurge` is 0"
        )
    );
    assert_eq!(
        text(&role(rollout(2, json!("1"), json!(1)))),
        format!(
            "{CONFIGURATION}.maxSurge: Invalid value: \"1\": must be an integer or a percentage such as \"25%\""
        )
    );
    assert_eq!(
        text(&role(rollout(2, json!(1), json!("110%")))),
        format!(
            "{CONFIGURATION}.maxUnavailable: Invalid value: \"110%\": must not be greater than 100%"
        )
    );
    assert_eq!(
        text(&role(rollout(2, json!(1), json!(-1)))),
        format!("{CONFIGURATION}.maxUnavailable: Invalid value: -1: must not be negative")
    );
}

#[test]
fn ds_v_4_of_an_external_role_only_plain_zeros() {
    let external = |surge: Value, unavailable: Value| {
        let mut role = rollout(1, surge, unavailable);
        role["scaling"] = json!({"mode": "External"});
        create(&self::role(role))
    };
    assert!(external(json!(0), json!("25%")).is_empty());
    assert_eq!(external(json!(0), json!(0)).len(), 1);
    assert_eq!(external(json!("0%"), json!(0)).len(), 1);
}

#[test]
fn ds_v_5_the_label_of_sub_roles() {
    let labels = json!({"metadata": {"labels": {ds_label::SUBROLE: "x"}}});
    let object = role(json!({
        "metadata": labels["metadata"],
        "spec": {"leaderWorkerTemplate": {"workerTemplate": labels, "leaderTemplate": labels}},
    }));
    let template = "spec.roles[0].spec.leaderWorkerTemplate";
    assert_eq!(
        create(&object),
        [
            format!(
                "spec.roles[0].metadata.labels[{}]: Forbidden",
                ds_label::SUBROLE
            ),
            format!(
                "{template}.workerTemplate.metadata.labels[{}]: Forbidden",
                ds_label::SUBROLE
            ),
            format!(
                "{template}.leaderTemplate.metadata.labels[{}]: Forbidden",
                ds_label::SUBROLE
            ),
        ]
    );
    let one = text(&role(json!({"metadata": labels["metadata"]})));
    assert_eq!(
        one,
        "spec.roles[0].metadata.labels[disaggregatedset.x-k8s.io/subrole]: Forbidden: is set by the controller on pods"
    );
}

#[test]
fn ds_v_6_rules_of_leaderworkersets() {
    let template = |patch: Value| spec(json!({"leaderWorkerTemplate": patch}));
    let at = |path: &str| format!("spec.roles[0].spec.{path}");
    for (object, found) in [
        (template(json!({"size": 4, "subGroupPolicy": {"subGroupSize": 3}})), vec![]),
        (
            template(json!({"size": 4, "subGroupPolicy": {"subGroupSize": 5}})),
            vec![
                at("leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value"),
                at("leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value"),
            ],
        ),
        (
            template(json!({"subGroupPolicy": {}})),
            vec![at("leaderWorkerTemplate.subGroupPolicy.subGroupSize: Required value")],
        ),
        (template(json!({"size": 0})), vec![at("leaderWorkerTemplate.size: Invalid value")]),
        (template(json!({"size": 2_000_000_000})), vec![at("replicas: Invalid value")]),
        (spec(json!({"replicas": -1})), vec![at("replicas: Invalid value")]),
        (
            template(json!({"restartPolicy": "None", "maxGroupRestarts": 1})),
            vec![at("leaderWorkerTemplate.maxGroupRestarts: Invalid value")],
        ),
        (
            template(json!({"restartBackoff": {"baseSeconds": 600, "capSeconds": 300}})),
            vec![at("leaderWorkerTemplate.restartBackoff.baseSeconds: Invalid value")],
        ),
        (
            spec(json!({"groupReplacementPolicy": "Immediate"})),
            vec![at("groupReplacementPolicy: Invalid value")],
        ),
        (
            spec(json!({"podTerminationPolicy": "Never"})),
            vec![at("podTerminationPolicy: Unsupported value")],
        ),
        (
            role(json!({"metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}}})),
            vec!["spec.roles[0].metadata.annotations.leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: Invalid value".to_owned()],
        ),
    ] {
        assert_eq!(create(&object), found, "{object}");
    }
}

/// The rules about a child without the refusal of what is not built yet.
fn child(object: &Value, is_strict: bool, opts_in: bool, environment: &Environment) -> Vec<String> {
    let mut findings = Findings::default();
    let child = json!({"metadata": {"ownerReferences": [{"controller": true}]}, "spec": object["spec"]["roles"][0]["spec"]});
    let context = RoleContext {
        is_strict,
        is_static: true,
        opts_in,
        environment,
    };
    lws::check_role(&Subject::of(&child), context, &mut findings);
    heads(&findings)
}

#[test]
fn ds_v_6_gang_scheduling_depends_on_the_installation_only_when_it_comes() {
    let object = spec(json!({"scheduling": {}}));
    let none = Environment::default();
    assert_eq!(
        child(&object, true, true, &none),
        ["spec.scheduling: Forbidden"]
    );
    assert!(child(&object, true, false, &none).is_empty());
    assert!(child(&object, true, true, &native()).is_empty());
    let late = spec(json!({"scheduling": {}, "startupPolicy": "LeaderReady"}));
    assert_eq!(
        child(&late, true, true, &native()),
        ["spec.scheduling: Forbidden"]
    );
    let two = spec(json!({"scheduling": {"schedulingPolicy": {"basic": {}}, "replica": {}}}));
    assert_eq!(
        child(&two, true, true, &native()),
        ["spec.scheduling: Invalid value"]
    );
    assert!(
        child(&late, false, false, &native()).is_empty(),
        "an untouched role"
    );
    let claims = spec(
        json!({"groupIdentity": "Hash", "leaderWorkerTemplate": {"volumeClaimTemplates": [{}]}}),
    );
    assert_eq!(
        child(&claims, false, false, &native()),
        ["spec.groupIdentity: Invalid value"]
    );
}

fn children(list: Value) -> Value {
    json!({"subRoles": list})
}

#[test]
fn ds_v_7_sub_roles_and_scaling() {
    let mut patch = children(json!([{"name": "a"}]));
    patch["scaling"] = json!({"mode": "Static"});
    assert_eq!(
        text(&role(patch)),
        "spec.roles[0].scaling: Forbidden: its sub-roles are scaled instead"
    );
}

#[test]
fn ds_v_8_too_many_groups() {
    let most = |replicas: i64| {
        role(children(
            json!([{"name": "a", "replicas": replicas}, {"name": "b"}]),
        ))
    };
    assert_eq!(
        text(&most(2_147_483_647)),
        "spec.roles[0].subRoles: Invalid value: 2147483648: replicas of the sub-roles must not be more than 2147483647 together"
    );
    let external = json!([{"name": "a", "replicas": 2_147_483_646}, {"name": "b"}, {"name": "c", "scaling": {"mode": "External"}}]);
    assert!(
        create(&role(children(external)))
            .iter()
            .all(|found| !found.contains("subRoles"))
    );
}

#[test]
fn ds_v_9_v_10_names_of_scalers() {
    let external = json!({"scaling": {"mode": "External"}});
    let collision = of_roles(&[
        role_with("a-b", external.clone()),
        role_with(
            "a",
            children(json!([{"name": "b", "scaling": {"mode": "External"}}])),
        ),
    ]);
    assert_eq!(
        text(&collision),
        "spec.roles[1].subRoles[0].name: Invalid value: \"b\": its scaler would be named demo-a-b, like that of another role"
    );
    let other_way = of_roles(&[
        role_with(
            "a",
            children(json!([{"name": "b", "scaling": {"mode": "External"}}])),
        ),
        role_with("a-b", external.clone()),
    ]);
    assert_eq!(
        text(&other_way),
        "spec.roles[1].name: Invalid value: \"a-b\": its scaler would be named demo-a-b, like that of another role"
    );
    let long = "x".repeat(250);
    let too_long = set_with(json!({"metadata": {"name": long}}), external);
    assert_eq!(
        create(&too_long),
        [
            "spec.roles[0].name: Invalid value",
            "spec.roles[0].name: Invalid value"
        ]
    );
    let found = validate(&too_long, None, &native()).to_string();
    assert!(
        found
            .contains("the name of its scaler would have 257 characters, at most 253 are possible"),
        "{found}"
    );
    let part = set_with(
        json!({"metadata": {"name": "x".repeat(250)}}),
        children(json!([{"name": "a", "scaling": {"mode": "External"}}])),
    );
    assert_eq!(
        create(&part)[0],
        "spec.roles[0].subRoles[0].name: Invalid value"
    );
}

#[test]
fn ds_v_11_slices_and_external_roles() {
    let external = json!({"scaling": {"mode": "External"}});
    let part = children(json!([{"name": "a", "scaling": {"mode": "External"}}]));
    for role in [external.clone(), part] {
        let found = text(&set_with(json!({"spec": {"slices": 2}}), role));
        assert_eq!(
            found,
            "spec.slices: Forbidden: spec.slices > 1 is not supported while a role has scaling.mode External; set slices to 1 or make the role Static"
        );
    }
    assert!(create(&set_with(json!({"spec": {"slices": 1}}), external)).is_empty());
    assert!(create(&set_with(json!({"spec": {"slices": 2}}), json!({}))).is_empty());
}

#[test]
fn ds_v_12_name_budget() {
    let hash = |size: i64| json!({"groupIdentity": "Hash", "leaderWorkerTemplate": {"size": size}});
    for (set, role, slices, patch, length, allowed) in [
        (31, 7, 1, json!({"replicas": 1}), 63, None),
        (31, 8, 1, json!({"replicas": 1}), 64, Some(38)),
        (31, 7, 11, json!({"replicas": 1}), 64, Some(37)),
        (31, 7, 10, json!({"replicas": 1}), 63, None),
        (30, 7, 1, json!({"replicas": 11}), 63, None),
        (31, 7, 1, json!({"replicas": 11}), 64, Some(37)),
        (12, 7, 1, json!({"replicas": 1}), 44, None),
        (31, 7, 1, json!({"replicas": 0}), 63, None),
        (20, 19, 1, json!({"replicas": 1}), 64, Some(38)),
        (20, 18, 11, json!({"replicas": 1}), 64, Some(37)),
        (20, 17, 11, json!({"replicas": 1}), 63, None),
        (24, 7, 1, hash(2), 63, None),
        (25, 7, 1, hash(2), 64, Some(31)),
        (35, 7, 1, hash(1), 63, None),
        (36, 7, 1, hash(1), 64, Some(42)),
    ] {
        let object = named(set, role, slices, &json!({"spec": patch}));
        check_names(&object, length, allowed);
    }
}

/// A set and a role with names of so many characters.
fn named(set: usize, role: usize, slices: i64, patch: &Value) -> Value {
    set_with(
        json!({
            "metadata": {"name": "s".repeat(set)},
            "spec": {"slices": slices, "roles": [role_with(&"r".repeat(role), patch.clone())]},
        }),
        json!({}),
    )
}

fn check_names(object: &Value, length: usize, allowed: Option<usize>) {
    match allowed {
        None => assert!(create(object).is_empty(), "{object}"),
        Some(allowed) => {
            let found = text(object);
            assert!(
                found.starts_with("spec.roles[0].name: Invalid value: \"rrr"),
                "{found}"
            );
            let detail = format!(
                "generated names would have {length} characters, at most 63 are possible: the names of the DisaggregatedSet and of the role may have {allowed} characters together"
            );
            assert!(found.ends_with(&detail), "{found}");
        }
    }
}

#[test]
fn ds_v_13_a_placement_needs_a_topology() {
    let policy = |policy: Value| set_with(json!({"spec": {"placementPolicy": policy}}), json!({}));
    assert_eq!(
        text(&policy(json!({"type": "ExclusiveSlice"}))),
        "spec.placementPolicy.topology: Required value: type ExclusiveSlice needs the node label of its domains"
    );
    assert_eq!(
        create(&policy(
            json!({"type": "ExclusiveTopology", "topology": ""})
        ))
        .len(),
        1
    );
    for allowed in [
        json!({"type": "None"}),
        json!({"type": ""}),
        json!({}),
        json!({"type": "ExclusiveSlice", "topology": "rack"}),
    ] {
        assert!(create(&policy(allowed)).is_empty());
    }
}

#[test]
fn ds_v_14_one_placement_only() {
    const KEY: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
    let annotated = json!({"metadata": {"annotations": {KEY: "rack"}}});
    let placed =
        json!({"spec": {"placementPolicy": {"type": "ExclusiveSlice", "topology": "rack"}}});
    for role in [
        annotated.clone(),
        json!({"spec": {"leaderWorkerTemplate": {"leaderTemplate": annotated}}}),
        json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": annotated}}}),
    ] {
        let found = text(&set_with(placed.clone(), role.clone()));
        assert_eq!(
            found,
            format!(
                "spec.roles[0]: Forbidden: the annotation {KEY} cannot be combined with spec.placementPolicy.type ExclusiveSlice"
            )
        );
        assert!(
            create(&set_with(
                json!({"spec": {"placementPolicy": {"type": "None", "topology": "rack"}}}),
                role
            ))
            .is_empty()
        );
    }
    let sub = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
    let worker = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": {sub: "rack"}}}}}});
    assert!(text(&set_with(placed.clone(), worker)).contains(sub));
    let (plain, both) = (role(json!({})), set_with(placed.clone(), annotated.clone()));
    assert_eq!(
        update(&role(annotated), &both),
        ["spec.roles[0]: Forbidden"]
    );
    assert_eq!(
        update(&set_with(placed, json!({})), &both),
        ["spec.roles[0]: Forbidden"]
    );
    assert!(update(&plain, &role(json!({"spec": {"replicas": 3}}))).is_empty());
}

#[test]
fn ds_v_15_hash_and_sub_roles() {
    let mut patch = children(json!([{"name": "a"}]));
    patch["spec"] = json!({"groupIdentity": "Hash"});
    assert_eq!(
        text(&role(patch)),
        "spec.roles[0].spec.groupIdentity: Forbidden: Hash is not supported together with subRoles"
    );
    let hash = role(json!({"spec": {"groupIdentity": "Hash"}}));
    assert!(create(&hash).is_empty());
}

#[test]
fn ds_v_17_any_mix_of_static_and_external_roles() {
    let external = json!({"scaling": {"mode": "External"}, "spec": {"replicas": 1}});
    assert!(
        create(&of_roles(&[
            role_with("a", external.clone()),
            role_with("b", json!({}))
        ]))
        .is_empty()
    );
    assert!(
        create(&of_roles(&[
            role_with("a", external.clone()),
            role_with("b", external)
        ]))
        .is_empty()
    );
}

#[test]
fn ds_v_all_errors_come_in_one_answer() {
    let object = set_with(
        json!({"spec": {"placementPolicy": {"type": "ExclusiveSlice"}}}),
        json!({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": 1}}}}),
    );
    let partition = format!("{CONFIGURATION}.partition: Forbidden");
    assert_eq!(
        create(&object),
        [
            partition.as_str(),
            "spec.placementPolicy.topology: Required value"
        ]
    );
}

#[test]
fn ds_v_updates_that_are_never_held_up() {
    let broken = role(
        json!({"spec": {"leaderWorkerTemplate": {"size": 0}, "rolloutStrategy": {"type": "OnDelete"}}}),
    );
    let with = |object: &Value, patch: Value| {
        let mut object = object.clone();
        json_patch::merge(&mut object, &patch);
        object
    };
    let labelled = with(
        &broken,
        json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}}),
    );
    assert!(update(&broken, &labelled).is_empty());
    let leaving =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"slices": 3}});
    assert!(update(&broken, &with(&broken, leaving)).is_empty());
    let scaled = with(&broken, json!({"spec": {"slices": 3}}));
    assert_eq!(
        update(&broken, &scaled),
        ["spec.roles[0].spec.rolloutStrategy.type: Unsupported value"],
        "only rules that upstream has too"
    );
    let metadata = role(json!({
        "spec": {"leaderWorkerTemplate": {"size": 0}, "rolloutStrategy": {"type": "OnDelete"}},
        "metadata": {"labels": {"a": "b"}},
    }));
    assert_eq!(update(&broken, &metadata).len(), 2, "the role was touched");
    let mut external = rollout(0, json!(0), json!("abc"));
    external["scaling"] = json!({"mode": "External"});
    let stored = role(external);
    assert_eq!(create(&stored).len(), 1);
    assert!(
        update(
            &stored,
            &with(&stored, json!({"spec": {"scalingPolicy": {}}}))
        )
        .is_empty()
    );
}

#[test]
fn ds_w_1_w_2_w_3_warnings() {
    let warnings = |object: &Value| validate(object, None, &native()).warnings().to_vec();
    let external = |replicas: i64| {
        role(json!({"scaling": {"mode": "External"}, "spec": {"replicas": replicas}}))
    };
    assert_eq!(
        warnings(&external(5)),
        [
            "role decode: spec.replicas 5 is ignored, DisaggregatedSetRoleScaler demo-decode says how many groups there are"
        ]
    );
    assert!(create(&external(5)).is_empty());
    assert!(warnings(&external(1)).is_empty());
    assert_eq!(
        warnings(&role(children(json!([{"name": "a"}])))),
        ["role decode: spec.replicas 2 is ignored, the sum of its sub-roles is used"]
    );
    let labels = json!({"metadata": {"labels": {ds_label::SLICE: "7", "x": "y"}}});
    let labelled = role(
        json!({"metadata": labels["metadata"], "spec": {"leaderWorkerTemplate": {"workerTemplate": labels}}}),
    );
    assert_eq!(
        warnings(&labelled),
        ["role decode: the controller's value of label disaggregatedset.x-k8s.io/slice wins"]
    );
}

#[test]
fn ds_v_objects_of_any_shape_are_judged() {
    for object in [
        json!(null),
        json!({}),
        json!({"spec": 7}),
        json!({"spec": {"roles": {}}}),
        json!({"spec": {"roles": [null, 3, {}, {"name": 5, "spec": []}]}}),
        json!({"spec": {"roles": [{"spec": {"replicas": "x", "leaderWorkerTemplate": 3}, "subRoles": [1, null]}]}}),
        json!({"spec": {"slices": "a", "placementPolicy": [], "roles": [{"name": "a", "spec": {"rolloutStrategy": 1}}]}}),
    ] {
        let _ = validate(&object, None, &native());
        let _ = validate(&object, Some(&json!({"spec": {"roles": 1}})), &native());
    }
}
