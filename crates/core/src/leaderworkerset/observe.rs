//! What a plan for a set is made from: its objects in the cache at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::{Applied, Cache};
use crate::model::{Lws, ObjectKey, Pod, Revision, Service, StatefulSet};

/// A set and everything that its plan and its status are decided from.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The set.
    pub lws: Arc<Lws>,
    /// The StatefulSet under the name of the set, whosoever it is.
    pub leader_set: Option<Arc<StatefulSet>>,
    /// The Service under the name of the set, whosoever it is.
    pub service: Option<Arc<Service>>,
    /// Leader pods, by name.
    pub leaders: Vec<Arc<Pod>>,
    /// StatefulSets that carry the name of the set as label, by name.
    pub stateful_sets: BTreeMap<Arc<str>, Arc<StatefulSet>>,
    /// ControllerRevisions that carry the name of the set as label, by name.
    pub revisions: Vec<Arc<Revision>>,
    /// What was applied last to the leader set.
    pub applied: Option<Applied>,
}

/// Takes the set `key` from the cache; `None` if it is gone.
pub fn observe(key: &ObjectKey, cache: &Cache) -> Option<Snapshot> {
    let lws = cache.set(key)?.clone();
    let stateful_sets = cache
        .stateful_sets_of(key)
        .map(|set| (set.key().name.clone(), set.clone()))
        .collect();
    Some(Snapshot {
        leader_set: cache.stateful_set(key).cloned(),
        service: cache.service(key).cloned(),
        leaders: cache.leaders_of(key).cloned().collect(),
        stateful_sets,
        revisions: cache.revisions_of(key).cloned().collect(),
        applied: cache.applied(&lws.meta.uid).cloned(),
        lws,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Change;
    use crate::leaderworkerset::tests::fixture::{demo_with, running};
    use serde_json::json;

    #[test]
    fn ord_14_a_snapshot_holds_what_carries_the_name_of_the_set() {
        let wanted = running(demo_with(json!({})), (2, 0), "NN");
        let mut cache = Cache::default();
        let key = wanted.lws.key();
        assert_eq!(observe(key, &cache), None);
        cache.apply_sets(Change::Applied((*wanted.lws).clone()));
        let leader_set = wanted.leader_set.as_deref().unwrap();
        for set in wanted
            .stateful_sets
            .values()
            .map(|set| &**set)
            .chain([leader_set])
        {
            cache.apply_stateful_sets(Change::Applied(set.clone()));
        }
        cache.apply_services(Change::Applied(wanted.service.as_deref().unwrap().clone()));
        cache.apply_revisions(Change::Relisted(
            wanted.revisions.iter().map(|r| (**r).clone()).collect(),
        ));
        cache.apply_pods(Change::Relisted(
            wanted.leaders.iter().map(|pod| (**pod).clone()).collect(),
        ));
        let mut observed = observe(key, &cache).unwrap();
        assert!(
            observed.stateful_sets.remove(&key.name).is_some(),
            "the leader set carries the name as well"
        );
        assert_eq!(observed, wanted);
    }
}
