//! DisaggregatedSets and the scalers of their roles.

use lws_api::disaggregatedset::{DisaggregatedSet, DisaggregatedSetSpec, DisaggregatedSetStatus};
use lws_api::names::ds_label;
use lws_api::rolescaler::{DisaggregatedSetRoleScaler, DisaggregatedSetRoleScalerStatus};

use super::{Meta, ObjectKey};

/// A DisaggregatedSet as its controller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ds {
    /// Metadata; labels and annotations of ours only, as nothing of it is copied to children (LBL-4).
    pub meta: Meta,
    /// Spec; hostile input as every stored object, read through its accessors.
    pub spec: DisaggregatedSetSpec,
    /// Status as last written.
    pub status: DisaggregatedSetStatus,
}

impl Ds {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }
}

impl From<DisaggregatedSet> for Ds {
    fn from(set: DisaggregatedSet) -> Self {
        Self {
            meta: Meta::ours(&set.metadata),
            spec: set.spec,
            status: set.status.unwrap_or_default(),
        }
    }
}

/// A DisaggregatedSetRoleScaler as its controller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleScaler {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// Wanted groups.
    pub replicas: i32,
    /// Status as last written.
    pub status: DisaggregatedSetRoleScalerStatus,
}

impl RoleScaler {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// SCR-6: role and sub-role that it says to drive; the latter is empty for a role that is not partitioned.
    pub fn drives(&self) -> (&str, &str) {
        (
            self.meta.label(ds_label::ROLE),
            self.meta.label(ds_label::SUBROLE),
        )
    }
}

impl From<DisaggregatedSetRoleScaler> for RoleScaler {
    fn from(scaler: DisaggregatedSetRoleScaler) -> Self {
        Self {
            meta: Meta::ours(&scaler.metadata),
            replicas: scaler.spec.replicas,
            status: scaler.status.unwrap_or_default(),
        }
    }
}
