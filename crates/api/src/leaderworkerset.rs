//! The LeaderWorkerSet resource (api-leaderworkerset sections 1 to 3) and the values that count when a member is absent.
//!
//! Every member that a stored object may lack is optional here. Controllers do not look at the fields but ask the methods,
//! which apply the defaults of ORD-22 and of the schema: a write may have bypassed the webhook, and an object may be older
//! than a field. An object without `spec`, which only a missing webhook lets through, does not decode: it asks for nothing.
//! An empty text in an enum reads as absent (section 2: "empty equals"). Schema limits and defaults stand
//! beside the fields; what they look like in the published CRD is decided in [`crate::crd`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::crd::{conditions, undescribed};
pub use crate::scheduling::*;
use crate::template::{ClaimTemplate, PodTemplate};

/// Wanted groups: how many, what they are made of, and how they are replaced.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "leaderworkerset.x-k8s.io",
    version = "v1",
    kind = "LeaderWorkerSet",
    plural = "leaderworkersets",
    singular = "leaderworkerset",
    shortname = "lws",
    namespaced,
    status = "LeaderWorkerSetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A LeaderWorkerSet runs groups of pods, each group with one leader and a number of workers, and scales, updates and restarts each group as a whole.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.hpaPodSelector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Number of ready replicas"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Number of desired replicas"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        description = "Number of up-to-date replicas"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["leaderWorkerTemplate"]))]
pub struct LeaderWorkerSetSpec {
    /// Number of groups. A HorizontalPodAutoscaler or `kubectl scale` may drive it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("default" = 1))]
    pub replicas: Option<i32>,
    /// What a group is made of. A change rolls all groups, except of maxGroupRestarts and restartBackoff.
    pub leader_worker_template: LeaderWorkerTemplate,
    /// How groups are replaced when the template changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// When the workers of a group are created: LeaderCreated, as soon as the leader pod exists; LeaderReady, once it is
    /// ready.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "LeaderCreated"))]
    pub startup_policy: Option<StartupPolicy>,
    /// Network identity of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_config: Option<NetworkConfig>,
    /// Gang scheduling of the groups (alpha). It needs the feature gate WorkloadAwareScheduling and a scheduler provider, and
    /// cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// How groups get their names (alpha): Ordinal, numbers in a StatefulSet; Hash, a key per leader pod that is never used
    /// again. It cannot be changed later.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "Ordinal"))]
    pub group_identity: Option<GroupIdentity>,
    /// When the replacement of a group may be scheduled (alpha): PostTermination, once the old group is gone; Immediate, at
    /// once, only with groupIdentity Hash.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "PostTermination"))]
    pub group_replacement_policy: Option<GroupReplacementPolicy>,
    /// Order in which the pods of a group end (alpha): Default, workers after the leader is gone; Parallel, together with it.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "Default"))]
    pub pod_termination_policy: Option<PodTerminationPolicy>,
}

impl LeaderWorkerSetSpec {
    /// Wanted groups, 1 when absent (ORD-22).
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }

    /// Pods per group, leader included (ORD-22).
    pub fn size(&self) -> i32 {
        self.leader_worker_template.size()
    }

    /// When workers are created.
    pub fn startup_policy(&self) -> StartupPolicy {
        self.startup_policy.unwrap_or_default()
    }

    /// Host names of the pods: one Service for all, or one for each group (ORD-22).
    pub fn subdomain_policy(&self) -> SubdomainPolicy {
        self.network_config
            .as_ref()
            .and_then(|network| network.subdomain_policy)
            .unwrap_or_default()
    }

    /// How groups get their names.
    pub fn group_identity(&self) -> GroupIdentity {
        self.group_identity.unwrap_or_default()
    }

    /// When a replacement group may be scheduled.
    pub fn group_replacement_policy(&self) -> GroupReplacementPolicy {
        self.group_replacement_policy.unwrap_or_default()
    }

    /// Order in which the pods of a group end.
    pub fn pod_termination_policy(&self) -> PodTerminationPolicy {
        self.pod_termination_policy.unwrap_or_default()
    }

    /// Lowest group index that is updated, 0 when absent (ORD-22).
    pub fn partition(&self) -> i32 {
        self.rolling_update()
            .and_then(|update| update.partition)
            .unwrap_or(0)
    }

    /// Groups that may be missing during a rollout, 1 when absent (ORD-22).
    pub fn max_unavailable(&self) -> IntOrString {
        self.rolling_update()
            .and_then(|update| update.max_unavailable.clone())
            .unwrap_or(IntOrString::Int(1))
    }

    /// Groups that may be added during a rollout, 0 when absent (ORD-22).
    pub fn max_surge(&self) -> IntOrString {
        self.rolling_update()
            .and_then(|update| update.max_surge.clone())
            .unwrap_or(IntOrString::Int(0))
    }

    fn rolling_update(&self) -> Option<&RollingUpdateConfiguration> {
        self.rollout_strategy
            .as_ref()?
            .rolling_update_configuration
            .as_ref()
    }
}

/// What a group is made of.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["workerTemplate"]))]
pub struct LeaderWorkerTemplate {
    /// Template of the leader pods; absent: leaders use workerTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_template: Option<PodTemplate>,
    /// Template of the worker pods.
    pub worker_template: PodTemplate,
    /// Pods per group, the leader included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub size: Option<i32>,
    /// What happens when a pod of a group is deleted or one of its containers restarts: RecreateGroupOnPodRestart makes the
    /// whole group anew; RecreateGroupAfterStart does so only once all pods of the group run; None leaves the group alone.
    /// Default is deprecated and stored as None.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "RecreateGroupOnPodRestart"))]
    pub restart_policy: Option<RestartPolicy>,
    /// How often a group may be recreated before it is stopped (alpha); absent: without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_group_restarts: Option<i32>,
    /// Waiting time before a group is recreated, growing with each recreation (alpha); absent: no wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_backoff: Option<RestartBackoff>,
    /// Division of a group into subgroups, which can be placed apart. It cannot be added or removed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_group_policy: Option<SubGroupPolicy>,
    /// Claims that every pod gets, one volume each. Not with groupIdentity Hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_claim_templates: Option<Vec<ClaimTemplate>>,
    /// What happens to the claims when the set is deleted or scaled down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<ClaimRetentionPolicy>,
}

impl LeaderWorkerTemplate {
    /// Pods per group, leader included, 1 when absent (ORD-22).
    pub fn size(&self) -> i32 {
        self.size.unwrap_or(1)
    }

    /// The template of leader pods: their own, or the workers'.
    pub fn leader_template(&self) -> &PodTemplate {
        self.leader_template
            .as_ref()
            .unwrap_or(&self.worker_template)
    }

    /// What a failed pod does to its group; `Default` reads as `None` (API-12).
    pub fn restart_policy(&self) -> RestartPolicy {
        match self.restart_policy.unwrap_or_default() {
            RestartPolicy::Default | RestartPolicy::None => RestartPolicy::None,
            RestartPolicy::RecreateGroupOnPodRestart => RestartPolicy::RecreateGroupOnPodRestart,
            RestartPolicy::RecreateGroupAfterStart => RestartPolicy::RecreateGroupAfterStart,
        }
    }

    /// The claim templates, none when absent.
    pub fn claim_templates(&self) -> &[ClaimTemplate] {
        self.volume_claim_templates.as_deref().unwrap_or_default()
    }
}

/// How groups are replaced when the template changes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["type"]))]
pub struct RolloutStrategy {
    /// RollingUpdate is the only type.
    #[serde(
        rename = "type",
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "RollingUpdate"))]
    pub type_: Option<RolloutStrategyType>,
    /// Limits of a rolling update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update_configuration: Option<RollingUpdateConfiguration>,
}

/// Type of a rollout.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum RolloutStrategyType {
    /// Groups are replaced step by step.
    #[default]
    RollingUpdate,
}

/// Limits of a rolling update.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdateConfiguration {
    /// Lowest group index that is updated. It must be 0 with groupIdentity Hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub partition: Option<i32>,
    /// How many groups may be unavailable during the update: a number, or a percentage of replicas rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub max_unavailable: Option<IntOrString>,
    /// How many groups may exist above replicas during the update: a number, or a percentage of replicas rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub max_surge: Option<IntOrString>,
}

/// Network identity of the pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["subdomainPolicy"]))]
pub struct NetworkConfig {
    /// Shared: one headless Service for all groups. UniquePerReplica: one for each group.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    pub subdomain_policy: Option<SubdomainPolicy>,
}

/// Which headless Service names the pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum SubdomainPolicy {
    /// One Service for all groups.
    #[default]
    Shared,
    /// One Service for each group.
    UniquePerReplica,
}

/// When the workers of a group are created.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum StartupPolicy {
    /// As soon as the leader pod exists.
    #[default]
    LeaderCreated,
    /// Once the leader is ready.
    LeaderReady,
}

/// How groups get their names.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum GroupIdentity {
    /// By number; the leaders stand in a StatefulSet.
    #[default]
    Ordinal,
    /// By a random key of each leader pod; the leaders stand in a Deployment.
    Hash,
}

/// When the replacement of a group may be scheduled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum GroupReplacementPolicy {
    /// At once.
    Immediate,
    /// Once the old group is gone.
    #[default]
    PostTermination,
}

/// Order in which the pods of a group end.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum PodTerminationPolicy {
    /// Workers after the leader is gone.
    #[default]
    Default,
    /// Leader and workers together.
    Parallel,
}

/// What a failed pod does to its group.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum RestartPolicy {
    /// Deprecated name of `None`.
    Default,
    /// The whole group is made anew.
    #[default]
    RecreateGroupOnPodRestart,
    /// The whole group is made anew, but only when all its pods exist and none is pending.
    RecreateGroupAfterStart,
    /// The pod alone is replaced.
    None,
}

/// Waiting time before a group is recreated: base × 2^count seconds, at most cap.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartBackoff {
    /// Seconds before the first recreation; each further one doubles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 10))]
    pub base_seconds: Option<i32>,
    /// Longest waiting time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 300))]
    pub cap_seconds: Option<i32>,
}

impl RestartBackoff {
    /// Seconds before the first recreation.
    pub fn base_seconds(&self) -> i32 {
        self.base_seconds.unwrap_or(10)
    }

    /// Longest waiting time in seconds.
    pub fn cap_seconds(&self) -> i32 {
        self.cap_seconds.unwrap_or(300)
    }
}

/// Division of a group into subgroups.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupPolicy {
    /// LeaderWorker: the leader belongs to the first subgroup. LeaderExcluded: it belongs to none.
    #[serde(
        deserialize_with = "empty_as_absent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = "LeaderWorker"))]
    pub sub_group_policy_type: Option<SubGroupPolicyType>,
    /// Pods per subgroup. It must divide size, or size without the leader, and cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_group_size: Option<i32>,
}

impl SubGroupPolicy {
    /// Where the leader belongs.
    pub fn policy_type(&self) -> SubGroupPolicyType {
        self.sub_group_policy_type.unwrap_or_default()
    }
}

/// Where the leader of a divided group belongs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(transform = undescribed)]
pub enum SubGroupPolicyType {
    /// To the first subgroup.
    #[default]
    LeaderWorker,
    /// To no subgroup.
    LeaderExcluded,
}

/// What happens to the claims of pods; the StatefulSet API knows `Retain` and `Delete` and refuses other values.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetentionPolicy {
    /// When the set is deleted: Retain or Delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_deleted: Option<String>,
    /// When the set is scaled down: Retain or Delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_scaled: Option<String>,
}

/// What the controllers observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerSetStatus {
    /// Available, Progressing, UpdateInProgress, Degraded and WorkloadSchedulingCreated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Groups whose pods are all ready, updated or not.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Groups made from the current template, ready or not.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_replicas: i32,
    /// Groups that exist.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Label selector of the leader pods, for a HorizontalPodAutoscaler.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hpa_pod_selector: String,
    /// Generation of the set that this status was made from.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
}

/// Reads an enum in which an empty text means absent.
pub(crate) fn empty_as_absent<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => T::deserialize(serde::de::value::StrDeserializer::new(text)).map(Some),
    }
}

/// API-19: numbers of a status are left out when they are 0.
pub(crate) fn is_zero<T: PartialEq + From<u8>>(number: &T) -> bool {
    *number == T::from(0)
}

#[cfg(test)]
mod tests;
