//! V-2 … V-4: number and size of groups.

use super::subject::Subject;
use crate::admission::findings::Findings;

const MAX_REPLICAS: i64 = 1_000_000;
/// Pods of a set must be countable in 32 bits.
const MAX_PODS: i64 = 2_147_483_647;

/// V-2.
pub(super) fn check_replicas(subject: &Subject<'_>, findings: &mut Findings) {
    if !(0..=MAX_REPLICAS).contains(&subject.replicas()) {
        findings.push(
            subject
                .field("replicas")
                .invalid(format!("must be between 0 and {MAX_REPLICAS}")),
        );
    }
}

/// V-3, V-4.
pub(super) fn check_size(subject: &Subject<'_>, findings: &mut Findings) {
    let (replicas, size) = (subject.replicas(), subject.size());
    if size < 1 {
        findings.push(
            subject
                .field("leaderWorkerTemplate.size")
                .invalid("must be at least 1"),
        );
    }
    let pods = i128::from(replicas) * i128::from(size);
    if replicas > 0 && size > 0 && pods > i128::from(MAX_PODS) {
        let detail = format!("replicas * size is {pods}, must not be greater than {MAX_PODS}");
        findings.push(subject.field("replicas").invalid(detail));
    }
}
