//! V-13, V-14: placement of slices.

use lws_api::names::annotation::{EXCLUSIVE_TOPOLOGY, SUBGROUP_EXCLUSIVE_TOPOLOGY};

use super::role::Role;
use crate::admission::findings::{Fault, Finding, Findings};
use crate::admission::lws::Field;

pub(super) fn check<'a, 'b: 'a>(
    spec: &Field<'b>,
    roles: impl Iterator<Item = &'a Role<'b>>,
    findings: &mut Findings,
) {
    let policy = spec.member("placementPolicy");
    let kind = policy.json.at("type").text();
    if matches!(kind, "" | "None") {
        return;
    }
    let topology = policy.member("topology");
    if topology.json.text().is_empty() {
        findings
            .push(topology.required(format!("type {kind} needs the node label of its domains")));
    }
    for role in roles {
        if let Some(key) = exclusive_annotation(role) {
            findings.push(Finding {
                path: role.path(),
                fault: Fault::Forbidden,
                detail: format!(
                    "the annotation {key} cannot be combined with spec.placementPolicy.type {kind}"
                ),
            });
        }
    }
}

/// The first annotation that wants another placement.
fn exclusive_annotation(role: &Role<'_>) -> Option<&'static str> {
    let places = role.metadata();
    [EXCLUSIVE_TOPOLOGY, SUBGROUP_EXCLUSIVE_TOPOLOGY]
        .into_iter()
        .find(|key| {
            places
                .iter()
                .any(|place| place.json.at("annotations").at(key).is_present())
        })
}
