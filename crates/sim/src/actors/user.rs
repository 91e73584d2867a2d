//! People: one who edits a set, and one who deletes what he should not.

use serde_json::{Value, json};

use super::kubelet::{Event, HELD};
use crate::disaggregated::wanted::Change;
use crate::store::{Cascade, Key, Kind};

/// A set in short.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Groups.
    pub replicas: i64,
    /// Pods of a group.
    pub size: i64,
    /// `maxUnavailable`.
    pub unavailable: i64,
    /// `maxSurge`.
    pub surge: i64,
    /// The user's partition.
    pub partition: i64,
    /// Image of the containers.
    pub image: &'static str,
    /// Further members of `spec`, merged last.
    pub more: Value,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            replicas: 2,
            size: 3,
            unavailable: 1,
            surge: 0,
            partition: 0,
            image: "v1",
            more: json!({}),
        }
    }
}

impl Wanted {
    /// The manifest.
    pub fn manifest(&self) -> Value {
        let mut spec = json!({
            "replicas": self.replicas,
            "leaderWorkerTemplate": {"size": self.size, "workerTemplate": {"spec": {"containers": [{"name": "main", "image": self.image}]}}},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration":
                {"maxUnavailable": self.unavailable, "maxSurge": self.surge, "partition": self.partition}},
        });
        json_patch::merge(&mut spec, &self.more);
        json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"team": "a"}}, "spec": spec})
    }
}

/// Something that a person does.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Creates the set `demo`.
    Apply(Box<Wanted>),
    /// Edits its spec with a merge patch.
    Edit(Value),
    /// Patches some object.
    Patch(Key, Value),
    /// Deletes an object.
    Delete(Key, Cascade, Option<i64>),
    /// Creates some object.
    Create(Key, Value),
    /// Changes the DisaggregatedSet, or scales a role of it.
    Change(Box<Change>),
    /// Nothing is done before looks at the DisaggregatedSet have found so many different numbers of groups.
    Rows(usize),
    /// Nothing is done before everything has settled.
    Settle,
    /// Time passes.
    Wait(u64),
    /// Our watches of a kind stand still for so many seconds.
    Hold(Kind, u64),
    /// Something happens to a pod.
    Pod(Key, Event),
    /// The process of ours that leads dies.
    Kill,
    /// The process of ours that leads is asked to end; for clusters with an election.
    Stop,
    /// For so many seconds no pod is admitted.
    RefusePods(u64),
    /// For so many seconds all requests of ours fail.
    FailUs(u64),
}

/// The key of the set that most scenarios use, or of something of it.
pub fn key(kind: Kind, name: &str) -> Key {
    Key::new(kind, "default", name)
}

/// Another image in all containers.
pub fn image(image: &str) -> Deed {
    Deed::Edit(
        json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}}}}),
    )
}

/// Another number of groups.
pub fn scale(replicas: i64) -> Deed {
    Deed::Edit(json!({"replicas": replicas}))
}

/// Deletes a pod with its grace period.
pub fn delete_pod(name: &str) -> Deed {
    Deed::Delete(key(Kind::Pod, name), Cascade::Background, None)
}

/// Deletes a pod without waiting for its node.
pub fn force_delete_pod(name: &str) -> Deed {
    Deed::Delete(key(Kind::Pod, name), Cascade::Background, Some(0))
}

/// A pod stops being ready, and stays so until [`let_go`].
pub fn hold_unready(name: &str) -> [Deed; 2] {
    [
        Deed::Patch(
            key(Kind::Pod, name),
            json!({"metadata": {"labels": {HELD: "yes"}}}),
        ),
        Deed::Pod(key(Kind::Pod, name), Event::Flap),
    ]
}

/// The pod may become ready again.
pub fn let_go(name: &str) -> Deed {
    Deed::Patch(
        key(Kind::Pod, name),
        json!({"metadata": {"labels": {HELD: null}}}),
    )
}
