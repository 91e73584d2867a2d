//! V-2 … V-4: number and size of groups.

use super::subject::Subject;
use crate::admission::findings::Findings;

const MAX_REPLICAS: i64 = 1_000_000;
/// Pods of a set must be countable in 32 bits.
const MAX_PODS: i64 = 2_147_483_647;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let (replicas, size) = (subject.replicas(), subject.size());
    if !(0..=MAX_REPLICAS).contains(&replicas) {
        findings.push(
            subject
                .field("replicas")
                .invalid(format!("must be between 0 and {MAX_REPLICAS}")),
        );
    }
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
