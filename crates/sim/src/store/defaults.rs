//! Defaults of the API server that somebody in the cluster reads.

use serde_json::{Value, json};

use super::Kind;

/// Fills the defaults of a kind into an object that is written.
pub fn fill(kind: Kind, object: &mut Value) {
    match kind {
        Kind::StatefulSet => stateful_set(object),
        Kind::Pod => default(object, "/spec", "terminationGracePeriodSeconds", json!(30)),
        Kind::Service => {
            default(object, "/spec", "publishNotReadyAddresses", json!(false));
            default(object, "/spec", "sessionAffinity", json!("None"));
            default(object, "/spec", "type", json!("ClusterIP"));
        }
        Kind::LeaderWorkerSet
        | Kind::Deployment
        | Kind::ControllerRevision
        | Kind::Node
        | Kind::Namespace
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::DisaggregatedSet
        | Kind::RoleScaler
        | Kind::Workload
        | Kind::PodGroup => {}
    }
}

fn stateful_set(object: &mut Value) {
    default(object, "/spec", "replicas", json!(1));
    default(
        object,
        "/spec",
        "podManagementPolicy",
        json!("OrderedReady"),
    );
    default(
        object,
        "/spec",
        "updateStrategy",
        json!({"type": "RollingUpdate"}),
    );
    if object
        .pointer("/spec/updateStrategy/type")
        .is_some_and(|t| t == "RollingUpdate")
    {
        default(object, "/spec/updateStrategy", "rollingUpdate", json!({}));
        default(
            object,
            "/spec/updateStrategy/rollingUpdate",
            "partition",
            json!(0),
        );
        default(
            object,
            "/spec/updateStrategy/rollingUpdate",
            "maxUnavailable",
            json!(1),
        );
    }
    default(
        object,
        "/spec",
        "persistentVolumeClaimRetentionPolicy",
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
    );
    default(
        object,
        "/spec/template/spec",
        "terminationGracePeriodSeconds",
        json!(30),
    );
}

fn default(object: &mut Value, parent: &str, name: &str, value: Value) {
    if let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.entry(name).or_insert(value);
    }
}
