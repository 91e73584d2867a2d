//! Pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lws_api::names::{GROUP_READY, REPLACEMENT_GATE, TPU_RESOURCE, annotation, label};

use super::{Meta, ObjectKey};

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// Accepted, not all containers have started; also what an absent phase means.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
    /// The node does not answer, or a phase that we do not know.
    Unknown,
}

/// A container that was restarted, and how it had ended (FAIL-1, FAIL-100).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Container name.
    pub container: Box<str>,
    /// It is an init container.
    pub init: bool,
    /// `restartCount`.
    pub count: i32,
    /// Exit code of the last recorded end.
    pub exit_code: Option<i32>,
    /// Reason of the last recorded end, e.g. `OOMKilled`.
    pub reason: Box<str>,
    /// When it ended, for choosing among several.
    pub finished: Option<jiff::Timestamp>,
}

/// What the controllers read of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Metadata; labels and annotations of ours only.
    pub meta: Meta,
    /// `spec.hostname`, empty if absent.
    pub hostname: Box<str>,
    /// `spec.subdomain`, empty if absent.
    pub subdomain: Box<str>,
    /// `spec.nodeName`, empty while unscheduled.
    pub node: Box<str>,
    /// Names of `spec.schedulingGates`.
    pub gates: Box<[Box<str>]>,
    /// `spec.schedulingGroup.podGroupName`, empty if absent.
    pub scheduling_group: Box<str>,
    /// A container asks for TPUs (TPU-1).
    pub requests_tpus: bool,
    /// Phase.
    pub phase: Phase,
    /// Condition `Ready` is True.
    pub ready: bool,
    /// Condition `ContainersReady` is True.
    pub containers_ready: bool,
    /// ROL-13: since when the scheduler finds no place for the pod.
    pub unschedulable_since: Option<jiff::Timestamp>,
    /// Condition `lws/group-ready`, if it was written (HASH-35).
    pub group_ready: Option<bool>,
    /// The restarted container that ended last (FAIL-100), if any was restarted.
    pub restart: Option<Restart>,
    /// `status.reason` or the reason of condition `DisruptionTarget`, empty if there is none.
    pub reason: Box<str>,
}

impl Pod {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// Label `lws/worker-index` is `0`.
    pub fn is_leader(&self) -> bool {
        self.meta.label(label::WORKER_INDEX) == "0"
    }

    /// HASH-20: a pod of a set with Hash identity.
    pub fn is_hash(&self) -> bool {
        self.meta.annotation(annotation::GROUP_IDENTITY) == "Hash"
    }

    /// The scheduling gate of ours is still there (GATE-1).
    pub fn is_gated(&self) -> bool {
        self.gates
            .iter()
            .any(|gate| gate.as_ref() == REPLACEMENT_GATE)
    }

    /// The leader says that its group is given up (FAIL-72).
    pub fn is_exhausted(&self) -> bool {
        self.meta.annotation(annotation::RESTART_BUDGET_EXHAUSTED) == "true"
    }

    /// Phase Running and condition Ready (ORD-45).
    pub fn is_running_and_ready(&self) -> bool {
        self.phase == Phase::Running && self.ready
    }

    /// FAIL-1: a container or init container was restarted, and the pod is not over.
    pub fn has_restarted(&self) -> bool {
        self.restart.is_some() && matches!(self.phase, Phase::Pending | Phase::Running)
    }
}

impl From<core::Pod> for Pod {
    fn from(pod: core::Pod) -> Self {
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let reported = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|c| c.type_ == kind)
        };
        let condition = |kind: &str| reported(kind).filter(|c| c.status == "True");
        let disruption = condition("DisruptionTarget").and_then(|c| c.reason.clone());
        Self {
            meta: Meta::ours(&pod.metadata),
            requests_tpus: requests_tpus(&spec),
            hostname: spec.hostname.unwrap_or_default().into(),
            subdomain: spec.subdomain.unwrap_or_default().into(),
            node: spec.node_name.unwrap_or_default().into(),
            gates: spec
                .scheduling_gates
                .into_iter()
                .flatten()
                .map(|gate| gate.name.into())
                .collect(),
            scheduling_group: spec
                .scheduling_group
                .and_then(|group| group.pod_group_name)
                .unwrap_or_default()
                .into(),
            phase: phase(status.phase.as_deref()),
            ready: condition("Ready").is_some(),
            containers_ready: condition("ContainersReady").is_some(),
            unschedulable_since: unschedulable_since(&status),
            group_ready: reported(GROUP_READY).map(|c| c.status == "True"),
            restart: last_restart(&status),
            reason: status
                .reason
                .clone()
                .filter(|r| !r.is_empty())
                .or(disruption)
                .unwrap_or_default()
                .into(),
        }
    }
}

/// ROL-13: condition PodScheduled is False because nothing fits.
fn unschedulable_since(status: &core::PodStatus) -> Option<jiff::Timestamp> {
    let condition = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    let is_unschedulable = condition.reason.as_deref() == Some("Unschedulable");
    let since = condition.last_transition_time.as_ref()?;
    is_unschedulable.then_some(since.0)
}

fn phase(text: Option<&str>) -> Phase {
    match text {
        None | Some("" | "Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) => Phase::Unknown,
    }
}

fn last_restart(status: &core::PodStatus) -> Option<Restart> {
    let init = status
        .init_container_statuses
        .iter()
        .flatten()
        .map(|c| (c, true));
    let normal = status
        .container_statuses
        .iter()
        .flatten()
        .map(|c| (c, false));
    init.chain(normal)
        .filter(|(c, _)| c.restart_count > 0)
        .map(|(c, init)| restart(c, init))
        .max_by_key(|r| r.finished)
}

fn restart(container: &core::ContainerStatus, init: bool) -> Restart {
    let ended = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    Restart {
        container: container.name.as_str().into(),
        init,
        count: container.restart_count,
        exit_code: ended.map(|e| e.exit_code),
        reason: ended
            .and_then(|e| e.reason.as_deref())
            .unwrap_or_default()
            .into(),
        finished: ended
            .and_then(|e| e.finished_at.as_ref())
            .map(|time| time.0),
    }
}

fn requests_tpus(spec: &core::PodSpec) -> bool {
    let asks = |list: Option<&BTreeMap<String, Quantity>>| {
        list.and_then(|l| l.get(TPU_RESOURCE))
            .is_some_and(|amount| is_positive(&amount.0))
    };
    spec.containers
        .iter()
        .chain(spec.init_containers.iter().flatten())
        .filter_map(|c| c.resources.as_ref())
        .any(|r| asks(r.limits.as_ref()) || asks(r.requests.as_ref()))
}

/// TPU-1: a quantity is zero exactly if its number, without the suffix, has no digit but 0.
pub(crate) fn is_positive(quantity: &str) -> bool {
    let number = quantity
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    number.into_iter().any(|c| matches!(c, '1'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: serde_json::Value) -> Pod {
        let object = serde_json::json!({"metadata": {"name": "x-0"}, "spec": {"containers": []}, "status": status});
        serde_json::from_value::<core::Pod>(object)
            .expect("a pod")
            .into()
    }

    #[test]
    fn fail_1_restarted_by_phase_and_count() {
        let containers = |count: i32| serde_json::json!([{"name": "c", "restartCount": count}]);
        for (phase, count, restarted) in [
            ("Running", 0, false),
            ("Running", 1, true),
            ("Pending", 1, true),
            ("Failed", 3, false),
            ("Succeeded", 1, false),
        ] {
            let normal =
                pod(serde_json::json!({"phase": phase, "containerStatuses": containers(count)}));
            assert_eq!(normal.has_restarted(), restarted, "{phase} {count}");
            let init = pod(
                serde_json::json!({"phase": phase, "initContainerStatuses": containers(count)}),
            );
            assert_eq!(init.has_restarted(), restarted, "init {phase} {count}");
            let ephemeral = pod(
                serde_json::json!({"phase": phase, "ephemeralContainerStatuses": containers(count)}),
            );
            assert!(!ephemeral.has_restarted(), "ephemeral {phase} {count}");
        }
    }

    #[test]
    fn hash_35_group_ready_is_unknown_until_it_is_written() {
        let with = |conditions: serde_json::Value| {
            pod(serde_json::json!({"conditions": conditions})).group_ready
        };
        let written = |status: &str| serde_json::json!([{"type": GROUP_READY, "status": status}]);
        assert_eq!(
            with(serde_json::json!([{"type": "Ready", "status": "True"}])),
            None
        );
        assert_eq!(with(written("True")), Some(true));
        assert_eq!(with(written("False")), Some(false));
    }

    #[test]
    fn fail_100_the_container_that_ended_last_is_kept() {
        let ended = |name: &str, at: &str, code: i32| {
            serde_json::json!({"name": name, "restartCount": 1, "lastState": {"terminated":
                {"exitCode": code, "reason": "OOMKilled", "finishedAt": at}}})
        };
        let statuses = [
            ended("a", "2026-01-01T00:00:01Z", 1),
            ended("b", "2026-01-01T00:00:09Z", 137),
            ended("c", "2026-01-01T00:00:05Z", 2),
        ];
        let restart = pod(serde_json::json!({"phase": "Running", "containerStatuses": statuses}))
            .restart
            .expect("a restart");
        assert_eq!(
            (
                restart.container.as_ref(),
                restart.exit_code,
                restart.reason.as_ref()
            ),
            ("b", Some(137), "OOMKilled")
        );
    }

    #[test]
    fn fail_100_reason_of_status_before_disruption_target() {
        let disrupted = serde_json::json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
        assert_eq!(
            pod(serde_json::json!({"conditions": disrupted}))
                .reason
                .as_ref(),
            "PreemptionByScheduler"
        );
        assert_eq!(
            pod(serde_json::json!({"reason": "Evicted", "conditions": disrupted}))
                .reason
                .as_ref(),
            "Evicted"
        );
    }

    #[test]
    fn pod_tpu_1_quantities() {
        for (amount, positive) in [
            ("4", true),
            ("+1k", true),
            ("10", true),
            ("0.5", true),
            ("", false),
            ("0", false),
            ("0.0", false),
            ("0e3", false),
            ("-0Mi", false),
        ] {
            assert_eq!(is_positive(amount), positive, "{amount}");
        }
    }

    #[test]
    fn pod_tpu_1_which_containers_count() {
        let resources =
            |kind: &str| serde_json::json!({"name": "c", "resources": {kind: {TPU_RESOURCE: "1"}}});
        for (spec, asks) in [
            (
                serde_json::json!({"containers": [resources("limits")]}),
                true,
            ),
            (
                serde_json::json!({"containers": [{"name": "a"}, resources("requests")]}),
                true,
            ),
            (
                serde_json::json!({"containers": [], "initContainers": [resources("limits")]}),
                true,
            ),
            (
                serde_json::json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}),
                false,
            ),
            (
                serde_json::json!({"containers": [], "ephemeralContainers": [resources("limits")]}),
                false,
            ),
        ] {
            let pod = serde_json::from_value::<core::Pod>(serde_json::json!({"spec": spec}));
            assert_eq!(Pod::from(pod.expect("a pod")).requests_tpus, asks, "{spec}");
        }
    }
}
