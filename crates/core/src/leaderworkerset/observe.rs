//! What a plan for a set is made from: its objects in the cache at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::scheduling::Gangs;
use crate::cache::{Applied, Cache};
use crate::model::{Deployment, Lws, ObjectKey, Pod, Revision, Service, StatefulSet, Uid};

/// A set and everything that its plan and its status are decided from.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The set.
    pub lws: Arc<Lws>,
    /// The StatefulSet under the name of the set, whosoever it is.
    pub leader_set: Option<Arc<StatefulSet>>,
    /// The Deployment under the name of the set, whosoever it is.
    pub deployment: Option<Arc<Deployment>>,
    /// ReplicaSets that this Deployment controls.
    pub replica_sets: BTreeSet<Uid>,
    /// All pods of the set; only looked for when a Hash leader is gated (HASH-40).
    pub pods: Vec<Arc<Pod>>,
    /// Gated Hash leaders that have a Service of their own (GATE-4).
    pub served: BTreeSet<Uid>,
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
    /// When its status was written last from here.
    pub reported: Option<Timestamp>,
    /// Who schedules, and the objects that tell it of gangs; only looked for when `spec.scheduling` is set.
    pub gangs: Gangs,
}

/// Takes the set `key` from the cache; `None` if it is gone.
pub fn observe(key: &ObjectKey, cache: &Cache) -> Option<Snapshot> {
    let lws = cache.set(key)?.clone();
    let stateful_sets = cache
        .stateful_sets_of(key)
        .map(|set| (set.key().name.clone(), set.clone()))
        .collect();
    let leaders: Vec<_> = cache.leaders_of(key).cloned().collect();
    let gated: Vec<_> = leaders
        .iter()
        .filter(|leader| leader.is_gated() && leader.is_hash())
        .collect();
    let deployment = cache.deployment(key);
    Some(Snapshot {
        replica_sets: deployment.map_or_else(BTreeSet::new, |found| replica_sets(found, cache)),
        deployment: deployment.cloned(),
        pods: if gated.is_empty() {
            Vec::new()
        } else {
            cache.pods_of(key).cloned().collect()
        },
        served: gated
            .into_iter()
            .filter(|leader| is_served(leader, cache))
            .map(|leader| leader.meta.uid.clone())
            .collect(),
        leader_set: cache.stateful_set(key).cloned(),
        service: cache.service(key).cloned(),
        leaders,
        stateful_sets,
        revisions: cache.revisions_of(key).cloned().collect(),
        applied: cache.applied(&lws.meta.uid).cloned(),
        reported: cache.reported(&lws.meta.uid),
        gangs: Gangs::observe(&lws, cache),
        lws,
    })
}

fn replica_sets(deployment: &Deployment, cache: &Cache) -> BTreeSet<Uid> {
    cache
        .replica_sets_of(deployment.key())
        .filter(|set| set.meta.is_controlled_by(&deployment.meta.uid))
        .map(|set| set.meta.uid.clone())
        .collect()
}

fn is_served(leader: &Pod, cache: &Cache) -> bool {
    let service = cache.service(&leader.key().sibling(&leader.subdomain));
    service.is_some_and(|service| {
        service.meta.is_controlled_by(&leader.meta.uid) && !service.meta.is_terminating()
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
