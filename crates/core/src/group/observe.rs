//! What a run of a group looks at: its pods and everything around them, as the cache has it at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::leaderworkerset::GroupIdentity;
use lws_api::names::label;

use crate::build::worker_set::worker_set_name;
use crate::cache::{Cache, Lost, Tombstone};
use crate::gang::View;
use crate::leaderworkerset::revision::by_key;
use crate::model::{
    Deployment, Lws, Meta, Node, ObjectKey, Owner, Pod, ReplicaSet, Revision, Service, StatefulSet,
};
use crate::ownership::is_orphan;

/// One group and its surroundings.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSnapshot {
    /// The leader pod.
    pub leader: Option<Arc<Pod>>,
    /// The other pods of the group, by ordinal.
    pub workers: Vec<Arc<Pod>>,
    /// Workers that vanished and were not judged yet.
    pub tombstones: Vec<Tombstone>,
    /// The set that the pods name.
    pub lws: Option<Arc<Lws>>,
    /// The StatefulSet named like the set.
    pub leader_set: Option<Arc<StatefulSet>>,
    /// The Deployment named like the set.
    pub deployment: Option<Arc<Deployment>>,
    /// The ReplicaSet that controls the leader.
    pub replica_set: Option<Arc<ReplicaSet>>,
    /// All leaders of the set; only looked for when this one is exhausted and of a Hash set (HASH-68).
    pub leaders: Vec<Arc<Pod>>,
    /// The revision that the leader names.
    pub revision: Option<Arc<Revision>>,
    /// Pods with the set's name and the leader's group index: the group as its labels define it, the leader included.
    pub peers: Vec<Arc<Pod>>,
    /// The StatefulSet under the name of the leader's worker set.
    pub worker_set: Option<Arc<StatefulSet>>,
    /// Worker sets of this leader that vanished.
    pub lost: Option<Lost>,
    /// Pods that hold a name `<worker set>-<ordinal>`, with that ordinal; only looked for when there is no such StatefulSet.
    pub holders: Vec<(u32, Arc<Pod>)>,
    /// StatefulSets that control one of these pods.
    pub controllers: Vec<Arc<StatefulSet>>,
    /// The Service under the name of the leader's subdomain.
    pub service: Option<Arc<Service>>,
    /// The Node that the leader is bound to.
    pub node: Option<Arc<Node>>,
    /// Who schedules the group, and what tells it of the gang.
    pub gangs: View,
}

/// The group whose leader pod has this name, as long as there is a pod or a tombstone of it.
pub fn observe(key: &ObjectKey, cache: &Cache) -> Option<GroupSnapshot> {
    let group = cache.group(key)?;
    let leader = cache.pod(key).filter(|pod| pod.is_leader());
    let mut workers: Vec<_> = group.workers(cache).cloned().collect();
    workers.sort_by_cached_key(|pod| (worker_index(pod), pod.key().clone()));
    let judged = group.tombstones().filter(|t| cache.may_judge(t));
    let tombstones: Vec<_> = judged.cloned().collect();
    let of = |pod: &Arc<Pod>| pod.meta.set_key();
    let set = leader.map_or_else(
        || {
            workers
                .iter()
                .find_map(of)
                .or_else(|| tombstones.iter().find_map(|t| of(&t.pod)))
        },
        of,
    );
    let lws = set.as_ref().and_then(|set| cache.set(set));
    let worker_set = leader.and_then(|leader| worker_set(leader, cache));
    let holders = leader
        .filter(|_| worker_set.is_none())
        .map_or_else(Vec::new, |leader| holders(leader, cache));
    let mut snapshot = GroupSnapshot {
        revision: leader
            .zip(lws)
            .and_then(|(leader, lws)| revision(lws, leader, cache)),
        lws: lws.cloned(),
        leader_set: set
            .as_ref()
            .and_then(|set| cache.stateful_set(set))
            .cloned(),
        deployment: set.as_ref().and_then(|set| cache.deployment(set)).cloned(),
        replica_set: leader
            .and_then(|leader| replica_set(leader, cache))
            .cloned(),
        leaders: leader.map_or_else(Vec::new, |leader| leaders(leader, cache)),
        peers: leader.map_or_else(Vec::new, |leader| peers(leader, cache)),
        worker_set: worker_set.cloned(),
        lost: leader
            .and_then(|leader| cache.lost_worker_sets(&leader.meta.uid))
            .copied(),
        holders,
        controllers: Vec::new(),
        service: leader
            .and_then(|leader| cache.service(&key.sibling(&leader.subdomain)))
            .cloned(),
        node: leader.and_then(|leader| cache.node(&leader.node)).cloned(),
        gangs: lws
            .zip(leader)
            .map(|(lws, leader)| View::observe(lws, leader, cache))
            .unwrap_or_default(),
        leader: leader.cloned(),
        workers,
        tombstones,
    };
    snapshot.controllers = controllers(&snapshot, cache);
    Some(snapshot)
}

/// HASH-31: a set named after the pod is used on if it is of this leader; else the one that is named after the host name counts.
fn worker_set<'a>(leader: &Pod, cache: &'a Cache) -> Option<&'a Arc<StatefulSet>> {
    let named_after_pod = cache
        .stateful_set(leader.key())
        .filter(|set| set.meta.is_controlled_by(&leader.meta.uid));
    named_after_pod.or_else(|| cache.stateful_set(&leader.key().sibling(worker_set_name(leader))))
}

fn replica_set<'a>(leader: &Pod, cache: &'a Cache) -> Option<&'a Arc<ReplicaSet>> {
    let owner = leader.meta.owner.as_ref()?;
    cache
        .replica_set(&leader.key().sibling(&owner.name))
        .filter(|set| set.meta.uid == owner.uid)
}

fn leaders(leader: &Pod, cache: &Cache) -> Vec<Arc<Pod>> {
    let set = leader.meta.set_key();
    let wanted = set.filter(|_| leader.is_exhausted() && leader.is_hash());
    wanted.map_or_else(Vec::new, |set| cache.leaders_of(&set).cloned().collect())
}

fn worker_index(pod: &Pod) -> u32 {
    pod.meta
        .label(label::WORKER_INDEX)
        .parse()
        .unwrap_or(u32::MAX)
}

fn revision(lws: &Lws, leader: &Pod, cache: &Cache) -> Option<Arc<Revision>> {
    let revisions: Vec<_> = cache.revisions_of(lws.key()).cloned().collect();
    by_key(
        &revisions,
        &lws.meta.uid,
        leader.meta.label(label::REVISION),
    )
    .cloned()
}

fn peers(leader: &Pod, cache: &Cache) -> Vec<Arc<Pod>> {
    let Some(set) = leader.meta.set_key() else {
        return Vec::new();
    };
    cache
        .pods_with_index(&set, leader.meta.label(label::GROUP_INDEX))
        .cloned()
        .collect()
}

fn holders(leader: &Pod, cache: &Cache) -> Vec<(u32, Arc<Pod>)> {
    let parent = leader.key().sibling(worker_set_name(leader));
    cache
        .pods_below(&parent)
        .map(|(ordinal, pod)| (ordinal, pod.clone()))
        .collect()
}

fn controllers(snapshot: &GroupSnapshot, cache: &Cache) -> Vec<Arc<StatefulSet>> {
    let pods = snapshot
        .workers
        .iter()
        .chain(&snapshot.peers)
        .chain(snapshot.holders.iter().map(|(_, pod)| pod));
    let mut found: Vec<Arc<StatefulSet>> = Vec::new();
    for owner in pods.filter_map(|pod| pod.meta.owner.as_ref()) {
        // All workers of a group have the same controller.
        if found.iter().all(|set| set.meta.uid != owner.uid) {
            found.extend(cache.stateful_set_by_uid(&owner.uid).cloned());
        }
    }
    found
}

impl GroupSnapshot {
    /// The set that the group belongs to, unless the group is of a predecessor of that name, whose set is gone (FAIL-90).
    pub(super) fn set(&self) -> Option<&Arc<Lws>> {
        let lws = self.lws.as_ref()?;
        let pod = self.leader.as_ref().or_else(|| self.workers.first())?;
        let is_older = pod
            .meta
            .created
            .zip(lws.meta.created)
            .is_some_and(|(pod, lws)| pod < lws);
        (!is_older || self.is_leader_ours(lws)).then_some(lws)
    }

    /// The leader is controlled by the leader set, or by a ReplicaSet of the leader Deployment, and that by the set or about to be
    /// (ORD-132). Other pods that merely carry our labels are left alone.
    pub(super) fn is_leader_ours(&self, lws: &Lws) -> bool {
        let Some(leader) = &self.leader else {
            return false;
        };
        match lws.spec.group_identity() {
            GroupIdentity::Ordinal => self
                .our_leader_set(lws)
                .is_some_and(|set| leader.meta.is_controlled_by(&set.meta.uid)),
            GroupIdentity::Hash => self.our_deployment(lws).is_some_and(|deployment| {
                let made_by = self.replica_set.as_ref();
                made_by.is_some_and(|set| set.meta.is_controlled_by(&deployment.meta.uid))
            }),
        }
    }

    /// The leader set, if the set controls it or will adopt it.
    pub(super) fn our_leader_set(&self, lws: &Lws) -> Option<&Arc<StatefulSet>> {
        let set = self.leader_set.as_ref();
        set.filter(|set| is_ours(&set.meta, set.selector.as_ref(), lws))
    }

    /// The leader Deployment, if the set controls it or will adopt it.
    pub(super) fn our_deployment(&self, lws: &Lws) -> Option<&Arc<Deployment>> {
        let deployment = self.deployment.as_ref();
        deployment.filter(|found| is_ours(&found.meta, found.selector.as_ref(), lws))
    }

    /// FAIL-36: the pod's controller chain ends at this leader: directly, or through a StatefulSet that exists.
    pub(super) fn is_worker_of(&self, leader: &Meta, pod: &Pod) -> bool {
        let Some(owner) = &pod.meta.owner else {
            return false;
        };
        match owner.kind.as_ref() {
            "Pod" => is_leader(owner, leader),
            "StatefulSet" => {
                let set = self
                    .controllers
                    .iter()
                    .find(|set| set.meta.uid == owner.uid);
                set.and_then(|set| set.meta.owner.as_ref())
                    .is_some_and(|owner| is_leader(owner, leader))
            }
            _ => false,
        }
    }
}

fn is_ours(meta: &Meta, selector: Option<&BTreeMap<String, String>>, lws: &Lws) -> bool {
    meta.is_controlled_by(&lws.meta.uid) || is_orphan(meta, selector, lws.key())
}

/// FAIL-22, FAIL-36: the recorded controller chain of a vanished pod ends at this leader.
pub(super) fn was_worker_of(leader: &Meta, tombstone: &Tombstone) -> bool {
    let Some(owner) = &tombstone.pod.meta.owner else {
        return false;
    };
    match owner.kind.as_ref() {
        "Pod" => is_leader(owner, leader),
        "StatefulSet" => tombstone
            .set_owner
            .as_ref()
            .is_some_and(|owner| is_leader(owner, leader)),
        _ => false,
    }
}

fn is_leader(owner: &Owner, leader: &Meta) -> bool {
    owner.kind == "Pod" && owner.name == leader.key.name && owner.uid == leader.uid
}
