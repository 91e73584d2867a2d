//! V-7 … V-9: sub-roles.

use std::collections::BTreeSet;

use super::names;
use super::role::{MOST, Role, is_external, replicas};
use crate::admission::findings::Findings;

pub(super) fn check(
    set: &str,
    role: &Role<'_>,
    scalers: &mut BTreeSet<String>,
    findings: &mut Findings,
) {
    if !role.is_partitioned() {
        return;
    }
    let scaling = role.field("scaling");
    if scaling.json.is_present() {
        findings.push(scaling.forbidden("its sub-roles are scaled instead"));
    }
    let fixed = role.children().filter(|child| !is_external(child.json));
    let sum = fixed
        .map(|child| replicas(child.json))
        .fold(0_i64, i64::saturating_add);
    if sum > MOST {
        let detail = format!("replicas of the sub-roles must not be more than {MOST} together");
        findings.push(role.field("subRoles").invalid_value(sum, detail));
    }
    for child in role.children().filter(|child| is_external(child.json)) {
        let name = child.member("name");
        let scaler = format!("{set}-{}-{}", role.name(), name.json.text());
        if let Some(detail) = names::take(scaler, scalers) {
            findings.push(name.invalid(detail));
        }
    }
}
