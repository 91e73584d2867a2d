//! What the tests of all kinds need.

use super::{Environment, Findings, SchedulerProvider, ServedKinds};

/// `path: Type` of every finding.
pub(super) fn heads(findings: &Findings) -> Vec<String> {
    let head = |text: String| text.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": ");
    findings
        .iter()
        .map(|finding| head(finding.to_string()))
        .collect()
}

/// Native gang scheduling, with all that it takes.
pub(crate) fn native() -> Environment {
    Environment {
        workload_aware_scheduling: true,
        scheduler_provider: Some(SchedulerProvider::Kubernetes),
        served: ServedKinds {
            workload: true,
            pod_group: true,
        },
    }
}
