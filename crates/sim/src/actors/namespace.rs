//! The namespace controller: what is in a namespace that ends is deleted, in any order, and then the namespace goes.

use serde_json::{Value, json};

use super::uid;
use crate::store::{Key, Kind, Store, finalizers, is_terminating};

/// Finalizer of a namespace, for as long as something is in it.
pub const FINALIZER: &str = "kubernetes";

/// What the controller would write next.
#[derive(Clone, Debug)]
pub enum Write {
    /// Something is in a namespace that ends.
    Delete(Key, String),
    /// Nothing is left in the namespace.
    Release(Key, Value),
}

/// All that could be written next, as the controller comes to each kind whenever it likes.
pub fn next(store: &Store) -> Vec<Write> {
    let namespaces = store.list(Kind::Namespace);
    let ending = namespaces.filter(|(_, namespace)| is_terminating(namespace));
    ending
        .flat_map(|(key, namespace)| of_namespace(store, key, namespace))
        .collect()
}

fn of_namespace(store: &Store, key: &Key, namespace: &Value) -> Vec<Write> {
    let inside = || store.all().filter(|(inner, _)| inner.namespace == key.name);
    if inside().next().is_some() {
        let left = inside().filter(|(_, object)| !is_terminating(object));
        return left
            .map(|(inner, object)| Write::Delete(inner.clone(), uid(object).to_owned()))
            .collect();
    }
    if !finalizers(namespace).contains(&FINALIZER) {
        return Vec::new();
    }
    let patch = json!({"metadata": {"finalizers": null}});
    vec![Write::Release(key.clone(), patch)]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lws_core::run::Class;

    use super::*;
    use crate::store::{Cascade, Deletion};

    #[test]
    fn a_namespace_takes_nothing_new_and_goes_when_it_is_empty() {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        let namespace = Key::new(Kind::Namespace, "", "default");
        let service = |name| Key::new(Kind::Service, "default", name);
        let held = json!({"metadata": {"finalizers": [FINALIZER]}});
        store.create("user", namespace.clone(), held).unwrap();
        store.create("user", service("a"), json!({})).unwrap();
        assert!(next(&store).is_empty(), "it does not end");
        let deletion = Deletion {
            uid: None,
            version: None,
            cascade: Cascade::Background,
            grace: None,
        };
        store.delete("user", &namespace, &deletion).unwrap();
        let refused = store.create("user", service("b"), json!({}));
        assert_eq!(refused.unwrap_err().class, Class::Terminating);
        assert!(matches!(&next(&store)[..], [Write::Delete(key, _)] if *key == service("a")));
        store.delete("user", &service("a"), &deletion).unwrap();
        let [Write::Release(key, patch)] = &next(&store)[..] else {
            panic!("{:?}", next(&store));
        };
        store
            .patch("namespace-controller", key, false, patch)
            .unwrap();
        assert!(store.get(&namespace).is_none());
    }
}
