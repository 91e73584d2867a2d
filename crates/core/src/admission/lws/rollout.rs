//! V-5 … V-8: what a rollout may take down and add at a time.

use super::subject::{Field, Subject};
use crate::admission::findings::Findings;
use crate::admission::json::Json;

const CONFIGURATION: &str = "rolloutStrategy.rollingUpdateConfiguration";

/// A number of groups, absolute or relative to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::admission) enum Budget {
    Count(i64),
    Percent(i64),
    /// Neither; counts as 0.
    Unusable,
}

impl Budget {
    /// An integer is never a percentage, and a text always is one: `"1"` is unusable.
    pub(in crate::admission) fn of(json: Json<'_>, default: i64) -> Self {
        match json.string() {
            Some(text) => parse_percent(text).map_or(Self::Unusable, Self::Percent),
            None => Self::Count(json.int().unwrap_or(default)),
        }
    }

    pub(in crate::admission) fn rounded_down(self, replicas: i64) -> i64 {
        self.resolve(replicas, 0)
    }

    pub(in crate::admission) fn rounded_up(self, replicas: i64) -> i64 {
        self.resolve(replicas, 99)
    }

    fn resolve(self, replicas: i64, round: i64) -> i64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => percent.saturating_mul(replicas).saturating_add(round) / 100,
            Self::Unusable => 0,
        }
    }
}

/// `^[0-9]+%$`; a number too large to read is the largest one.
fn parse_percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let only_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(i64::MAX))
}

pub(super) fn check(new: &Subject<'_>, old: Option<&Subject<'_>>, findings: &mut Findings) {
    let configuration = new.field(CONFIGURATION);
    if !configuration.json.is_present() {
        return;
    }
    check_budget(configuration.member("maxUnavailable"), findings);
    check_budget(configuration.member("maxSurge"), findings);
    let partition = configuration.member("partition");
    if partition.json.int().is_some_and(|partition| partition < 0) {
        findings.push(partition.invalid("must not be negative"));
    }
    if old.is_none_or(|old| !has_same_budget(new, old)) && is_stuck(new) {
        findings.push(
            configuration
                .member("maxUnavailable")
                .invalid("must not be 0 when `maxSurge` is 0"),
        );
    }
}

/// V-5, V-6.
fn check_budget(field: Field<'_>, findings: &mut Findings) {
    match Budget::of(field.json, 0) {
        Budget::Count(count) if count < 0 => findings.push(field.invalid("must not be negative")),
        Budget::Percent(percent) if percent > 100 => {
            findings.push(field.invalid("must not be greater than 100%"))
        }
        Budget::Unusable => {
            findings.push(
                field
                    .clone()
                    .invalid("must be an integer or a percentage such as \"25%\""),
            );
            findings.push(field.invalid("cannot be resolved to a number of groups"));
        }
        Budget::Count(_) | Budget::Percent(_) => {}
    }
}

/// V-8: whether a rollout could neither take a group down nor add one.
fn is_stuck(subject: &Subject<'_>) -> bool {
    let replicas = subject.replicas();
    replicas != 0
        && max_unavailable(subject).rounded_down(replicas) == 0
        && max_surge(subject).rounded_up(replicas) == 0
}

/// V-8: a scale goes around the webhook and may round a percentage down to 0; later updates must not suffer for it.
fn has_same_budget(new: &Subject<'_>, old: &Subject<'_>) -> bool {
    let read = |subject: &Subject<'_>| {
        (
            subject.replicas(),
            max_unavailable(subject),
            max_surge(subject),
        )
    };
    read(new) == read(old)
}

fn max_unavailable(subject: &Subject<'_>) -> Budget {
    Budget::of(subject.field(CONFIGURATION).json.at("maxUnavailable"), 1)
}

fn max_surge(subject: &Subject<'_>) -> Budget {
    Budget::of(subject.field(CONFIGURATION).json.at("maxSurge"), 0)
}

/// Groups that a rollout may add; more than there are groups is never needed.
pub(super) fn surge(subject: &Subject<'_>) -> i64 {
    let replicas = subject.replicas();
    max_surge(subject).rounded_up(replicas).min(replicas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_v_5_v_6_percent_helper() {
        for (text, percent) in [
            ("1", None),
            ("1%", Some(1)),
            ("100%", Some(100)),
            ("101%", Some(101)),
            ("99999999999999999999%", Some(i64::MAX)),
            ("%", None),
            ("-1%", None),
            ("+1%", None),
            ("1.5%", None),
            ("1%%", None),
            ("abc", None),
        ] {
            assert_eq!(parse_percent(text), percent, "{text}");
        }
    }

    #[test]
    fn adm_v_8_unavailable_rounds_down_and_surge_up() {
        for (budget, replicas, down, up) in [
            (Budget::Percent(25), 2, 0, 1),
            (Budget::Percent(25), 4, 1, 1),
            (Budget::Percent(25), 5, 1, 2),
            (Budget::Percent(0), 5, 0, 0),
            (
                Budget::Percent(i64::MAX),
                i64::MAX,
                i64::MAX / 100,
                i64::MAX / 100,
            ),
            (Budget::Count(10), 1, 10, 10),
            (Budget::Unusable, 5, 0, 0),
        ] {
            assert_eq!(
                (budget.rounded_down(replicas), budget.rounded_up(replicas)),
                (down, up),
                "{budget:?} of {replicas}"
            );
        }
    }
}
