//! S-5, S-28: use of an ancestor's Workload (NAT-54).

use lws_api::names::annotation::{GROUP_TEMPLATE_NAME, PARENT_COMPOSITE_POD_GROUP};
use serde_json::Value;

use crate::admission::findings::{Fault, Finding, Findings};
use crate::admission::lws::subject::Subject;
use crate::gang::Level;

/// S-5.
pub(super) fn check(subject: &Subject<'_>, level: Option<Level>, findings: &mut Findings) {
    let (template, parent) = (
        subject.annotation(GROUP_TEMPLATE_NAME),
        subject.annotation(PARENT_COMPOSITE_POD_GROUP),
    );
    if parent.is_present() && !template.is_present() {
        let detail = format!("needs the annotation {GROUP_TEMPLATE_NAME}");
        findings.push(finding(
            PARENT_COMPOSITE_POD_GROUP,
            Fault::Forbidden,
            &detail,
        ));
    }
    if template.is_present() && template.text().is_empty() {
        findings.push(finding(
            GROUP_TEMPLATE_NAME,
            Fault::Required,
            "must name a template",
        ));
    }
    if template.is_present() && !has_controller(subject) {
        findings.push(finding(
            GROUP_TEMPLATE_NAME,
            Fault::Forbidden,
            "needs an owner that is the controller of this set",
        ));
    }
    if parent.is_present() && parent.text().is_empty() {
        findings.push(finding(
            PARENT_COMPOSITE_POD_GROUP,
            Fault::Required,
            "must name a group",
        ));
    }
    if template.is_present() && level == Some(Level::Role) {
        let detail = "cannot be combined with scheduling of leader and worker apart";
        findings.push(finding(GROUP_TEMPLATE_NAME, Fault::Forbidden, detail));
    }
}

/// S-28.
pub(super) fn check_update(new: &Subject<'_>, old: &Subject<'_>, findings: &mut Findings) {
    for key in [GROUP_TEMPLATE_NAME, PARENT_COMPOSITE_POD_GROUP] {
        if new.annotation(key) != old.annotation(key) {
            findings.push(finding(
                key,
                Fault::Forbidden,
                "is immutable while spec.scheduling is set",
            ));
        }
    }
}

fn has_controller(subject: &Subject<'_>) -> bool {
    let mut owners = subject.metadata.at("ownerReferences").items();
    owners.any(|owner| *owner.at("controller").value() == Value::Bool(true))
}

fn finding(key: &str, fault: Fault, detail: &str) -> Finding {
    Finding {
        path: format!("metadata.annotations[{key}]"),
        fault,
        detail: detail.to_owned(),
    }
}
