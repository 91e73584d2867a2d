//! The tree of a set: what its groups and pods are, from objects alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Event, Node, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use lws_api::leaderworkerset::{GroupIdentity, LeaderWorkerSet};
use lws_api::names::{annotation, label};
use lws_core::group::backoff_left;
use lws_core::restart_counts::RestartCounts;
use serde::Serialize;

use super::why;

/// Everything that a status is made from.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The set.
    pub set: LeaderWorkerSet,
    /// Pods that carry its name.
    pub pods: Vec<Pod>,
    /// All StatefulSets of the namespace.
    pub stateful_sets: Vec<StatefulSet>,
    /// The Deployment under the name of the set.
    pub deployment: Option<Deployment>,
    /// All Services of the namespace.
    pub services: Vec<Service>,
    /// All events of the namespace.
    pub events: Vec<Event>,
    /// Nodes, as far as they can be read.
    pub nodes: Vec<Node>,
    /// The time.
    pub now: Timestamp,
}

/// A set in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `Ordinal` or `Hash`.
    pub identity: String,
    /// Wanted groups.
    pub desired: i32,
    /// Ready groups.
    pub ready: i32,
    /// Groups of the current revision.
    pub updated: i32,
    /// Types of the conditions that hold.
    pub conditions: Vec<String>,
}

/// A set with its groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The set in one line.
    #[serde(flatten)]
    pub summary: Summary,
    /// Key of the revision that the leaders shall have.
    pub revision: String,
    /// Lowest group index that is updated now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// What is wrong with the set as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Its groups.
    pub groups: Vec<Group>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its index, or with Hash identity its key.
    pub index: String,
    /// Its leader pod; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Key of its revision.
    pub revision: String,
    /// That is the current one.
    pub is_updated: bool,
    /// Ready pods.
    pub ready: usize,
    /// Pods that it shall have.
    pub size: usize,
    /// How often it was recreated in this revision, as far as that is counted.
    pub restarts: i32,
    /// How often it may still be recreated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_left: Option<i32>,
    /// Its restart budget is used up.
    pub is_exhausted: bool,
    /// Seconds until it is recreated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u64>,
    /// Why it is not ready, apart from its pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Its pods, the leader first.
    pub pods: Vec<Member>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its phase, or `Terminating`.
    pub phase: String,
    /// It is ready.
    pub is_ready: bool,
    /// Its node.
    pub node: String,
    /// Key of its revision.
    pub revision: String,
    /// Restarts of its containers.
    pub restarts: i32,
    /// Seconds since it was created.
    pub age_seconds: i64,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A set in one line.
pub fn summary(set: &LeaderWorkerSet) -> Summary {
    let status = set.status.clone().unwrap_or_default();
    let held = status
        .conditions
        .into_iter()
        .filter(|condition| condition.status == "True");
    Summary {
        namespace: set.namespace().unwrap_or_default(),
        name: set.name_any(),
        identity: format!("{:?}", set.spec.group_identity()),
        desired: set.spec.replicas(),
        ready: status.ready_replicas,
        updated: status.updated_replicas,
        conditions: held.map(|condition| condition.type_).collect(),
    }
}

/// The tree of a set.
pub fn report(seen: &Seen) -> Report {
    let leaders = seen.leader_set();
    let revision = match seen.set.spec.group_identity() {
        GroupIdentity::Ordinal => leaders.map(|set| &set.metadata),
        GroupIdentity::Hash => seen.deployment.as_ref().map(|found| &found.metadata),
    };
    let revision = revision
        .map(|meta| text(meta, label::REVISION))
        .unwrap_or_default();
    let groups = indices(seen)
        .iter()
        .map(|index| group(seen, index, revision))
        .collect();
    Report {
        summary: summary(&seen.set),
        revision: revision.to_owned(),
        partition: leaders.and_then(|set| {
            set.spec
                .update_strategy
                .as_ref()?
                .rolling_update
                .as_ref()?
                .partition
        }),
        reasons: why::set(seen),
        groups,
    }
}

impl Seen {
    /// The StatefulSet of the leaders, if it is the set's.
    pub fn leader_set(&self) -> Option<&StatefulSet> {
        self.stateful_set(&self.set.name_any())
            .filter(|set| is_controlled_by(&set.metadata, &self.set.metadata))
    }

    /// The StatefulSet of that name, whosoever it is.
    pub fn stateful_set(&self, name: &str) -> Option<&StatefulSet> {
        self.stateful_sets
            .iter()
            .find(|set| set.metadata.name.as_deref() == Some(name))
    }

    /// Pods of a group.
    pub fn members(&self, index: &str) -> impl Iterator<Item = &Pod> {
        self.pods
            .iter()
            .filter(move |pod| text(&pod.metadata, label::GROUP_INDEX) == index)
    }

    /// The leader of a group.
    pub fn leader(&self, index: &str) -> Option<&Pod> {
        self.members(index).find(|pod| is_leader(pod))
    }
}

/// The label `key`, empty if it is absent.
pub fn text<'a>(meta: &'a ObjectMeta, key: &str) -> &'a str {
    meta.labels
        .as_ref()
        .and_then(|labels| labels.get(key))
        .map_or("", String::as_str)
}

/// The annotation `key`, empty if it is absent.
pub fn note<'a>(meta: &'a ObjectMeta, key: &str) -> &'a str {
    meta.annotations
        .as_ref()
        .and_then(|notes| notes.get(key))
        .map_or("", String::as_str)
}

/// Whether `owner` controls the object.
pub fn is_controlled_by(meta: &ObjectMeta, owner: &ObjectMeta) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    owners.any(|reference| {
        reference.controller == Some(true) && Some(&reference.uid) == owner.uid.as_ref()
    })
}

/// Whether the pod leads its group.
pub fn is_leader(pod: &Pod) -> bool {
    text(&pod.metadata, label::WORKER_INDEX) == "0"
}

/// Whether the pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && conditions
            .into_iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The groups that are there or ought to be, in order.
fn indices(seen: &Seen) -> Vec<String> {
    let there = seen
        .pods
        .iter()
        .map(|pod| text(&pod.metadata, label::GROUP_INDEX))
        .filter(|index| !index.is_empty());
    let mut indices: BTreeSet<(u64, String)> = there
        .map(|index| (index.parse().unwrap_or(u64::MAX), index.to_owned()))
        .collect();
    if seen.set.spec.group_identity() == GroupIdentity::Ordinal {
        let wanted = seen
            .leader_set()
            .and_then(|set| set.spec.replicas)
            .unwrap_or_else(|| seen.set.spec.replicas());
        let wanted = u64::try_from(wanted).unwrap_or_default();
        indices.extend((0..wanted).map(|index| (index, index.to_string())));
    }
    indices.into_iter().map(|(_, index)| index).collect()
}

fn group(seen: &Seen, index: &str, current: &str) -> Group {
    let leader = seen.leader(index);
    let meta = leader.map(|leader| &leader.metadata);
    let revision = meta
        .map(|meta| text(meta, label::REVISION))
        .unwrap_or_default();
    let spec = &seen.set.spec.leader_worker_template;
    let size = meta.and_then(|meta| note(meta, annotation::SIZE).parse().ok());
    let size = size.unwrap_or_else(|| usize::try_from(spec.size()).unwrap_or_default());
    let counts = RestartCounts::parse(note(&seen.set.metadata, annotation::GROUP_RESTART_COUNTS))
        .unwrap_or_default();
    let restarts = counts.get(revision, index);
    let mut pods: Vec<&Pod> = seen.members(index).collect();
    pods.sort_by_key(|pod| {
        text(&pod.metadata, label::WORKER_INDEX)
            .parse::<u64>()
            .unwrap_or(u64::MAX)
    });
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    Group {
        index: index.to_owned(),
        leader: leader.map(ResourceExt::name_any),
        revision: revision.to_owned(),
        is_updated: !revision.is_empty() && revision == current,
        ready,
        size,
        restarts,
        budget_left: spec
            .max_group_restarts
            .map(|limit| limit.saturating_sub(restarts).max(0)),
        is_exhausted: meta
            .is_some_and(|meta| note(meta, annotation::RESTART_BUDGET_EXHAUSTED) == "true"),
        backoff_seconds: leader.and_then(|leader| backoff(seen, leader, restarts)),
        reasons: if ready < size {
            why::group(seen, index, size)
        } else {
            Vec::new()
        },
        pods: pods.into_iter().map(|pod| member(seen, pod)).collect(),
    }
}

/// FAIL-61, FAIL-64: how long the group is left as it is.
fn backoff(seen: &Seen, leader: &Pod, restarts: i32) -> Option<u64> {
    let backoff = seen
        .set
        .spec
        .leader_worker_template
        .restart_backoff
        .as_ref()?;
    let is_waiting = note(&leader.metadata, annotation::GROUP_RECREATE_PENDING) == "true";
    let created = leader
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0);
    let left = backoff_left(backoff, restarts, created, seen.now)?;
    is_waiting.then_some(left.as_secs().max(1))
}

fn member(seen: &Seen, pod: &Pod) -> Member {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses)
        .flatten();
    let created = pod.metadata.creation_timestamp.as_ref();
    let phase = match pod.metadata.deletion_timestamp {
        Some(_) => "Terminating".to_owned(),
        None => status.phase.clone().unwrap_or_else(|| "Pending".to_owned()),
    };
    Member {
        name: pod.name_any(),
        phase,
        is_ready: is_ready(pod),
        node: pod
            .spec
            .as_ref()
            .and_then(|spec| spec.node_name.clone())
            .unwrap_or_default(),
        revision: text(&pod.metadata, label::REVISION).to_owned(),
        restarts: containers.map(|container| container.restart_count).sum(),
        age_seconds: created.map_or(0, |created| seen.now.duration_since(created.0).as_secs()),
        reason: if is_ready(pod) {
            None
        } else {
            why::pod(seen, pod)
        },
    }
}

/// The newest warning about an object, with its reason.
pub fn warnings<'a>(events: &'a [Event], about: &ObjectMeta) -> BTreeMap<&'a str, &'a str> {
    let mut found: Vec<&Event> = events
        .iter()
        .filter(|event| {
            event.type_.as_deref() == Some("Warning") && event.involved_object.uid == about.uid
        })
        .collect();
    let time = |event: &&Event| {
        let series = event
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time.as_ref().map(|time| time.0));
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        series
            .or(last)
            .or(event.event_time.as_ref().map(|time| time.0))
    };
    found.sort_by_key(time);
    let pairs = found
        .iter()
        .filter_map(|event| Some((event.reason.as_deref()?, event.message.as_deref()?)));
    pairs.collect()
}
