//! Which group of pods a pod is scheduled with (gang-scheduling.md C.6, D.2, D.3, VOL-1).

use lws_api::names::{annotation, label};

use super::Denial;
use super::draft::{Draft, Role};
use crate::admission::environment::{Environment, SchedulerProvider};
use crate::identity::{is_safe_text, safe_text};

/// Longest name of a PodGroup.
const MAX_NAME: usize = 253;
/// Random characters that tell one incarnation of a group from the next (NAT-35).
const INCARNATION_LENGTH: usize = 5;

/// What one PodGroup covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Set,
    Replica,
    Role,
}

/// PA-5: names the pod's PodGroup in the way of the configured provider.
pub(super) fn join(
    draft: &mut Draft<'_>,
    environment: &Environment,
    random: u128,
) -> Result<(), Denial> {
    let mode = draft
        .annotation(annotation::WORKLOAD_AWARE_SCHEDULING)
        .filter(|mode| !mode.is_empty());
    match (environment.scheduler_provider, mode) {
        (Some(SchedulerProvider::Kubernetes), Some(mode)) => {
            let mode = parse_mode(mode)?;
            join_native(draft, mode, random);
        }
        (Some(SchedulerProvider::Volcano), _) => join_volcano(draft),
        (None, Some(_)) => return Err(Denial::NoSchedulerProvider(draft.name().to_owned())),
        (Some(SchedulerProvider::Kubernetes) | None, None) => {}
    }
    Ok(())
}

/// NAT-29: older releases wrote `true` for what is `replica` now.
fn parse_mode(text: &str) -> Result<Mode, Denial> {
    match text {
        "lws" => Ok(Mode::Set),
        "replica" | "true" => Ok(Mode::Replica),
        "role" => Ok(Mode::Role),
        other => Err(Denial::SchedulingMode(other.to_owned())),
    }
}

/// VOL-1: one PodGroup per group and revision.
fn join_volcano(draft: &mut Draft<'_>) {
    let name = format!(
        "{}-{}-{}",
        text(draft, label::NAME),
        text(draft, label::GROUP_INDEX),
        text(draft, label::REVISION)
    );
    draft.set_annotation(annotation::VOLCANO_GROUP_NAME, name);
}

fn join_native(draft: &mut Draft<'_>, mode: Mode, random: u128) {
    let own_incarnation = draft.role() == Role::Leader && !draft.is_hash() && mode != Mode::Set;
    if own_incarnation {
        start_incarnation(draft, random);
    }
    let (group, revision) = (
        text(draft, label::GROUP_INDEX),
        text(draft, label::REVISION),
    );
    let suffix = match (mode, draft.role()) {
        (Mode::Set, _) => "-lws".to_owned(),
        (Mode::Replica, _) => format!("-{group}-{revision}"),
        (Mode::Role, Role::Leader) => format!("-{group}-leader-{revision}"),
        (Mode::Role, Role::Worker) => format!("-{group}-worker-{revision}"),
    };
    let name = pod_group_name(workload(draft), &suffix);
    draft.set_pod_group(name);
}

/// NAT-32, NAT-35: terminating pods of the group's last life still count for its PodGroup, so every Ordinal leader starts
/// a PodGroup of its own, and waits at the gate until that one exists (GATE-2).
fn start_incarnation(draft: &mut Draft<'_>, random: u128) {
    let name = workload(draft);
    let (base, incarnation) = name.split_once('.').unwrap_or((name, ""));
    if !is_safe_text(incarnation, INCARNATION_LENGTH) {
        let name = format!("{base}.{}", safe_text(random, INCARNATION_LENGTH));
        draft.set_annotation(annotation::WORKLOAD_NAME, name);
    }
    draft.gate();
}

/// NAT-31.
fn workload<'d>(draft: &'d Draft<'_>) -> &'d str {
    let named = draft
        .annotation(annotation::WORKLOAD_NAME)
        .filter(|name| !name.is_empty());
    named.unwrap_or_else(|| text(draft, label::NAME))
}

/// D.2: the part before the suffix gives way when the name gets too long.
fn pod_group_name(workload: &str, suffix: &str) -> String {
    let room = MAX_NAME.saturating_sub(suffix.len());
    let base: String = workload.chars().take(room).collect();
    format!("{base}{suffix}")
}

fn text<'d>(draft: &'d Draft<'_>, key: &str) -> &'d str {
    draft.label(key).unwrap_or_default()
}
