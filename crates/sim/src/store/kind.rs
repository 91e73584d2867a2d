//! Kinds and names of the simulated API.

use std::fmt;
use std::sync::Arc;

/// Kinds that the simulated cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `leaderworkerset.x-k8s.io/v1`.
    LeaderWorkerSet,
    /// `apps/v1`.
    StatefulSet,
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    ControllerRevision,
    /// `v1`.
    Service,
    /// `v1`.
    Pod,
    /// `disaggregatedset.x-k8s.io/v1`.
    DisaggregatedSet,
    /// `disaggregatedset.x-k8s.io/v1`.
    RoleScaler,
    /// `scheduling.k8s.io/v1beta1`.
    Workload,
    /// `scheduling.k8s.io/v1beta1`.
    PodGroup,
    /// `v1`, cluster-scoped.
    Node,
    /// `v1`, cluster-scoped.
    Namespace,
    /// `v1`.
    PersistentVolumeClaim,
    /// `coordination.k8s.io/v1`.
    Lease,
}

impl From<lws_core::intent::Kind> for Kind {
    fn from(kind: lws_core::intent::Kind) -> Self {
        use lws_core::intent::Kind as Core;
        match kind {
            Core::LeaderWorkerSet => Self::LeaderWorkerSet,
            Core::StatefulSet => Self::StatefulSet,
            Core::Deployment => Self::Deployment,
            Core::ControllerRevision => Self::ControllerRevision,
            Core::Service => Self::Service,
            Core::Pod => Self::Pod,
            Core::DisaggregatedSet => Self::DisaggregatedSet,
            Core::RoleScaler => Self::RoleScaler,
            Core::Workload => Self::Workload,
            Core::PodGroup => Self::PodGroup,
        }
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Deployment,
        Self::LeaderWorkerSet,
        Self::DisaggregatedSet,
        Self::RoleScaler,
        Self::StatefulSet,
        Self::ControllerRevision,
        Self::Service,
        Self::Pod,
        Self::Node,
        Self::Namespace,
        Self::PersistentVolumeClaim,
        Self::Lease,
    ];

    /// Whether the API server counts changes of its spec.
    pub fn has_generation(self) -> bool {
        matches!(
            self,
            Self::LeaderWorkerSet
                | Self::DisaggregatedSet
                | Self::RoleScaler
                | Self::StatefulSet
                | Self::Deployment
                | Self::Pod
        )
    }

    /// Name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::StatefulSet => "StatefulSet",
            Self::Deployment => "Deployment",
            Self::ControllerRevision => "ControllerRevision",
            Self::Service => "Service",
            Self::Pod => "Pod",
            Self::DisaggregatedSet => "DisaggregatedSet",
            Self::RoleScaler => "DisaggregatedSetRoleScaler",
            Self::Workload => "Workload",
            Self::PodGroup => "PodGroup",
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Lease => "Lease",
        }
    }
}

/// An object by kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Kind.
    pub kind: Kind,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl From<&lws_core::intent::Target> for Key {
    fn from(target: &lws_core::intent::Target) -> Self {
        Self {
            kind: target.kind.into(),
            namespace: target.key.namespace.clone(),
            name: target.key.name.clone(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}
