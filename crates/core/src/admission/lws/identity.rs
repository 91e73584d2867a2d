//! V-14 … V-17, U-5: how groups are named, replaced and ended.

use lws_api::wording;

use super::subject::Subject;
use crate::admission::findings::{Fault, Finding, Findings};

/// Longest host name, and longest value of a label.
const MAX_LABEL: usize = 63;
/// `-` and 8 characters of the group key.
const KEY_SUFFIX: usize = 9;
/// `-` and the hash that StatefulSets put into a label of their pods.
const REVISION_SUFFIX: usize = 11;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let replacement = subject.field("groupReplacementPolicy");
    if !subject.is_hash() && replacement.json.text() == "Immediate" {
        findings.push(replacement.invalid(wording::IMMEDIATE_NEEDS_HASH));
    }
    if subject.is_hash() {
        check_hash(subject, findings);
    }
}

/// V-17.
pub(super) fn check_termination(subject: &Subject<'_>, findings: &mut Findings) {
    let termination = subject.field("podTerminationPolicy");
    if !matches!(termination.json.text(), "" | "Default" | "Parallel") {
        findings.push(termination.unsupported("supported values: \"Default\", \"Parallel\""));
    }
}

/// V-15, V-16: Hash groups have no place in an order, and no name to which storage could stick.
fn check_hash(subject: &Subject<'_>, findings: &mut Findings) {
    let identity = || subject.field("groupIdentity");
    if subject
        .field("leaderWorkerTemplate.volumeClaimTemplates")
        .json
        .items()
        .len()
        > 0
    {
        findings.push(identity().invalid(wording::HASH_WITHOUT_CLAIMS));
    }
    let partition = subject
        .field("rolloutStrategy.rollingUpdateConfiguration.partition")
        .json
        .int();
    if partition.is_some_and(|partition| partition != 0) {
        findings.push(identity().invalid(wording::HASH_WITHOUT_PARTITION));
    }
    let suffix = if subject.size() == 1 {
        KEY_SUFFIX
    } else {
        KEY_SUFFIX + REVISION_SUFFIX
    };
    let longest = MAX_LABEL - suffix;
    let name = subject.name();
    if name.len() > longest {
        findings.push(Finding {
            path: "metadata.name".to_owned(),
            fault: Fault::Invalid(name.into()),
            detail: format!("must not be longer than {longest} characters with groupIdentity Hash"),
        });
    }
}

/// U-5.
pub(super) fn check_update(new: &Subject<'_>, old: &Subject<'_>, findings: &mut Findings) {
    if new.is_hash() != old.is_hash() {
        findings.push(new.field("groupIdentity").invalid(wording::IMMUTABLE));
    }
}
