//! What a changed DisaggregatedSet would do, slice by slice, before it is applied.
//!
//! Decides from the set as it would be and from its children as they are; what is to be foretold of a rollout is what its executor would ask the
//! planner. How ready a child is, is taken from its status. Roles that are divided among sub-roles are not foretold.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::children::{Child, Children};
use super::executor::{self, Ready, Slice, rollout_of};
use super::planner::{Rehearsal, rehearse};
use super::revision::Target;
use super::targets::{self, LeafKey, RoleTarget};
use crate::model::Ds;

/// Why nothing can be foretold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// Its groups are divided.
    #[error("role {0} is divided among sub-roles")]
    Divided(String),
    /// REC-6: until then the controller changes nothing.
    #[error("the number of groups is not known of: {0}")]
    Unresolved(String),
}

/// What becomes of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Index of the slice.
    pub slice: u32,
    /// The roles that counts are of, in this order.
    pub roles: Vec<Arc<str>>,
    /// What happens.
    pub course: Course,
}

/// What happens to a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// It comes into being with so many groups.
    Created(Vec<u64>),
    /// SLC-3: it is deleted.
    Removed,
    /// CUR: its children get other numbers of groups, all at once.
    Scaled {
        /// Groups now.
        from: Vec<u64>,
        /// Groups then.
        to: Vec<u64>,
    },
    /// Its groups are exchanged, step by step.
    Rolled {
        /// Groups of old revisions now.
        from: Vec<u64>,
        /// The steps.
        rehearsal: Rehearsal,
    },
    /// Nothing.
    Unchanged,
}

/// What becomes of the slices of a running set. `scaler` gives what the scaler of a leaf says.
///
/// # Errors
/// When a role is divided, or a number is not known.
pub fn foresee(
    set: &Ds,
    children: &Children,
    scaler: impl Fn(&LeafKey) -> Option<i32>,
) -> Result<Vec<Fate>, Unclear> {
    let roles = resolved(set, scaler)?;
    let revision = Target::of(set, children).revision;
    let wanted = u32::try_from(set.spec.slices()).unwrap_or_default();
    let present = children.list.iter().map(|child| child.slice);
    let slices: BTreeSet<u32> = present.chain(0..wanted).collect();
    let fates = slices.into_iter().map(|index| {
        let of_slice = children.in_slice(index).map(seen).collect();
        let slice = slice(set, &revision, &roles, of_slice);
        fate(index, wanted, &slice)
    });
    Ok(fates.collect())
}

/// What becomes of the slices of a set that runs `old` with every group ready.
///
/// # Errors
/// As those of [`foresee`].
pub fn foresee_from_rest(
    old: &Ds,
    new: &Ds,
    scaler: impl Fn(&LeafKey) -> Option<i32>,
) -> Result<Vec<Fate>, Unclear> {
    let revision = |set: &Ds| Target::of(set, &Children::default()).revision;
    let (before, after) = (resolved(old, &scaler)?, resolved(new, &scaler)?);
    let slices = |set: &Ds| u32::try_from(set.spec.slices()).unwrap_or_default();
    let fates = (0..slices(old).max(slices(new))).map(|index| {
        let is_there = index < slices(old);
        let there = before.iter().filter(|_| is_there);
        let children = there.map(|role| at_rest(&revision(old), role)).collect();
        let slice = slice(new, &revision(new), &after, children);
        fate(index, slices(new), &slice)
    });
    Ok(fates.collect())
}

fn resolved(
    set: &Ds,
    scaler: impl Fn(&LeafKey) -> Option<i32>,
) -> Result<Vec<RoleTarget>, Unclear> {
    if let Some(role) = set.spec.roles.iter().find(|role| role.is_partitioned()) {
        return Err(Unclear::Divided(role.name.clone()));
    }
    let wanted = targets::wanted(&set.spec, scaler);
    targets::targets(&set.spec, &wanted)
        .ok_or_else(|| Unclear::Unresolved(targets::unresolved(&wanted).join(", ")))
}

fn slice(set: &Ds, revision: &str, roles: &[RoleTarget], children: Vec<executor::Child>) -> Slice {
    Slice {
        policy: set.spec.during_rollout(),
        revision: revision.into(),
        roles: roles.to_vec(),
        children,
    }
}

/// A child as its status shows it.
fn seen(child: &Child) -> executor::Child {
    let ready = u64::try_from(child.lws.status.ready_replicas).unwrap_or_default();
    let ready = ready.min(child.replicas().into());
    child.for_executor(Some(lasting(ready)))
}

/// Ready groups that all stay.
fn lasting(groups: u64) -> Ready {
    Ready {
        raw: groups,
        committed: groups,
    }
}

fn at_rest(revision: &str, role: &RoleTarget) -> executor::Child {
    let groups = role.replicas;
    executor::Child {
        name: format!("{revision}-{}", role.role).into(),
        role: role.role.clone(),
        revision: revision.into(),
        created: None,
        is_terminating: false,
        spec: groups,
        initial: Some(groups),
        ready: Some(lasting(groups)),
        has_unschedulable_pod: false,
        routing: None,
    }
}

/// Of the slice `index` of a set that wants slices up to `wanted`.
fn fate(index: u32, wanted: u32, slice: &Slice) -> Fate {
    if index >= wanted {
        return Fate {
            slice: index,
            roles: Vec::new(),
            course: Course::Removed,
        };
    }
    let live = || slice.children.iter().filter(|child| !child.is_terminating);
    let is_old = |child: &&executor::Child| child.revision != slice.revision;
    let roles: Vec<Arc<str>> = slice.roles.iter().map(|role| role.role.clone()).collect();
    let to: Vec<u64> = slice.roles.iter().map(|role| role.replicas).collect();
    let of = |role: &Arc<str>| -> u64 {
        let children = live().filter(|child| child.role == *role);
        children.map(|child| child.spec).sum()
    };
    let from: Vec<u64> = roles.iter().map(of).collect();
    let course = if live().next().is_none() {
        Course::Created(to)
    } else if live().any(|child| is_old(&child)) {
        return rolled(index, slice);
    } else if from == to {
        Course::Unchanged
    } else {
        Course::Scaled { from, to }
    };
    Fate {
        slice: index,
        roles,
        course,
    }
}

fn rolled(index: u32, slice: &Slice) -> Fate {
    let (keys, rollout) = rollout_of(slice);
    let roles = keys.into_iter().map(|key| key.role).collect();
    let course = rollout.map_or(Course::Unchanged, |rollout| {
        let sum = |at: usize| -> u64 {
            let shares = rollout.old.iter().filter_map(|old| old.get(at));
            shares.map(|share| share.groups.spec).sum()
        };
        let from = (0..rollout.roles.len()).map(sum).collect();
        let rehearsal = rehearse(rollout);
        Course::Rolled { from, rehearsal }
    });
    Fate {
        slice: index,
        roles,
        course,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::disaggregatedset::tests::fixture::{child, nginx};

    fn image() -> Value {
        json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "nginx", "image": "nginx:1.28"}]}}}})
    }

    fn courses(old: &Ds, new: &Ds) -> Vec<Course> {
        let fates = foresee_from_rest(old, new, |_| None).unwrap();
        fates.into_iter().map(|fate| fate.course).collect()
    }

    #[test]
    fn ds_foresight_of_changes_from_rest() {
        let old = nginx(json!({}), json!({}));
        assert_eq!(courses(&old, &old), [Course::Unchanged]);
        let scaled = courses(&old, &nginx(json!({"replicas": 3}), json!({})));
        let (from, to) = (vec![1, 2], vec![3, 2]);
        assert_eq!(scaled, [Course::Scaled { from, to }]);
        let rolled = courses(&old, &nginx(image(), json!({})));
        let [Course::Rolled { from, rehearsal }] = rolled.as_slice() else {
            panic!("{rolled:?}");
        };
        assert_eq!(*from, [1, 2]);
        assert_eq!(rehearsal.scenes.last().unwrap().target, [1, 2]);
        assert_eq!(rehearsal.lowest, [1, 1]);
    }

    #[test]
    fn ds_foresight_of_slices() {
        let one = nginx(json!({}), json!({}));
        let mut two = one.clone();
        two.spec.slices = Some(2);
        assert_eq!(
            courses(&one, &two),
            [Course::Unchanged, Course::Created(vec![1, 2])]
        );
        assert_eq!(courses(&two, &one), [Course::Unchanged, Course::Removed]);
    }

    #[test]
    fn ds_foresight_of_a_running_set() {
        let set = nginx(json!({}), json!({}));
        let born = foresee(&set, &Children::default(), |_| None).unwrap();
        assert_eq!(born[0].course, Course::Created(vec![1, 2]));
        let running = |role: &str, replicas: i32, ready: i32| {
            let patch = json!({"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}});
            child("nginx-disagg", 0, "0ld", role, patch)
        };
        let children = Children {
            list: vec![running("prefill", 1, 1), running("decode", 2, 1)],
            without_slice: Vec::new(),
        };
        let fates = foresee(&set, &children, |_| None).unwrap();
        let [fate] = fates.as_slice() else {
            panic!("{fates:?}");
        };
        let Course::Rolled { from, rehearsal } = &fate.course else {
            panic!("{fate:?}");
        };
        assert_eq!(
            (
                from.as_slice(),
                rehearsal.scenes.last().unwrap().target.as_slice()
            ),
            ([1, 2].as_slice(), [1, 2].as_slice())
        );
    }

    #[test]
    fn ds_foresight_knows_what_it_does_not_know() {
        let mut set = nginx(json!({}), json!({}));
        let external = json!({"mode": "External"});
        set.spec.roles[0].scaling = serde_json::from_value(external).unwrap();
        let unclear = foresee(&set, &Children::default(), |_| None);
        assert_eq!(unclear, Err(Unclear::Unresolved("prefill".to_owned())));
        assert!(foresee(&set, &Children::default(), |_| Some(4)).is_ok());
        set.spec.roles[1].sub_roles = serde_json::from_value(json!([{"name": "a"}])).unwrap();
        let unclear = foresee(&set, &Children::default(), |_| Some(4));
        assert_eq!(unclear, Err(Unclear::Divided("decode".to_owned())));
    }
}
