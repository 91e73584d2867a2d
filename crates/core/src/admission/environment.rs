//! What admission knows besides the request (ADM-6).

/// Configuration of this process and capabilities of the cluster that admission depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Environment {
    /// Feature gate `WorkloadAwareScheduling`.
    pub workload_aware_scheduling: bool,
    /// Configured gang scheduler, if any (CFG-1).
    pub scheduler_provider: Option<SchedulerProvider>,
    /// Kinds of `scheduling.k8s.io/v1beta1` that the API server serves.
    pub served: ServedKinds,
}

/// Who schedules the pods of a group together (CFG-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerProvider {
    /// Workload and PodGroup of Kubernetes itself.
    Kubernetes,
    /// PodGroup of Volcano.
    Volcano,
}

/// Served kinds of `scheduling.k8s.io/v1beta1` (S-4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServedKinds {
    /// Kind `Workload`.
    pub workload: bool,
    /// Kind `PodGroup`.
    pub pod_group: bool,
}
