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

/// The configuration with `bundle` of what each entry announces now; `None` if that is what they announce.
pub(super) fn with_bundle(
    configuration: &DynamicObject,
    bundle: impl Fn(&[u8]) -> Vec<u8>,
) -> Option<DynamicObject> {
    if is_going(configuration) {
        return None;
    }
    let mut changed = configuration.clone();
    let entries = changed.data.get_mut("webhooks")?.as_array_mut()?;
    for entry in entries {
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

fn announced(entry: &Value) -> Vec<u8> {
    let bundle = entry.pointer("/clientConfig/caBundle").cloned();
    bundle
        .and_then(|bundle| serde_json::from_value::<ByteString>(bundle).ok())
        .unwrap_or_default()
        .0
}
