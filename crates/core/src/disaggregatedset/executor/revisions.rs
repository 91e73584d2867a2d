//! The children of a slice by revision (REC-7.1).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Child, Slice};

/// One child per role.
pub(super) type ByRole<'a> = BTreeMap<&'a Arc<str>, &'a Child>;

/// The children of a slice.
pub(super) struct Revisions<'a> {
    /// Those of the target revision, terminating ones included.
    pub target: ByRole<'a>,
    /// The old revisions, newest first.
    pub old: Vec<Old<'a>>,
}

/// An old revision. Children that are terminating are ignored.
pub(super) struct Old<'a> {
    /// Its label.
    pub revision: &'a Arc<str>,
    /// The children that count.
    pub by_role: ByRole<'a>,
    /// All of its children.
    pub children: Vec<&'a Child>,
}

impl Old<'_> {
    /// CLN-1.
    pub fn is_drained(&self) -> bool {
        self.by_role.values().all(|child| child.spec == 0)
    }
}

impl<'a> Revisions<'a> {
    /// REC-7.1, ROL-9: a revision is as old as its newest child; of equally old ones that of the greater name counts as newer.
    pub fn of(slice: &'a Slice) -> Self {
        let mut target = Vec::new();
        let mut old: BTreeMap<&Arc<str>, Vec<&Child>> = BTreeMap::new();
        for child in &slice.children {
            if child.revision == slice.revision {
                target.push(child);
            } else if !child.is_terminating {
                old.entry(&child.revision).or_default().push(child);
            }
        }
        let mut old: Vec<Old<'_>> = old
            .into_iter()
            .map(|(revision, children)| Old {
                revision,
                by_role: by_role(&children),
                children,
            })
            .collect();
        let age = |old: &Old<'a>| {
            let created = old.children.iter().map(|child| child.created).max();
            (created, old.revision)
        };
        old.sort_by(|one, other| age(other).cmp(&age(one)));
        Self {
            target: by_role(&target),
            old,
        }
    }
}

/// OWS-6: of several children of a role the one created last counts, of equally old ones that of the greatest name.
fn by_role<'a>(children: &[&'a Child]) -> ByRole<'a> {
    let mut children = children.to_vec();
    children.sort_by_key(|child| (child.created, &child.name));
    let roles = children.into_iter().map(|child| (&child.role, child));
    roles.collect()
}
