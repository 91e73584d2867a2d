//! S-12 … S-17: policy, constraints, disruption mode and claims of the active level, each by itself.

use crate::admission::findings::{Fault, Findings};
use crate::admission::formats::{is_dns1123_label, is_dns1123_subdomain, is_qualified_name};
use crate::admission::lws::subject::{Field, PodRole};
use crate::gang::Level;

/// What counts when a block has no policy (API-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Basic,
    Gang,
}

/// The settings of one kind of PodGroup.
#[derive(Debug)]
pub(super) struct Block<'a> {
    field: Field<'a>,
    default_policy: Policy,
    role: Option<PodRole>,
}

impl<'a> Block<'a> {
    /// The blocks of a level, one or two.
    pub(super) fn active(scheduling: &Field<'a>, level: Level) -> Vec<Self> {
        let replica = scheduling.member("replica");
        let block = |field, default_policy, role| Self {
            field,
            default_policy,
            role,
        };
        match level {
            Level::Set => vec![block(scheduling.clone(), Policy::Basic, None)],
            Level::Replica => vec![block(replica, Policy::Gang, None)],
            Level::Role => vec![
                block(
                    replica.member("leader"),
                    Policy::Basic,
                    Some(PodRole::Leader),
                ),
                block(
                    replica.member("worker"),
                    Policy::Basic,
                    Some(PodRole::Worker),
                ),
            ],
        }
    }

    pub(super) fn policy(&self) -> Field<'a> {
        self.field.member("schedulingPolicy")
    }

    pub(super) fn claims(&self) -> Field<'a> {
        self.field.member("resourceClaims")
    }

    pub(super) fn role(&self) -> Option<PodRole> {
        self.role
    }

    pub(super) fn is_leader(&self) -> bool {
        self.role == Some(PodRole::Leader)
    }

    pub(super) fn is_gang(&self) -> bool {
        let policy = self.policy().json;
        let resolved = match (
            policy.at("basic").is_present(),
            policy.at("gang").is_present(),
        ) {
            (_, true) => Policy::Gang,
            (true, false) => Policy::Basic,
            (false, false) => self.default_policy,
        };
        resolved == Policy::Gang
    }

    pub(super) fn has_topology(&self) -> bool {
        self.topology().json.items().len() > 0
    }

    fn topology(&self) -> Field<'a> {
        self.field
            .member("schedulingConstraints")
            .member("topology")
    }

    fn disruption_mode(&self) -> Field<'a> {
        self.field.member("disruptionMode")
    }
}

/// Rule by rule over all blocks, so that findings stand in the order of the rules.
pub(super) fn check(blocks: &[Block<'_>], findings: &mut Findings) {
    for block in blocks {
        check_alternatives(block, findings);
    }
    for block in blocks {
        check_counts(block, findings);
    }
    for block in blocks {
        check_topology(block, findings);
    }
    for claim in blocks
        .iter()
        .flat_map(|block| block.claims().elements().collect::<Vec<_>>())
    {
        check_claim(&claim, findings);
    }
    for block in blocks {
        let mode = block.disruption_mode();
        if !block.is_gang() && mode.json.at("all").is_present() {
            findings.push(mode.invalid("all needs the gang policy"));
        }
    }
}

/// S-12.
fn check_alternatives(block: &Block<'_>, findings: &mut Findings) {
    exactly_one(block.policy(), ["basic", "gang"], findings);
    exactly_one(block.disruption_mode(), ["single", "all"], findings);
    for claim in block.claims().elements() {
        exactly_one(
            claim,
            ["resourceClaimName", "resourceClaimTemplateName"],
            findings,
        );
    }
}

fn exactly_one(field: Field<'_>, names: [&str; 2], findings: &mut Findings) {
    let present = names
        .iter()
        .filter(|name| field.json.at(name).is_present())
        .count();
    if field.json.is_present() && present != 1 {
        let [one, other] = names;
        findings.push(field.invalid(format!("must specify exactly one of {one}, {other}")));
    }
}

/// S-13.
fn check_counts(block: &Block<'_>, findings: &mut Findings) {
    let gang = block.policy().member("gang");
    for name in ["minCount", "minGroupCount"] {
        let count = gang.member(name);
        if count.json.int().is_some_and(|count| count < 1) {
            findings.push(count.invalid("must be at least 1"));
        }
    }
}

/// S-14, S-15.
fn check_topology(block: &Block<'_>, findings: &mut Findings) {
    let topology = block.topology();
    let length = topology.json.items().len();
    if length > 1 {
        findings.push(
            topology
                .clone()
                .finding(Fault::TooMany(length), "must have at most 1 item"),
        );
    }
    for item in topology.elements() {
        check_text(
            item.member("key"),
            is_qualified_name,
            "must be the key of a node label",
            findings,
        );
    }
}

/// S-16.
fn check_claim(claim: &Field<'_>, findings: &mut Findings) {
    check_text(
        claim.member("name"),
        is_dns1123_label,
        "must be a DNS label",
        findings,
    );
    for name in ["resourceClaimName", "resourceClaimTemplateName"] {
        let reference = claim.member(name);
        if reference.json.is_present() && !is_dns1123_subdomain(reference.json.text()) {
            findings.push(reference.invalid("must be a DNS subdomain"));
        }
    }
}

fn check_text(
    field: Field<'_>,
    is_valid: impl Fn(&str) -> bool,
    detail: &str,
    findings: &mut Findings,
) {
    let text = field.json.text();
    if text.is_empty() {
        findings.push(field.required("must not be empty"));
    } else if !is_valid(text) {
        findings.push(field.invalid(detail));
    }
}
