//! What a rollout looks like from outside, and playing one through.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use lws_api::names::{annotation, label};
use serde_json::Value;

use crate::world::{Verb, World, group_index};
use crate::{Bench, Kind, Manifest, Object};

/// More settled points than any rollout of a test has.
const MAX_STEPS: usize = 40;

impl World {
    /// The rollout sequence of a set since a mark: (replicas, partition) of its leader StatefulSet, repeated pairs dropped, and
    /// without the pair that was there before.
    pub fn rollout(&self, set: &str, since: usize) -> Vec<(i64, i64)> {
        let mut pairs: Vec<(i64, i64)> = Vec::new();
        let mut first = 0;
        for (index, change) in self.history().iter().enumerate() {
            if change.kind != Kind::StatefulSet || change.object.name() != set {
                continue;
            }
            let pair = (
                change.object.number("/spec/replicas"),
                change
                    .object
                    .number("/spec/updateStrategy/rollingUpdate/partition"),
            );
            if pairs.last() != Some(&pair) {
                pairs.push(pair);
                if index < since {
                    first = pairs.len();
                }
            }
        }
        pairs.split_off(first)
    }

    /// The fewest ready groups at any time since a mark.
    pub fn fewest_ready_groups(&self, set: &str, since: usize) -> usize {
        let mut groups = Groups::default();
        let mut fewest = usize::MAX;
        for (index, change) in self.history().iter().enumerate() {
            if index == since {
                fewest = groups.ready.len();
            }
            if change.kind != Kind::Pod || change.object.label(label::NAME) != Some(set) {
                continue;
            }
            groups.see(change.verb, &change.object);
            if index >= since {
                fewest = fewest.min(groups.ready.len());
            }
        }
        fewest
    }

    /// Asserts that nothing of a rollout is left, and nothing of other sets is there.
    pub fn assert_at_rest(&self, set: &str, replicas: i64) {
        assert_eq!(self.groups(set), (0..replicas).collect());
        assert_eq!(self.revisions_of(set).len(), 1);
        let wanted = replicas.to_string();
        let leaders = self.stateful_set(set);
        assert_eq!(leaders.annotation(annotation::REPLICAS), Some(&*wanted));
        let sets = usize::try_from(replicas).unwrap_or_default() + 1;
        assert_eq!(self.names(Kind::StatefulSet).len(), sets);
    }

    /// The highest group that has a pod that is not ready.
    pub fn highest_unready_group(&self, set: &str) -> Option<i64> {
        self.pods_of(set)
            .filter(|pod| !pod.is_ready() && !pod.is_terminating())
            .filter_map(group_index)
            .max()
    }
}

/// How many pods a set consists of.
fn pods(set: &Manifest) -> usize {
    let spec = &set.json()["spec"];
    let number = |value: &Value| value.as_u64().and_then(|value| usize::try_from(value).ok());
    let replicas = number(&spec["replicas"]).unwrap_or_default();
    replicas * number(&spec["leaderWorkerTemplate"]["size"]).unwrap_or_default()
}

/// The pods of a set, followed through its history.
#[derive(Default)]
struct Groups<'a> {
    pods: BTreeMap<i64, BTreeMap<&'a str, &'a Object>>,
    ready: BTreeSet<i64>,
}

impl<'a> Groups<'a> {
    fn see(&mut self, verb: Verb, pod: &'a Object) {
        let Some(group) = group_index(pod) else {
            return;
        };
        let pods = self.pods.entry(group).or_default();
        match verb {
            Verb::Added | Verb::Modified => pods.insert(pod.name(), pod),
            Verb::Deleted => pods.remove(pod.name()),
        };
        if is_ready_group(pods) {
            self.ready.insert(group);
        } else {
            self.ready.remove(&group);
        }
    }
}

/// Whether as many pods of the leader's revision are ready as the leader says the group has.
fn is_ready_group(pods: &BTreeMap<&str, &Object>) -> bool {
    let Some(leader) = pods.values().find(|pod| pod.is_leader()) else {
        return false;
    };
    let size = leader.annotation(annotation::SIZE);
    let size = size.and_then(|size| size.parse().ok()).unwrap_or(1);
    let ready = pods.values().filter(|pod| {
        pod.is_ready()
            && !pod.is_terminating()
            && pod.label(label::REVISION) == leader.label(label::REVISION)
    });
    ready.count() == size
}

impl Bench {
    /// Creates a set whose pods the test runs, and makes all of its groups ready.
    pub async fn start_by_hand(&self, set: Manifest) -> Result<()> {
        let (name, pods) = (set.name().to_owned(), pods(&set));
        self.create(set.manual()).await?;
        self.until("all pods exist", |world| {
            world.pods_of(&name).count() == pods
        })
        .await?;
        let groups = self.world().groups(&name);
        for group in groups {
            self.make_group_ready(&name, group).await?;
        }
        self.until_available(&name).await?;
        self.settled().await
    }

    /// H order: after each settled point the highest group that is not ready is made ready, until all are.
    pub async fn play(&self, set: &str) -> Result<()> {
        for _ in 0..MAX_STEPS {
            self.settled().await?;
            let Some(group) = self.world().highest_unready_group(set) else {
                return Ok(());
            };
            self.make_group_ready(set, group).await?;
        }
        bail!("{set} is not ready after {MAX_STEPS} steps")
    }
}
