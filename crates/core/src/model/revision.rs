//! ControllerRevisions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use lws_api::names::label;
use serde_json::Value;

use super::Meta;

/// What the controllers read of a ControllerRevision.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// `revision`: higher is newer.
    pub number: i64,
    /// `data`: the patch of ORD-30, as whoever wrote it wrote it.
    pub data: Arc<Value>,
}

impl Revision {
    /// The revision key: label `lws/template-revision-hash`.
    pub fn key(&self) -> &str {
        self.meta.label(label::REVISION)
    }
}

impl From<apps::ControllerRevision> for Revision {
    fn from(revision: apps::ControllerRevision) -> Self {
        Self {
            meta: Meta::ours(&revision.metadata),
            number: revision.revision.unwrap_or_default(),
            data: Arc::new(revision.data.0),
        }
    }
}
