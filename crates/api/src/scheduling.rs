//! `spec.scheduling` (api-leaderworkerset 2.4): what the user asks of a gang scheduler. Which level is active, and what a
//! combination of members means, is decided by those who read it (admission section 6), not here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gang scheduling of the set, of each group, or of the leader and workers of each group; one level at a time.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Scheduling {
    /// Policy of the whole set: basic or gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<CompositePolicy>,
    /// Where the whole set may be placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// What is disrupted together in the whole set: single or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_mode: Option<DisruptionMode>,
    /// Scheduling of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaScheduling>,
}

/// Scheduling of each group.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaScheduling {
    /// Policy of a group: basic or gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<CompositePolicy>,
    /// Where a group may be placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// What is disrupted together in a group: single or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_mode: Option<DisruptionMode>,
    /// Scheduling of the leader of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<RoleScheduling>,
    /// Scheduling of the workers of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<RoleScheduling>,
}

/// Scheduling of the leader or of the workers of each group.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleScheduling {
    /// Policy of these pods: basic or gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<LeafPolicy>,
    /// Where these pods may be placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// What is disrupted together among these pods: single or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_mode: Option<DisruptionMode>,
    /// Resource claims that these pods share; each must stand in their pod template too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 4),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub resource_claims: Option<Vec<SharedResourceClaim>>,
}

/// Policy of something that consists of groups of pods; exactly one member is set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct CompositePolicy {
    /// Pods are scheduled one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<Marker>,
    /// Pods are scheduled all or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang: Option<CompositeGang>,
}

/// Gang of groups.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct CompositeGang {
    /// Least number of groups that are scheduled together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_group_count: Option<i32>,
}

/// Policy of something that consists of pods; exactly one member is set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct LeafPolicy {
    /// Pods are scheduled one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<Marker>,
    /// Pods are scheduled all or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang: Option<LeafGang>,
}

/// Gang of pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct LeafGang {
    /// Least number of pods that are scheduled together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_count: Option<i32>,
}

/// What is disrupted together; exactly one member is set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionMode {
    /// Each pod by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<Marker>,
    /// All pods at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Marker>,
}

/// A choice that is made by its presence.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marker {}

/// Where pods may be placed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingConstraints {
    /// Topology domains that hold all the pods; at most one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub topology: Option<Vec<TopologyConstraint>>,
}

/// One topology domain that holds all the pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["key"]))]
pub struct TopologyConstraint {
    /// Node label whose values are the domains.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// A resource claim that pods share; exactly one of the two references is set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct SharedResourceClaim {
    /// Name of the claim in the pod template.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// An existing ResourceClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<String>,
    /// A ResourceClaimTemplate to make the claim from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_claim_template_name: Option<String>,
}
