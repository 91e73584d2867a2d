//! Secondary index: which objects are filed under a value.

use std::collections::BTreeMap;

use crate::model::ObjectKey;

/// Whether an object comes to or leaves its places in the indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// It comes.
    Add,
    /// It leaves.
    Remove,
}

/// Keys filed under a value, each with the number of objects that put it there: the pods of a group all file the group.
///
/// Empty entries go, so that two caches that hold the same objects are equal however they came to hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index<V: Ord>(BTreeMap<V, BTreeMap<ObjectKey, usize>>);

impl<V: Ord> Default for Index<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: Ord + Clone> Index<V> {
    /// Files `key` under `value` once more, or once less.
    pub(super) fn edit(&mut self, edit: Edit, value: &V, key: &ObjectKey) {
        match edit {
            Edit::Add => {
                let keys = self.0.entry(value.clone()).or_default();
                *keys.entry(key.clone()).or_default() += 1;
            }
            Edit::Remove => self.remove(value, key),
        }
    }

    fn remove(&mut self, value: &V, key: &ObjectKey) {
        let Some(keys) = self.0.get_mut(value) else {
            return;
        };
        if let Some(count) = keys.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.0.remove(value);
        }
    }

    /// The keys filed under `value`, by name.
    pub(super) fn at<'a>(&'a self, value: &V) -> impl Iterator<Item = &'a ObjectKey> + use<'a, V> {
        self.0.get(value).into_iter().flat_map(BTreeMap::keys)
    }

    /// The keys filed under `first` and the values after it that belong to it as well.
    pub(super) fn from<'a>(
        &'a self,
        first: V,
        belongs: impl Fn(&V) -> bool + 'a,
    ) -> impl Iterator<Item = &'a ObjectKey> + 'a {
        self.0
            .range(first..)
            .take_while(move |(value, _)| belongs(value))
            .flat_map(|(_, keys)| keys.keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_until_its_last_object_leaves() {
        let (mut index, key) = (Index::default(), ObjectKey::new("ns", "x-0"));
        index.edit(Edit::Add, &"x", &key);
        index.edit(Edit::Add, &"x", &key);
        index.edit(Edit::Remove, &"x", &key);
        assert_eq!(index.at(&"x").collect::<Vec<_>>(), [&key]);
        index.edit(Edit::Remove, &"x", &key);
        assert_eq!(index, Index::default());
        index.edit(Edit::Remove, &"x", &key);
        assert_eq!(index, Index::default());
    }
}
