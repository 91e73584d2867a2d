//! What must hold when all is quiet (L-1 … L-3, L-5, S-4).

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::names::{annotation as names, label as labels};
use serde_json::Value;

use super::{Facts, Violation, violated};
use crate::actors::kubelet::BROKEN;
use crate::actors::{annotation, controller, is_ready, label, number, uid};
use crate::store::{Key, Kind, Store, is_terminating, text};

/// Judges a store in which nothing happens any more, and in which the processes `leading` of ours lead.
pub fn check_rest(
    store: &Store,
    facts: &Facts,
    leading: &BTreeSet<usize>,
) -> Result<(), Violation> {
    let sets: Vec<_> = store.list(Kind::LeaderWorkerSet).collect();
    nothing_left_behind(store, &sets)?;
    for (key, lws) in sets {
        Rest { store, key, lws }.check()?;
    }
    recreated(store, facts, leading)
}

/// L-5.
fn nothing_left_behind(store: &Store, sets: &[(&Key, &Arc<Value>)]) -> Result<(), Violation> {
    let alive: BTreeSet<&str> = sets.iter().map(|(key, _)| &*key.name).collect();
    let left = store.all().find(|(key, object)| {
        let set = label(object, labels::NAME);
        // What somebody orphaned stays for good.
        let is_owned = controller(object).is_some();
        key.kind != Kind::LeaderWorkerSet && is_owned && !set.is_empty() && !alive.contains(set)
    });
    match left {
        Some((key, _)) => Err(violated("L-5", format!("{key} is left behind"))),
        None => Ok(()),
    }
}

/// L-3: a group with an incident that who leads knew of is another group now.
fn recreated(store: &Store, facts: &Facts, leading: &BTreeSet<usize>) -> Result<(), Violation> {
    let is_owed = |pod: &Value| {
        let knew = facts.owed.get(uid(pod));
        knew.is_some_and(|knew| !knew.is_disjoint(leading))
    };
    let kept = store
        .list(Kind::Pod)
        .find(|(_, pod)| is_owed(pod) && !is_terminating(pod));
    match kept {
        Some((key, pod)) => Err(violated(
            "L-3",
            format!(
                "group of {key} ({}) was not recreated after its incident",
                uid(pod)
            ),
        )),
        None => Ok(()),
    }
}

struct Rest<'a> {
    store: &'a Store,
    key: &'a Key,
    lws: &'a Value,
}

impl Rest<'_> {
    fn wants(&self, pointer: &str) -> i64 {
        number(self.lws, pointer)
    }

    fn rollout(&self, name: &str) -> i64 {
        self.wants(&format!(
            "/spec/rolloutStrategy/rollingUpdateConfiguration/{name}"
        ))
    }

    fn check(&self) -> Result<(), Violation> {
        if is_terminating(self.lws) {
            return Err(violated("L-5", "the set is still ending"));
        }
        let replicas = self.wants("/spec/replicas");
        let Some(leader_set) = self.store.get(&self.named(Kind::StatefulSet, "")) else {
            return Err(violated("L-1", "there is no leader set"));
        };
        let runs = number(leader_set, "/spec/replicas");
        let partition = number(leader_set, "/spec/updateStrategy/rollingUpdate/partition");
        let is_stuck = self.is_broken() || self.has_exhausted();
        if is_stuck {
            return self.children(runs);
        }
        let user_partition = self.rollout("partition");
        if runs != replicas && user_partition == 0 {
            return Err(violated("L-1", format!("{runs} groups of {replicas}")));
        }
        if partition != user_partition {
            return Err(violated(
                "L-2",
                format!("the partition rests at {partition}"),
            ));
        }
        for index in 0..replicas {
            self.group(
                index,
                label(leader_set, labels::REVISION),
                index >= partition,
            )?;
        }
        self.children(runs)?;
        self.revisions(user_partition)?;
        self.status(replicas)
    }

    fn named(&self, kind: Kind, suffix: &str) -> Key {
        Key::new(
            kind,
            &self.key.namespace,
            &format!("{}{suffix}", self.key.name),
        )
    }

    fn pods(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.labelled().filter(|pod| controller(pod).is_some())
    }

    fn labelled(&self) -> impl Iterator<Item = &Arc<Value>> {
        let pods = self.store.list(Kind::Pod).map(|(_, pod)| pod);
        pods.filter(|pod| label(pod, labels::NAME) == &*self.key.name)
    }

    /// A retained leader keeps its name also when it was orphaned on its way out: nobody adopts it any more.
    fn has_exhausted(&self) -> bool {
        self.labelled()
            .any(|pod| annotation(pod, names::RESTART_BUDGET_EXHAUSTED) == "true")
    }

    fn is_broken(&self) -> bool {
        let is_broken = |pod: &Value| text(pod, "/spec/containers/0/image") == Some(BROKEN);
        self.pods().any(|pod| is_broken(pod))
    }

    fn group(&self, index: i64, key: &str, rolls: bool) -> Result<(), Violation> {
        let name = format!("-{index}");
        let Some(leader) = self.store.get(&self.named(Kind::Pod, &name)) else {
            return Err(violated("L-1", format!("group {index} has no leader")));
        };
        let size: i64 = annotation(leader, names::SIZE).parse().unwrap_or(1);
        let pods: Vec<_> = self
            .pods()
            .filter(|pod| label(pod, labels::GROUP_INDEX) == index.to_string())
            .collect();
        if i64::try_from(pods.len()) != Ok(size) || !pods.iter().all(|pod| is_ready(pod)) {
            return Err(violated(
                "L-1",
                format!(
                    "group {index} has {} pods of {size}, or not all are ready",
                    pods.len()
                ),
            ));
        }
        if rolls
            && (pods.iter().any(|pod| label(pod, labels::REVISION) != key)
                || size != self.wants("/spec/leaderWorkerTemplate/size"))
        {
            return Err(violated(
                "L-2",
                format!("group {index} is not of revision {key}"),
            ));
        }
        let set = self.store.get(&self.named(Kind::StatefulSet, &name));
        let is_ours = set.is_some_and(|s| controller(s).is_some_and(|c| c["uid"] == uid(leader)));
        if is_ours == (size == 1) {
            return Err(violated("L-1", format!("worker set of group {index}")));
        }
        Ok(())
    }

    /// S-4, and no strangers.
    fn children(&self, runs: i64) -> Result<(), Violation> {
        let sets = self
            .store
            .list(Kind::StatefulSet)
            .filter(|(_, set)| label(set, labels::NAME) == &*self.key.name)
            .count();
        let is_leader = |pod: &&Arc<Value>| label(pod, labels::WORKER_INDEX) == "0";
        let leaders = self.pods().filter(is_leader).count();
        // A leader that was orphaned on its way out is nobody's, and its worker set goes with it.
        let owners = self.labelled().filter(is_leader).count();
        if sets > owners + 1 || i64::try_from(leaders).unwrap_or(0) > runs {
            return Err(violated(
                "S-4",
                format!("{sets} StatefulSets, {leaders} leaders of {runs}"),
            ));
        }
        let unique =
            text(self.lws, "/spec/networkConfig/subdomainPolicy") == Some("UniquePerReplica");
        let services = self.store.list(Kind::Service).count();
        let wanted = if unique { leaders } else { 1 };
        if services < wanted || services > wanted + usize::from(unique) {
            return Err(violated(
                "L-1",
                format!("{services} Services instead of {wanted}"),
            ));
        }
        Ok(())
    }

    fn revisions(&self, partition: i64) -> Result<(), Violation> {
        let ours: Vec<_> = self
            .store
            .list(Kind::ControllerRevision)
            .filter(|(_, r)| controller(r).is_some_and(|c| c["uid"] == uid(self.lws)))
            .map(|(_, r)| label(r, labels::REVISION))
            .collect();
        // ORD-40: one key is left; it may have been made twice, once while the other was not seen.
        let (all, keys) = (ours.len(), ours.iter().collect::<BTreeSet<_>>().len());
        if keys == 0 || (partition == 0 && (keys > 1 || all > 2)) {
            return Err(violated(
                "S-4",
                format!("{all} revisions of {keys} keys at rest"),
            ));
        }
        Ok(())
    }

    fn status(&self, replicas: i64) -> Result<(), Violation> {
        let holds = |kind: &str| {
            self.lws["status"]["conditions"]
                .as_array()
                .is_some_and(|all| {
                    all.iter()
                        .any(|c| c["type"] == kind && c["status"] == "True")
                })
        };
        let current =
            self.wants("/status/observedGeneration") == self.wants("/metadata/generation");
        let ready = self.wants("/status/readyReplicas") >= replicas;
        if !current || !ready || !holds("Available") || holds("Degraded") {
            return Err(violated("L-1", format!("status {}", self.lws["status"])));
        }
        Ok(())
    }
}
