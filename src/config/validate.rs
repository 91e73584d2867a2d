//! Checks of the values of a configuration (CFG 1.2). All findings are reported together.

use std::borrow::Cow;
use std::fmt;

use validator::{Validate, ValidationError, ValidationErrors};

use super::{Configuration, GangSchedulingManagement, gates};

/// Kind of a finding, in the words of Kubernetes' field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Must be set.
    Required,
    /// Not one of the known values.
    NotSupported,
    /// Not a possible value.
    Invalid,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path of the field.
    pub path: String,
    /// Kind.
    pub kind: ProblemKind,
    /// Value and reason.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProblemKind::Required => "Required value",
            ProblemKind::NotSupported => "Unsupported value",
            ProblemKind::Invalid => "Invalid value",
        };
        write!(f, "{}: {kind}: {}", self.path, self.detail)
    }
}

const PROVIDERS: [&str; 2] = ["kubernetes", "volcano"];

/// Everything that is wrong with `configuration`.
pub(super) fn problems(configuration: &Configuration) -> Vec<Problem> {
    let mut problems = invalid("webhook", configuration.webhook.validate());
    let certificates = &configuration.internal_cert_management;
    if certificates.enable {
        problems.extend(invalid("internalCertManagement", certificates.validate()));
    }
    problems.extend(
        configuration
            .gang_scheduling_management
            .as_ref()
            .and_then(provider),
    );
    problems.extend(gates::problems(&configuration.feature_gates));
    problems
}

/// CFG-8; the path is upstream's.
fn provider(gang: &GangSchedulingManagement) -> Option<Problem> {
    let (kind, detail) = match gang.scheduler_provider.as_deref().unwrap_or_default() {
        "" => (
            ProblemKind::Required,
            "must be set when gang scheduling is enabled".to_owned(),
        ),
        known if PROVIDERS.contains(&known) => return None,
        other => (
            ProblemKind::NotSupported,
            format!("\"{other}\": supported values: {}", PROVIDERS.join(", ")),
        ),
    };
    Some(Problem {
        path: "schedulerProvider".to_owned(),
        kind,
        detail,
    })
}

fn invalid(section: &str, result: Result<(), ValidationErrors>) -> Vec<Problem> {
    let Err(errors) = result else {
        return Vec::new();
    };
    let mut problems: Vec<Problem> = errors
        .field_errors()
        .into_iter()
        .flat_map(|(field, errors)| {
            let path = format!("{section}.{}", camel_case(&field));
            errors.iter().map(move |error| Problem {
                path: path.clone(),
                kind: ProblemKind::Invalid,
                detail: detail(error),
            })
        })
        .collect();
    problems.sort_by(|a, b| a.path.cmp(&b.path));
    problems
}

fn detail(error: &ValidationError) -> String {
    let value = error
        .params
        .get("value")
        .map(ToString::to_string)
        .unwrap_or_default();
    let reason = error.message.clone().unwrap_or_else(|| {
        match (error.params.get("min"), error.params.get("max")) {
            (Some(min), Some(max)) => Cow::Owned(format!("must be between {min} and {max}")),
            (_, _) => error.code.clone(),
        }
    });
    format!("{value}: {reason}")
}

fn camel_case(field: &str) -> String {
    let mut words = field.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (head, tail) = word.split_at_checked(1).unwrap_or((word, ""));
        name.push_str(&head.to_uppercase());
        name.push_str(tail);
    }
    name
}

/// A label of RFC 1035: a letter first, at most 63 characters.
pub(super) fn dns_1035_label(name: &str) -> Result<(), ValidationError> {
    let is_label = name.len() <= 63
        && is_dns_label(name)
        && name.starts_with(|c: char| c.is_ascii_lowercase());
    if is_label {
        Ok(())
    } else {
        Err(refused("must be a DNS-1035 label", name))
    }
}

/// A subdomain of RFC 1123: labels joined by dots, at most 253 characters.
pub(super) fn dns_1123_subdomain(name: &str) -> Result<(), ValidationError> {
    if name.len() <= 253 && name.split('.').all(is_dns_label) {
        Ok(())
    } else {
        Err(refused("must be a DNS-1123 subdomain", name))
    }
}

fn is_dns_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn refused(reason: &'static str, value: &str) -> ValidationError {
    let mut error = ValidationError::new("dns_name").with_message(Cow::Borrowed(reason));
    error.add_param(Cow::Borrowed("value"), &value);
    error
}
