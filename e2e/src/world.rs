//! Everything in one namespace, as watched, with its whole history.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Instant;

use crate::{Kind, Object};

/// Label of everything that belongs to a set.
const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It appeared.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One observed change.
#[derive(Clone, Debug)]
pub struct Change {
    /// When it was seen.
    pub at: Instant,
    /// The kind of the object.
    pub kind: Kind,
    /// What happened.
    pub verb: Verb,
    /// The object after it; when deleted, the last state.
    pub object: Object,
}

/// The objects of a namespace and all changes so far.
pub struct World {
    start: Instant,
    objects: BTreeMap<(Kind, String), Object>,
    history: Vec<Change>,
    last_change: Instant,
}

impl World {
    pub(crate) fn new() -> Self {
        let start = Instant::now();
        Self {
            start,
            objects: BTreeMap::new(),
            history: Vec::new(),
            last_change: start,
        }
    }

    pub(crate) fn apply(&mut self, kind: Kind, object: Object) {
        let key = (kind, object.name().to_owned());
        let verb = match self.objects.get(&key) {
            None => Verb::Added,
            Some(known) if known.version() == object.version() => return,
            Some(known) if known.uid() == object.uid() => Verb::Modified,
            Some(known) => {
                let gone = known.clone();
                self.note(kind, Verb::Deleted, gone);
                Verb::Added
            }
        };
        self.objects.insert(key, object.clone());
        self.note(kind, verb, object);
    }

    pub(crate) fn delete(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.objects.remove(&(kind, name.to_owned())) {
            self.note(kind, Verb::Deleted, object);
        }
    }

    fn note(&mut self, kind: Kind, verb: Verb, object: Object) {
        let at = Instant::now();
        if kind != Kind::Event {
            self.last_change = at;
        }
        self.history.push(Change {
            at,
            kind,
            verb,
            object,
        });
    }

    /// When an object other than an event changed last.
    pub(crate) fn last_change(&self) -> Instant {
        self.last_change
    }

    /// All changes, oldest first.
    pub fn history(&self) -> &[Change] {
        &self.history
    }

    /// Objects of a kind, by name.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects
            .iter()
            .filter(move |((other, _), _)| *other == kind)
            .map(|(_, object)| object)
    }

    /// Names of the objects of a kind.
    pub fn names(&self, kind: Kind) -> Vec<&str> {
        self.all(kind).map(Object::name).collect()
    }

    /// An object if it is there.
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.objects.get(&(kind, name.to_owned()))
    }

    /// Whether an object is there.
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        self.find(kind, name).is_some()
    }

    /// An object that must be there.
    pub fn get(&self, kind: Kind, name: &str) -> &Object {
        self.find(kind, name)
            .unwrap_or_else(|| panic!("there is no {kind:?} {name}"))
    }

    /// A pod that must be there.
    pub fn pod(&self, name: &str) -> &Object {
        self.get(Kind::Pod, name)
    }

    /// A StatefulSet that must be there.
    pub fn stateful_set(&self, name: &str) -> &Object {
        self.get(Kind::StatefulSet, name)
    }

    /// A LeaderWorkerSet that must be there.
    pub fn set(&self, name: &str) -> &Object {
        self.get(Kind::Set, name)
    }

    /// Pods of a set, by name.
    pub fn pods_of(&self, set: &str) -> impl Iterator<Item = &Object> {
        self.all(Kind::Pod)
            .filter(move |pod| pod.label(NAME) == Some(set))
    }

    /// Pods of one group, leader first.
    pub fn group(&self, set: &str, index: i64) -> Vec<&Object> {
        let index = index.to_string();
        self.pods_of(set)
            .filter(|pod| pod.label(GROUP_INDEX) == Some(index.as_str()))
            .collect()
    }

    /// Indexes of the groups that have a pod.
    pub fn groups(&self, set: &str) -> BTreeSet<i64> {
        self.pods_of(set).filter_map(group_index).collect()
    }

    /// Revisions that are controlled by the set.
    pub fn revisions_of(&self, set: &str) -> Vec<&Object> {
        let owner = self.set(set);
        self.all(Kind::Revision)
            .filter(|revision| revision.is_controlled_by(owner))
            .collect()
    }

    /// UIDs by pod name of one group.
    pub fn uids(&self, set: &str, group: i64) -> BTreeMap<String, String> {
        uids(self.group(set, group).into_iter())
    }

    /// UIDs by pod name of a whole set.
    pub fn all_uids(&self, set: &str) -> BTreeMap<String, String> {
        uids(self.pods_of(set))
    }

    /// All UIDs that were ever seen under a name.
    pub fn seen_uids(&self, kind: Kind, name: &str) -> BTreeSet<String> {
        self.history
            .iter()
            .filter(|change| change.kind == kind && change.object.name() == name)
            .map(|change| change.object.uid().to_owned())
            .collect()
    }

    /// Whether the set has been seen in its newest form and all groups are ready and updated.
    pub fn is_available(&self, set: &str) -> bool {
        self.find(Kind::Set, set).is_some_and(|set| {
            let wanted = set.number("/spec/replicas");
            is_observed(set)
                && set.is("Available")
                && set.number("/status/readyReplicas") == wanted
                && set.number("/status/updatedReplicas") == wanted
                && set.number("/status/replicas") == wanted
        })
    }

    /// Whether all pods of the group exist, are ready and none of them has one of these UIDs.
    pub fn is_replaced(&self, set: &str, group: i64, old: &BTreeMap<String, String>) -> bool {
        let new = self.uids(set, group);
        new.len() == old.len()
            && new
                .iter()
                .all(|(name, uid)| old.get(name).is_some_and(|old| old != uid))
    }

    /// Texts of the events with a reason, each as often as it was sent.
    pub fn events(&self, reason: &str) -> Vec<&str> {
        self.all(Kind::Event)
            .filter(|event| event["reason"] == reason)
            .flat_map(|event| {
                let times = event.number("/series/count").max(1);
                (0..times).map(|_| event.text("/note"))
            })
            .collect()
    }

    /// Whether an event with that type, reason and part of a text was sent.
    pub fn has_event(&self, kind: &str, reason: &str, part: &str) -> bool {
        self.all(Kind::Event).any(|event| {
            event["type"] == kind && event["reason"] == reason && event.text("/note").contains(part)
        })
    }

    /// All objects in short, the latest changes, for a person who looks for a failure.
    pub fn describe(&self) -> String {
        let mut text = String::from("objects:\n");
        for ((kind, _), object) in &self.objects {
            if *kind != Kind::Event {
                let _ = writeln!(text, "  {}", summary(*kind, object));
            }
        }
        text.push_str("events:\n");
        for event in self.all(Kind::Event) {
            let _ = writeln!(
                text,
                "  {} {} {}/{}: {}",
                event.text("/type"),
                event.text("/reason"),
                event.text("/regarding/kind"),
                event.text("/regarding/name"),
                event.text("/note")
            );
        }
        text.push_str("history:\n");
        let skipped = self.history.len().saturating_sub(SHOWN_CHANGES);
        for change in self.history.iter().skip(skipped) {
            if change.kind != Kind::Event {
                let _ = writeln!(
                    text,
                    "  {:>7.2} {:?} {}",
                    change.at.duration_since(self.start).as_secs_f64(),
                    change.verb,
                    summary(change.kind, &change.object)
                );
            }
        }
        text
    }
}

const SHOWN_CHANGES: usize = 150;

/// Whether the controller has seen the newest form of this set.
pub(crate) fn is_observed(set: &Object) -> bool {
    set.number("/status/observedGeneration") == set.number("/metadata/generation")
}

/// Group of a pod.
pub(crate) fn group_index(pod: &Object) -> Option<i64> {
    pod.label(GROUP_INDEX)?.parse().ok()
}

fn uids<'a>(pods: impl Iterator<Item = &'a Object>) -> BTreeMap<String, String> {
    pods.map(|pod| (pod.name().to_owned(), pod.uid().to_owned()))
        .collect()
}

fn summary(kind: Kind, object: &Object) -> String {
    let uid = object.uid().get(..8).unwrap_or_default();
    let mut text = format!("{kind:?} {} ({uid})", object.name());
    if object.is_terminating() {
        let _ = write!(text, " terminating {}", object.at("/metadata/finalizers"));
    }
    match kind {
        Kind::Pod => {
            let _ = write!(
                text,
                " {} ready={} node={} image={}",
                object.text("/status/phase"),
                object.condition("Ready").unwrap_or("-"),
                object.text("/spec/nodeName"),
                object.text("/spec/containers/0/image"),
            );
        }
        Kind::StatefulSet => {
            let _ = write!(
                text,
                " replicas={} partition={} status={}/{} revision={}",
                object.number("/spec/replicas"),
                object.number("/spec/updateStrategy/rollingUpdate/partition"),
                object.number("/status/availableReplicas"),
                object.number("/status/replicas"),
                object
                    .label("leaderworkerset.sigs.k8s.io/template-revision-hash")
                    .unwrap_or("-"),
            );
        }
        Kind::Deployment => {
            let _ = write!(
                text,
                " replicas={} status={}/{}/{}",
                object.number("/spec/replicas"),
                object.number("/status/readyReplicas"),
                object.number("/status/updatedReplicas"),
                object.number("/status/replicas"),
            );
        }
        Kind::Set => {
            let _ = write!(
                text,
                " replicas={} generation={} status={}/{}/{} observed={} {:?}",
                object.number("/spec/replicas"),
                object.number("/metadata/generation"),
                object.number("/status/readyReplicas"),
                object.number("/status/updatedReplicas"),
                object.number("/status/replicas"),
                object.number("/status/observedGeneration"),
                object.true_conditions(),
            );
        }
        Kind::DisaggregatedSet => {
            let _ = write!(
                text,
                " generation={} observed={} {:?} {}",
                object.number("/metadata/generation"),
                object.number("/status/observedGeneration"),
                object.true_conditions(),
                object.at("/status/roleStatuses"),
            );
        }
        Kind::Scaler => {
            let _ = write!(
                text,
                " replicas={} status={}",
                object.number("/spec/replicas"),
                object.number("/status/replicas"),
            );
        }
        Kind::PodGroup => {
            let _ = write!(
                text,
                " minCount={} initially scheduled={}",
                object.at("/spec/schedulingPolicy/gang/minCount"),
                object
                    .condition("PodGroupInitiallyScheduled")
                    .unwrap_or("-"),
            );
        }
        Kind::Service | Kind::Revision | Kind::Event | Kind::Workload => {}
    }
    text
}
