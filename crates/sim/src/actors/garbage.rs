//! The garbage collector: background, foreground and orphan deletion, owners by UID, one write at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{owners, uid};
use crate::store::{Cascade, FOREGROUND, Key, ORPHAN, Store, finalizers, is_terminating};

/// What the collector would write next about an object.
#[derive(Clone, Debug)]
pub enum Write {
    /// It has no owner left, or its owner waits for its end.
    Delete(Key, String, Cascade),
    /// The object's dependents are gone: this finalizer goes.
    Release(Key, Value),
    /// An object loses the reference to an owner that is gone, is going, or lets it go.
    Orphan(Key, Value),
}

/// Objects by UID.
pub fn by_uid(store: &Store) -> BTreeMap<&str, &Arc<Value>> {
    let all = store.all().map(|(_, object)| object);
    all.map(|object| (uid(object), object)).collect()
}

/// The next write about `object`, if one is due.
pub fn next(
    store: &Store,
    alive: &BTreeMap<&str, &Arc<Value>>,
    key: &Key,
    object: &Value,
) -> Option<Write> {
    if is_terminating(object) {
        let held = finalizers(object);
        if held.contains(&ORPHAN) {
            return Some(orphan(store, key, object));
        }
        if held.contains(&FOREGROUND) && !has_blocking_dependents(store, object) {
            return Some(Write::Release(key.clone(), without(object, FOREGROUND)));
        }
        return None;
    }
    let owner = |reference: &Value| {
        let uid = reference["uid"].as_str().unwrap_or_default();
        alive.get(uid).copied()
    };
    let mut references = owners(object).peekable();
    references.peek()?;
    let waits = |o: &Arc<Value>| is_terminating(o) && finalizers(o).contains(&FOREGROUND);
    let is_solid = |r: &Value| owner(r).is_some_and(|o| !waits(o));
    let solid: Vec<&Value> = owners(object).filter(|r| is_solid(r)).collect();
    if !solid.is_empty() {
        let is_orphan = solid.len() < owners(object).count();
        let kept = || json!({"metadata": {"ownerReferences": solid}});
        return is_orphan.then(|| Write::Orphan(key.clone(), kept()));
    }
    let is_waited_for = owners(object).any(|r| owner(r).is_some_and(waits));
    let cascade = if is_waited_for && dependents(store, object).next().is_some() {
        Cascade::Foreground
    } else {
        Cascade::Background
    };
    Some(Write::Delete(key.clone(), uid(object).to_owned(), cascade))
}

fn dependents<'a>(
    store: &'a Store,
    owner: &'a Value,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    store
        .all()
        .filter(move |(_, object)| owners(object).any(|r| r["uid"] == uid(owner)))
}

fn has_blocking_dependents(store: &Store, owner: &Value) -> bool {
    dependents(store, owner).any(|(_, object)| {
        owners(object).any(|r| r["uid"] == uid(owner) && r["blockOwnerDeletion"] == true)
    })
}

fn orphan(store: &Store, key: &Key, object: &Value) -> Write {
    match dependents(store, object).next() {
        Some((dependent, child)) => {
            let kept: Vec<&Value> = owners(child).filter(|r| r["uid"] != uid(object)).collect();
            Write::Orphan(
                dependent.clone(),
                json!({"metadata": {"ownerReferences": kept}}),
            )
        }
        None => Write::Release(key.clone(), without(object, ORPHAN)),
    }
}

fn without(object: &Value, finalizer: &str) -> Value {
    let kept: Vec<&str> = finalizers(object)
        .into_iter()
        .filter(|f| *f != finalizer)
        .collect();
    json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"], "finalizers": kept}})
}
