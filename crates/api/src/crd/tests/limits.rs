//! Limits, enums, defaults and required members of our own fields.

use super::*;

/// Every mark [S] of api-leaderworkerset section 2, and nothing where the webhook alone decides.
#[test]
fn lws_api_4_schema_limits_and_defaults() {
    let schema = schema(LWS);
    for (path, expected) in [
        (
            "spec.replicas",
            json!({"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 1_000_000}),
        ),
        (
            "spec.startupPolicy",
            json!({"type": "string", "default": "LeaderCreated", "enum": ["LeaderCreated", "LeaderReady"]}),
        ),
        (
            "spec.groupIdentity",
            json!({"type": "string", "default": "Ordinal", "enum": ["Ordinal", "Hash"]}),
        ),
        (
            "spec.groupReplacementPolicy",
            json!({"type": "string", "default": "PostTermination", "enum": ["Immediate", "PostTermination"]}),
        ),
        (
            "spec.podTerminationPolicy",
            json!({"type": "string", "default": "Default", "enum": ["Default", "Parallel"]}),
        ),
        (
            "spec.networkConfig.subdomainPolicy",
            json!({"type": "string", "enum": ["Shared", "UniquePerReplica"]}),
        ),
        (
            "spec.rolloutStrategy.type",
            json!({"type": "string", "default": "RollingUpdate", "enum": ["RollingUpdate"]}),
        ),
        (
            "spec.rolloutStrategy.rollingUpdateConfiguration.partition",
            json!({"type": "integer", "format": "int32", "default": 0}),
        ),
        (
            "spec.leaderWorkerTemplate.size",
            json!({"type": "integer", "format": "int32", "default": 1}),
        ),
        (
            "spec.leaderWorkerTemplate.restartPolicy",
            json!({
                "type": "string",
                "default": "RecreateGroupOnPodRestart",
                "enum": ["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"],
            }),
        ),
        (
            "spec.leaderWorkerTemplate.maxGroupRestarts",
            json!({"type": "integer", "format": "int32", "minimum": 0}),
        ),
        (
            "spec.leaderWorkerTemplate.restartBackoff.baseSeconds",
            json!({"type": "integer", "format": "int32", "default": 10, "minimum": 1}),
        ),
        (
            "spec.leaderWorkerTemplate.restartBackoff.capSeconds",
            json!({"type": "integer", "format": "int32", "default": 300, "minimum": 1}),
        ),
        (
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
            json!({"type": "string", "default": "LeaderWorker", "enum": ["LeaderWorker", "LeaderExcluded"]}),
        ),
        (
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
            json!({"type": "integer", "format": "int32"}),
        ),
        (
            "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenDeleted",
            json!({"type": "string"}),
        ),
        (
            "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenScaled",
            json!({"type": "string"}),
        ),
        (
            "spec.scheduling.replica.leader.schedulingPolicy.gang.minCount",
            json!({"type": "integer", "format": "int32"}),
        ),
        (
            "spec.scheduling.schedulingPolicy.gang.minGroupCount",
            json!({"type": "integer", "format": "int32"}),
        ),
        (
            "spec.scheduling.disruptionMode.single",
            json!({"type": "object"}),
        ),
    ] {
        assert_eq!(
            without_description(field(&schema, path)),
            expected,
            "{path}"
        );
    }
    for (path, default) in [("maxUnavailable", 1), ("maxSurge", 0)] {
        let budget = field(
            &schema,
            &format!("spec.rolloutStrategy.rollingUpdateConfiguration.{path}"),
        );
        assert_eq!(
            (&budget["default"], &budget["x-kubernetes-int-or-string"]),
            (&json!(default), &json!(true))
        );
    }
}

fn without_description(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema.as_object_mut().unwrap().remove("description");
    schema
}

#[test]
fn lws_required_members_and_lists() {
    let schema = schema(LWS);
    for (path, required) in [
        ("spec", json!(["leaderWorkerTemplate"])),
        ("spec.leaderWorkerTemplate", json!(["workerTemplate"])),
        (
            "spec.leaderWorkerTemplate.workerTemplate.spec",
            json!(["containers"]),
        ),
        ("spec.rolloutStrategy", json!(["type"])),
        ("spec.networkConfig", json!(["subdomainPolicy"])),
        (
            "spec.scheduling.schedulingConstraints.topology[]",
            json!(["key"]),
        ),
        (
            "spec.scheduling.replica.worker.resourceClaims[]",
            json!(["name"]),
        ),
    ] {
        assert_eq!(field(&schema, path)["required"], required, "{path}");
    }
    for (path, default) in [
        ("spec.rolloutStrategy", Value::Null),
        (
            "spec.rolloutStrategy.rollingUpdateConfiguration",
            Value::Null,
        ),
        ("spec.networkConfig", Value::Null),
        ("spec.leaderWorkerTemplate.restartBackoff", Value::Null),
    ] {
        assert_eq!(
            field(&schema, path)["default"],
            default,
            "{path} is filled by the webhook or not at all"
        );
    }
    let claims = field(&schema, "spec.leaderWorkerTemplate.volumeClaimTemplates");
    assert_eq!(
        (
            &claims["x-kubernetes-list-type"],
            claims.get("x-kubernetes-list-map-keys")
        ),
        (&json!("atomic"), None)
    );
    let shared = field(&schema, "spec.scheduling.replica.leader.resourceClaims");
    assert_eq!(
        (&shared["maxItems"], &shared["x-kubernetes-list-map-keys"]),
        (&json!(4), &json!(["name"]))
    );
    let topology = field(
        &schema,
        "spec.scheduling.replica.schedulingConstraints.topology",
    );
    assert_eq!(topology["x-kubernetes-list-type"], "atomic");
}

#[test]
fn ds_schema_limits_and_defaults() {
    let schema = schema(DS);
    let name = json!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"});
    let mode = json!({"type": "string", "default": "Static", "enum": ["Static", "External"]});
    for (path, expected) in [
        ("spec.roles[].name", name.clone()),
        ("spec.roles[].subRoles[].name", name),
        ("spec.roles[].scaling.mode", mode.clone()),
        ("spec.roles[].subRoles[].scaling.mode", mode),
        (
            "spec.roles[].subRoles[].replicas",
            json!({"type": "integer", "format": "int32", "minimum": 0}),
        ),
        (
            "spec.slices",
            json!({"type": "integer", "format": "int32", "default": 1, "minimum": 1, "maximum": 100}),
        ),
        (
            "spec.scalingPolicy.duringRollout",
            json!({"type": "string", "default": "RolloutCoupled", "enum": ["RolloutCoupled", "AdvanceRollout"]}),
        ),
        (
            "spec.placementPolicy.type",
            json!({"type": "string", "default": "None", "enum": ["None", "ExclusiveSlice", "ExclusiveTopology"]}),
        ),
        (
            "spec.placementPolicy.topology",
            json!({"type": "string", "default": ""}),
        ),
        (
            "spec.roles[].spec.replicas",
            json!({"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 1_000_000}),
        ),
    ] {
        assert_eq!(
            without_description(field(&schema, path)),
            expected,
            "{path}"
        );
    }
    for (path, least, most) in [
        ("spec.roles", json!(1), json!(10)),
        ("spec.roles[].subRoles", json!(1), json!(32)),
    ] {
        let list = field(&schema, path);
        assert_eq!(
            (&list["minItems"], &list["maxItems"]),
            (&least, &most),
            "{path}"
        );
        assert_eq!(
            list["x-kubernetes-list-map-keys"],
            json!(["name"]),
            "{path}"
        );
    }
    assert_eq!(field(&schema, "spec")["required"], json!(["roles"]));
    assert_eq!(field(&schema, "spec.roles[]")["required"], json!(["name"]));
    assert_eq!(
        field(&schema, "spec.roles[].spec")["required"],
        json!(["leaderWorkerTemplate"])
    );
    assert_eq!(field(&schema, "spec.roles[].scaling").get("default"), None);
    assert_eq!(
        field(&schema, "status.roleStatuses")["x-kubernetes-list-map-keys"],
        json!(["name"])
    );
}

#[test]
fn ds_scr_1_scaler_replicas_default_to_zero() {
    let schema = schema(SCALER);
    assert_eq!(
        without_description(field(&schema, "spec.replicas")),
        json!({"type": "integer", "format": "int32", "default": 0, "minimum": 0})
    );
    assert_eq!(field(&schema, "spec").get("required"), None);
}

#[test]
fn lws_api_19_conditions_are_the_standard_ones() {
    for (file, path) in [
        (LWS, "status.conditions"),
        (DS, "status.conditions"),
        (SCALER, "status.conditions"),
    ] {
        let schema = schema(file);
        let conditions = field(&schema, path);
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
        assert_eq!(
            conditions["items"]["required"],
            json!(["lastTransitionTime", "message", "reason", "status", "type"])
        );
        assert_eq!(field(&schema, "status").get("required"), None);
    }
}
