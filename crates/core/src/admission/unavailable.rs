//! What the API knows but this version does not do yet. It is refused on creation, so that nothing is silently ignored;
//! the update rules keep it from being added later.

use lws_api::names::annotation;

use super::findings::{Fault, Finding, Findings};
use super::lws::Subject;

/// Members of a new LeaderWorkerSet, or of that of a new or changed role.
pub(super) fn check_lws(subject: &Subject<'_>, findings: &mut Findings) {
    let key = annotation::GROUP_TEMPLATE_NAME;
    if subject.field("scheduling").json.is_present() && subject.annotation(key).is_present() {
        let path = format!("metadata.annotations[{key}]");
        findings.push(refusal(path, "use of the Workload of an ancestor"));
    }
}

fn refusal(path: String, what: &str) -> Finding {
    Finding {
        path,
        fault: Fault::Forbidden,
        detail: format!("{what} is not available in this version of lws"),
    }
}
