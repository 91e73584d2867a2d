//! Read-your-writes: a work item is not planned again before the cache shows what its last run wrote (KRS-36).
//!
//! Decides from the writes that were noted and from the cache whether a key may be planned now. It never asks the API server: what does not show
//! in time is settled by listing the kind anew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cache::Cache;
use crate::intent::{Kind, Target};
use crate::run::{SeenAs, Written};

/// KRS-36: after this time the kind is listed anew.
pub const RELIST_AFTER: Duration = Duration::from_secs(30);
/// KRS-36: after a refused write the key is planned again at the latest after this time.
pub const CONFLICT_WAIT: Duration = Duration::from_secs(1);

/// Whether a key may be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The cache shows all of its writes.
    Open,
    /// Not yet; ask again at this time, or when [`Guard::settle`] or [`Guard::listed`] gives the key back.
    Wait {
        /// When.
        until: Duration,
    },
    /// Not for too long: list this kind anew. Then as for [`Passage::Wait`].
    Relist {
        /// The kind.
        kind: Kind,
        /// When to ask again.
        until: Duration,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    written: Written,
    noted: Duration,
}

impl Pending {
    /// When something has to happen if the cache does not show the write by itself.
    fn deadline(&self) -> Duration {
        match self.written.seen_as {
            SeenAs::NotVersion(_) => self.noted + CONFLICT_WAIT,
            SeenAs::Version(_) | SeenAs::Deleted => self.noted + RELIST_AFTER,
        }
    }

    fn is_over(&self, cache: &Cache, now: Duration) -> bool {
        let may_pass = matches!(self.written.seen_as, SeenAs::NotVersion(_));
        cache.sees(&self.written) || (may_pass && now >= self.deadline())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pending: Vec<Pending>,
    /// The key was to be planned and could not, or what it wrote may be gone again: it is given back when it may be planned.
    wanted: bool,
}

/// Writes of each key that the cache does not show yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard<K> {
    entries: BTreeMap<K, Entry>,
    /// Object → keys with a write to it.
    writers: BTreeMap<Target, BTreeSet<K>>,
    /// When each kind was asked to be listed.
    asked: BTreeMap<Kind, Duration>,
    /// When the list began that is under way.
    listing: BTreeMap<Kind, Duration>,
}

impl<K> Default for Guard<K> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            writers: BTreeMap::new(),
            asked: BTreeMap::new(),
            listing: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Guard<K> {
    /// Notes what a run of `key` wrote. A delete stands for earlier writes to the same object: they may never show.
    pub fn note(&mut self, key: &K, written: Vec<Written>, now: Duration) {
        for written in written {
            let target = written.target.clone();
            let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
                pending: Vec::new(),
                wanted: false,
            });
            if written.seen_as == SeenAs::Deleted {
                entry
                    .pending
                    .retain(|p| p.written.target != target || p.written.uid != written.uid);
            }
            entry.pending.push(Pending {
                written,
                noted: now,
            });
            self.writers.entry(target).or_default().insert(key.clone());
        }
    }

    /// Whether `key` may be planned from `cache` at `now`.
    pub fn is_open(&mut self, key: &K, cache: &Cache, now: Duration) -> Passage {
        if !self.entries.contains_key(key) || self.prune(key, |pending| pending.is_over(cache, now))
        {
            return Passage::Open;
        }
        let Some(entry) = self.entries.get_mut(key) else {
            return Passage::Open;
        };
        entry.wanted = true;
        let overdue = entry
            .pending
            .iter()
            .find(|pending| now >= pending.deadline())
            .map(|p| p.written.target.kind);
        let soonest = entry
            .pending
            .iter()
            .map(Pending::deadline)
            .filter(|deadline| *deadline > now)
            .min();
        match overdue {
            None => Passage::Wait {
                until: soonest.unwrap_or(now + RELIST_AFTER),
            },
            Some(kind) => self.relist(kind, now),
        }
    }

    fn relist(&mut self, kind: Kind, now: Duration) -> Passage {
        match self.asked.get(&kind).map(|asked| *asked + RELIST_AFTER) {
            Some(until) if now < until => Passage::Wait { until },
            Some(_) | None => {
                self.asked.insert(kind, now);
                Passage::Relist {
                    kind,
                    until: now + RELIST_AFTER,
                }
            }
        }
    }

    /// The cache has taken a change of `target`: the keys that waited for it and may be planned now.
    pub fn settle(&mut self, target: &Target, cache: &Cache) -> Vec<K> {
        let writers = self.writers.get(target).cloned().unwrap_or_default();
        self.release(writers, |pending| cache.sees(&pending.written))
    }

    /// A list of `kind` begins: whatever was written before will be in it.
    pub fn listing(&mut self, kind: Kind, now: Duration) {
        self.listing.insert(kind, now);
    }

    /// The cache has taken the list of `kind` that began last: the keys that may be planned now. A write from before that list is settled,
    /// whatever the list shows, and its key is planned anew: an object that came and went between two lists is a change that no watch tells of.
    pub fn listed(&mut self, kind: Kind, cache: &Cache) -> Vec<K> {
        let Some(began) = self.listing.remove(&kind) else {
            return Vec::new();
        };
        self.asked.remove(&kind);
        let writers = self
            .writers
            .iter()
            .filter(|(target, _)| target.kind == kind);
        let writers: BTreeSet<K> = writers.flat_map(|(_, keys)| keys).cloned().collect();
        let is_listed =
            |pending: &Pending| pending.written.target.kind == kind && pending.noted <= began;
        for key in &writers {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.wanted |= entry.pending.iter().any(is_listed);
            }
        }
        self.release(writers, |pending| {
            cache.sees(&pending.written) || is_listed(pending)
        })
    }

    /// The work item is gone for good.
    pub fn forget(&mut self, key: &K) {
        self.prune(key, |_| true);
    }

    /// Number of keys that have writes not seen yet.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No key has a write not seen yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn release(&mut self, keys: BTreeSet<K>, is_over: impl Fn(&Pending) -> bool) -> Vec<K> {
        let wanted =
            |guard: &Self, key: &K| guard.entries.get(key).is_some_and(|entry| entry.wanted);
        keys.into_iter()
            .filter(|key| {
                let is_wanted = wanted(self, key);
                self.prune(key, &is_over) && is_wanted
            })
            .collect()
    }

    /// Drops writes of `key` that are over; true if none is left.
    fn prune(&mut self, key: &K, is_over: impl Fn(&Pending) -> bool) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return true;
        };
        let (over, open): (Vec<_>, Vec<_>) = std::mem::take(&mut entry.pending)
            .into_iter()
            .partition(is_over);
        entry.pending = open;
        let is_open = entry.pending.is_empty();
        let kept: BTreeSet<Target> = entry
            .pending
            .iter()
            .map(|pending| pending.written.target.clone())
            .collect();
        if is_open {
            self.entries.remove(key);
        }
        for target in over
            .into_iter()
            .map(|pending| pending.written.target)
            .filter(|target| !kept.contains(target))
        {
            self.unlink(&target, key);
        }
        is_open
    }

    fn unlink(&mut self, target: &Target, key: &K) {
        let Some(keys) = self.writers.get_mut(target) else {
            return;
        };
        keys.remove(key);
        if keys.is_empty() {
            self.writers.remove(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::cache::Change;
    use crate::model::ObjectKey;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn target(name: &str) -> Target {
        Target {
            kind: Kind::Pod,
            key: ObjectKey::new("ns", name),
        }
    }

    fn written(name: &str, seen_as: SeenAs) -> Written {
        Written {
            target: target(name),
            uid: name.into(),
            seen_as,
        }
    }

    fn version(name: &str, version: &str) -> Written {
        written(name, SeenAs::Version(version.into()))
    }

    fn show(cache: &mut Cache, name: &str, version: &str) {
        let object = json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version}});
        let pod = serde_json::from_value::<Pod>(object).expect("a pod");
        cache.apply_pods(Change::Applied(pod.into()));
    }

    #[test]
    fn krs_36_a_key_waits_for_all_of_its_writes_and_no_other_key_does() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        guard.note(&"x", vec![version("a", "5"), version("b", "7")], ms(100));
        assert_eq!(guard.is_open(&"y", &cache, ms(100)), Passage::Open);
        assert_eq!(
            guard.is_open(&"x", &cache, ms(100)),
            Passage::Wait { until: ms(30_100) }
        );
        show(&mut cache, "a", "5");
        assert_eq!(guard.settle(&target("a"), &cache), [""; 0]);
        show(&mut cache, "b", "8");
        assert_eq!(guard.settle(&target("b"), &cache), ["x"]);
        assert_eq!(guard.is_open(&"x", &cache, ms(100)), Passage::Open);
        assert_eq!(guard, Guard::default());
    }

    #[test]
    fn krs_36_a_key_that_was_not_refused_is_not_given_back() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        guard.note(&"x", vec![version("a", "5")], ms(0));
        show(&mut cache, "a", "5");
        assert_eq!(guard.settle(&target("a"), &cache), [""; 0]);
        assert!(guard.is_empty());
    }

    #[test]
    fn krs_36_what_shows_before_it_is_noted_does_not_hold_the_key() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        show(&mut cache, "a", "6");
        guard.note(&"x", vec![version("a", "5")], ms(0));
        assert_eq!(guard.is_open(&"x", &cache, ms(0)), Passage::Open);
    }

    #[test]
    fn krs_36_a_write_seen_once_stays_seen_after_the_object_is_gone() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        guard.note(&"x", vec![version("a", "5")], ms(0));
        show(&mut cache, "a", "5");
        guard.settle(&target("a"), &cache);
        cache.apply_pods(Change::Relisted(vec![]));
        assert_eq!(guard.is_open(&"x", &cache, ms(1)), Passage::Open);
    }

    #[test]
    fn krs_36_a_delete_stands_for_earlier_writes_to_the_object() {
        let (mut guard, cache) = (Guard::default(), Cache::default());
        guard.note(
            &"x",
            vec![version("a", "5"), written("a", SeenAs::Deleted)],
            ms(0),
        );
        assert_eq!(guard.is_open(&"x", &cache, ms(0)), Passage::Open);
    }

    #[test]
    fn krs_36_a_refused_write_holds_the_key_for_a_second_at_most() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        show(&mut cache, "a", "5");
        let refused = || vec![written("a", SeenAs::NotVersion("5".into()))];
        guard.note(&"x", refused(), ms(0));
        assert_eq!(
            guard.is_open(&"x", &cache, ms(999)),
            Passage::Wait { until: ms(1000) }
        );
        assert_eq!(guard.is_open(&"x", &cache, ms(1000)), Passage::Open);
        guard.note(&"x", refused(), ms(2000));
        assert_eq!(
            guard.is_open(&"x", &cache, ms(2000)),
            Passage::Wait { until: ms(3000) }
        );
        show(&mut cache, "a", "6");
        assert_eq!(guard.settle(&target("a"), &cache), ["x"]);
    }

    #[test]
    fn krs_36_after_30_s_the_kind_is_listed_once() {
        let (mut guard, cache) = (Guard::default(), Cache::default());
        guard.note(&"x", vec![version("a", "5")], ms(0));
        guard.note(&"y", vec![version("b", "5")], ms(0));
        let until = ms(60_000);
        assert_eq!(
            guard.is_open(&"x", &cache, ms(29_999)),
            Passage::Wait { until: ms(30_000) }
        );
        assert_eq!(
            guard.is_open(&"x", &cache, ms(30_000)),
            Passage::Relist {
                kind: Kind::Pod,
                until
            }
        );
        assert_eq!(
            guard.is_open(&"x", &cache, ms(30_001)),
            Passage::Wait { until }
        );
        assert_eq!(
            guard.is_open(&"y", &cache, ms(30_001)),
            Passage::Wait { until }
        );
        assert_eq!(
            guard.is_open(&"y", &cache, until),
            Passage::Relist {
                kind: Kind::Pod,
                until: ms(90_000)
            }
        );
    }

    #[test]
    fn krs_36_a_list_that_began_after_the_write_settles_it() {
        let (mut guard, cache) = (Guard::default(), Cache::default());
        guard.listing(Kind::Pod, ms(0));
        guard.note(&"x", vec![version("a", "5")], ms(1));
        guard.is_open(&"x", &cache, ms(1));
        assert_eq!(guard.listed(Kind::Pod, &cache), [""; 0], "it began before");
        guard.listing(Kind::Service, ms(2));
        assert_eq!(guard.listed(Kind::Service, &cache), [""; 0], "another kind");
        assert_eq!(guard.listed(Kind::Pod, &cache), [""; 0], "no list");
        guard.listing(Kind::Pod, ms(2));
        assert_eq!(guard.listed(Kind::Pod, &cache), ["x"]);
        assert_eq!(guard, Guard::default());
    }

    /// Made, and gone again before the list: the cache has nothing to tell.
    #[test]
    fn krs_36_a_list_gives_back_whose_write_it_settles() {
        let (mut guard, mut cache) = (Guard::default(), Cache::default());
        guard.note(&"x", vec![version("a", "5")], ms(0));
        guard.note(&"late", vec![version("b", "6")], ms(2));
        guard.listing(Kind::Pod, ms(1));
        cache.apply_pods(Change::Relisted(Vec::new()));
        assert_eq!(guard.listed(Kind::Pod, &cache), ["x"]);
    }

    #[test]
    fn krs_42_a_key_that_is_gone_leaves_nothing() {
        let mut guard = Guard::default();
        guard.note(&"x", vec![version("a", "5")], ms(0));
        guard.note(&"y", vec![version("a", "5")], ms(0));
        guard.forget(&"x");
        guard.forget(&"y");
        assert_eq!(guard, Guard::default());
    }
}
