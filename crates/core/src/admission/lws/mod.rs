//! Defaults and validation of LeaderWorkerSets (admission.md sections 3 to 6), one file per concern.
//!
//! A rule gets a [`Subject`] and reports [`Field`]s of it; so the rules about a spec also serve specs that stand
//! elsewhere than in a LeaderWorkerSet, under their own paths.

mod defaults;
mod identity;
mod metadata;
mod replicas;
mod restarts;
mod rollout;
mod scheduling;
mod subgroups;
mod subject;

use json_patch::Patch;
use lws_api::names::annotation;
use serde_json::Value;

use super::findings::Findings;
use super::json::Json;
use super::{Environment, unavailable};
pub use defaults::default;
pub(super) use rollout::Budget;
pub(super) use subject::{Field, Subject};

/// Annotations of the set that rules read (ADM-7).
const READ_ANNOTATIONS: [&str; 4] = [
    annotation::EXCLUSIVE_TOPOLOGY,
    annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY,
    annotation::GROUP_TEMPLATE_NAME,
    annotation::PARENT_COMPOSITE_POD_GROUP,
];

/// The patch that [`default`] amounts to, or `None` when the object is complete.
pub fn mutate(object: &Value) -> Option<Patch> {
    let mut complete = object.clone();
    default(&mut complete);
    Some(json_patch::diff(object, &complete)).filter(|patch| !patch.is_empty())
}

/// V-, U- and S-rules for a create (`old` is `None`) or an update, after [`default`].
///
/// ADM-7: an object that is being deleted, and one whose spec an update leaves alone, is never held up by rules that
/// it may have violated all along.
pub fn validate(new: &Value, old: Option<&Value>, environment: &Environment) -> Findings {
    let mut findings = Findings::default();
    if Json::of(new)
        .at("metadata")
        .at("deletionTimestamp")
        .is_present()
    {
        return findings;
    }
    metadata::check_object(Json::of(new).at("metadata"), &mut findings);
    if old.is_some_and(|old| reads_the_same(new, old)) {
        return findings;
    }
    check_rules(new, old, environment, &mut findings);
    let subject = Subject::of(new);
    if old.is_none() {
        unavailable::check_lws(&subject, &mut findings);
    }
    metadata::warn_of_long_name(&subject, &mut findings);
    findings
}

/// ADM-7 (b): whether an update leaves everything alone that the rules read.
fn reads_the_same(new: &Value, old: &Value) -> bool {
    let annotation = |object, key| Json::of(object).at("metadata").at("annotations").at(key);
    let annotations_same = READ_ANNOTATIONS
        .iter()
        .all(|key| annotation(new, key) == annotation(old, key));
    annotations_same && complete_spec(new) == complete_spec(old)
}

fn complete_spec(object: &Value) -> Value {
    let mut spec_only = serde_json::json!({"spec": Json::of(object).at("spec").value()});
    default(&mut spec_only);
    spec_only
}

/// All rules but V-1, in their order.
fn check_rules(
    new: &Value,
    old: Option<&Value>,
    environment: &Environment,
    findings: &mut Findings,
) {
    let new = &Subject::of(new);
    let old = old.map(Subject::of);
    let old = old.as_ref();
    replicas::check_replicas(new, findings);
    replicas::check_size(new, findings);
    rollout::check(new, old, findings);
    subgroups::check(new, findings);
    restarts::check(new, findings);
    identity::check(new, findings);
    identity::check_termination(new, findings);
    if let Some(old) = old {
        subgroups::check_update(new, old, findings);
        check_network_update(new, findings);
        identity::check_update(new, old, findings);
    }
    scheduling::check(new, old, environment, findings);
}

/// What the rules about a role of a DisaggregatedSet need to know besides its spec.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleContext<'a> {
    /// Rules that upstream does not have are asked too.
    pub is_strict: bool,
    /// `spec.replicas` is the number of groups of the role.
    pub is_static: bool,
    /// The role did not use gang scheduling before.
    pub opts_in: bool,
    /// See [`Environment`].
    pub environment: &'a Environment,
}

/// V-6 of DisaggregatedSets: rules about the spec of a role, under the paths of a LeaderWorkerSet.
pub(super) fn check_role(subject: &Subject<'_>, context: RoleContext<'_>, findings: &mut Findings) {
    if context.is_strict {
        if context.is_static {
            replicas::check_replicas(subject, findings);
        }
        replicas::check_size(subject, findings);
        subgroups::check(subject, findings);
    }
    restarts::check(subject, findings);
    identity::check(subject, findings);
    if context.is_strict {
        identity::check_termination(subject, findings);
        scheduling::check_role(subject, context.opts_in, context.environment, findings);
    }
}

/// U-4: unreachable behind our own defaults, but another webhook may run after them.
fn check_network_update(new: &Subject<'_>, findings: &mut Findings) {
    let network = new.field("networkConfig");
    let policy = network.member("subdomainPolicy");
    if network.json.is_present() && !policy.json.is_present() {
        findings.push(policy.invalid("must not be removed"));
    }
}

#[cfg(test)]
mod tests;
