//! V-1 and ADM-8: names, and the rest of the metadata.

use serde_json::Value;

use super::rollout::surge;
use super::subject::{Field, Subject};
use crate::admission::findings::Findings;
use crate::admission::formats::{is_dns1035_label, is_label_value, is_qualified_name};
use crate::admission::json::Json;

/// What Kubernetes allows for keys and values of all annotations together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// V-1. The API server checks most of this too, but with other formats for names.
pub(super) fn check_object(metadata: Json<'_>, findings: &mut Findings) {
    let metadata = Field {
        json: metadata,
        path: "metadata".to_owned(),
    };
    check_name(&metadata, findings);
    if metadata.json.at("namespace").text().is_empty() {
        findings.push(
            metadata
                .member("namespace")
                .required("a LeaderWorkerSet lives in a namespace"),
        );
    }
    check_labels(metadata.member("labels"), findings);
    check_annotations(metadata.member("annotations"), findings);
    check_owners(metadata.member("ownerReferences"), findings);
    for finalizer in metadata.member("finalizers").elements() {
        if !is_qualified_name(finalizer.json.text()) {
            findings.push(finalizer.invalid("must be a qualified name"));
        }
    }
}

/// The name ends up in host names, so it must be a label; a generated one gets characters after the dash.
fn check_name(metadata: &Field<'_>, findings: &mut Findings) {
    const DETAIL: &str = "must be a DNS-1035 label: at most 63 lower-case letters, digits and dashes, starting with a \
                          letter and ending with a letter or digit";
    let (name, generate) = (metadata.member("name"), metadata.member("generateName"));
    let prefix = generate.json.text();
    if !prefix.is_empty() && (prefix.len() > 63 || !is_dns1035_label(prefix.trim_end_matches('-')))
    {
        findings.push(generate.invalid(DETAIL));
    }
    if name.json.text().is_empty() {
        if prefix.is_empty() {
            findings.push(name.required("name or generateName is needed"));
        }
    } else if !is_dns1035_label(name.json.text()) {
        findings.push(name.invalid(DETAIL));
    }
}

fn check_labels(labels: Field<'_>, findings: &mut Findings) {
    for (key, value) in labels.json.members() {
        if !is_qualified_name(key) {
            findings.push(
                labels
                    .clone()
                    .invalid_value(key, "key must be a qualified name"),
            );
        }
        let value = value.text();
        if !is_label_value(value) {
            let detail =
                format!("value of {key} must be at most 63 letters, digits, '-', '_' and '.'");
            findings.push(labels.clone().invalid_value(value, detail));
        }
    }
}

fn check_annotations(annotations: Field<'_>, findings: &mut Findings) {
    let mut bytes = 0_usize;
    for (key, value) in annotations.json.members() {
        if !is_qualified_name(&key.to_lowercase()) {
            findings.push(
                annotations
                    .clone()
                    .invalid_value(key, "key must be a qualified name"),
            );
        }
        bytes = bytes
            .saturating_add(key.len())
            .saturating_add(value.text().len());
    }
    if bytes > MAX_ANNOTATION_BYTES {
        let detail = format!(
            "keys and values must not be longer than {MAX_ANNOTATION_BYTES} bytes together"
        );
        findings.push(annotations.invalid_value(bytes, detail));
    }
}

fn check_owners(owners: Field<'_>, findings: &mut Findings) {
    for owner in owners.elements() {
        for name in ["apiVersion", "kind", "name", "uid"] {
            let member = owner.member(name);
            if member.json.text().is_empty() {
                findings.push(member.required("must not be empty"));
            }
        }
    }
    let controllers = owners
        .json
        .items()
        .filter(|owner| *owner.at("controller").value() == Value::Bool(true));
    if controllers.count() > 1 {
        findings.push(owners.invalid("only one owner can be the controller"));
    }
}

/// ADM-8: StatefulSets put `<name>-<10 characters>` into a label of their pods, which then must fit. The names of worker
/// sets are longer by the index of the group.
pub(super) fn warn_of_long_name(subject: &Subject<'_>, findings: &mut Findings) {
    let highest_index = subject
        .replicas()
        .saturating_add(surge(subject))
        .saturating_sub(1)
        .max(0);
    let digits = highest_index.to_string().len();
    let permitted = if subject.size() == 1 {
        52
    } else {
        51_usize.saturating_sub(digits)
    };
    let length = subject.name().len();
    if !subject.is_hash() && length > permitted {
        findings.warn(format!(
            "metadata.name is {length} characters long: StatefulSets cannot create the pods of this set; the longest \
             name for its size and number of replicas has {permitted}"
        ));
    }
}
