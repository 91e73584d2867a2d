//! The two webhook configurations, of which only `caBundle` is read and written; whatever else they have is kept.

use k8s_openapi::ByteString;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::carries;

/// CRT-5: kind and name of what announces the authority.
pub(super) const CONFIGURATIONS: [(&str, &str); 2] = [
    (
        "ValidatingWebhookConfiguration",
        "lws-validating-webhook-configuration",
    ),
    (
        "MutatingWebhookConfiguration",
        "lws-mutating-webhook-configuration",
    ),
];

pub(super) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        kind,
    ))
}

/// Whether all entries announce this authority. One that is being deleted needs not.
pub(super) fn is_announced(configuration: &DynamicObject, authority: &[u8]) -> bool {
    is_going(configuration)
        || entries(configuration).all(|entry| carries(&announced(entry), authority))
}

/// WHK-2 allows one installation in a cluster: the DNS name of a Service other than `server` that entries send to, which is
/// that of another installation. Entries with a URL are of a development cluster.
pub(super) fn other_server(configuration: &DynamicObject, server: &str) -> Option<String> {
    entries(configuration)
        .filter_map(destination)
        .find(|destination| destination != server)
}

/// The configuration with `bundle` of what each entry announces now; `None` if that is what they announce. What sends to
/// another Service than `server` stays as it is.
pub(super) fn with_bundle(
    configuration: &DynamicObject,
    server: &str,
    bundle: impl Fn(&[u8]) -> Vec<u8>,
) -> Option<DynamicObject> {
    if is_going(configuration) {
        return None;
    }
    let mut changed = configuration.clone();
    let entries = changed.data.get_mut("webhooks")?.as_array_mut()?;
    for entry in entries {
        if destination(entry).is_some_and(|destination| destination != server) {
            continue;
        }
        let bundle = bundle(&announced(entry));
        let client = entry
            .get_mut("clientConfig")
            .and_then(Value::as_object_mut)?;
        client.insert(
            "caBundle".to_owned(),
            serde_json::to_value(ByteString(bundle)).ok()?,
        );
    }
    (changed.data != configuration.data).then_some(changed)
}

fn is_going(configuration: &DynamicObject) -> bool {
    configuration.metadata.deletion_timestamp.is_some()
}

fn entries(configuration: &DynamicObject) -> impl Iterator<Item = &Value> {
    configuration
        .data
        .get("webhooks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// DNS name of the Service that an entry sends to.
fn destination(entry: &Value) -> Option<String> {
    let service = entry.pointer("/clientConfig/service")?;
    let text = |member| service.get(member).and_then(Value::as_str);
    Some(format!("{}.{}.svc", text("name")?, text("namespace")?))
}

fn announced(entry: &Value) -> Vec<u8> {
    let bundle = entry.pointer("/clientConfig/caBundle").cloned();
    bundle
        .and_then(|bundle| serde_json::from_value::<ByteString>(bundle).ok())
        .unwrap_or_default()
        .0
}
