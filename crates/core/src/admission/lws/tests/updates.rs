use serde_json::{Value, json};

use super::super::mutate;
use super::{Environment, lws, native, rollout, spec, template, update, validate};

const SUBGROUP: &str = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value";

fn subgroups(size: i64, subgroup_size: i64) -> Value {
    template(json!({"size": size, "subGroupPolicy": {"subGroupSize": subgroup_size}}))
}

fn with_image(mut object: Value, image: &str) -> Value {
    object["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] =
        image.into();
    object
}

#[test]
fn adm_u_7_mutable_members() {
    let policy = |text: &str| spec(json!({"podTerminationPolicy": text}));
    let identity = |text: &str| {
        let mut object = spec(json!({}));
        object["spec"]["groupIdentity"] = text.into();
        object
    };
    let network = |text: &str| spec(json!({"networkConfig": {"subdomainPolicy": text}}));
    let mut no_termination_policy = spec(json!({}));
    no_termination_policy["spec"]["podTerminationPolicy"] = "".into();
    for (rule, old, new) in [
        (
            "size",
            template(json!({"size": 2})),
            template(json!({"size": 3})),
        ),
        (
            "templates",
            spec(json!({})),
            with_image(
                template(json!({"leaderTemplate": {"spec": {"containers": []}}})),
                "other",
            ),
        ),
        (
            "partition",
            rollout(json!({"partition": 0})),
            rollout(json!({"partition": 10})),
        ),
        ("subdomain", network("Shared"), network("UniquePerReplica")),
        (
            "subdomain back",
            network("UniquePerReplica"),
            network("Shared"),
        ),
        ("U-5 empty", identity(""), identity("Ordinal")),
        ("U-7", policy("Default"), policy("Parallel")),
        ("U-7 back", policy("Parallel"), policy("Default")),
        (
            "U-7 empty",
            no_termination_policy,
            with_image(policy("Default"), "other"),
        ),
    ] {
        assert!(
            update(&old, &new).is_empty(),
            "{rule}: {:?}",
            update(&old, &new)
        );
    }
}

#[test]
fn adm_u_1_u_2_u_3_subgroup_policy() {
    let none = template(json!({"size": 4}));
    let mut without_size = none.clone();
    without_size["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = json!({});
    for (rule, old, new, expected) in [
        ("U-1", subgroups(4, 1), subgroups(4, 2), vec![SUBGROUP]),
        (
            "U-1 and V-10",
            subgroups(4, 1),
            subgroups(4, 6),
            vec![SUBGROUP, SUBGROUP, SUBGROUP],
        ),
        ("U-2", none.clone(), subgroups(4, 2), vec![SUBGROUP]),
        ("U-3", subgroups(4, 2), none, vec![SUBGROUP]),
        ("legacy", without_size.clone(), subgroups(4, 2), vec![]),
        (
            "reverse",
            subgroups(4, 2),
            without_size,
            vec!["spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Required value"],
        ),
        ("resize", subgroups(4, 2), subgroups(6, 2), vec![]),
    ] {
        assert_eq!(update(&old, &new), expected, "{rule}");
    }
    let text = validate(
        &subgroups(4, 2),
        Some(&subgroups(4, 1)),
        &Environment::default(),
    )
    .to_string();
    assert!(text.ends_with("2: field is immutable"), "{text}");
    let text = validate(
        &template(json!({"size": 4})),
        Some(&subgroups(4, 2)),
        &Environment::default(),
    )
    .to_string();
    assert!(text.contains("Invalid value: 2: "), "the old size: {text}");
}

#[test]
fn adm_u_4_network_without_policy() {
    let old = lws(json!({}));
    let mut new = old.clone();
    new["spec"]["networkConfig"] = json!({});
    new["spec"]["replicas"] = 5.into();
    let mut bare = old;
    bare["spec"]
        .as_object_mut()
        .unwrap()
        .remove("networkConfig");
    assert_eq!(
        update(&bare, &new),
        ["spec.networkConfig.subdomainPolicy: Invalid value"]
    );
}

#[test]
fn adm_u_5_identity_is_immutable() {
    let (hash, ordinal) = (spec(json!({"groupIdentity": "Hash"})), spec(json!({})));
    for (old, new) in [(&hash, &ordinal), (&ordinal, &hash)] {
        let text = validate(new, Some(old), &Environment::default()).to_string();
        let value = &new["spec"]["groupIdentity"];
        assert_eq!(
            text,
            format!("spec.groupIdentity: Invalid value: {value}: field is immutable")
        );
    }
}

#[test]
fn adm_adm_7_stored_objects_stay_editable() {
    let broken = subgroups(4, 3_000);
    let mut relabelled = broken.clone();
    relabelled["metadata"]["annotations"] = json!({"note": "mine"});
    relabelled["metadata"]["finalizers"] = json!(["example.com/hold"]);
    assert!(update(&broken, &relabelled).is_empty(), "spec unchanged");

    let mut older = broken.clone();
    older["spec"]
        .as_object_mut()
        .unwrap()
        .remove("groupIdentity");
    assert!(
        update(&older, &relabelled).is_empty(),
        "spec unchanged after defaulting"
    );

    let mut badly_labelled = relabelled.clone();
    badly_labelled["metadata"]["labels"] = json!({"a b": "c"});
    assert_eq!(
        update(&broken, &badly_labelled),
        ["metadata.labels: Invalid value"],
        "V-1 holds always"
    );

    for key in ["exclusive-topology", "subgroup-exclusive-topology"] {
        let mut annotated = relabelled.clone();
        annotated["metadata"]["annotations"][format!("leaderworkerset.sigs.k8s.io/{key}")] =
            "rack".into();
        assert!(
            !update(&broken, &annotated).is_empty(),
            "{key} is read by rules"
        );
    }

    let mut deleting = with_image(subgroups(4, 0), "other");
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    deleting["metadata"]["name"] = "2cube".into();
    assert!(update(&broken, &deleting).is_empty(), "being deleted");
}

#[test]
fn adm_v_8_c02_a_scale_that_rounds_to_zero_does_not_block_later_updates() {
    let percent = |replicas: i64| {
        let mut object = rollout(json!({"maxUnavailable": "25%", "maxSurge": 0}));
        object["spec"]["replicas"] = replicas.into();
        object
    };
    let unavailable =
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable: Invalid value";
    assert!(update(&percent(2), &with_image(percent(2), "other")).is_empty());
    assert_eq!(update(&percent(4), &percent(2)), [unavailable]);
    assert_eq!(
        update(
            &rollout(json!({"maxUnavailable": 1, "maxSurge": 0})),
            &percent(2)
        ),
        [unavailable]
    );
}

#[test]
fn adm_s_1_scheduling_stays_usable_when_the_gate_goes() {
    let old = spec(json!({"replicas": 2, "leaderWorkerTemplate": {"size": 3}, "scheduling": {}}));
    assert!(update(&old, &with_image(old.clone(), "other")).is_empty());
    assert!(validate(&with_image(old.clone(), "other"), Some(&old), &native()).is_empty());
}

/// An apply of what is stored, or of what only spells defaults out, changes nothing.
#[test]
fn kue_usr_3_chk_3_the_stored_spec_can_be_applied_again() {
    let budget = json!({"maxUnavailable": 1, "maxSurge": 1});
    let stored = rollout(budget);
    assert_eq!(mutate(&stored), None);
    assert!(update(&stored, &stored).is_empty());
    let mut terse = stored.clone();
    for member in [
        "groupIdentity",
        "groupReplacementPolicy",
        "podTerminationPolicy",
        "networkConfig",
    ] {
        terse["spec"].as_object_mut().unwrap().remove(member);
    }
    let patch = mutate(&terse).expect("defaults");
    json_patch::patch(&mut terse, &patch).unwrap();
    assert_eq!(terse, stored);
}

/// KServe: subgroups of the size of the group.
#[test]
fn kue_usr_4_a_subgroup_may_be_the_whole_group() {
    assert!(update(&subgroups(4, 4), &with_image(subgroups(4, 4), "other")).is_empty());
    assert!(validate(&subgroups(4, 4), None, &Environment::default()).is_empty());
}
