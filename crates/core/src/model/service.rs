//! Headless Services.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;

use super::Meta;

/// What the controllers read of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// `spec.clusterIP` is `None`.
    pub is_headless: bool,
    /// `spec.selector`.
    pub selector: BTreeMap<String, String>,
    /// `spec.publishNotReadyAddresses`.
    pub publishes_not_ready: bool,
}

impl Service {
    /// ORD-74: nobody controls it, and it does for the pods of `selector` what ours would.
    pub fn serves(&self, selector: &BTreeMap<String, String>) -> bool {
        self.meta.owner.is_none() && self.is_headless && self.selector == *selector
    }
}

impl From<core::Service> for Service {
    fn from(service: core::Service) -> Self {
        let spec = service.spec.unwrap_or_default();
        Self {
            meta: Meta::ours(&service.metadata),
            is_headless: spec.cluster_ip.as_deref() == Some("None"),
            selector: spec.selector.unwrap_or_default(),
            publishes_not_ready: spec.publish_not_ready_addresses.unwrap_or(false),
        }
    }
}
