//! What a rollout looks like from outside, and playing one through.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::world::{Verb, World, group_index, is_leader};
use crate::{Bench, Kind, Object};

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
        let mut pods: BTreeMap<&str, &Object> = BTreeMap::new();
        let mut fewest = usize::MAX;
        for (index, change) in self.history().iter().enumerate() {
            if index == since {
                fewest = ready_groups(set, &pods);
            }
            if change.kind != Kind::Pod {
                continue;
            }
            match change.verb {
                Verb::Added | Verb::Modified => {
                    pods.insert(change.object.name(), &change.object);
                }
                Verb::Deleted => {
                    pods.remove(change.object.name());
                }
            }
            if index >= since {
                fewest = fewest.min(ready_groups(set, &pods));
            }
        }
        fewest
    }

    /// The highest group that has a pod that is not ready.
    pub fn highest_unready_group(&self, set: &str) -> Option<i64> {
        self.pods_of(set)
            .filter(|pod| !pod.is_ready() && !pod.is_terminating())
            .filter_map(group_index)
            .max()
    }
}

/// Groups of which as many pods are ready as the leader says the group has.
fn ready_groups(set: &str, pods: &BTreeMap<&str, &Object>) -> usize {
    let mut ready: BTreeMap<i64, i64> = BTreeMap::new();
    let mut sizes: BTreeMap<i64, i64> = BTreeMap::new();
    for pod in pods.values() {
        if pod.label("leaderworkerset.sigs.k8s.io/name") != Some(set) {
            continue;
        }
        let Some(group) = group_index(pod) else {
            continue;
        };
        if is_leader(pod) {
            let size = pod.annotation("leaderworkerset.sigs.k8s.io/size");
            sizes.insert(group, size.and_then(|size| size.parse().ok()).unwrap_or(1));
        }
        if pod.is_ready() && !pod.is_terminating() {
            *ready.entry(group).or_default() += 1;
        }
    }
    sizes
        .iter()
        .filter(|(group, size)| ready.get(group) == Some(size))
        .count()
}

impl Bench {
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
