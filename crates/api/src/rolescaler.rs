//! The DisaggregatedSetRoleScaler resource (api-disaggregatedset section 8): the scale target of one role or sub-role whose
//! number of replicas comes from outside. The controller makes it; autoscalers and people write its `spec.replicas`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::conditions;
use crate::leaderworkerset::is_zero;

/// Wanted groups of one role.
#[derive(
    CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq,
)]
#[kube(
    group = "disaggregatedset.x-k8s.io",
    version = "v1",
    kind = "DisaggregatedSetRoleScaler",
    plural = "disaggregatedsetrolescalers",
    singular = "disaggregatedsetrolescaler",
    shortname = "dsrs",
    namespaced,
    status = "DisaggregatedSetRoleScalerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A DisaggregatedSetRoleScaler is the scale target of one role of a DisaggregatedSet whose scaling mode is External. The controller creates it.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct DisaggregatedSetRoleScalerSpec {
    // SCR-1: always serialised, since `/scale` cannot be read when the path leads nowhere.
    /// Wanted groups of the role, written by an autoscaler, by `kubectl scale` or by hand.
    #[schemars(range(min = 0), extend("default" = 0))]
    pub replicas: i32,
}

/// What the controller observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct DisaggregatedSetRoleScalerStatus {
    /// Groups that exist, over all revisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Label selector of one pod of each group, for an autoscaler.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Generation of the scaler that this status was made from.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Only Ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ds_scr_1_replicas_are_always_serialised() {
        let spec = DisaggregatedSetRoleScalerSpec::default();
        assert_eq!(serde_json::to_value(spec).unwrap(), json!({"replicas": 0}));
    }
}
