//! Affinity terms of exclusive placement (pods.md section 5).

use serde_json::{Value, json};

use super::draft::Placement;
use crate::admission::json::Json;

/// List of hard terms within each kind of affinity.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The two kinds of affinity towards pods that exclusive placement needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Together,
    Apart,
}

impl Kind {
    pub(super) const BOTH: [Self; 2] = [Self::Together, Self::Apart];

    /// Member of `spec.affinity`.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Together => "podAffinity",
            Self::Apart => "podAntiAffinity",
        }
    }
}

/// EX-1: whether the pod has hard terms of both kinds for that topology already, whatever they select.
pub(super) fn is_settled(spec: Json<'_>, topology: &str) -> bool {
    Kind::BOTH.iter().all(|kind| {
        let terms = spec.at("affinity").at(kind.member()).at(REQUIRED);
        terms
            .items()
            .any(|term| term.at("topologyKey").text() == topology)
    })
}

/// EX-1, EX-2: the term of one kind; it holds among the pods of the same namespace.
pub(super) fn term(kind: Kind, placement: &Placement<'_>) -> Value {
    let Placement {
        topology,
        key,
        value,
    } = placement;
    let expressions = match kind {
        Kind::Together => json!([{"key": key, "operator": "In", "values": [value]}]),
        Kind::Apart => json!([
            {"key": key, "operator": "Exists"},
            {"key": key, "operator": "NotIn", "values": [value]},
        ]),
    };
    json!({"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}})
}
