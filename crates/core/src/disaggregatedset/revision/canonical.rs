//! The text that a revision value is made of (REV-1, REV-3).
//!
//! Frozen: children are named after its hash. Whoever changes what is written here rolls every DisaggregatedSet.

use std::fmt::Write as _;

use lws_api::disaggregatedset::Role;
use lws_api::leaderworkerset::LeaderWorkerSetSpec;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::shape::Shape;
use crate::build::without_nulls;

/// Members of a role's spec that start no rollout.
const LIVE: [&str; 3] = ["replicas", "rolloutStrategy", "groupReplacementPolicy"];
/// Members of `leaderWorkerTemplate` that start none.
const LIVE_IN_TEMPLATE: [&str; 2] = ["maxGroupRestarts", "restartBackoff"];

/// REV-1: the value that stands for what the roles want of their groups.
pub(super) fn hash(roles: &[Role]) -> String {
    let digest = Sha256::digest(text(roles).as_bytes());
    digest.iter().take(4).fold(String::new(), |mut hex, byte| {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// REV-3: one object per role, by name.
fn text(roles: &[Role]) -> String {
    let mut sorted: Vec<&Role> = roles.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut document: Value = sorted.into_iter().map(role).collect();
    document.sort_all_objects();
    document.to_string()
}

fn role(role: &Role) -> Value {
    let mut object = Map::from_iter([
        ("name".to_owned(), json!(role.name)),
        (
            "spec".to_owned(),
            role.spec.as_ref().map(normal).unwrap_or_default(),
        ),
    ]);
    let metadata = role.metadata.as_ref();
    for (name, pairs) in [
        (
            "labels",
            metadata.and_then(|metadata| metadata.labels.as_ref()),
        ),
        (
            "annotations",
            metadata.and_then(|metadata| metadata.annotations.as_ref()),
        ),
    ] {
        if let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) {
            object.insert(name.to_owned(), json!(pairs));
        }
    }
    Value::Object(object)
}

/// REV-3: a role's spec reduced to what its groups are made from.
pub(super) fn normal(spec: &LeaderWorkerSetSpec) -> Value {
    // Plain data with text keys: it has no way not to be serialised.
    normalised(serde_json::to_value(spec).unwrap_or_default())
}

/// The same for a spec that is JSON already.
pub(super) fn normalised(spec: Value) -> Value {
    let mut spec = without_nulls(&spec);
    drop_stamps(&mut spec);
    remove(&mut spec, &LIVE);
    if let Some(template) = spec.get_mut("leaderWorkerTemplate") {
        remove(template, &LIVE_IN_TEMPLATE);
    }
    unify_spellings(&mut spec);
    Shape::of_role().reduce(&mut spec);
    drop_empty_objects(&mut spec);
    spec
}

fn remove(object: &mut Value, members: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, _| !members.contains(&name.as_str()));
    }
}

/// REV-3 step 1: what serialisers of other languages leave in templates.
fn drop_stamps(spec: &mut Value) {
    for template in templates(spec) {
        drop_creation_time(template);
    }
    let claims = spec.pointer_mut("/leaderWorkerTemplate/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        drop_creation_time(claim);
        remove(claim, &["status"]);
    }
}

fn drop_creation_time(template: &mut Value) {
    if let Some(metadata) = template.get_mut("metadata") {
        remove(metadata, &["creationTimestamp"]);
    }
}

/// REV-3 step 3.
fn unify_spellings(spec: &mut Value) {
    if let Some(policy) = spec.pointer_mut("/leaderWorkerTemplate/restartPolicy")
        && policy == "Default"
    {
        *policy = json!("None");
    }
    let says_nothing = spec.get("networkConfig").is_some_and(|network| {
        *network == json!({}) || *network == json!({"subdomainPolicy": "Shared"})
    });
    if says_nothing {
        remove(spec, &["networkConfig"]);
    }
}

/// REV-3 step 5.
fn drop_empty_objects(spec: &mut Value) {
    for template in templates(spec) {
        for list in ["/spec/containers", "/spec/initContainers"] {
            let containers = template.pointer_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                drop_empty(container, &["resources"]);
            }
        }
        drop_empty_metadata(template);
    }
    let claims = spec.pointer_mut("/leaderWorkerTemplate/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        drop_empty_metadata(claim);
    }
}

fn drop_empty_metadata(template: &mut Value) {
    if let Some(metadata) = template.get_mut("metadata") {
        drop_empty(metadata, &["labels", "annotations"]);
    }
    drop_empty(template, &["metadata"]);
}

fn drop_empty(object: &mut Value, members: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, member| {
            !members.contains(&name.as_str())
                || member.as_object().is_none_or(|map| !map.is_empty())
        });
    }
}

/// The pod templates of a spec.
pub(super) fn templates(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let group = spec
        .get_mut("leaderWorkerTemplate")
        .and_then(Value::as_object_mut);
    group
        .into_iter()
        .flatten()
        .filter(|(name, _)| matches!(name.as_str(), "leaderTemplate" | "workerTemplate"))
        .map(|(_, template)| template)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role_with(name: &str, patch: Value) -> Role {
        let container = json!({"name": "nginx", "image": "nginx:1.27",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}});
        let template = json!({"size": 1, "workerTemplate": {"spec": {"containers": [container]}}});
        let mut role =
            json!({"name": name, "spec": {"replicas": 1, "leaderWorkerTemplate": template}});
        json_patch::merge(&mut role, &patch);
        serde_json::from_value(role).unwrap()
    }

    /// REV-8, each role with a patch.
    fn nginx(prefill: Value, decode: Value) -> Vec<Role> {
        vec![role_with("prefill", prefill), role_with("decode", decode)]
    }

    fn image(image: &str) -> Value {
        json!([{"name": "nginx", "image": image, "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}])
    }

    #[test]
    fn dsr_rev_8_vectors() {
        let none = json!({});
        let two = json!({"spec": {"replicas": 2}});
        let text_of_vector = text(&nginx(none.clone(), two.clone()));
        assert_eq!(text_of_vector.len(), 388, "{text_of_vector}");
        assert!(text_of_vector.starts_with(r#"[{"name":"decode","spec":{"leaderWorkerTemplate":"#));
        for (prefill, decode, value) in [
            (none.clone(), two.clone(), "907fa611"),
            (
                none.clone(),
                json!({"spec": {"startupPolicy": "LeaderReady"}}),
                "37ee9117",
            ),
            (
                none.clone(),
                json!({"spec": {"groupIdentity": "Hash"}}),
                "cf68657c",
            ),
            (
                none.clone(),
                json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}}),
                "ec287b78",
            ),
            (
                json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": image("nginx:1.28")}}}}}),
                two,
                "261ce115",
            ),
        ] {
            assert_eq!(hash(&nginx(prefill, decode)), value);
        }
        assert_eq!(hash(&[role_with("decode", none)]), "fc822bae");
    }

    #[test]
    fn dsr_rev_3_which_changes_make_a_new_revision() {
        let group = |patch: Value| json!({"spec": {"leaderWorkerTemplate": patch}});
        let pod =
            |patch: Value| json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": patch}}});
        let old = hash(&nginx(json!({}), json!({})));
        for (patch, is_new) in [
            (group(json!({"size": 2})), true),
            (group(json!({"restartPolicy": "None"})), true),
            (group(json!({"subGroupPolicy": {"subGroupSize": 1}})), true),
            (json!({"name": "other"}), true),
            (json!({"spec": {"groupIdentity": "Hash"}}), true),
            (json!({"spec": {"startupPolicy": "LeaderReady"}}), true),
            (
                json!({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}),
                true,
            ),
            (
                json!({"spec": {"networkConfig": {"subdomainPolicy": "Shared"}}}),
                false,
            ),
            (json!({"spec": {"networkConfig": {}}}), false),
            (group(json!({"size": null})), false),
            (
                group(json!({"restartPolicy": "RecreateGroupOnPodRestart"})),
                false,
            ),
            (json!({"metadata": {"labels": {"queue": "q"}}}), true),
            (json!({"metadata": {"annotations": {"a": "b"}}}), true),
            (json!({"metadata": {"labels": {}}}), false),
            (
                json!({"spec": {"groupReplacementPolicy": "Immediate"}}),
                false,
            ),
            (group(json!({"maxGroupRestarts": 3})), false),
            (group(json!({"restartBackoff": {"baseSeconds": 1}})), false),
            (json!({"spec": {"podTerminationPolicy": "Default"}}), false),
            (json!({"spec": {"podTerminationPolicy": "Parallel"}}), true),
            (json!({"spec": {"scheduling": {"replica": {}}}}), true),
            (json!({"spec": {"replicas": 7}}), false),
            (json!({"scaling": {"mode": "External"}}), false),
            (json!({"subRoles": [{"name": "a"}]}), false),
            (
                json!({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 2}}}}),
                false,
            ),
            (
                pod(json!({"metadata": {"creationTimestamp": null, "labels": {}}})),
                false,
            ),
            (pod(json!({"spec": {"hostNetwork": false}})), true),
        ] {
            assert_eq!(
                hash(&nginx(json!({}), patch.clone())) != old,
                is_new,
                "{patch}"
            );
        }
    }

    #[test]
    fn dsr_rev_3_the_order_of_roles_and_the_writing_of_quantities_are_no_change() {
        let roles = nginx(json!({}), json!({}));
        let reversed: Vec<Role> = roles.iter().rev().cloned().collect();
        assert_eq!(hash(&roles), hash(&reversed));
        let cpu = |cpu: Value| {
            let containers =
                json!([{"name": "c", "image": "i", "resources": {"limits": {"cpu": cpu}}}]);
            hash(&[role_with(
                "a",
                json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": containers}}}}}),
            )])
        };
        assert_eq!(cpu(json!("1000m")), cpu(json!(1)));
        assert_ne!(cpu(json!("1001m")), cpu(json!(1)));
    }

    #[test]
    fn dsr_rev_3_default_reads_as_none() {
        let policy = |policy: &str| {
            hash(&nginx(
                json!({}),
                json!({"spec": {"leaderWorkerTemplate": {"restartPolicy": policy}}}),
            ))
        };
        assert_eq!(policy("Default"), policy("None"));
    }
}
