//! What a plan wants done: writes as plain data, one API request each, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::group::Cause;
use crate::model::{ObjectKey, Uid};
use crate::notice::Notice;
use crate::ownership::Expected;

/// Kinds that the controllers write.
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
}

impl Kind {
    /// `apiVersion` of the kind.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::LeaderWorkerSet => "leaderworkerset.x-k8s.io/v1",
            Self::StatefulSet | Self::Deployment | Self::ControllerRevision => "apps/v1",
            Self::Service | Self::Pod => "v1",
            Self::DisaggregatedSet | Self::RoleScaler => "disaggregatedset.x-k8s.io/v1",
            Self::Workload | Self::PodGroup => "scheduling.k8s.io/v1beta1",
        }
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
        }
    }

    /// Name in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::LeaderWorkerSet => "leaderworkersets",
            Self::StatefulSet => "statefulsets",
            Self::Deployment => "deployments",
            Self::ControllerRevision => "controllerrevisions",
            Self::Service => "services",
            Self::Pod => "pods",
            Self::DisaggregatedSet => "disaggregatedsets",
            Self::RoleScaler => "disaggregatedsetrolescalers",
            Self::Workload => "workloads",
            Self::PodGroup => "podgroups",
        }
    }
}

/// An object by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Kind.
    pub kind: Kind,
    /// Namespace and name.
    pub key: ObjectKey,
}

/// What follows the object's own end to its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// Dependents are collected after the object is gone.
    Background,
    /// The object stays until its blocking dependents are gone (FAIL-46).
    Foreground,
}

/// Part of an object that a patch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// The object itself.
    None,
    /// Its status.
    Status,
}

/// What makes an object that already stands under the wanted name as good as created.
#[derive(Clone, Debug, PartialEq)]
pub enum Accept {
    /// ORD-135: it has this controller; `foreign` is the error text if it does not and is no leftover.
    Controlled {
        /// The controller it must have.
        by: Expected,
        /// Error text otherwise, without the API's words.
        foreign: String,
    },
    /// ORD-74: as [`Accept::Controlled`], or a headless Service of nobody with this selector.
    Serving {
        /// The controller it must have.
        by: Expected,
        /// The selector that makes a Service of nobody as good.
        selector: BTreeMap<String, String>,
        /// Error text otherwise, without the API's words.
        foreign: String,
    },
    /// ORD-39: it has this controller and the same member `data`.
    SameData {
        /// The controller it must have.
        by: Expected,
    },
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// POST. An object that exists already is read once and judged.
    Create {
        /// What is created.
        target: Target,
        /// The whole object.
        body: Arc<Value>,
        /// What counts as created by us before.
        accept: Accept,
        /// Make the fields of the POST part of a later apply (KRS-54).
        claim: bool,
    },
    /// Server-side apply, forced, with the UID in the body (ORD-60), and where it matters the resourceVersion (KRS-54).
    Apply {
        /// What is applied.
        target: Target,
        /// UID of the object that was judged.
        uid: Uid,
        /// Version that was judged; `None` where the cache is known to show our last apply.
        resource_version: Option<Arc<str>>,
        /// The full configuration, without UID and resourceVersion.
        body: Arc<Value>,
        /// Fields of an earlier POST must be claimed first (KRS-54).
        claim: bool,
    },
    /// Merge patch with UID and, where it matters, resourceVersion.
    Patch {
        /// What is patched.
        target: Target,
        /// UID of the object that was read.
        uid: Uid,
        /// Version that was read; `None` where the change does not depend on the rest of the object.
        resource_version: Option<Arc<str>>,
        /// Which part.
        subresource: Subresource,
        /// The patch, without UID and resourceVersion.
        body: Value,
    },
    /// One condition of a pod's status, with its UID; the other conditions are those of others and stay (HASH-36).
    SetCondition {
        /// The pod.
        target: Target,
        /// UID of the pod that was read.
        uid: Uid,
        /// The whole condition.
        condition: Value,
    },
    /// Delete with a UID precondition. Gone, or another UID, is as good as done (KRS-58).
    Delete {
        /// What is deleted.
        target: Target,
        /// UID of the object that was decided on.
        uid: Uid,
        /// Version that it was decided on; `None` where the deletion does not depend on the rest of the object.
        resource_version: Option<Arc<str>>,
        /// What follows for its dependents.
        propagation: Propagation,
    },
}

impl Intent {
    /// The object that the write goes to.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. }
            | Self::Apply { target, .. }
            | Self::Patch { target, .. }
            | Self::SetCondition { target, .. }
            | Self::Delete { target, .. } => target,
        }
    }
}

/// What a failed step means for the rest of the pass (ORD-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfFailed {
    /// The pass ends here, without a status.
    Stop,
    /// The remaining steps are left out; the status is written.
    Report,
    /// The next steps are done all the same.
    Continue,
    /// The other steps of the same part are left out; the next part is done all the same.
    LeavePart,
}

/// One write, why it is made, and what is told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The write.
    pub intent: Intent,
    /// Log field, metric label and answer to "who did this?".
    pub why: Why,
    /// The failure that the write answers, for the log (FAIL-100).
    pub cause: Option<Cause>,
    /// Posted when the write was made by this pass.
    pub on_success: Vec<Notice>,
    /// Posted when it failed; the API's words are appended after `: `.
    pub on_failure: Option<Notice>,
    /// What the error begins with when it failed; the API's words follow after `: `.
    pub doing: Option<String>,
    /// What a failure means for the rest.
    pub if_failed: IfFailed,
    /// Steps of one number belong together, for [`IfFailed::LeavePart`].
    pub part: u32,
}

impl Step {
    /// A step that ends the pass if it fails and tells nobody.
    pub fn new(why: Why, intent: Intent) -> Self {
        Self {
            intent,
            why,
            cause: None,
            on_success: Vec::new(),
            on_failure: None,
            doing: None,
            if_failed: IfFailed::Stop,
            part: 0,
        }
    }

    /// The write answers a failure (FAIL-100).
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Option<Cause>>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Post `notice` when the write was made.
    #[must_use]
    pub fn then(mut self, notice: Notice) -> Self {
        self.on_success.push(notice);
        self
    }

    /// Post `notice` when it failed.
    #[must_use]
    pub fn or_else(mut self, notice: Notice) -> Self {
        self.on_failure = Some(notice);
        self
    }

    /// What the error says that the write was for.
    #[must_use]
    pub fn doing(mut self, what: String) -> Self {
        self.doing = Some(what);
        self
    }

    /// What a failure means for the rest.
    #[must_use]
    pub fn if_failed(mut self, what: IfFailed) -> Self {
        self.if_failed = what;
        self
    }
}

/// Why a write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The set has no revision yet, its revision is missing, or its template changed.
    RevisionMissing,
    /// A rollout is over: older revisions go.
    RevisionObsolete,
    /// The leader workload does not exist.
    LeaderSetMissing,
    /// The leader workload differs from what is wanted.
    LeaderSetDiffers,
    /// A headless Service does not exist.
    ServiceMissing,
    /// A headless Service was changed in what peers rely on.
    ServiceDiffers,
    /// A group has no worker set.
    WorkerSetMissing,
    /// A pod of the group failed.
    GroupFailed,
    /// The group failed too often.
    BudgetExhausted,
    /// The group failed; it is recreated when the back-off ends.
    BackoffStarted,
    /// The leader is terminating, or the set is, and pods end in parallel.
    ParallelTermination,
    /// Retained pods are let go.
    GroupReleased,
    /// Restart counts of groups or revisions that are gone.
    CountsObsolete,
    /// A replacement takes over the restart count of a group that is gone.
    CountHandedOver,
    /// Nothing holds the leader back any more.
    GateLifted,
    /// The workers of a group became ready, or no longer are.
    GroupReadyDiffers,
    /// Status differs from what was seen.
    StatusDiffers,
    /// A role has no child set in a slice and revision.
    ChildMissing,
    /// A child set differs from its role in what is kept up to date.
    ChildDiffers,
    /// A rollout gives and takes groups.
    ChildRolled,
    /// The slice of a child set is not wanted any more.
    SliceRemoved,
    /// The revision of a child set has no groups any more.
    RevisionDrained,
    /// A child set that was made otherwise stands for its role.
    ChildAdopted,
    /// The set does not say yet which revisions it has.
    SetUnmarked,
    /// A role that is scaled from outside has no scaler.
    ScalerMissing,
    /// The role of a scaler is not scaled from outside.
    ScalerObsolete,
    /// A group is to belong to another sub-role.
    GroupReassigned,
    /// A set that is scheduled in gangs has no Workload.
    WorkloadMissing,
    /// The counts of a Workload are others.
    WorkloadDiffers,
    /// Pods that are scheduled together have no PodGroup.
    PodGroupMissing,
    /// A PodGroup differs in what may change.
    PodGroupDiffers,
    /// Nothing needs the PodGroup any more.
    PodGroupObsolete,
    /// The workers of a group do not join the PodGroup of their leader.
    GroupSplit,
}

impl Why {
    /// Label value and log field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RevisionMissing => "revision_missing",
            Self::RevisionObsolete => "revision_obsolete",
            Self::LeaderSetMissing => "leader_set_missing",
            Self::LeaderSetDiffers => "leader_set_differs",
            Self::ServiceMissing => "service_missing",
            Self::ServiceDiffers => "service_differs",
            Self::WorkerSetMissing => "worker_set_missing",
            Self::GroupFailed => "group_failed",
            Self::BudgetExhausted => "budget_exhausted",
            Self::BackoffStarted => "backoff_started",
            Self::ParallelTermination => "parallel_termination",
            Self::GroupReleased => "group_released",
            Self::CountsObsolete => "counts_obsolete",
            Self::CountHandedOver => "count_handed_over",
            Self::GateLifted => "gate_lifted",
            Self::GroupReadyDiffers => "group_ready_differs",
            Self::StatusDiffers => "status_differs",
            Self::ChildMissing => "child_missing",
            Self::ChildDiffers => "child_differs",
            Self::ChildRolled => "child_rolled",
            Self::SliceRemoved => "slice_removed",
            Self::RevisionDrained => "revision_drained",
            Self::ChildAdopted => "child_adopted",
            Self::SetUnmarked => "set_unmarked",
            Self::ScalerMissing => "scaler_missing",
            Self::ScalerObsolete => "scaler_obsolete",
            Self::GroupReassigned => "group_reassigned",
            Self::WorkloadMissing => "workload_missing",
            Self::WorkloadDiffers => "workload_differs",
            Self::PodGroupMissing => "pod_group_missing",
            Self::PodGroupDiffers => "pod_group_differs",
            Self::PodGroupObsolete => "pod_group_obsolete",
            Self::GroupSplit => "group_split",
        }
    }
}

/// What a controller decided from one snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// Events that depend on no write.
    pub notices: Vec<Notice>,
    /// When to look again without being woken.
    pub wake_after: Option<Duration>,
    /// What is wrong although no request failed; the first one counts as the error of the pass.
    pub errors: Vec<PlanError>,
    /// What was passed over, for the log.
    pub remarks: Vec<String>,
}

/// A finding of a plan that needs no request to fail: it is reported, and the key is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// What is wrong, for the log.
    pub message: String,
    /// When to look again; `None`: the queue's back-off decides.
    pub retry_after: Option<Duration>,
}
