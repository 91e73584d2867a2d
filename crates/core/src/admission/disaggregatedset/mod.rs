//! Validation of DisaggregatedSets (api-disaggregatedset section 12). There is nothing to default (section 11).
//!
//! Rules look at the new object only. Those that upstream does not have spare roles that an update leaves as they were, so that no stored object becomes
//! uneditable.

mod budget;
mod names;
mod placement;
mod role;
mod subroles;
mod warnings;

use std::collections::BTreeSet;

use lws_api::names::ds_label;
use serde_json::{Value, json};

use self::role::Role;
use super::findings::{Fault, Finding, Findings};
use super::json::Json;
use super::lws::{self, Field, RoleContext, Subject};
use super::{Environment, unavailable};

const SLICES_AND_EXTERNAL: &str = "spec.slices > 1 is not supported while a role has scaling.mode External; set slices to 1 or make the role Static";
const HASH_AND_SUB_ROLES: &str = "Hash is not supported together with subRoles";

/// V-rules and warnings for a create (`old` is `None`) or an update.
pub fn validate(new: &Value, old: Option<&Value>, environment: &Environment) -> Findings {
    let mut findings = Findings::default();
    let set = Json::of(new);
    let is_leaving = set.at("metadata").at("deletionTimestamp").is_present();
    let is_same = old.is_some_and(|old| Json::of(old).at("spec") == set.at("spec"));
    if is_leaving || is_same {
        return findings;
    }
    let name = set.at("metadata").at("name").text();
    let (spec, roles) = (spec_of(set), roles(set));
    let mut scalers = BTreeSet::new();
    for role in &roles {
        let before = old.and_then(|old| role::find(old, role.name()));
        let context = RoleContext {
            is_strict: before.is_none_or(|before| is_changed(role, before)),
            is_static: role.is_static(),
            opts_in: !before.is_some_and(|before| before.at("spec").at("scheduling").is_present()),
            environment,
        };
        check_role(name, role, context, &mut scalers, &mut findings);
    }
    check_slices(&spec, &roles, &mut findings);
    let with_spec = || roles.iter().filter(|role| role.has_spec());
    for role in with_spec() {
        names::check_budget(name, spec.json, role, &mut findings);
    }
    placement::check(&spec, with_spec(), &mut findings);
    for role in with_spec() {
        warnings::check(name, role, &mut findings);
    }
    findings
}

fn spec_of(set: Json<'_>) -> Field<'_> {
    Field {
        json: set.at("spec"),
        path: "spec".to_owned(),
    }
}

fn roles(set: Json<'_>) -> Vec<Role<'_>> {
    spec_of(set)
        .member("roles")
        .elements()
        .map(Role::new)
        .collect()
}

/// An update touches what rules beyond upstream's are about.
fn is_changed(role: &Role<'_>, before: Json<'_>) -> bool {
    ["spec", "metadata"]
        .iter()
        .any(|member| before.at(member) != role.json().at(member))
}

/// API-3, V-1 … V-10 and V-15.
fn check_role(
    set: &str,
    role: &Role<'_>,
    context: RoleContext<'_>,
    scalers: &mut BTreeSet<String>,
    findings: &mut Findings,
) {
    if !role.has_spec() {
        return findings.push(
            role.field("spec")
                .required("a role needs the spec of its LeaderWorkerSets"),
        );
    }
    check_strategy(role, findings);
    budget::check(role, context.is_strict, findings);
    check_labels(role, findings);
    check_child(role, context, findings);
    subroles::check(set, role, scalers, findings);
    names::check_scaler(set, role, scalers, findings);
    let identity = role.field("spec").member("groupIdentity");
    if identity.json.text() == "Hash" && role.is_partitioned() {
        findings.push(identity.forbidden(HASH_AND_SUB_ROLES));
    }
}

/// V-1, V-2.
fn check_strategy(role: &Role<'_>, findings: &mut Findings) {
    let strategy = role.field("spec").member("rolloutStrategy");
    let kind = strategy.member("type");
    if !matches!(kind.json.text(), "" | "RollingUpdate") {
        findings.push(kind.unsupported("supported values: \"RollingUpdate\""));
    }
    let partition = strategy
        .member("rollingUpdateConfiguration")
        .member("partition");
    if partition.json.int().is_some_and(|partition| partition != 0) {
        findings.push(partition.forbidden("a DisaggregatedSet rolls its roles out itself"));
    }
}

/// V-5: the label says which sub-role a running group belongs to.
fn check_labels(role: &Role<'_>, findings: &mut Findings) {
    for metadata in role.metadata() {
        let labels = metadata.member("labels");
        if labels.json.at(ds_label::SUBROLE).is_present() {
            findings.push(Finding {
                path: format!("{}[{}]", labels.path, ds_label::SUBROLE),
                fault: Fault::Forbidden,
                detail: "is set by the controller on pods".to_owned(),
            });
        }
    }
}

/// V-6: the rules about the spec of a LeaderWorkerSet, which the child will be.
fn check_child(role: &Role<'_>, context: RoleContext<'_>, findings: &mut Findings) {
    let mut child = json!({
        "metadata": {
            "annotations": role.json().at("metadata").at("annotations").value(),
            "ownerReferences": [{"controller": true}],
        },
        "spec": role.json().at("spec").value(),
    });
    json_patch::merge(&mut child, &json!({"spec": {"replicas": role.replicas()}}));
    let subject = Subject::of(&child);
    let mut of_child = Findings::default();
    lws::check_role(&subject, context, &mut of_child);
    if context.is_strict {
        unavailable::check_lws(&subject, &mut of_child);
    }
    findings.extend_below(&role.path(), of_child);
}

/// V-11.
fn check_slices(spec: &Field<'_>, roles: &[Role<'_>], findings: &mut Findings) {
    let slices = spec.member("slices");
    let is_external = roles
        .iter()
        .any(|role| role.is_external() || role.has_external_child());
    if slices.json.int().is_some_and(|slices| slices > 1) && is_external {
        findings.push(slices.forbidden(SLICES_AND_EXTERNAL));
    }
}

#[cfg(test)]
mod tests;
