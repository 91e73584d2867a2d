//! Groups per sub-role, as annotations hold them (SRL-3, SRL-6, SRL-7).

use std::collections::BTreeMap;
use std::sync::Arc;

/// Groups per sub-role, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Arc<str>, u64>);

/// Counts that nothing can be planned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// No JSON object of numbers that an `int32` holds.
    #[error("not an object of counts")]
    Malformed,
    /// More groups than a set can have.
    #[error("the counts add up to more than 2147483647")]
    TooMany,
    /// The key that ends the division stands beside others.
    #[error("the empty name stands beside others")]
    Mixed,
    /// SRL-3: the issued counts are not those that the set wants.
    #[error("the counts do not add up to spec.replicas")]
    WrongSum,
}

impl Counts {
    /// SRL-10: the plan that ends the division of a child with `spec` groups.
    pub fn undivided(spec: u64) -> Self {
        Self([("".into(), spec)].into())
    }

    /// Reads an annotation.
    pub fn parse(text: &str) -> Result<Self, CountsError> {
        let counts: BTreeMap<Arc<str>, u64> =
            serde_json::from_str(text).map_err(|_| CountsError::Malformed)?;
        if counts.values().any(|count| i32::try_from(*count).is_err()) {
            return Err(CountsError::Malformed);
        }
        let counts = Self(counts);
        if i32::try_from(counts.sum()).is_err() {
            return Err(CountsError::TooMany);
        }
        if counts.0.contains_key("") && counts.0.len() > 1 {
            return Err(CountsError::Mixed);
        }
        Ok(counts)
    }

    /// The annotation.
    pub fn to_json(&self) -> String {
        let counts = self.0.iter();
        let object: serde_json::Map<_, _> = counts
            .map(|(name, count)| (name.to_string(), (*count).into()))
            .collect();
        serde_json::Value::from(object).to_string()
    }

    /// All groups.
    pub fn sum(&self) -> u64 {
        self.0.values().sum()
    }

    /// Groups of one sub-role, 0 if it is not known.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Sub-roles with their groups, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.0.iter().map(|(name, count)| (name, *count))
    }

    /// There is no sub-role.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is a plan that ends the division.
    pub fn ends_division(&self) -> bool {
        self.0.contains_key("")
    }

    /// With 0 for every sub-role that only `other` knows.
    #[must_use]
    pub fn with_names_of(mut self, other: &Self) -> Self {
        for name in other.0.keys() {
            self.0.entry(name.clone()).or_default();
        }
        self
    }

    /// Whether some sub-role has fewer groups than in `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        other.iter().any(|(name, count)| self.get(name) < count)
    }
}

impl FromIterator<(Arc<str>, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().collect())
    }
}

/// SRL-6: divides `total` groups as far as `counts` go, in the order of the names; what is left over goes to the first one.
pub fn fit(counts: &Counts, total: u64) -> Counts {
    let mut left = total;
    let mut fitted: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for (name, count) in counts.iter() {
        let taken = count.min(left);
        left -= taken;
        fitted.insert(name.clone(), taken);
    }
    if let Some(mut first) = fitted.first_entry() {
        *first.get_mut() += left;
    }
    Counts(fitted)
}

/// SRL-7: divides groups, given with their present sub-roles, so that as few as possible change.
pub fn stick<'a>(
    groups: impl IntoIterator<Item = Option<&'a Arc<str>>>,
    counts: &Counts,
) -> Vec<Option<Arc<str>>> {
    let mut left = counts.0.clone();
    let mut take = |name: &Arc<str>| {
        let count = left.get_mut(name).filter(|count| **count > 0)?;
        *count -= 1;
        Some(name.clone())
    };
    let kept = groups.into_iter().map(|name| take(name?));
    let mut assigned: Vec<Option<Arc<str>>> = kept.collect();
    let left = left.into_iter();
    let mut rest = left.flat_map(|(name, count)| (0..count).map(move |_| name.clone()));
    for group in assigned.iter_mut().filter(|group| group.is_none()) {
        *group = rest.next();
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts<const N: usize>(counts: [(&str, u64); N]) -> Counts {
        let counts = counts.into_iter();
        counts.map(|(name, count)| (name.into(), count)).collect()
    }

    #[test]
    fn dsr_srl_6_fit() {
        for (given, total, fitted) in [
            ([("a", 2), ("b", 2)], 3, [("a", 2), ("b", 1)]),
            ([("a", 1), ("b", 1)], 5, [("a", 4), ("b", 1)]),
            ([("a", 0), ("b", 0)], 0, [("a", 0), ("b", 0)]),
            ([("b", 3), ("a", 1)], 2, [("a", 1), ("b", 1)]),
        ] {
            assert_eq!(
                fit(&counts(given), total),
                counts(fitted),
                "{given:?}, {total}"
            );
        }
        assert_eq!(fit(&Counts::default(), 3), Counts::default());
    }

    #[test]
    fn dsr_srl_7_stick() {
        let groups: [Option<Arc<str>>; 4] =
            [Some("a".into()), Some("a".into()), Some("b".into()), None];
        let assigned = stick(
            groups.iter().map(Option::as_ref),
            &counts([("a", 1), ("b", 2), ("c", 1)]),
        );
        let names: Vec<Option<&str>> = assigned.iter().map(Option::as_deref).collect();
        assert_eq!(names, [Some("a"), Some("b"), Some("b"), Some("c")]);
    }

    #[test]
    fn dsr_srl_7_groups_beyond_the_counts_belong_to_none() {
        let present: Arc<str> = "gone".into();
        let assigned = stick([Some(&present), None], &counts([("a", 1)]));
        assert_eq!(assigned, [Some("a".into()), None]);
    }

    #[test]
    fn dsr_12_2_counts_that_nothing_can_be_planned_with() {
        for (text, error) in [
            ("", CountsError::Malformed),
            ("[]", CountsError::Malformed),
            (r#"{"a":-1}"#, CountsError::Malformed),
            (r#"{"a":1.5}"#, CountsError::Malformed),
            (r#"{"a":2147483648}"#, CountsError::Malformed),
            (r#"{"a":2147483647,"b":1}"#, CountsError::TooMany),
            (r#"{"":1,"b":1}"#, CountsError::Mixed),
        ] {
            assert_eq!(Counts::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn dsr_12_2_counts_survive_the_annotation() {
        for given in [
            counts([("b", 2), ("a", 0)]),
            Counts::undivided(4),
            Counts::default(),
        ] {
            assert_eq!(Counts::parse(&given.to_json()), Ok(given));
        }
        assert_eq!(counts([("b", 2), ("a", 0)]).to_json(), r#"{"a":0,"b":2}"#);
    }
}
