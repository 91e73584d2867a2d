//! Commits are shown to the judge, and what the judge needs to know beyond them is worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lws_core::model::ObjectKey;

use super::{World, at};
use crate::actors::{label, uid};
use crate::disaggregated;
use crate::properties::{Violation, Writing, check_commit, check_rest, violated};
use crate::replica::Memory;
use crate::store::{Change, Key, Kind, is_terminating};

impl World {
    /// Judges all commits that were not judged yet.
    pub(super) fn judge(&mut self, writing: &Writing) -> Result<(), Violation> {
        while let Some(commit) = self.store.log().get(self.judged).cloned() {
            self.judged += 1;
            if commit.key.kind != Kind::Lease {
                self.last_write = self.now;
            }
            if let Some(ground) = self.ground() {
                self.judge_roles(&ground, &commit, writing)?;
                continue;
            }
            let before = match commit.key.kind {
                Kind::Pod => self.facts.incidents.clone(),
                _ => BTreeMap::new(),
            };
            check_commit(&self.store, &mut self.facts, &commit, writing)?;
            let ends = commit.change == Change::Deleted || is_terminating(&commit.object);
            if commit.key.kind == Kind::StatefulSet && ends {
                let leader = crate::actors::controller(&commit.object);
                self.facts
                    .owed
                    .remove(leader.and_then(|o| o["uid"].as_str()).unwrap_or_default());
            }
            if commit.key.kind == Kind::Pod && self.facts.incidents != before {
                self.owe(&commit, &before);
            }
        }
        match self
            .facts
            .failed_creates
            .iter()
            .find(|(_, at)| at.len() > 10)
        {
            Some((name, _)) => Err(violated(
                "S-20",
                format!("pod {name} could not be created more than 10 times in a minute"),
            )),
            None => Ok(()),
        }
    }

    /// Judges what has come to rest.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_rest(&self) -> Result<(), Violation> {
        if let Some(ground) = &self.setup.ground {
            return disaggregated::check_rest(&self.store, &self.roles, ground);
        }
        let processes = self.processes.iter().enumerate();
        let leading = processes.filter(|(_, memory)| memory.as_ref().is_some_and(|m| m.leads));
        let leading = leading.map(|(index, _)| index).collect();
        check_rest(&self.store, &self.facts, &leading)
    }

    /// L-3: synced replicas knew the pod when it failed, and its set wants groups recreated.
    fn owe(&mut self, commit: &crate::store::Commit, before: &BTreeMap<String, u32>) {
        let pod = ObjectKey::new(&commit.key.namespace, &commit.key.name);
        let knows = |memory: &Memory| {
            let known = memory.cache.pod(&pod);
            memory.is_synced()
                && known.is_some_and(|known| known.meta.uid.as_str() == uid(&commit.object))
        };
        let processes = self.processes.iter().enumerate();
        let knew = processes.filter(|(_, memory)| memory.as_ref().is_some_and(knows));
        let knew: BTreeSet<usize> = knew.map(|(index, _)| index).collect();
        let set = label(&commit.object, lws_api::names::label::NAME);
        let lws = self
            .store
            .get(&Key::new(Kind::LeaderWorkerSet, &commit.key.namespace, set));
        let recreates = lws.is_some_and(|lws| {
            lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
                && !is_terminating(lws)
        });
        // FAIL-36: without the StatefulSet of the pod there is no chain to the leader.
        let owner = crate::actors::controller(&commit.object).and_then(|o| o["uid"].as_str());
        let has_set = self
            .store
            .list(Kind::StatefulSet)
            .any(|(_, set)| Some(uid(set)) == owner && !is_terminating(set));
        if knew.is_empty() || !recreates || !has_set || commit.by == "garbage-collector" {
            return;
        }
        let new = self
            .facts
            .incidents
            .iter()
            .filter(|(leader, count)| before.get(*leader) != Some(count))
            .map(|(leader, _)| leader.clone());
        // FAIL-35: a leftover of another revision is no worker of this leader.
        let revision = label(&commit.object, lws_api::names::label::REVISION);
        let is_same = |leader: &String| {
            self.store.list(Kind::Pod).any(|(_, pod)| {
                uid(pod) == leader && label(pod, lws_api::names::label::REVISION) == revision
            })
        };
        let new: Vec<String> = new.filter(is_same).collect();
        for leader in new {
            self.facts.owed.entry(leader).or_default().extend(&knew);
        }
    }

    /// Pods that ended, whoever ended them.
    pub fn pod_ends(&self) -> u64 {
        self.facts.pod_ends.values().map(|n| u64::from(*n)).sum()
    }

    /// Groups that ended, by their leaders.
    pub fn group_ends(&self) -> u64 {
        let is_leader = |name: &str| name.matches('-').count() == 1;
        let ends = self.facts.pod_ends.iter();
        ends.filter(|(name, _)| is_leader(name))
            .map(|(_, n)| u64::from(*n))
            .sum()
    }

    /// The last commits, for a report.
    pub fn last_commits(&self, number: usize) -> String {
        let log = self.store.log();
        let lines = log.iter().skip(log.len().saturating_sub(number)).map(|c| {
            let what = match c.change {
                Change::Added => "+",
                Change::Modified if is_terminating(&c.object) => "x",
                Change::Modified => "~",
                Change::Deleted => "-",
            };
            let why = self.whys.get(&c.version).map_or("", String::as_str);
            format!(
                "{:>6} {:>10.3}s {what} {:<24} {:<40} {} {why}\n",
                c.version,
                c.at.duration_since(at(Duration::ZERO)).as_secs_f64(),
                c.by,
                c.key.to_string(),
                uid(&c.object)
            )
        });
        lines.collect()
    }
}
