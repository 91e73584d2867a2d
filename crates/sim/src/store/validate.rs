//! What the API server refuses, as far as somebody here tries it.

use lws_core::run::{Class, Failure};
use serde_json::Value;

use super::{Kind, fail, finalizers, is_terminating, text};

/// Members of a StatefulSet's spec that may change.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// A new object, or a change of one.
pub fn check(kind: Kind, old: Option<&Value>, new: &Value) -> Result<(), Failure> {
    let reason = match kind {
        Kind::StatefulSet => stateful_set(old, new),
        Kind::ControllerRevision => revision(old, new),
        Kind::Pod => pod(old, new),
        Kind::LeaderWorkerSet
        | Kind::DisaggregatedSet
        | Kind::RoleScaler
        | Kind::Deployment
        | Kind::Service
        | Kind::Node
        | Kind::Namespace
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::Workload
        | Kind::PodGroup => None,
    };
    let reason = reason.or_else(|| old.and_then(|old| new_finalizer(old, new)));
    match reason {
        Some(reason) => Err(fail(Class::Rejected, reason.to_owned())),
        None => Ok(()),
    }
}

fn stateful_set(old: Option<&Value>, new: &Value) -> Option<&'static str> {
    let spec = &new["spec"];
    if spec["replicas"]
        .as_i64()
        .is_some_and(|replicas| replicas < 0)
    {
        return Some("spec.replicas: must be greater than or equal to 0");
    }
    let wanted = spec["selector"]["matchLabels"].as_object();
    let labels = &spec["template"]["metadata"]["labels"];
    if wanted.is_none_or(|wanted| wanted.iter().any(|(name, value)| labels[name] != *value)) {
        return Some("spec.template.metadata.labels: `selector` does not match template `labels`");
    }
    let old = &old?["spec"];
    let members = |spec: &Value| -> Vec<String> {
        let members = spec.as_object().into_iter().flat_map(|spec| spec.keys());
        members.cloned().collect()
    };
    members(old)
        .iter()
        .chain(&members(spec))
        .any(|name| old[name] != spec[name] && !CHANGEABLE.contains(&name.as_str()))
        .then_some("spec: updates to this field are forbidden")
}

fn revision(old: Option<&Value>, new: &Value) -> Option<&'static str> {
    (old?["data"] != new["data"]).then_some("data: field is immutable")
}

/// Images may change, a pod may be bound, and gates may be opened.
fn pod(old: Option<&Value>, new: &Value) -> Option<&'static str> {
    let comparable = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for list in ["containers", "initContainers"] {
            let items = spec[list].as_array_mut().into_iter().flatten();
            items.for_each(|container| container["image"] = Value::Null);
        }
        for name in ["nodeName", "schedulingGates", "tolerations"] {
            spec[name] = Value::Null;
        }
        spec
    };
    (comparable(old?) != comparable(new)).then_some("spec: pod updates may not change fields")
}

fn new_finalizer(old: &Value, new: &Value) -> Option<&'static str> {
    let known = finalizers(old);
    (is_terminating(old) && finalizers(new).iter().any(|name| !known.contains(name))).then_some(
        "metadata.finalizers: no new finalizers can be added if the object is being deleted",
    )
}

/// A name that the API server takes for an object of the kind.
pub fn check_name(kind: Kind, object: &Value) -> Result<(), Failure> {
    let name = text(object, "/metadata/name").unwrap_or_default();
    let longest = if kind == Kind::Service { 63 } else { 253 };
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let dots = kind != Kind::Service;
    let is_valid = (1..=longest).contains(&name.len())
        && name
            .bytes()
            .all(|byte| is_edge(byte) || byte == b'-' || (dots && byte == b'.'))
        && name.bytes().next().is_some_and(is_edge)
        && name.bytes().last().is_some_and(is_edge);
    if is_valid {
        Ok(())
    } else {
        Err(fail(
            Class::Rejected,
            format!("metadata.name: invalid value {name}"),
        ))
    }
}
