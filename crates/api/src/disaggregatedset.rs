//! The DisaggregatedSet resource (api-disaggregatedset sections 2 to 6) and the values that count when a member is absent.
//!
//! As in [`crate::leaderworkerset`], every member that a stored object may lack is optional and controllers ask the methods.
//! The spec of a role is a LeaderWorkerSet spec, but none of the rules of a LeaderWorkerSet about changes reach it: roles
//! stay mutable (MUT-1).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{conditions, rules, undescribed};
use crate::leaderworkerset::{LeaderWorkerSetSpec, empty_as_absent, is_zero};

/// Wanted roles, and how they are scaled, rolled out and placed together.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "disaggregatedset.x-k8s.io",
    version = "v1",
    kind = "DisaggregatedSet",
    plural = "disaggregatedsets",
    singular = "disaggregatedset",
    namespaced,
    status = "DisaggregatedSetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A DisaggregatedSet runs the roles of one service, such as prefill and decode, as LeaderWorkerSets that are rolled out together.",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Slices",
        type_ = "integer",
        json_path = ".spec.slices",
        priority = 1
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        priority = 1
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Progressing")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["roles"], "x-kubernetes-validations" = rules::roles()))]
pub struct DisaggregatedSetSpec {
    /// The roles; each becomes one LeaderWorkerSet per slice and revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 10),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub roles: Vec<Role>,
    /// Number of independent copies of all roles. It must be 1 while a role is scaled externally.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100), extend("default" = 1))]
    pub slices: Option<i32>,
    /// How a changed number of replicas meets a running rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling_policy: Option<ScalingPolicy>,
    /// How slices are kept apart in the cluster. A change reaches existing slices at their next rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_policy: Option<PlacementPolicy>,
}

impl DisaggregatedSetSpec {
    /// Copies of all roles, 1 when absent.
    pub fn slices(&self) -> i32 {
        self.slices.unwrap_or(1)
    }

    /// How a changed target meets a running rollout (SCP-1).
    pub fn during_rollout(&self) -> DuringRollout {
        self.scaling_policy
            .as_ref()
            .and_then(|policy| policy.during_rollout)
            .unwrap_or_default()
    }

    /// How slices are kept apart.
    pub fn placement_type(&self) -> PlacementType {
        self.placement_policy
            .as_ref()
            .and_then(|policy| policy.type_)
            .unwrap_or_default()
    }

    /// Node label of the placement domains, empty when absent (PLC-1).
    pub fn placement_topology(&self) -> &str {
        self.placement_policy
            .as_ref()
            .and_then(|policy| policy.topology.as_deref())
            .unwrap_or_default()
    }
}

/// One role of the service.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct Role {
    /// Name of the role, unique in the set.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Shares of the groups of this role, each scaled by itself. Then neither the role's scaling nor its spec.replicas counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub sub_roles: Option<Vec<SubRole>>,
    /// Where the number of replicas comes from; absent: from spec.replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// Labels and annotations of the LeaderWorkerSets of this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<EmbeddedMetadata>,
    /// Spec of the LeaderWorkerSets of this role. Its replicas are groups per slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<LeaderWorkerSetSpec>,
}

impl Role {
    /// Where the number of replicas comes from.
    pub fn scaling_mode(&self) -> ScalingMode {
        mode(self.scaling.as_ref())
    }

    /// The shares of this role, none when it is not partitioned.
    pub fn sub_roles(&self) -> &[SubRole] {
        self.sub_roles.as_deref().unwrap_or_default()
    }

    /// SUB-1: whether the groups of this role are divided among sub-roles.
    pub fn is_partitioned(&self) -> bool {
        !self.sub_roles().is_empty()
    }
}

/// A share of the groups of a role.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"], "x-kubernetes-validations" = rules::sub_roles()))]
pub struct SubRole {
    /// Name of the share, unique in its role.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Groups per slice, 1 when absent. It must be absent while scaling.mode is External.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Where the number of replicas comes from; absent: from replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
}

impl SubRole {
    /// Groups per slice when the share is Static, 1 when absent.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }

    /// Where the number of replicas comes from.
    pub fn scaling_mode(&self) -> ScalingMode {
        mode(self.scaling.as_ref())
    }
}

fn mode(scaling: Option<&Scaling>) -> ScalingMode {
    scaling.and_then(|scaling| scaling.mode).unwrap_or_default()
}

/// Where a number of replicas comes from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Scaling {
    /// Static: from this object. External: from a DisaggregatedSetRoleScaler, which an autoscaler or `kubectl scale` drives.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "Static"))]
    pub mode: Option<ScalingMode>,
}

/// Where a number of replicas comes from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum ScalingMode {
    /// From the DisaggregatedSet.
    #[default]
    Static,
    /// From a DisaggregatedSetRoleScaler.
    External,
}

/// Labels and annotations that a template gives to what is made from it. The other members are kept and not used.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddedMetadata {
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// How a changed number of replicas meets a running rollout.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingPolicy {
    /// RolloutCoupled: a rollout only grows the new revision, and a smaller number waits for its end. AdvanceRollout: the
    /// newest number counts at once.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "RolloutCoupled"))]
    pub during_rollout: Option<DuringRollout>,
}

/// How a changed number of replicas meets a running rollout.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum DuringRollout {
    /// A smaller number waits for the end of the rollout.
    #[default]
    RolloutCoupled,
    /// The newest number counts at once.
    AdvanceRollout,
}

/// How slices are kept apart in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementPolicy {
    /// None: nowhere. ExclusiveSlice: the roles of a slice share a domain, which no other slice of this set enters.
    /// ExclusiveTopology: nor does a slice of another set.
    #[serde(
        rename = "type",
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "None"))]
    pub type_: Option<PlacementType>,
    /// Node label whose values are the domains; required unless type is None.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ""))]
    pub topology: Option<String>,
}

/// How slices are kept apart in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum PlacementType {
    /// Not at all.
    #[default]
    None,
    /// From other slices of the same set.
    ExclusiveSlice,
    /// From slices of any set.
    ExclusiveTopology,
}

/// What the controller observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct DisaggregatedSetStatus {
    /// Generation of the set that this status was made from.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// One entry for each role, followed by its sub-roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub role_statuses: Vec<RoleStatus>,
    /// Available, Progressing and SubRolesAssigned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Numbers of groups of one role or sub-role.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct RoleStatus {
    /// Name of the role, or `<role>/<sub-role>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Wanted groups over all slices.
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_replicas: i32,
    /// Groups that exist, over all slices and revisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Ready groups, over all slices and revisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Groups of the current revision.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_replicas: i32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ds_absent_members_read_as_defaults() {
        let spec: DisaggregatedSetSpec =
            serde_json::from_value(json!({"roles": [{"name": "prefill"}]})).unwrap();
        assert_eq!(spec.slices(), 1);
        assert_eq!(spec.during_rollout(), DuringRollout::RolloutCoupled);
        assert_eq!(
            (spec.placement_type(), spec.placement_topology()),
            (PlacementType::None, "")
        );
        let role = &spec.roles[0];
        assert_eq!(
            (role.scaling_mode(), role.is_partitioned()),
            (ScalingMode::Static, false)
        );
        assert_eq!(SubRole::default().replicas(), 1);
    }

    #[test]
    fn ds_present_members_win() {
        let spec: DisaggregatedSetSpec = serde_json::from_value(json!({
            "roles": [{"name": "a", "subRoles": [{"name": "b", "replicas": 0, "scaling": {"mode": "External"}}]}],
            "slices": 3,
            "scalingPolicy": {"duringRollout": "AdvanceRollout"},
            "placementPolicy": {"type": "ExclusiveSlice", "topology": "example.com/rack"},
        }))
        .unwrap();
        assert_eq!(spec.slices(), 3);
        assert_eq!(spec.during_rollout(), DuringRollout::AdvanceRollout);
        assert_eq!(
            (spec.placement_type(), spec.placement_topology()),
            (PlacementType::ExclusiveSlice, "example.com/rack")
        );
        let role = &spec.roles[0];
        assert!(role.is_partitioned());
        assert_eq!(
            (
                role.sub_roles()[0].replicas(),
                role.sub_roles()[0].scaling_mode()
            ),
            (0, ScalingMode::External)
        );
    }

    #[test]
    fn ds_sts_1_zero_numbers_are_left_out() {
        let status = RoleStatus {
            name: "decode".into(),
            ready_replicas: 2,
            ..Default::default()
        };
        assert_eq!(
            serde_json::to_value(status).unwrap(),
            json!({"name": "decode", "readyReplicas": 2})
        );
    }
}
