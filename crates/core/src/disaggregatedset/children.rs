//! The child sets of a DisaggregatedSet: which LeaderWorkerSets are its own, and what their labels and annotations say.
//!
//! Decided by UID (OWS-1): the labels of an object that somebody else controls say nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::names::{ds_annotation, ds_label};

use super::executor::{self, Ready};
use super::sub_roles::Counts;
use crate::model::{Lws, Uid};

/// Annotations that hold how a child is divided.
const DIVISION: [&str; 4] = [
    ds_annotation::SUBROLE_REPLICAS,
    ds_annotation::INITIAL_SUBROLE_REPLICAS,
    ds_annotation::SUBROLE_PLAN,
    ds_annotation::SUBROLE_SCALE_PLAN,
];

/// A LeaderWorkerSet that the DisaggregatedSet controls, in a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The object.
    pub lws: Arc<Lws>,
    /// Its slice (SLC-1).
    pub slice: u32,
}

impl Child {
    /// The child that `lws` is; `None` without a valid slice label (SLC-5).
    pub fn of(lws: &Arc<Lws>) -> Option<Self> {
        let label = lws.meta.label(ds_label::SLICE);
        let slice = label
            .parse()
            .ok()
            .filter(|slice: &u32| slice.to_string() == label)?;
        Some(Self {
            lws: lws.clone(),
            slice,
        })
    }

    /// Name of the object.
    pub fn name(&self) -> &Arc<str> {
        &self.lws.key().name
    }

    /// What the executor is told of it; its pods and annotations may say more.
    pub fn for_executor(&self, ready: Option<Ready>) -> executor::Child {
        executor::Child {
            name: self.name().clone(),
            role: self.role().into(),
            revision: self.revision().into(),
            created: self.lws.meta.created,
            is_terminating: self.is_terminating(),
            spec: self.replicas().into(),
            initial: self.initial_replicas().map(Into::into),
            ready,
            has_unschedulable_pod: false,
            routing: None,
        }
    }

    /// Its role.
    pub fn role(&self) -> &str {
        self.lws.meta.label(ds_label::ROLE)
    }

    /// Its revision.
    pub fn revision(&self) -> &str {
        self.lws.meta.label(ds_label::REVISION)
    }

    /// The revision value that it stands for, if one of ours was written down.
    pub fn content_hash(&self) -> Option<&str> {
        self.lws.meta.annotations.get(ds_annotation::CONTENT_HASH)
    }

    /// Wanted groups (`Spec`).
    pub fn replicas(&self) -> u32 {
        u32::try_from(self.lws.spec.replicas()).unwrap_or_default()
    }

    /// Intended groups; `None` when missing or unusable (API 7.2).
    pub fn initial_replicas(&self) -> Option<u32> {
        let text = self
            .lws
            .meta
            .annotations
            .get(ds_annotation::INITIAL_REPLICAS)?;
        let number: i32 = text.parse().ok()?;
        u32::try_from(number).ok()
    }

    /// Issued counts of its sub-roles, if it is divided among any; counts that are unusable read as none.
    pub fn issued(&self) -> Option<Counts> {
        let annotations = &self.lws.meta.annotations;
        Counts::parse(annotations.get(ds_annotation::SUBROLE_REPLICAS)?).ok()
    }

    /// Section 12.2: its groups are divided among sub-roles, or this is not undone yet.
    pub fn is_divided(&self) -> bool {
        let annotations = &self.lws.meta.annotations;
        let mut keys = DIVISION.iter();
        keys.any(|key| annotations.get(key).is_some())
    }

    /// A deletion timestamp is set.
    pub fn is_terminating(&self) -> bool {
        self.lws.meta.is_terminating()
    }
}

/// The sets that carry the name of a DisaggregatedSet and are its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Children {
    /// Those in a slice, by name.
    pub list: Vec<Child>,
    /// SLC-5: names of those in none, which are left alone.
    pub without_slice: Vec<Arc<str>>,
}

impl Children {
    /// OWS-1: picks those of `found` that the DisaggregatedSet with this UID controls.
    pub fn of<'a>(owner: &Uid, found: impl Iterator<Item = &'a Arc<Lws>>) -> Self {
        let mut children = Self::default();
        for lws in found.filter(|lws| lws.meta.is_controlled_by(owner)) {
            match Child::of(lws) {
                Some(child) => children.list.push(child),
                None => children.without_slice.push(lws.key().name.clone()),
            }
        }
        children
    }

    /// Those of one slice.
    pub fn in_slice(&self, slice: u32) -> impl Iterator<Item = &Child> {
        self.list.iter().filter(move |child| child.slice == slice)
    }

    /// Nothing is owned.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.without_slice.is_empty()
    }
}

/// OWS-6: one child per role. Of several the one that was created last counts, of equally old ones that of the greatest name.
pub fn by_role<'a>(children: impl IntoIterator<Item = &'a Child>) -> BTreeMap<&'a str, &'a Child> {
    let mut roles: BTreeMap<&str, &Child> = BTreeMap::new();
    for child in children {
        let rank = |child: &Child| (child.lws.meta.created, child.name().clone());
        let known = roles.entry(child.role()).or_insert(child);
        if rank(child) > rank(known) {
            *known = child;
        }
    }
    roles
}

/// ROL-9: revisions by the newest of their children, newest first; of equally old ones the greater name first.
pub fn newest_first<'a>(
    children: impl IntoIterator<Item = &'a Child>,
) -> Vec<(&'a str, Vec<&'a Child>)> {
    let mut revisions: BTreeMap<&str, Vec<&Child>> = BTreeMap::new();
    for child in children {
        revisions.entry(child.revision()).or_default().push(child);
    }
    let mut list: Vec<_> = revisions.into_iter().collect();
    let newest = |children: &[&Child]| {
        children
            .iter()
            .filter_map(|child| child.lws.meta.created)
            .max()
    };
    list.sort_by(|(a, of_a), (b, of_b)| (newest(of_b), b).cmp(&(newest(of_a), a)));
    list
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::disaggregatedset::tests::fixture::{child, lws};

    #[test]
    fn dsr_slc_5_a_slice_is_a_decimal_number() {
        for (label, slice) in [
            (json!("0"), Some(0)),
            (json!("12"), Some(12)),
            (json!("-1"), None),
            (json!("+1"), None),
            (json!("01"), None),
            (json!("a"), None),
            (json!(null), None),
        ] {
            let object = lws(
                "x",
                json!({"metadata": {"labels": {ds_label::SLICE: label}}}),
            );
            assert_eq!(
                Child::of(&object).map(|child| child.slice),
                slice,
                "{label}"
            );
        }
    }

    #[test]
    fn ds_annotation_initial_replicas_is_a_number_from_zero() {
        for (text, number) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-1", None),
            ("", None),
            ("x", None),
            ("2147483648", None),
        ] {
            let object = child(
                "pd",
                0,
                "r",
                "a",
                json!({"metadata": {"annotations": {ds_annotation::INITIAL_REPLICAS: text}}}),
            );
            assert_eq!(object.initial_replicas(), number, "{text}");
        }
    }

    #[test]
    fn dsr_ows_1_only_what_the_set_controls_is_a_child() {
        let ours = child("pd", 0, "r", "a", json!({}));
        let foreign = child(
            "pd",
            0,
            "r",
            "b",
            json!({"metadata": {"ownerReferences": null}}),
        );
        let bare = child(
            "pd",
            0,
            "r",
            "c",
            json!({"metadata": {"labels": {ds_label::SLICE: null}}}),
        );
        let children = Children::of(
            &"pd-uid".into(),
            [&ours.lws, &foreign.lws, &bare.lws].into_iter(),
        );
        assert_eq!(children.list, [ours]);
        assert_eq!(children.without_slice, [bare.name().clone()]);
    }

    #[test]
    fn dsr_ows_6_the_youngest_child_of_a_role_counts() {
        let born = |name: &str, at: &str| {
            child(
                "pd",
                0,
                "r",
                "a",
                json!({"metadata": {"name": name, "creationTimestamp": at}}),
            )
        };
        let (old, new) = (
            born("z", "2026-01-01T00:00:00Z"),
            born("b", "2026-01-02T00:00:00Z"),
        );
        let twin = born("c", "2026-01-02T00:00:00Z");
        assert_eq!(by_role([&old, &new])["a"].name().as_ref(), "b");
        assert_eq!(by_role([&twin, &new])["a"].name().as_ref(), "c");
    }

    #[test]
    fn dsr_rol_9_revisions_come_newest_first() {
        let born = |revision: &str, role: &str, at: &str| {
            child(
                "pd",
                0,
                revision,
                role,
                json!({"metadata": {"creationTimestamp": at}}),
            )
        };
        let children = [
            born("a", "x", "2026-01-01T00:00:00Z"),
            born("b", "x", "2026-01-02T00:00:00Z"),
            born("c", "x", "2026-01-02T00:00:00Z"),
            born("a", "y", "2026-01-03T00:00:00Z"),
        ];
        let names: Vec<_> = newest_first(&children)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["a", "c", "b"]);
    }
}
