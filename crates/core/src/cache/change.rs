//! What an informer tells the cache, cut into single comings, goings and updates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lws_api::names::label;

use crate::model::{
    Deployment, Ds, Lws, Meta, Node, ObjectKey, Pod, PodGroup, ReplicaSet, Revision, RoleScaler,
    Service, StatefulSet, Workload,
};

/// What a watch of one kind reported.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T> {
    /// The object is there, in this version.
    Applied(T),
    /// The object is gone, or no longer selected (KRS-37); this is its last state.
    Deleted(T),
    /// A complete list: whatever it lacks is gone (KRS-41).
    Relisted(Vec<T>),
}

impl<T> Change<T> {
    /// The objects that it tells of.
    pub(super) fn objects(&self) -> &[T] {
        match self {
            Self::Applied(object) | Self::Deleted(object) => std::slice::from_ref(object),
            Self::Relisted(objects) => objects,
        }
    }
}

/// An object of a kind that the cache holds.
pub(super) trait Object: PartialEq {
    fn meta(&self) -> &Meta;
}

impl Object for Lws {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for StatefulSet {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Deployment {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for ReplicaSet {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Service {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Revision {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Node {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Ds {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for RoleScaler {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Workload {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for PodGroup {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Object for Pod {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Objects of one kind.
pub(super) type Objects<T> = BTreeMap<ObjectKey, Arc<T>>;

/// One object before and after. If both are there, they are the same incarnation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move<T> {
    /// As the cache has it.
    pub(super) old: Option<Arc<T>>,
    /// As the cache will have it.
    pub(super) new: Option<Arc<T>>,
}

impl<T> Move<T> {
    fn gone(old: &Arc<T>) -> Self {
        Self {
            old: Some(old.clone()),
            new: None,
        }
    }

    /// Both versions, the old one first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Arc<T>> {
        self.old.iter().chain(&self.new)
    }
}

/// KRS-44: the moves that lead from `held` to what `change` reports. A name with another UID is a going and a coming, and
/// what did not change is no move. In a relist all goings come first, so that no pod that went meets a leader that came (FAIL-21).
pub(super) fn moves<T: Object>(held: &Objects<T>, change: Change<T>) -> Vec<Move<T>> {
    match change {
        Change::Applied(object) => applied(held, object),
        Change::Deleted(object) => deleted(held, object),
        Change::Relisted(objects) => relisted(held, objects),
    }
}

fn applied<T: Object>(held: &Objects<T>, object: T) -> Vec<Move<T>> {
    match held.get(&object.meta().key) {
        None => vec![Move {
            old: None,
            new: Some(Arc::new(object)),
        }],
        Some(old) if **old == object => Vec::new(),
        Some(old) if old.meta().uid == object.meta().uid => {
            vec![Move {
                old: Some(old.clone()),
                new: Some(Arc::new(object)),
            }]
        }
        Some(old) => vec![
            Move::gone(old),
            Move {
                old: None,
                new: Some(Arc::new(object)),
            },
        ],
    }
}

/// A delete reports the last state of the object, which may be news; it is read as an update before the end. A state
/// without our name label says less than what is held (KRS-37).
fn deleted<T: Object>(held: &Objects<T>, object: T) -> Vec<Move<T>> {
    let old = held.get(&object.meta().key);
    if let Some(old) = old.filter(|_| object.meta().labels.get(label::NAME).is_none()) {
        return vec![Move::gone(old)];
    }
    let mut moves = applied(held, object);
    let last = moves
        .last()
        .and_then(|last| last.new.as_ref())
        .or(old)
        .cloned();
    moves.extend(last.map(|last| Move {
        old: Some(last),
        new: None,
    }));
    moves
}

fn relisted<T: Object>(held: &Objects<T>, objects: Vec<T>) -> Vec<Move<T>> {
    let listed: BTreeSet<&ObjectKey> = objects.iter().map(|object| &object.meta().key).collect();
    let mut moves: Vec<_> = held
        .iter()
        .filter(|(key, _)| !listed.contains(key))
        .map(|(_, old)| Move::gone(old))
        .collect();
    moves.extend(objects.into_iter().flat_map(|object| applied(held, object)));
    moves.sort_by_key(|step| step.new.is_some());
    moves
}
