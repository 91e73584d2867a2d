//! Nodes, of which only the labels are read.

use super::{Meta, Pairs};

/// What the controllers read of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Metadata with all labels; no annotations.
    pub meta: Meta,
}

impl Node {
    /// From the metadata of a Node.
    pub fn new(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Self {
        Self {
            meta: Meta {
                annotations: Pairs::default(),
                ..Meta::all(metadata)
            },
        }
    }
}
