//! Why something is not ready, in words that tell what to do.
//!
//! The nearest cause is told: a worker that waits for its leader says so, and the leader says what it waits for.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use lws_api::leaderworkerset::{GroupIdentity, StartupPolicy, SubdomainPolicy};
use lws_api::names::{BUDGET_FINALIZER, GROUP_READY, REPLACEMENT_GATE, annotation};

use super::report::{Seen, is_controlled_by, is_leader, is_ready, note, warnings};

/// Gates of others that users meet.
const KUEUE_GATES: &str = "kueue.x-k8s.io/";

/// What is wrong with the set as a whole.
pub fn set(seen: &Seen) -> Vec<String> {
    let name = seen.set.name_any();
    let mut reasons = Vec::new();
    if seen.set.metadata.deletion_timestamp.is_some() {
        reasons.push("the set is being deleted".to_owned());
    }
    let workload = match seen.set.spec.group_identity() {
        GroupIdentity::Ordinal => seen
            .stateful_set(&name)
            .map(|found| ("StatefulSet", &found.metadata)),
        GroupIdentity::Hash => seen
            .deployment
            .as_ref()
            .map(|found| ("Deployment", &found.metadata)),
    };
    match workload {
        Some((kind, meta)) if !is_controlled_by(meta, &seen.set.metadata) => reasons.push(in_the_way(kind, meta)),
        Some((_, meta)) if has_missing_leaders(seen) => reasons.extend(failures(seen, meta)),
        Some(_) => {}
        None => reasons.push("its leaders' workload is not created yet: does the manager run? See kubectl lws doctor".to_owned()),
    }
    if seen.set.spec.subdomain_policy() == SubdomainPolicy::Shared {
        let service = seen
            .services
            .iter()
            .find(|service| service.metadata.name.as_ref() == Some(&name));
        let foreign =
            service.filter(|service| !is_controlled_by(&service.metadata, &seen.set.metadata));
        reasons.extend(foreign.map(|service| in_the_way("Service", &service.metadata)));
    }
    reasons
}

fn has_missing_leaders(seen: &Seen) -> bool {
    let leaders = seen.pods.iter().filter(|pod| is_leader(pod)).count();
    leaders < usize::try_from(seen.set.spec.replicas()).unwrap_or_default()
}

/// Why a group lacks pods.
pub fn group(seen: &Seen, index: &str, size: usize) -> Vec<String> {
    let Some(leader) = seen.leader(index) else {
        return vec!["it has no leader pod".to_owned()];
    };
    if note(&leader.metadata, annotation::RESTART_BUDGET_EXHAUSTED) == "true" {
        let name = seen.set.name_any();
        return vec![format!(
            "its restart budget is used up, and its pods are kept for inspection; bring it back with: kubectl lws recover {name} {index}"
        )];
    }
    let mut reasons = Vec::new();
    if note(&leader.metadata, annotation::GROUP_RECREATE_PENDING) == "true" {
        reasons.push("it failed, and is recreated when the back-off ends".to_owned());
    }
    if seen.members(index).count() < size {
        reasons.extend(missing_workers(seen, leader));
    }
    reasons
}

/// Why workers do not exist.
fn missing_workers(seen: &Seen, leader: &Pod) -> Vec<String> {
    let name = leader.name_any();
    if leader.metadata.deletion_timestamp.is_some() {
        return vec!["its leader is terminating; a new group follows".to_owned()];
    }
    match seen.stateful_set(&name) {
        Some(workers) if is_controlled_by(&workers.metadata, &leader.metadata) => {
            let failures = failures(seen, &workers.metadata);
            if failures.is_empty() {
                vec!["its workers are being created".to_owned()]
            } else {
                failures
            }
        }
        Some(workers) if is_of_predecessor(&workers.metadata, &name) => {
            vec!["the workers of its predecessor are still terminating".to_owned()]
        }
        Some(workers) => vec![in_the_way("StatefulSet", &workers.metadata)],
        None => vec![workers_wait(seen, leader)],
    }
}

fn is_of_predecessor(meta: &ObjectMeta, leader: &str) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    meta.deletion_timestamp.is_some()
        || owners.any(|owner| owner.kind == "Pod" && owner.name == leader)
}

/// What the worker StatefulSet is waiting for (ORD-80).
fn workers_wait(seen: &Seen, leader: &Pod) -> String {
    let topology = note(&leader.metadata, annotation::EXCLUSIVE_TOPOLOGY);
    let node = leader
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref());
    if !topology.is_empty() {
        let Some(node) = node else {
            return "its workers wait for the leader to be scheduled, since the group is placed as the leader is".to_owned();
        };
        let found = seen
            .nodes
            .iter()
            .find(|found| found.metadata.name.as_deref() == Some(node));
        if found.is_some_and(|found| !found.labels().contains_key(topology)) {
            return format!(
                "its workers wait for node {node} of the leader to get the label {topology}"
            );
        }
    }
    let waits = seen.set.spec.startup_policy() == StartupPolicy::LeaderReady && !is_ready(leader);
    if waits {
        return "its workers wait for the leader to be ready (startupPolicy LeaderReady)"
            .to_owned();
    }
    let told = warnings(&seen.events, &seen.set.metadata);
    match told.get("FailedCreate") {
        Some(message) => format!("its workers cannot be created: {message}"),
        None => "its workers are not created yet".to_owned(),
    }
}

/// Why a pod is not ready.
pub fn pod(seen: &Seen, pod: &Pod) -> Option<String> {
    let status = pod.status.clone().unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(terminating(seen, pod));
    }
    gated(pod)
        .or_else(|| unscheduled(&status))
        .or_else(|| container(&status))
        .or_else(|| on_bad_node(seen, pod))
        .or_else(|| unready(&status))
        .or_else(|| not_started(seen, pod))
}

fn terminating(seen: &Seen, pod: &Pod) -> String {
    if pod
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == BUDGET_FINALIZER)
    {
        return "it is kept for inspection".to_owned();
    }
    match on_bad_node(seen, pod) {
        Some(node) => format!("it cannot end, since {node}; see docs/troubleshooting.md"),
        None => "it is terminating".to_owned(),
    }
}

fn gated(pod: &Pod) -> Option<String> {
    let gates = pod.spec.as_ref()?.scheduling_gates.as_ref()?;
    let names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
    let first = *names.first()?;
    Some(match first {
        REPLACEMENT_GATE => {
            "gated: it is scheduled when the group that it replaces is gone".to_owned()
        }
        gate if gate.starts_with(KUEUE_GATES) => {
            format!("gated: it waits for Kueue to admit its group ({gate})")
        }
        _ => format!("gated by {}", names.join(", ")),
    })
}

/// The scheduler's own words.
fn unscheduled(status: &PodStatus) -> Option<String> {
    let condition = condition(status, "PodScheduled").filter(|found| found.status == "False")?;
    let words = condition.message.as_deref().unwrap_or_default();
    Some(format!("not scheduled: {words}"))
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind)
}

/// The first container that does not run.
fn container(status: &PodStatus) -> Option<String> {
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
        .find_map(stopped)
}

fn stopped(container: &ContainerStatus) -> Option<String> {
    let name = &container.name;
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        return match reason {
            "ContainerCreating" | "PodInitializing" => None,
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Some(format!(
                    "container {name}: image {} cannot be pulled ({reason}): {message}",
                    container.image
                ))
            }
            "CrashLoopBackOff" => Some(format!(
                "container {name} crashes ({}): {message}",
                last_end(container)
            )),
            "" => None,
            _ => Some(format!("container {name} waits ({reason}): {message}")),
        };
    }
    let ended = state
        .terminated
        .as_ref()
        .filter(|ended| ended.exit_code != 0)?;
    let reason = ended.reason.as_deref().unwrap_or_default();
    Some(format!(
        "container {name} exited with code {} ({reason})",
        ended.exit_code
    ))
}

fn last_end(container: &ContainerStatus) -> String {
    let ended = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    ended.map_or_else(
        || format!("restarted {} times", container.restart_count),
        |ended| {
            format!(
                "exit code {}, {}",
                ended.exit_code,
                ended.reason.as_deref().unwrap_or_default()
            )
        },
    )
}

fn on_bad_node(seen: &Seen, pod: &Pod) -> Option<String> {
    let name = pod.spec.as_ref()?.node_name.as_deref()?;
    let Some(node) = seen
        .nodes
        .iter()
        .find(|node| node.metadata.name.as_deref() == Some(name))
    else {
        return (!seen.nodes.is_empty()).then(|| format!("node {name} is gone"));
    };
    let conditions = node.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions
        .into_iter()
        .find(|condition| condition.type_ == "Ready")?;
    (ready.status != "True").then(|| format!("node {name} is not ready"))
}

fn unready(status: &PodStatus) -> Option<String> {
    if status.phase.as_deref() == Some("Failed") {
        let words = [status.reason.as_deref(), status.message.as_deref()];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        return Some(format!("failed: {}", words.join(": ")));
    }
    let waits = condition(status, GROUP_READY).is_some_and(|found| found.status != "True");
    let containers =
        condition(status, "ContainersReady").is_some_and(|found| found.status == "True");
    if waits && containers {
        return Some("it waits for its workers to be ready".to_owned());
    }
    let unready = status
        .container_statuses
        .iter()
        .flatten()
        .find(|container| !container.ready)?;
    let is_running = unready
        .state
        .as_ref()
        .is_some_and(|state| state.running.is_some());
    is_running.then(|| format!("container {} runs, but is not ready", unready.name))
}

fn not_started(seen: &Seen, pod: &Pod) -> Option<String> {
    let told = warnings(&seen.events, &pod.metadata);
    let words = told
        .iter()
        .next_back()
        .map(|(reason, message)| format!("{reason}: {message}"));
    words.or_else(|| Some("its containers are being created".to_owned()))
}

/// Why pods of a workload are not created, in the words of the API server.
fn failures(seen: &Seen, workload: &ObjectMeta) -> Vec<String> {
    let told = warnings(&seen.events, workload);
    let message = told.get("FailedCreate").copied();
    message.map(explained).into_iter().collect()
}

fn explained(message: &str) -> String {
    let what = if message.contains("failed calling webhook") {
        "a webhook fails, see kubectl lws doctor"
    } else if message.contains("exceeded quota") {
        "the quota of the namespace is used up"
    } else {
        "pods cannot be created"
    };
    format!("{what}: {message}")
}

fn in_the_way(kind: &str, meta: &ObjectMeta) -> String {
    let name = meta.name.as_deref().unwrap_or_default();
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true));
    let whose = owner.map_or_else(
        || "nobody controls it".to_owned(),
        |owner| format!("it belongs to {} {}", owner.kind, owner.name),
    );
    format!("{kind} {name} is in the way: {whose}; rename one of the two, or delete it")
}
