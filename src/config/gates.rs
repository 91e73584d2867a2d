//! Feature gates (FG).

use std::collections::BTreeMap;

use super::{Problem, ProblemKind};

/// Names of all gates, with their defaults, sorted. All are alpha.
pub const GATES: &[(&str, bool)] = &[("WorkloadAwareScheduling", false)];

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// The gates in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

/// A `--feature-gates` text that is not of the form `A=true,B=false`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid feature gates {0:?}, expected A=true,B=false")]
pub struct InvalidGates(String);

impl FeatureGates {
    /// FG-3: what a gate says itself, else what `AllAlpha` says, else its default.
    pub fn effective(given: &BTreeMap<String, bool>) -> Self {
        let all = given.get(ALL_ALPHA).copied();
        Self(
            GATES
                .iter()
                .map(|(name, default)| {
                    (*name, given.get(*name).copied().or(all).unwrap_or(*default))
                })
                .collect(),
        )
    }

    /// A gate is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.0.get(name).copied().unwrap_or(false)
    }
}

/// FG-5: `Name=bool` of all gates, sorted.
impl std::fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(name, on)| format!("{name}={on}"))
            .collect();
        f.write_str(&all.join(","))
    }
}

/// Reads `A=true,B=false`.
///
/// # Errors
/// When the text has another form.
pub fn parse(text: &str) -> Result<BTreeMap<String, bool>, InvalidGates> {
    let entry = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(|part| entry(part).ok_or_else(|| InvalidGates(text.to_owned())))
        .collect()
}

/// FG-1, FG-4: gates that do not exist.
pub(super) fn problems(given: &BTreeMap<String, bool>) -> Vec<Problem> {
    let known: Vec<&str> = [ALL_ALPHA, ALL_BETA]
        .into_iter()
        .chain(GATES.iter().map(|(name, _)| *name))
        .collect();
    given
        .keys()
        .filter(|name| !known.contains(&name.as_str()))
        .map(|name| Problem {
            path: format!("featureGates[{name}]"),
            kind: ProblemKind::NotSupported,
            detail: format!("\"{name}\": supported values: {}", known.join(", ")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_fg_3_a_named_gate_wins_over_all_alpha() {
        let effective = |text: &str| FeatureGates::effective(&parse(text).expect(text)).to_string();
        assert_eq!(effective(""), "WorkloadAwareScheduling=false");
        assert_eq!(effective("AllAlpha=true"), "WorkloadAwareScheduling=true");
        assert_eq!(effective("AllBeta=true"), "WorkloadAwareScheduling=false");
        assert_eq!(
            effective("AllAlpha=true,WorkloadAwareScheduling=false"),
            "WorkloadAwareScheduling=false"
        );
    }

    #[test]
    fn ops_fg_1_texts_of_another_form_are_refused() {
        for text in ["A", "A=", "A=1,B", "A=yes"] {
            assert_eq!(parse(text), Err(InvalidGates(text.into())));
        }
    }
}
