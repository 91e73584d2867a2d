//! V-3, V-4: what a rollout may take from a role and add to it.

use super::role::Role;
use crate::admission::findings::Findings;
use crate::admission::lws::{Budget, Field};

/// V-3 and, if that finds nothing, V-4.
pub(super) fn check(role: &Role<'_>, is_strict: bool, findings: &mut Findings) {
    let configuration = role
        .field("spec")
        .member("rolloutStrategy")
        .member("rollingUpdateConfiguration");
    if !configuration.json.is_present() {
        return;
    }
    // Upstream resolves percentages first, and so overlooks the budgets of roles of size 0.
    if !is_strict && (role.replicas() == 0 || role.is_external()) {
        return;
    }
    let limits = [
        configuration.member("maxUnavailable"),
        configuration.member("maxSurge"),
    ];
    let mut is_usable = true;
    for limit in &limits {
        if let Some(detail) = fault(limit) {
            findings.push(limit.clone().invalid(detail));
            is_usable = false;
        }
    }
    let [unavailable, surge] = limits;
    if is_usable && is_stuck(role, &unavailable, &surge) {
        findings.push(unavailable.invalid("must not be 0 when `maxSurge` is 0"));
    }
}

/// V-3.
fn fault(limit: &Field<'_>) -> Option<&'static str> {
    match Budget::of(limit.json, 0) {
        Budget::Count(count) => (count < 0).then_some("must not be negative"),
        Budget::Percent(percent) => (percent > 100).then_some("must not be greater than 100%"),
        Budget::Unusable => Some("must be an integer or a percentage such as \"25%\""),
    }
}

/// V-4. The size of an External role is not known here, so there only a plain zero counts.
fn is_stuck(role: &Role<'_>, unavailable: &Field<'_>, surge: &Field<'_>) -> bool {
    let (unavailable, surge) = (Budget::of(unavailable.json, 1), Budget::of(surge.json, 0));
    if role.is_external() {
        let is_zero = |budget| matches!(budget, Budget::Count(0) | Budget::Percent(0));
        return is_zero(unavailable) && is_zero(surge);
    }
    let replicas = role.replicas();
    replicas > 0 && unavailable.rounded_down(replicas) == 0 && surge.rounded_up(replicas) == 0
}
