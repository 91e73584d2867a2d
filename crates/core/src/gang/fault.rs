//! What keeps a set from being scheduled as it asks for (NAT-53).

/// Reasons of the condition `WorkloadSchedulingCreated` when it is False.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A kind is not served, or a field is not kept.
    ApiNotAvailable,
    /// No scheduler is configured, or not one that can do it.
    Unsupported,
    /// What is stored cannot become what is wanted.
    Invalid,
    /// The Workload cannot be written, or is somebody else's.
    WorkloadCreateFailed,
    /// The same of a PodGroup.
    PodGroupCreateFailed,
    /// The ancestor's Workload cannot be found.
    ParentNotReady,
    /// A PodGroup that is needed is about to go.
    CleanupBlocked,
}

impl Reason {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiNotAvailable => "APINotAvailable",
            Self::Unsupported => "UnsupportedProviderCapability",
            Self::Invalid => "InvalidSchedulingConfiguration",
            Self::WorkloadCreateFailed => "WorkloadCreateFailed",
            Self::PodGroupCreateFailed => "PodGroupCreateFailed",
            Self::ParentNotReady => "ParentWorkloadNotReady",
            Self::CleanupBlocked => "PodGroupCleanupBlocked",
        }
    }
}

/// A reason and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason.
    pub reason: Reason,
    /// The error in words.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// NAT-53: several faults as one; the first one's reason counts.
    pub(crate) fn joined(faults: Vec<Self>) -> Option<Self> {
        let reason = faults.first()?.reason;
        let messages: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
        Some(Self::new(reason, messages.join("; ")))
    }

    /// CFG-1: spec.scheduling with nobody to do it.
    pub(crate) fn no_provider() -> Self {
        Self::new(
            Reason::Unsupported,
            "spec.scheduling is set, but no scheduler provider is configured",
        )
    }

    /// NAT-6, for a set that came past admission.
    pub(crate) fn no_level() -> Self {
        Self::new(
            Reason::Invalid,
            "spec.scheduling requires exactly one active scheduling level",
        )
    }

    /// E.3.
    pub(crate) fn not_served() -> Self {
        Self::new(
            Reason::ApiNotAvailable,
            "the API server does not serve Workload and PodGroup of scheduling.k8s.io/v1beta1",
        )
    }

    /// NAT-59: the pod came through our admission, but the API server did not keep what was added.
    pub(crate) fn field_dropped(pod: &str) -> Self {
        Self::new(
            Reason::ApiNotAvailable,
            format!(
                "pod {pod} has no spec.schedulingGroup: the feature gate GenericWorkload of the API server is off, or the pod was not admitted by lws"
            ),
        )
    }
}
