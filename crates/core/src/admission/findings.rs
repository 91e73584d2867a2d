//! What validation found, and how it is worded (ADM-4).

use std::fmt;

use serde_json::Value;

/// What is wrong with a member; the kinds and their wording are those of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The value breaks a rule.
    Invalid(Value),
    /// There must be a value.
    Required,
    /// There must be no such value.
    Forbidden,
    /// The value is none of the known ones.
    Unsupported(Value),
    /// The list is longer than allowed; its length.
    TooMany(usize),
}

/// One violated rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// JSON path of the member.
    pub path: String,
    /// What is wrong with it.
    pub fault: Fault,
    /// For the reader.
    pub detail: String,
}

/// Everything that validation has to say about a request, in the order of the rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    findings: Vec<Finding>,
    warnings: Vec<String>,
}

impl Findings {
    /// Whether the request is allowed.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Violated rules.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Sentences for the client that do not keep the request from being allowed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Takes over what `others` found, under paths below `prefix`.
    pub(crate) fn extend_below(&mut self, prefix: &str, others: Self) {
        self.findings
            .extend(others.findings.into_iter().map(|finding| Finding {
                path: format!("{prefix}.{}", finding.path),
                ..finding
            }));
        self.warnings.extend(others.warnings);
    }

    pub(crate) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

/// ADM-4: a single finding stands alone, several in brackets, equal texts once.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = Vec::new();
        for text in self.findings.iter().map(Finding::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        match texts.as_slice() {
            [single] => f.write_str(single),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            fault,
            detail,
        } = self;
        match fault {
            Fault::Invalid(value) => write!(f, "{path}: Invalid value: {value}: {detail}"),
            Fault::Required => write!(f, "{path}: Required value: {detail}"),
            Fault::Forbidden => write!(f, "{path}: Forbidden: {detail}"),
            Fault::Unsupported(value) => write!(f, "{path}: Unsupported value: {value}: {detail}"),
            Fault::TooMany(length) => write!(f, "{path}: Too many: {length}: {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(fault: Fault) -> Finding {
        Finding {
            path: "spec.x".to_owned(),
            fault,
            detail: "why".to_owned(),
        }
    }

    #[test]
    fn adm_adm_4_wording_of_one_finding() {
        for (fault, text) in [
            (Fault::Invalid(json!(-1)), "spec.x: Invalid value: -1: why"),
            (
                Fault::Invalid(json!("5")),
                "spec.x: Invalid value: \"5\": why",
            ),
            (
                Fault::Invalid(json!({"a": 1})),
                "spec.x: Invalid value: {\"a\":1}: why",
            ),
            (
                Fault::Invalid(Value::Null),
                "spec.x: Invalid value: null: why",
            ),
            (Fault::Required, "spec.x: Required value: why"),
            (Fault::Forbidden, "spec.x: Forbidden: why"),
            (
                Fault::Unsupported(json!("y")),
                "spec.x: Unsupported value: \"y\": why",
            ),
            (Fault::TooMany(2), "spec.x: Too many: 2: why"),
        ] {
            let mut findings = Findings::default();
            findings.push(finding(fault));
            assert_eq!(findings.to_string(), text);
        }
    }

    #[test]
    fn adm_adm_4_several_findings_in_order_and_equal_ones_once() {
        let mut findings = Findings::default();
        for fault in [Fault::Required, Fault::Forbidden, Fault::Required] {
            findings.push(finding(fault));
        }
        assert_eq!(
            findings.to_string(),
            "[spec.x: Required value: why, spec.x: Forbidden: why]"
        );
    }
}
