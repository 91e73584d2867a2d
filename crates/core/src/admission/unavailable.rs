//! What the API knows but this version does not do yet. It is refused on creation, so that nothing is silently ignored;
//! the update rules keep it from being added later.

use super::findings::{Fault, Finding, Findings};
use super::lws::Subject;

/// Members of a new LeaderWorkerSet, or of that of a new or changed role.
pub(super) fn check_lws(subject: &Subject<'_>, findings: &mut Findings) {
    let scheduling = subject.field("scheduling");
    if scheduling.json.is_present() {
        findings.push(refusal(scheduling.path, "gang scheduling"));
    }
}

fn refusal(path: String, what: &str) -> Finding {
    Finding {
        path,
        fault: Fault::Forbidden,
        detail: format!("{what} is not available in this version of lws"),
    }
}
