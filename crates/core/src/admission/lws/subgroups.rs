//! V-9 … V-11, U-1 … U-3: how a group is cut into subgroups.

use lws_api::names::annotation;
use lws_api::wording;

use super::subject::{Field, Subject};
use crate::admission::findings::{Fault, Finding, Findings};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let policy = policy(subject);
    if policy.json.is_present() {
        check_size(&policy, subject.size(), findings);
    } else {
        let topology = subject.annotation(annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY);
        if topology.is_present() {
            findings.push(Finding {
                path: format!(
                    "metadata.annotations.{}",
                    annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY
                ),
                fault: Fault::Invalid(topology.value().clone()),
                detail: "needs spec.leaderWorkerTemplate.subGroupPolicy".to_owned(),
            });
        }
    }
}

/// V-9, V-10: subgroups are equal, with at most the leader as one pod too many.
fn check_size(policy: &Field<'_>, size: i64, findings: &mut Findings) {
    let field = policy.member("subGroupSize");
    let Some(subgroup_size) = field.json.int() else {
        return findings.push(field.required(wording::SUBGROUP_SIZE_REQUIRED));
    };
    if subgroup_size < 1 {
        return findings.push(field.invalid(wording::SUBGROUP_SIZE_POSITIVE));
    }
    let workers_divide = size.saturating_sub(1) % subgroup_size == 0;
    if size % subgroup_size != 0 && !workers_divide {
        findings.push(field.clone().invalid(wording::SUBGROUP_SIZE_DIVIDES));
    }
    if subgroup_size > size {
        findings.push(field.clone().invalid(wording::SUBGROUP_SIZE_FITS));
    }
    if policy.json.at("subGroupPolicyType").text() == "LeaderExcluded" && !workers_divide {
        findings.push(field.invalid(wording::SUBGROUP_SIZE_EXCLUDED));
    }
}

/// U-1 … U-3. A policy that was stored without a size may receive one.
pub(super) fn check_update(new: &Subject<'_>, old: &Subject<'_>, findings: &mut Findings) {
    let (new, old) = (policy(new), policy(old));
    let (field, before) = (new.member("subGroupSize"), old.member("subGroupSize").json);
    match (new.json.is_present(), old.json.is_present()) {
        (true, true) if field.json.is_present() && before.is_present() && field.json != before => {
            findings.push(field.invalid(wording::IMMUTABLE));
        }
        (true, false) => findings.push(field.invalid(wording::SUBGROUP_POLICY_ADDED)),
        (false, true) => {
            findings.push(
                field.invalid_value(before.value().clone(), wording::SUBGROUP_POLICY_REMOVED),
            );
        }
        (true, true) | (false, false) => {}
    }
}

fn policy<'a>(subject: &Subject<'a>) -> Field<'a> {
    subject.field("leaderWorkerTemplate.subGroupPolicy")
}
