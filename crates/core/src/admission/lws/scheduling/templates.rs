//! S-23 … S-25: what the pod templates must say, or leave unsaid, for their pods to form a gang.

use serde_json::Value;

use super::blocks::Block;
use crate::admission::findings::Findings;
use crate::admission::json::Json;
use crate::admission::lws::subject::{Field, PodRole, Subject};

pub(super) fn check(
    subject: &Subject<'_>,
    scheduling: &Field<'_>,
    blocks: &[Block<'_>],
    findings: &mut Findings,
) {
    if priority_class(subject, PodRole::Leader) != priority_class(subject, PodRole::Worker) {
        let detail = "leader and worker templates must have the same priorityClassName";
        findings.push(scheduling.clone().invalid_value(Value::Null, detail));
    }
    for role in [PodRole::Leader, PodRole::Worker] {
        if subject
            .template(role)
            .at("spec")
            .at("schedulingGroup")
            .is_present()
        {
            findings.push(
                scheduling
                    .clone()
                    .forbidden("pod templates must not set schedulingGroup"),
            );
        }
    }
    for block in blocks {
        check_claims(subject, block, findings);
    }
}

/// S-25: the PodGroup reserves what its pods then use, so the pods must name the same claims.
fn check_claims(subject: &Subject<'_>, block: &Block<'_>, findings: &mut Findings) {
    let Some(role) = block.role() else { return };
    let of_pods = subject.template(role).at("spec").at("resourceClaims");
    for claim in block.claims().elements() {
        if !of_pods
            .items()
            .any(|of_pod| is_same_claim(of_pod, claim.json))
        {
            let name = claim.json.at("name").value().clone();
            findings
                .push(claim.invalid_value(name, "the pod template must have an identical claim"));
        }
    }
}

fn is_same_claim(one: Json<'_>, other: Json<'_>) -> bool {
    ["name", "resourceClaimName", "resourceClaimTemplateName"]
        .iter()
        .all(|name| one.at(name) == other.at(name))
}

pub(super) fn priority_class<'a>(subject: &Subject<'a>, role: PodRole) -> &'a str {
    subject
        .template(role)
        .at("spec")
        .at("priorityClassName")
        .text()
}
