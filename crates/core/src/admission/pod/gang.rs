//! Which group of pods a pod is scheduled with (gang-scheduling.md C.6, D.2, D.3, VOL-1).

use lws_api::names::{annotation, label};

use super::Denial;
use super::draft::{Draft, Role};
use crate::admission::environment::{Environment, SchedulerProvider};
use crate::gang::{INCARNATION_LENGTH, Level, Part, incarnation, pod_group_name};
use crate::identity::{is_safe_text, safe_text};

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
            let level =
                Level::of_mode(mode).ok_or_else(|| Denial::SchedulingMode(mode.to_owned()))?;
            join_native(draft, level, random);
        }
        (Some(SchedulerProvider::Volcano), _) => join_volcano(draft),
        (None, Some(_)) => return Err(Denial::NoSchedulerProvider(draft.name().to_owned())),
        (Some(SchedulerProvider::Kubernetes) | None, None) => {}
    }
    Ok(())
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

fn join_native(draft: &mut Draft<'_>, level: Level, random: u128) {
    let own_incarnation = draft.role() == Role::Leader && !draft.is_hash() && level != Level::Set;
    if own_incarnation {
        start_incarnation(draft, random);
    }
    let part = match (level, draft.role()) {
        (Level::Set, _) => Part::Set,
        (Level::Replica, _) => Part::Group,
        (Level::Role, Role::Leader) => Part::Leader,
        (Level::Role, Role::Worker) => Part::Workers,
    };
    let (group, revision) = (
        text(draft, label::GROUP_INDEX),
        text(draft, label::REVISION),
    );
    let name = pod_group_name(workload(draft), part, group, revision);
    draft.set_pod_group(name);
}

/// NAT-32, NAT-35: terminating pods of the group's last life still count for its PodGroup, so every Ordinal leader starts
/// a PodGroup of its own, and waits at the gate until that one exists (GATE-2).
fn start_incarnation(draft: &mut Draft<'_>, random: u128) {
    let name = workload(draft);
    let (base, random_part) = incarnation(name);
    if !is_safe_text(random_part, INCARNATION_LENGTH) {
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

fn text<'d>(draft: &'d Draft<'_>, key: &str) -> &'d str {
    draft.label(key).unwrap_or_default()
}
