//! How often groups were recreated: the annotation `lws/group-restart-counts` of a set (FAIL-50 … FAIL-55, FAIL-76, FAIL-77).
//!
//! Pure text in, pure text out; who may change a count, and when, is decided by the controllers.

use std::collections::{BTreeMap, BTreeSet};

use lws_api::names::annotation;
use serde_json::{Value, json};

use crate::model::Lws;

/// FAIL-51: a stored annotation that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// Not a JSON object of 32 bit numbers.
    #[error("invalid group restart counts: expected a JSON object")]
    NotAnObject,
    /// A count below zero.
    #[error("invalid group restart count for group {key:?}: must be non-negative")]
    Negative {
        /// `<revision key>/<group index>`.
        key: String,
    },
}

/// Counts by `<revision key>/<group index>`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RestartCounts(BTreeMap<String, i32>);

impl RestartCounts {
    /// The counts that a set carries.
    pub fn of(lws: &Lws) -> Result<Self, CountsError> {
        Self::parse(lws.meta.annotation(annotation::GROUP_RESTART_COUNTS))
    }

    /// FAIL-51: an absent or empty annotation holds no counts.
    pub fn parse(text: &str) -> Result<Self, CountsError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let counts: BTreeMap<String, i32> =
            serde_json::from_str(text).map_err(|_| CountsError::NotAnObject)?;
        match counts.iter().find(|(_, count)| **count < 0) {
            Some((key, _)) => Err(CountsError::Negative { key: key.clone() }),
            None => Ok(Self(counts)),
        }
    }

    /// Recreations of a group of one revision so far.
    pub fn get(&self, revision_key: &str, group_index: &str) -> i32 {
        self.0
            .get(&key(revision_key, group_index))
            .copied()
            .unwrap_or(0)
    }

    /// FAIL-50: what the count of a group is stored under.
    pub fn key(revision_key: &str, group_index: &str) -> String {
        key(revision_key, group_index)
    }

    /// HASH-65: the group takes over the highest count of the revision that no key of `owned` stands for, unless it has one already. Tells
    /// whether anything changed.
    pub fn hand_over(
        &mut self,
        revision_key: &str,
        group_index: &str,
        owned: &BTreeSet<String>,
    ) -> bool {
        let own = key(revision_key, group_index);
        if self.0.contains_key(&own) {
            return false;
        }
        let highest = self.highest(revision_key, owned).into_iter().next();
        let Some(count) = highest.and_then(|key| self.0.remove(&key)) else {
            return false;
        };
        self.0.insert(own, count);
        true
    }

    /// HASH-69: of the counts of the revision that no key of `owned` stands for, keeps the `number` highest. Tells whether anything changed.
    pub fn keep_highest(
        &mut self,
        revision_key: &str,
        owned: &BTreeSet<String>,
        number: usize,
    ) -> bool {
        let obsolete: BTreeSet<_> = self
            .highest(revision_key, owned)
            .into_iter()
            .skip(number)
            .collect();
        self.retain(|key| !obsolete.contains(key))
    }

    /// Keys of the revision without an owner, the highest count first, then by key.
    fn highest(&self, revision_key: &str, owned: &BTreeSet<String>) -> Vec<String> {
        let is_of_revision = |key: &str| {
            key.rsplit_once('/')
                .is_some_and(|(revision, _)| revision == revision_key)
        };
        let mut free: Vec<_> = self
            .0
            .iter()
            .filter(|(key, _)| is_of_revision(key) && !owned.contains(*key))
            .collect();
        free.sort_by_key(|(key, count)| (std::cmp::Reverse(**count), (*key).clone()));
        free.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// FAIL-52: stores `count` unless as much is stored already; tells whether anything changed.
    pub fn raise(&mut self, revision_key: &str, group_index: &str, count: i32) -> bool {
        let stored = self.0.entry(key(revision_key, group_index)).or_default();
        let rises = *stored < count;
        *stored = count.max(*stored);
        rises
    }

    /// FAIL-74: forgets a group; tells whether anything changed.
    pub fn clear(&mut self, revision_key: &str, group_index: &str) -> bool {
        self.0.remove(&key(revision_key, group_index)).is_some()
    }

    /// FAIL-76: forgets the groups from index `active` on; tells whether anything changed. Keys without an index stay.
    pub fn keep_groups_below(&mut self, active: u32) -> bool {
        self.retain(|key| index(key).is_none_or(|index| index < i64::from(active)))
    }

    /// FAIL-77: forgets all other revisions; tells whether anything changed.
    pub fn keep_revision(&mut self, revision_key: &str) -> bool {
        self.retain(|key| {
            key.rsplit_once('/')
                .is_none_or(|(revision, _)| revision == revision_key)
        })
    }

    /// FAIL-76: keys that name no group.
    pub fn invalid_keys(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|key| index(key).is_none())
    }

    /// HASH-69: keys that name no revision.
    pub fn keys_without_revision(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|key| !key.contains('/'))
    }

    /// FAIL-52: merge patch of a set that stores these counts; without any, the annotation goes.
    pub fn patch(&self) -> Value {
        let text = (!self.0.is_empty()).then(|| json!(self.0).to_string());
        json!({"metadata": {"annotations": {annotation::GROUP_RESTART_COUNTS: text}}})
    }

    fn retain(&mut self, keep: impl Fn(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|key, _| keep(key));
        self.0.len() != before
    }
}

fn key(revision_key: &str, group_index: &str) -> String {
    format!("{revision_key}/{group_index}")
}

fn index(key: &str) -> Option<i64> {
    key.rsplit_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn annotation_of(counts: &RestartCounts) -> Value {
        counts.patch()["metadata"]["annotations"][annotation::GROUP_RESTART_COUNTS].clone()
    }

    #[test]
    fn fail_51_what_can_be_read() {
        for text in ["", "{}"] {
            assert_eq!(
                RestartCounts::parse(text),
                Ok(RestartCounts::default()),
                "{text}"
            );
        }
        let counts = RestartCounts::parse(r#"{"r/0":2,"r/3":1}"#).unwrap();
        assert_eq!(
            (
                counts.get("r", "0"),
                counts.get("r", "3"),
                counts.get("r", "1"),
                counts.get("q", "0")
            ),
            (2, 1, 0, 0)
        );
    }

    #[test]
    fn fail_51_what_cannot_be_read() {
        for text in [
            "null",
            "[]",
            "7",
            "x",
            r#"{"r/0":"1"}"#,
            r#"{"r/0":1.5}"#,
            r#"{"r/0":null}"#,
            r#"{"r/0":2147483648}"#,
        ] {
            let error = RestartCounts::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                "invalid group restart counts: expected a JSON object",
                "{text}"
            );
        }
        let error = RestartCounts::parse(r#"{"r/0":-1}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"invalid group restart count for group "r/0": must be non-negative"#
        );
    }

    #[test]
    fn fail_52_counts_only_rise_and_are_written_sorted_and_compact() {
        let mut counts = RestartCounts::parse(r#"{"r/3":1}"#).unwrap();
        assert!(counts.raise("r", "0", 2));
        assert!(!counts.raise("r", "3", 1));
        assert!(!counts.raise("r", "0", 1));
        assert_eq!(annotation_of(&counts), json!(r#"{"r/0":2,"r/3":1}"#));
    }

    #[test]
    fn fail_52_fail_74_annotation_goes_with_the_last_count() {
        let mut counts = RestartCounts::parse(r#"{"r/3":1}"#).unwrap();
        assert!(!counts.clear("r", "0"));
        assert!(counts.clear("r", "3"));
        assert_eq!(annotation_of(&counts), Value::Null);
    }

    #[test]
    fn fail_76_groups_that_are_gone_and_keys_that_are_none() {
        let mut counts = RestartCounts::parse(
            r#"{"a/b/2":1,"r":1,"r/-1":1,"r/1":1,"r/2":1,"r/99999999999":1,"r/x":1}"#,
        )
        .unwrap();
        assert!(counts.keep_groups_below(2));
        assert_eq!(
            annotation_of(&counts),
            json!(r#"{"r":1,"r/-1":1,"r/1":1,"r/x":1}"#)
        );
        assert_eq!(counts.invalid_keys().collect::<Vec<_>>(), ["r", "r/x"]);
        assert!(!counts.keep_groups_below(2));
    }

    #[test]
    fn fail_77_only_the_current_revision_stays() {
        let mut counts = RestartCounts::parse(r#"{"old/0":1,"r/0":2,"r/x/0":3}"#).unwrap();
        assert!(counts.keep_revision("r"));
        assert_eq!(annotation_of(&counts), json!(r#"{"r/0":2}"#));
        assert!(!counts.keep_revision("r"));
    }

    proptest! {
        #[test]
        fn fail_51_any_text_is_survived(text in ".*", object in r#"\{"[a-z/0-9]{0,4}":-?[0-9]{1,12}\}"#, active: u32) {
            for text in [text, object] {
                if let Ok(mut counts) = RestartCounts::parse(&text) {
                    counts.keep_groups_below(active);
                    counts.keep_revision("r");
                    prop_assert!(counts.patch().is_object());
                }
            }
        }
    }
}
