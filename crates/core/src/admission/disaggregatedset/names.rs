//! V-10, V-12: names that are made from those of the set and of its roles.

use std::collections::BTreeSet;

use super::role::Role;
use crate::admission::findings::Findings;
use crate::admission::json::Json;

/// Longest name of an object.
const MAX_NAME: usize = 253;
/// Longest host name, and longest value of a label.
const MAX_LABEL: usize = 63;
/// Dashes between set, slice, revision and role.
const SEPARATORS: usize = 3;
/// Characters of a revision.
const REVISION: usize = 8;
/// `-` and the hash that StatefulSets put into a label of their pods.
const POD_REVISION: usize = 11;
/// `-` and 8 characters of a group key.
const GROUP_KEY: usize = 9;

/// V-10.
pub(super) fn check_scaler(
    set: &str,
    role: &Role<'_>,
    taken: &mut BTreeSet<String>,
    findings: &mut Findings,
) {
    if role.is_external()
        && let Some(detail) = take(format!("{set}-{}", role.name()), taken)
    {
        findings.push(role.field("name").invalid(detail));
    }
}

/// Why a scaler cannot have this name; else it is taken from now on.
pub(super) fn take(name: String, taken: &mut BTreeSet<String>) -> Option<String> {
    if name.len() > MAX_NAME {
        return Some(format!(
            "the name of its scaler would have {} characters, at most {MAX_NAME} are possible",
            name.len()
        ));
    }
    let detail = format!("its scaler would be named {name}, like that of another role");
    (!taken.insert(name)).then_some(detail)
}

/// V-12: the longest of all names and label values that Kubernetes will derive must fit.
pub(super) fn check_budget(set: &str, spec: Json<'_>, role: &Role<'_>, findings: &mut Findings) {
    let slices = spec.at("slices").int().unwrap_or(1);
    let fixed = SEPARATORS + digits(slices.saturating_sub(1)) + REVISION + suffix(role);
    let length = set.len() + role.name().len() + fixed;
    if length > MAX_LABEL {
        let allowed = MAX_LABEL.saturating_sub(fixed);
        findings.push(role.field("name").invalid(format!(
            "generated names would have {length} characters, at most {MAX_LABEL} are possible: the names of the DisaggregatedSet and of the role may \
             have {allowed} characters together"
        )));
    }
}

fn suffix(role: &Role<'_>) -> usize {
    let is_hash = role.json().at("spec").at("groupIdentity").text() == "Hash";
    match (is_hash, role.size()) {
        (true, 1) => GROUP_KEY,
        (true, _) => GROUP_KEY + POD_REVISION,
        (false, _) => 1 + digits(role.replicas().saturating_sub(1)) + POD_REVISION,
    }
}

/// Digits of a number, of 0 if it is negative.
fn digits(number: i64) -> usize {
    number.max(0).to_string().len()
}
