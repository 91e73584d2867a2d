//! Names of labels, annotations, variables, gates, finalizers and objects (api-leaderworkerset section 5,
//! api-disaggregatedset section 7). This module is the one place where they are spelt.

/// API group of LeaderWorkerSet.
pub const GROUP: &str = "leaderworkerset.x-k8s.io";
/// API group of DisaggregatedSet and its role scaler.
pub const DS_GROUP: &str = "disaggregatedset.x-k8s.io";
/// Field manager of every write (API 5.3).
pub const FIELD_MANAGER: &str = "lws";
/// Reporting controller of events about a LeaderWorkerSet (ORD-115).
pub const REPORTING_CONTROLLER: &str = "leaderworkerset";
/// Reporting controller of events about a DisaggregatedSet.
pub const DS_REPORTING_CONTROLLER: &str = "disaggregatedset";

/// Labels (API 5.1).
pub mod label {
    /// Name of the LeaderWorkerSet, on everything that belongs to it.
    pub const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
    /// `0` for a leader, the ordinal 1 … size−1 for a worker.
    pub const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
    /// Ordinal: decimal index of the group; Hash: the group key.
    pub const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
    /// 40 hex characters that identify the group.
    pub const GROUP_KEY: &str = "leaderworkerset.sigs.k8s.io/group-key";
    /// Key of the ControllerRevision that the object was made from.
    pub const REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";
    /// `leader` or `worker`, on the metadata of workload objects only.
    pub const ROLE: &str = "leaderworkerset.sigs.k8s.io/role";
    /// `lws`, `replica` or `role`, on native PodGroups.
    pub const SCHEDULING_LEVEL: &str = "leaderworkerset.sigs.k8s.io/scheduling-level";
    /// Index of the subgroup of a pod.
    pub const SUBGROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/subgroup-index";
    /// 40 hex characters that identify the subgroup of a pod.
    pub const SUBGROUP_KEY: &str = "leaderworkerset.sigs.k8s.io/subgroup-key";
    /// Which ReplicaSet of its Deployment made a pod.
    pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";
}

/// Annotations (API 5.2).
pub mod annotation {
    /// Node label key: one group per value of it.
    pub const EXCLUSIVE_TOPOLOGY: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
    /// Node label key: one subgroup per value of it.
    pub const SUBGROUP_EXCLUSIVE_TOPOLOGY: &str =
        "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
    /// Presence adds the pending check to `RecreateGroupOnPodRestart` (FAIL-33).
    pub const RECREATE_AFTER_START: &str =
        "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start";
    /// Pods of the group, leader included, as decimal.
    pub const SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
    /// `spec.replicas` at the last apply, on the leader workload (ORD-54).
    pub const REPLICAS: &str = "leaderworkerset.sigs.k8s.io/replicas";
    /// Name of the leader pod, on workers.
    pub const LEADER_NAME: &str = "leaderworkerset.sigs.k8s.io/leader-name";
    /// `<hostname>.<subdomain>.<namespace>` of the leader, on workers.
    pub const LEADER_ADDRESS: &str = "leaderworkerset.sigs.k8s.io/leader-address";
    /// `Hash` on pods of Hash sets.
    pub const GROUP_IDENTITY: &str = "leaderworkerset.sigs.k8s.io/group-identity";
    /// `UniquePerReplica`, on leaders with that policy (camel case in the key).
    pub const SUBDOMAIN_POLICY: &str = "leaderworkerset.sigs.k8s.io/subdomainPolicy";
    /// Pods of a subgroup, as decimal.
    pub const SUBGROUP_SIZE: &str = "leaderworkerset.sigs.k8s.io/subgroup-size";
    /// `LeaderWorker` or `LeaderExcluded`.
    pub const SUBGROUP_POLICY_TYPE: &str = "leaderworkerset.sigs.k8s.io/subgroup-policy-type";
    /// `true` on workers whose leader requests TPUs.
    pub const LEADER_REQUESTS_TPUS: &str = "leaderworkerset.sigs.k8s.io/leader-requests-tpus";
    /// `Parallel` on leaders, as a hint for when the set is gone (FAIL-94).
    pub const POD_TERMINATION_POLICY: &str = "leaderworkerset.sigs.k8s.io/pod-termination-policy";
    /// JSON object of restart counts, on the set (FAIL-50).
    pub const GROUP_RESTART_COUNTS: &str = "leaderworkerset.sigs.k8s.io/group-restart-counts";
    /// `true` on the leader of a group whose restart budget is used up.
    pub const RESTART_BUDGET_EXHAUSTED: &str =
        "leaderworkerset.sigs.k8s.io/group-restart-budget-exhausted";
    /// `true`, set by the user, releases an exhausted group.
    pub const RECOVER: &str = "leaderworkerset.sigs.k8s.io/recover";
    /// `true` on a leader whose group is recreated when the back-off ends (FAIL-64).
    pub const GROUP_RECREATE_PENDING: &str = "leaderworkerset.sigs.k8s.io/group-recreate-pending";
    /// Scheduling level of native gang scheduling.
    pub const WORKLOAD_AWARE_SCHEDULING: &str =
        "leaderworkerset.sigs.k8s.io/workload-aware-scheduling";
    /// Workload of native gang scheduling.
    pub const WORKLOAD_NAME: &str = "leaderworkerset.sigs.k8s.io/workload-name";
    /// PodGroup of Volcano (VOL-1).
    pub const VOLCANO_GROUP_NAME: &str = "scheduling.k8s.io/group-name";
    /// What client-side apply stores; never copied to a child (ORD-61).
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// Template of an ancestor's Workload that a set uses (NAT-54).
    pub const GROUP_TEMPLATE_NAME: &str = "scheduling.k8s.io/group-template-name";
    /// Composite group above the groups of a set (NAT-54).
    pub const PARENT_COMPOSITE_POD_GROUP: &str = "scheduling.k8s.io/parent-compositepodgroup";
    /// Deletion cost that ReplicaSets read.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
}

/// Variables of every container of an LWS pod (ENV-1).
pub mod env {
    /// Address of the leader.
    pub const LEADER_ADDRESS: &str = "LWS_LEADER_ADDRESS";
    /// Pods of the group.
    pub const GROUP_SIZE: &str = "LWS_GROUP_SIZE";
    /// Position of the pod in its group.
    pub const WORKER_INDEX: &str = "LWS_WORKER_INDEX";
    /// Hosts of all members of a TPU slice, comma-separated.
    pub const TPU_WORKER_HOSTNAMES: &str = "TPU_WORKER_HOSTNAMES";
    /// Position of a container in its TPU slice.
    pub const TPU_WORKER_ID: &str = "TPU_WORKER_ID";
    /// Name of the TPU slice.
    pub const TPU_NAME: &str = "TPU_NAME";
    /// `host:port` of all members of a TPU slice, comma-separated.
    pub const TPU_PROCESS_ADDRESSES: &str = "TPU_PROCESS_ADDRESSES";
    /// Port of a TPU container.
    pub const TPU_PROCESS_PORT: &str = "TPU_PROCESS_PORT";
}

/// Labels of what belongs to a DisaggregatedSet (its API 7.1).
pub mod ds_label {
    /// Name of the DisaggregatedSet.
    pub const NAME: &str = "disaggregatedset.x-k8s.io/name";
    /// Name of the role.
    pub const ROLE: &str = "disaggregatedset.x-k8s.io/role";
    /// Index of the slice, decimal from `0`.
    pub const SLICE: &str = "disaggregatedset.x-k8s.io/slice";
    /// Revision, 8 hex digits.
    pub const REVISION: &str = "disaggregatedset.x-k8s.io/revision";
    /// Name of the sub-role, on the pods of an assigned group and on its scaler.
    pub const SUBROLE: &str = "disaggregatedset.x-k8s.io/subrole";
    /// What the controller sets on child sets and their pods.
    pub const INJECTED: [&str; 4] = [NAME, ROLE, SLICE, REVISION];
}

/// Annotations of a DisaggregatedSet and of its child sets (its API 7.2).
pub mod ds_annotation {
    /// Intended groups of the role in that revision, on a child set.
    pub const INITIAL_REPLICAS: &str = "disaggregatedset.x-k8s.io/initial-replicas";
    /// The revision value that a child set stands for.
    pub const CONTENT_HASH: &str = "disaggregatedset.x-k8s.io/content-hash";
    /// Which values the revisions of a set are (REV-6).
    pub const REVISION_HASH_VERSION: &str = "disaggregatedset.x-k8s.io/revision-hash-version";
    /// Issued counts of the sub-roles, on a child set.
    pub const SUBROLE_REPLICAS: &str = "disaggregatedset.x-k8s.io/subrole-replicas";
    /// Intended counts of the sub-roles in that revision, on a child set.
    pub const INITIAL_SUBROLE_REPLICAS: &str = "disaggregatedset.x-k8s.io/initial-subrole-replicas";
    /// Accepted counts of a shrink that is under way, on a child set.
    pub const SUBROLE_PLAN: &str = "disaggregatedset.x-k8s.io/subrole-plan";
    /// Older key of [`SUBROLE_PLAN`]: read, never written.
    pub const SUBROLE_SCALE_PLAN: &str = "disaggregatedset.x-k8s.io/subrole-scale-plan";
}

/// Variables of every container of a DisaggregatedSet's pods (its API 7.3).
pub mod ds_env {
    /// Name of the set.
    pub const NAME: &str = "DISAGGREGATEDSET_NAME";
    /// Name of the role.
    pub const ROLE: &str = "DISAGGREGATEDSET_ROLE";
    /// Index of the slice.
    pub const SLICE: &str = "DISAGGREGATEDSET_SLICE";
    /// Revision.
    pub const REVISION: &str = "DISAGGREGATEDSET_REVISION";
    /// All of them, in their order.
    pub const ALL: [&str; 4] = [NAME, ROLE, SLICE, REVISION];
}

/// Finalizer of the pods of an exhausted group (FAIL-72).
pub const BUDGET_FINALIZER: &str = "leaderworkerset.sigs.k8s.io/group-restart-budget-cleanup";
/// Scheduling gate of leaders (GATE-1).
pub const REPLACEMENT_GATE: &str = "leaderworkerset.sigs.k8s.io/group-replacement";
/// Readiness gate of Hash leaders.
pub const GROUP_READY: &str = "leaderworkerset.sigs.k8s.io/group-ready";
/// Extended resource of TPU pods.
pub const TPU_RESOURCE: &str = "google.com/tpu";

/// Values of the label [`label::ROLE`].
pub mod role {
    /// Leader workload.
    pub const LEADER: &str = "leader";
    /// Worker StatefulSet.
    pub const WORKER: &str = "worker";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others read these by the letter: no constant here may change.
    #[test]
    fn kue_kq_3_usr_11_names_that_others_read() {
        for (name, expected) in [
            (label::NAME, "name"),
            (label::WORKER_INDEX, "worker-index"),
            (label::GROUP_INDEX, "group-index"),
            (label::GROUP_KEY, "group-key"),
            (label::REVISION, "template-revision-hash"),
            (label::SUBGROUP_INDEX, "subgroup-index"),
            (label::SUBGROUP_KEY, "subgroup-key"),
            (annotation::SIZE, "size"),
            (annotation::LEADER_NAME, "leader-name"),
            (annotation::SUBGROUP_SIZE, "subgroup-size"),
            (annotation::EXCLUSIVE_TOPOLOGY, "exclusive-topology"),
            (
                annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY,
                "subgroup-exclusive-topology",
            ),
        ] {
            assert_eq!(name, format!("leaderworkerset.sigs.k8s.io/{expected}"));
        }
        let variables = [env::LEADER_ADDRESS, env::GROUP_SIZE, env::WORKER_INDEX];
        assert_eq!(
            variables,
            ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]
        );
    }
}
