//! What the API knows but this version does not do yet. It is refused on creation, so that nothing is silently ignored;
//! the update rules keep it from being added later.

use super::findings::{Fault, Finding, Findings};
use super::lws::Subject;

/// Members of a new LeaderWorkerSet.
pub(super) fn check_lws(subject: &Subject<'_>, findings: &mut Findings) {
    let scheduling = subject.field("scheduling");
    if scheduling.json.is_present() {
        findings.push(refusal(scheduling.path, "gang scheduling"));
    }
}

/// Members of the child of a new or changed role of a DisaggregatedSet.
pub(super) fn check_child(subject: &Subject<'_>, findings: &mut Findings) {
    let identity = subject.field("groupIdentity");
    if identity.json.text() == "Hash" {
        findings.push(refusal(identity.path, "groupIdentity Hash of a role"));
    }
    check_lws(subject, findings);
}

fn refusal(path: String, what: &str) -> Finding {
    Finding {
        path,
        fault: Fault::Forbidden,
        detail: format!("{what} is not available in this version of lws"),
    }
}
