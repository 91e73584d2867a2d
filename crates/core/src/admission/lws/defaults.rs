//! D-1 … D-10: what the webhook adds to a LeaderWorkerSet. Defaults of the CRD schema are not repeated here.

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// Completes an object in place. Members of another type than expected are left for the schema to refuse.
///
/// A missing `spec` is made, but not what the schema requires in it: so an object without one is refused.
pub fn default(object: &mut Value) {
    let Some(spec) = object
        .as_object_mut()
        .and_then(|object| child(object, "spec"))
    else {
        return;
    };
    set_if_absent(spec, "replicas", 1);
    if let Some(template) = spec
        .get_mut("leaderWorkerTemplate")
        .and_then(Value::as_object_mut)
    {
        default_restarts(template);
    }
    set_if_empty(spec, "groupIdentity", "Ordinal");
    set_if_empty(spec, "groupReplacementPolicy", "PostTermination");
    set_if_empty(spec, "podTerminationPolicy", "Default");
    default_rollout(spec);
    if let Some(network) = child(spec, "networkConfig") {
        set_if_absent(network, "subdomainPolicy", "Shared");
    }
}

/// D-2, D-3, D-7: `Default` is an older name of `None`; an empty `restartBackoff` switches the back-off on.
fn default_restarts(template: &mut Object) {
    set_if_empty(template, "restartPolicy", "RecreateGroupOnPodRestart");
    if let Some(policy) = template
        .get_mut("restartPolicy")
        .filter(|policy| **policy == "Default")
    {
        *policy = "None".into();
    }
    if let Some(backoff) = template
        .get_mut("restartBackoff")
        .and_then(Value::as_object_mut)
    {
        set_if_absent(backoff, "baseSeconds", 10);
        set_if_absent(backoff, "capSeconds", 300);
    }
}

/// D-8, D-9.
fn default_rollout(spec: &mut Object) {
    let Some(strategy) = child(spec, "rolloutStrategy") else {
        return;
    };
    set_if_empty(strategy, "type", "RollingUpdate");
    if strategy
        .get("type")
        .is_some_and(|kind| kind == "RollingUpdate")
    {
        let configuration = json!({"partition": 0, "maxUnavailable": 1, "maxSurge": 0});
        set_if_absent(strategy, "rollingUpdateConfiguration", configuration);
    }
}

/// The object at `name`, made if there is nothing.
fn child<'o>(object: &'o mut Object, name: &str) -> Option<&'o mut Object> {
    set_if_absent(object, name, json!({}));
    object.get_mut(name)?.as_object_mut()
}

fn set_if_absent(object: &mut Object, name: &str, value: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), value.into());
    }
}

fn set_if_empty(object: &mut Object, name: &str, value: &str) {
    if object
        .get(name)
        .is_none_or(|current| current.is_null() || current == "")
    {
        object.insert(name.to_owned(), value.into());
    }
}
