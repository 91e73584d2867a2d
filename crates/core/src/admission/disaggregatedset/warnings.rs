//! W-1 … W-3: what is allowed and will not have the effect that it seems to have.

use std::collections::BTreeSet;

use lws_api::names::ds_label;

use super::role::{Role, replicas};
use crate::admission::findings::Findings;

pub(super) fn check(set: &str, role: &Role<'_>, findings: &mut Findings) {
    let (name, replicas) = (role.name(), replicas(role.json().at("spec")));
    if role.is_external() && replicas > 1 {
        findings.warn(format!(
            "role {name}: spec.replicas {replicas} is ignored, DisaggregatedSetRoleScaler {set}-{name} says how many groups there are"
        ));
    }
    if role.is_partitioned() && replicas > 1 {
        findings.warn(format!(
            "role {name}: spec.replicas {replicas} is ignored, the sum of its sub-roles is used"
        ));
    }
    for key in overruled(role) {
        findings.warn(format!(
            "role {name}: the controller's value of label {key} wins"
        ));
    }
}

/// Labels of the role or its templates that the controller sets.
fn overruled(role: &Role<'_>) -> BTreeSet<&'static str> {
    let places = role.metadata();
    let is_set = |key: &&'static str| {
        places
            .iter()
            .any(|place| place.json.at("labels").at(key).is_present())
    };
    ds_label::INJECTED.into_iter().filter(is_set).collect()
}
