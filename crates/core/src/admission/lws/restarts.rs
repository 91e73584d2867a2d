//! V-12, V-13: budget and back-off of group recreation.

use lws_api::wording;

use super::subject::{Field, Subject};
use crate::admission::findings::Findings;

const DEFAULT_BASE: i64 = 10;
const DEFAULT_CAP: i64 = 300;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let template = subject.field("leaderWorkerTemplate");
    let recreates = matches!(
        template.json.at("restartPolicy").text(),
        "" | "RecreateGroupOnPodRestart" | "RecreateGroupAfterStart"
    );
    let budget = template.member("maxGroupRestarts");
    if budget.json.is_present() && !recreates {
        findings.push(budget.invalid(wording::MAX_GROUP_RESTARTS_POLICY));
    }
    let backoff = template.member("restartBackoff");
    if backoff.json.is_present() {
        check_backoff(backoff, recreates, findings);
    }
}

fn check_backoff(backoff: Field<'_>, recreates: bool, findings: &mut Findings) {
    let (base_field, cap_field) = (backoff.member("baseSeconds"), backoff.member("capSeconds"));
    let base = base_field.json.int().unwrap_or(DEFAULT_BASE);
    let cap = cap_field.json.int().unwrap_or(DEFAULT_CAP);
    if !recreates {
        findings.push(backoff.invalid(wording::RESTART_BACKOFF_POLICY));
    }
    if base <= 0 {
        findings.push(
            base_field
                .clone()
                .invalid(wording::RESTART_BACKOFF_POSITIVE),
        );
    }
    if cap <= 0 {
        findings.push(cap_field.invalid(wording::RESTART_BACKOFF_POSITIVE));
    }
    if base > cap {
        findings.push(base_field.invalid_value(base, wording::RESTART_BACKOFF_ORDER));
    }
}
