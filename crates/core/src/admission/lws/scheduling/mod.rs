//! S-1 … S-28: gang scheduling of a set (admission.md section 6). Reasons for the rules: gang-scheduling.md part C.

mod blocks;
mod delegation;
mod level;
mod templates;
mod update;

use lws_api::names::annotation;

use super::subject::{Field, Subject};
use crate::admission::environment::{Environment, SchedulerProvider};
use crate::admission::findings::Findings;
use crate::gang::Level;
use blocks::Block;
use level::active_level;

const ONE_LEVEL: &str = "requires exactly one active scheduling level";

/// S-rules in their order. They hold while `spec.scheduling` is there; its removal is refused (S-7).
pub(super) fn check(
    new: &Subject<'_>,
    old: Option<&Subject<'_>>,
    environment: &Environment,
    findings: &mut Findings,
) {
    let scheduling = new.field("scheduling");
    let old_with = old.filter(|old| old.field("scheduling").json.is_present());
    if !scheduling.json.is_present() {
        if old_with.is_some() {
            findings.push(scheduling.forbidden("cannot be removed from an existing set"));
        }
        return;
    }
    let opts_in = old_with.is_none();
    if opts_in && !check_opt_in(&scheduling, environment, findings) {
        return;
    }
    let level = active_level(scheduling.json);
    if environment.scheduler_provider == Some(SchedulerProvider::Kubernetes) {
        delegation::check(new, level, findings);
    }
    let Some(level) = level else {
        return findings.push(scheduling.invalid(ONE_LEVEL));
    };
    match (old, old_with) {
        (Some(_), None) => findings.push(
            scheduling
                .clone()
                .forbidden("cannot be added to an existing set"),
        ),
        (Some(_), Some(old)) => update::check(new, old, level, findings),
        (None, _) => {}
    }
    check_active(new, &scheduling, level, environment, findings);
    if let Some(old) = old_with {
        delegation::check_update(new, old, findings);
    }
}

/// S-rules about a spec by itself, for a role of a DisaggregatedSet, where scheduling may come and go.
pub(super) fn check_role(
    role: &Subject<'_>,
    opts_in: bool,
    environment: &Environment,
    findings: &mut Findings,
) {
    let scheduling = role.field("scheduling");
    if !scheduling.json.is_present()
        || (opts_in && !check_opt_in(&scheduling, environment, findings))
    {
        return;
    }
    let level = active_level(scheduling.json);
    if environment.scheduler_provider == Some(SchedulerProvider::Kubernetes) {
        delegation::check(role, level, findings);
    }
    match level {
        Some(level) => check_active(role, &scheduling, level, environment, findings),
        None => findings.push(scheduling.invalid(ONE_LEVEL)),
    }
}

/// S-12 … S-27, at the active level.
fn check_active(
    subject: &Subject<'_>,
    scheduling: &Field<'_>,
    level: Level,
    environment: &Environment,
    findings: &mut Findings,
) {
    let blocks = Block::active(scheduling, level);
    blocks::check(&blocks, findings);
    check_level(subject, level, &blocks, findings);
    templates::check(subject, scheduling, &blocks, findings);
    if environment.scheduler_provider == Some(SchedulerProvider::Volcano) {
        check_volcano(scheduling, level, findings);
    }
}

/// S-1 … S-4: whether this installation can do it at all. Not asked of sets that use it already, so that they stay
/// editable when the installation changes (NAT-26). False stops all other rules.
fn check_opt_in(
    scheduling: &Field<'_>,
    environment: &Environment,
    findings: &mut Findings,
) -> bool {
    if !environment.workload_aware_scheduling {
        findings.push(
            scheduling
                .clone()
                .forbidden("needs the feature gate WorkloadAwareScheduling"),
        );
        return false;
    }
    match environment.scheduler_provider {
        None => findings.push(
            scheduling
                .clone()
                .required("needs a configured scheduler provider"),
        ),
        Some(SchedulerProvider::Kubernetes) => {
            let served = environment.served;
            for (kind, is_served) in [
                ("Workload", served.workload),
                ("PodGroup", served.pod_group),
            ] {
                if !is_served {
                    let detail = format!(
                        "the API server does not serve {kind} of scheduling.k8s.io/v1beta1"
                    );
                    findings.push(scheduling.clone().forbidden(detail));
                }
            }
        }
        Some(SchedulerProvider::Volcano) => {}
    }
    true
}

/// S-18 … S-22: what does not go together with a level.
fn check_level(subject: &Subject<'_>, level: Level, blocks: &[Block<'_>], findings: &mut Findings) {
    if level != Level::Role {
        for block in blocks {
            let count = block.policy().member("gang").member("minGroupCount");
            if count.json.is_present() {
                findings.push(count.forbidden("is derived from replicas and size"));
            }
        }
    }
    if level == Level::Role {
        check_roles(subject, blocks, findings);
    }
    let scheduling = || subject.field("scheduling");
    let is_gang = blocks.iter().any(Block::is_gang);
    if level != Level::Role
        && is_gang
        && subject.field("startupPolicy").json.text() == "LeaderReady"
    {
        let detail = "startupPolicy LeaderReady creates workers after the leader is scheduled, so the gang would never be complete";
        findings.push(scheduling().forbidden(detail));
    }
    let exclusive = !subject
        .annotation(annotation::EXCLUSIVE_TOPOLOGY)
        .text()
        .is_empty();
    if exclusive && (is_gang || blocks.iter().any(Block::has_topology)) {
        let detail = format!(
            "cannot be combined with the annotation {}",
            annotation::EXCLUSIVE_TOPOLOGY
        );
        findings.push(scheduling().forbidden(detail));
    }
}

/// S-19, S-20: leaders and workers apart need workers, and a gang of them all of them.
fn check_roles(subject: &Subject<'_>, blocks: &[Block<'_>], findings: &mut Findings) {
    let size = subject.size();
    if size < 2 {
        findings.push(
            subject
                .field("leaderWorkerTemplate.size")
                .invalid("must be at least 2 when leader or worker are scheduled apart"),
        );
    }
    for block in blocks {
        let members = if block.is_leader() {
            1
        } else {
            size.saturating_sub(1)
        };
        let count = block.policy().member("gang").member("minCount");
        if count.json.int().is_some_and(|count| count != members) {
            findings.push(count.invalid(format!(
                "must be {members}, the number of these pods in a group"
            )));
        }
    }
}

/// S-26, S-27: Volcano gets one plain gang for each group.
fn check_volcano(scheduling: &Field<'_>, level: Level, findings: &mut Findings) {
    if level != Level::Replica {
        return findings.push(
            scheduling
                .clone()
                .forbidden("Volcano supports the replica level only"),
        );
    }
    let replica = scheduling.member("replica");
    let policy = replica.member("schedulingPolicy");
    if policy.json.at("basic").is_present() {
        findings.push(policy.forbidden("Volcano supports the gang policy only"));
    }
    for name in ["schedulingConstraints", "disruptionMode"] {
        let member = replica.member(name);
        if member.json.is_present() {
            findings.push(member.forbidden("is not supported by Volcano"));
        }
    }
}
