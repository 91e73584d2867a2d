//! Whether stored objects are what is wanted, but for what may be written to them (NAT-39 … NAT-41).

use super::{Fault, Reason};
use crate::model::{Disruption, Policy, Terms};

/// Whether a count is all that differs, or nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    None,
    Count,
}

/// Compares terms after normalising what the API server fills in; what it dropped is told as such. `what` names the object.
pub(super) fn compare(stored: &Terms, wanted: &Terms, what: &str) -> Result<Difference, Fault> {
    if !wanted.topology.is_empty() && stored.topology.is_empty() {
        return Err(dropped(
            what,
            "schedulingConstraints",
            "TopologyAwareWorkloadScheduling",
        ));
    }
    if !wanted.claims.is_empty() && stored.claims.is_empty() {
        return Err(dropped(what, "resourceClaims", "DRAWorkloadResourceClaims"));
    }
    let mode = |terms: &Terms| terms.disruption.unwrap_or(Disruption::Single);
    let is_class_same =
        wanted.priority_class.is_empty() || stored.priority_class == wanted.priority_class;
    if stored.topology != wanted.topology
        || stored.claims != wanted.claims
        || mode(stored) != mode(wanted)
        || !is_class_same
    {
        return Err(drifted(what));
    }
    match (stored.policy, wanted.policy) {
        (Policy::Basic, Policy::Basic) => Ok(Difference::None),
        (Policy::Gang { min_count: have }, Policy::Gang { min_count: want }) if have == want => {
            Ok(Difference::None)
        }
        (Policy::Gang { .. }, Policy::Gang { .. }) => Ok(Difference::Count),
        (Policy::Basic, Policy::Gang { .. }) | (Policy::Gang { .. }, Policy::Basic) => {
            Err(drifted(what))
        }
    }
}

/// What cannot be written differs.
pub(super) fn drifted(what: &str) -> Fault {
    Fault::new(
        Reason::Invalid,
        format!("immutable scheduling configuration drift of {what}"),
    )
}

/// NAT-41: pods must not run without what the user asked for.
fn dropped(what: &str, field: &str, gate: &str) -> Fault {
    Fault::new(
        Reason::Invalid,
        format!("{what} lacks {field}: the Kubernetes feature gate {gate} is off"),
    )
}
