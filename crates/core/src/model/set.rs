//! LeaderWorkerSets.

use lws_api::leaderworkerset::{LeaderWorkerSet, LeaderWorkerSetSpec, LeaderWorkerSetStatus};

use super::{Meta, ObjectKey};

/// A LeaderWorkerSet as the controllers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lws {
    /// Metadata with all labels and annotations: they are copied to workload objects (ORD-61).
    pub meta: Meta,
    /// Spec; hostile input as every stored object, read through its accessors.
    pub spec: LeaderWorkerSetSpec,
    /// Status as last written.
    pub status: LeaderWorkerSetStatus,
}

impl Lws {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }
}

impl From<LeaderWorkerSet> for Lws {
    fn from(lws: LeaderWorkerSet) -> Self {
        Self {
            meta: Meta::all(&lws.metadata),
            spec: lws.spec,
            status: lws.status.unwrap_or_default(),
        }
    }
}
