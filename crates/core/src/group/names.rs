//! Whether the names of a group's workers are free (ORD-84).
//!
//! A new leader usually exists long before the old workers have ended. Creating its worker StatefulSet at once makes the StatefulSet
//! controller fail on the names and back off, and large rollouts stall.

use super::Group;
use crate::model::{Pod, Uid};

/// Who holds the names of the workers that a group is to get.
#[derive(Debug, PartialEq)]
pub(super) enum Names<'a> {
    /// Nobody.
    Free,
    /// Pods that will go; the last one's end wakes the group.
    Held,
    /// A pod of a controller that exists.
    Foreign(&'a Pod),
}

/// ORD-84: looks at `<worker set>-1 … <worker set>-(size-1)`. Pods without a controller do not count: the StatefulSet controller adopts them
/// or reports them itself.
pub(super) fn names<'a>(group: &Group<'a>) -> Names<'a> {
    let holders =
        group.snapshot.holders.iter().filter(|(ordinal, pod)| {
            (1..group.size()).contains(ordinal) && pod.meta.owner.is_some()
        });
    let mut names = Names::Free;
    for (_, pod) in holders {
        if is_passing(group, pod) {
            names = Names::Held;
        } else {
            return Names::Foreign(pod);
        }
    }
    names
}

/// It is terminating, or its StatefulSet no longer exists.
fn is_passing(group: &Group<'_>, pod: &Pod) -> bool {
    let exists = |uid: &Uid| {
        group
            .snapshot
            .controllers
            .iter()
            .any(|set| set.meta.uid == *uid)
    };
    let lost_its_set = pod
        .meta
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == "StatefulSet" && !exists(&owner.uid));
    pod.meta.is_terminating() || lost_its_set
}
