//! The target revision of a DisaggregatedSet (reconcile-disaggregatedset section 3).
//!
//! Decides from the roles and from the children alone, for all slices at once. The value is a hash of what the roles want of their groups; children
//! that were made under another value are taken over when they mean the same (REV-7).

mod canonical;
mod meaning;
mod quantity;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use super::children::{Child, Children, newest_first};
use crate::model::Ds;
use lws_api::names::ds_annotation;

/// The revision that all slices are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Value of the revision label, and part of the names of children.
    pub revision: String,
    /// REV-1: the value of the roles as they are.
    pub hash: String,
    /// REV-7: children of [`Target::revision`] stand for the roles, and are to say so, as their next write.
    pub is_adopted: bool,
}

impl Target {
    /// REV-7.
    pub fn of(set: &Ds, children: &Children) -> Self {
        let hash = canonical::hash(&set.spec.roles);
        if let Some(child) = standing_for(&hash, children) {
            return Self {
                revision: child.revision().to_owned(),
                is_adopted: is_half_adopted(child, children),
                hash,
            };
        }
        match adoptable(set, children) {
            Some(revision) => Self {
                revision: revision.to_owned(),
                hash,
                is_adopted: true,
            },
            None => Self {
                revision: hash.clone(),
                hash,
                is_adopted: false,
            },
        }
    }
}

/// REV-2, REV-6: the set was made by a release whose revisions covered less.
fn is_legacy(set: &Ds) -> bool {
    set.meta
        .annotations
        .get(ds_annotation::REVISION_HASH_VERSION)
        .is_none()
}

/// REV-6: whether the set is to be marked as one whose revisions are of our making.
pub(super) fn is_to_be_marked(set: &Ds, children: &Children, target: &Target) -> bool {
    is_legacy(set) && !target.is_adopted && (children.is_empty() || target.revision == target.hash)
}

/// REV-7 step 1: the newest child that was made for this value.
fn standing_for<'a>(hash: &str, children: &'a Children) -> Option<&'a Child> {
    let stands = |child: &&Child| child.content_hash().unwrap_or(child.revision()) == hash;
    children
        .list
        .iter()
        .filter(stands)
        .max_by_key(|child| (child.lws.meta.created, child.revision()))
}

/// REV-7 step 2: `child` was marked, and the takeover ended before the others of its revision were.
fn is_half_adopted(child: &Child, children: &Children) -> bool {
    let mut others = children.list.iter();
    child.content_hash().is_some()
        && others.any(|other| {
            other.revision() == child.revision() && other.content_hash() != child.content_hash()
        })
}

/// REV-7 step 2.
fn adoptable<'a>(set: &Ds, children: &'a Children) -> Option<&'a str> {
    let means_the_roles = |(_, children): &(&str, Vec<&Child>)| {
        let slices: BTreeSet<u32> = children.iter().map(|child| child.slice).collect();
        slices.into_iter().all(|slice| {
            let of_slice = children
                .iter()
                .copied()
                .filter(|child| child.slice == slice);
            slice_means_the_roles(set, of_slice.collect())
        })
    };
    newest_first(&children.list)
        .into_iter()
        .find(means_the_roles)
        .map(|(revision, _)| revision)
}

/// Each role has exactly one child that equals it, and there is no other child.
fn slice_means_the_roles(set: &Ds, children: Vec<&Child>) -> bool {
    let by_role: BTreeMap<&str, &Child> = children
        .iter()
        .map(|child| (child.role(), *child))
        .collect();
    let is_one_each = children.len() == set.spec.roles.len();
    is_one_each
        && set.spec.roles.iter().all(|role| {
            by_role
                .get(role.name.as_str())
                .is_some_and(|child| meaning::is_equal(set, role, child, is_legacy(set)))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::disaggregatedset::tests::fixture::{built_child, ds, nginx, upstream_child};

    const OURS: &str = "907fa611";

    fn owned(children: Vec<Child>) -> Children {
        Children {
            list: children,
            without_slice: Vec::new(),
        }
    }

    fn target(set: &Ds, children: Vec<Child>) -> (String, bool) {
        let target = Target::of(set, &owned(children));
        (target.revision, target.is_adopted)
    }

    /// The set of REV-8 with a patch of its annotations; `v2` unless said otherwise.
    fn set() -> Ds {
        nginx(json!({}), json!({}))
    }

    fn both(set: &Ds, revision: &str) -> Vec<Child> {
        ["prefill", "decode"]
            .map(|role| upstream_child(set, 0, revision, role))
            .to_vec()
    }

    #[test]
    fn dsr_rev_7_a_set_without_children_has_its_own_value() {
        assert_eq!(target(&set(), vec![]), (OURS.to_owned(), false));
    }

    #[test]
    fn dsr_rev_7_an_upstream_set_at_rest_is_taken_over() {
        let set = set();
        assert_eq!(
            target(&set, both(&set, "69150551")),
            ("69150551".to_owned(), true)
        );
    }

    #[test]
    fn dsr_rev_7_a_changed_role_is_not() {
        let set = set();
        let changed = nginx(json!({"startupPolicy": "LeaderReady"}), json!({}));
        let (revision, is_adopted) = target(&changed, both(&set, "69150551"));
        assert!(!is_adopted && revision != "69150551" && revision != OURS);
    }

    #[test]
    fn dsr_rev_7_a_rollout_under_way_goes_on_when_its_target_is_whole() {
        let (new, old) = (
            set(),
            nginx(json!({"startupPolicy": "LeaderReady"}), json!({})),
        );
        let mut children = both(&old, "aaaaaaaa");
        children.extend(both(&new, "bbbbbbbb"));
        assert_eq!(
            target(&new, children.clone()),
            ("bbbbbbbb".to_owned(), true)
        );
        children.pop();
        assert_eq!(
            target(&new, children),
            (OURS.to_owned(), false),
            "a role of it is missing"
        );
    }

    #[test]
    fn dsr_rev_7_a_slice_without_children_does_not_matter_and_one_of_another_form_does() {
        let set = set();
        let mut children = both(&set, "69150551");
        children.push(upstream_child(&set, 1, "69150551", "prefill"));
        assert_eq!(target(&set, children.clone()), (OURS.to_owned(), false));
        children.push(upstream_child(&set, 1, "69150551", "decode"));
        assert_eq!(target(&set, children), ("69150551".to_owned(), true));
    }

    #[test]
    fn dsr_rev_7_an_adopted_child_that_is_left_alone_keeps_the_revision() {
        let set = set();
        let mut child = upstream_child(&set, 0, "69150551", "prefill");
        mark(&mut child, OURS);
        assert_eq!(target(&set, vec![child]), ("69150551".to_owned(), false));
    }

    fn mark(child: &mut Child, hash: &str) {
        let patch = json!({"metadata": {"annotations": {ds_annotation::CONTENT_HASH: hash}}});
        *child = patched(child, patch);
    }

    fn patched(child: &Child, patch: Value) -> Child {
        crate::disaggregatedset::tests::fixture::patched(child, patch)
    }

    #[test]
    fn dsr_rev_7_children_of_ours_are_compared_exactly() {
        let set = set();
        let ours = ["prefill", "decode"].map(|role| built_child(&set, 0, "cccccccc", role));
        let mut other = ours.clone();
        for child in &mut other {
            mark(child, "dddddddd");
        }
        assert_eq!(target(&set, other.to_vec()), ("cccccccc".to_owned(), true));
        let mut labelled = other.clone();
        labelled[0] = patched(
            &labelled[0],
            json!({"metadata": {"labels": {"queue": "q"}}}),
        );
        assert_eq!(target(&set, labelled.to_vec()), (OURS.to_owned(), false));
    }

    #[test]
    fn dsr_rev_7_of_upstream_children_empty_members_and_added_labels_mean_nothing() {
        let set = set();
        let added = json!({
            "metadata": {"labels": {"kueue.x-k8s.io/x": "1"}, "annotations": {"a": "b"}},
            "spec": {"leaderWorkerTemplate": {"workerTemplate": {
                "metadata": {"labels": {"more": "1"}, "creationTimestamp": null},
                "spec": {"hostNetwork": false, "volumes": [], "securityContext": {}},
            }}},
        });
        let children: Vec<Child> = both(&set, "69150551")
            .iter()
            .map(|child| patched(child, added.clone()))
            .collect();
        assert_eq!(target(&set, children), ("69150551".to_owned(), true));
        let labelled = ds("nginx-disagg", json!({"roles": labelled_roles(&set)}));
        assert!(
            !Target::of(&labelled, &owned(both(&set, "69150551"))).is_adopted,
            "a label that the child lacks"
        );
    }

    fn labelled_roles(set: &Ds) -> Value {
        let mut roles = json!(set.spec.roles);
        roles[0]["metadata"] = json!({"labels": {"queue": "q"}});
        roles
    }

    #[test]
    fn dsr_rev_7_the_label_app_of_earlier_releases_means_nothing() {
        let set = set();
        let app = |role: &str| {
            let label = json!({"app": format!("nginx-disagg-0-{role}")});
            let patch = json!({"metadata": {"labels": label},
                "spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"labels": label}}}}});
            patched(&upstream_child(&set, 0, "69150551", role), patch)
        };
        assert!(Target::of(&set, &owned(vec![app("prefill"), app("decode")])).is_adopted);
    }

    #[test]
    fn dsr_rev_7_of_a_legacy_set_only_the_template_is_compared() {
        let mut set = nginx(json!({"startupPolicy": "LeaderReady"}), json!({}));
        let children = || both(&nginx(json!({}), json!({})), "69150551");
        assert!(!Target::of(&set, &owned(children())).is_adopted);
        set.meta.annotations = Default::default();
        assert!(Target::of(&set, &owned(children())).is_adopted);
    }

    #[test]
    fn dsr_rev_6_which_sets_are_marked() {
        let mut set = set();
        let marked = |set: &Ds, children: Vec<Child>| {
            let children = owned(children);
            is_to_be_marked(set, &children, &Target::of(set, &children))
        };
        assert!(!marked(&set, vec![]), "it is already");
        set.meta.annotations = Default::default();
        assert!(marked(&set, vec![]));
        assert!(!marked(&set, both(&set, "69150551")), "adopted");
        let mut adopted = both(&set, "69150551");
        for child in &mut adopted {
            mark(child, OURS);
        }
        assert!(!marked(&set, adopted), "was adopted before");
        let other = nginx(json!({}), json!({"leaderWorkerTemplate": {"size": 2}}));
        assert!(
            marked(&set, both(&other, "69150551")),
            "a rollout to a value of ours"
        );
    }
}
