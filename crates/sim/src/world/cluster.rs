//! Writes of everybody else: built-in controllers, the kubelet and people.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lws_api::names::label as names;
use lws_core::run::{Class, Failure};
use serde_json::{Value, json};

use super::{NODES, World, at};
use crate::actors::kubelet::{self, Event};
use crate::actors::user::{self, Deed};
use crate::actors::{controller, garbage, label, namespace, number, stateful_set, uid};
use crate::api;
use crate::store::{Cascade, Deletion, Key, Kind, text};

impl World {
    pub(super) fn stateful_set(&mut self, write: stateful_set::Write) {
        let by = "statefulset-controller";
        match write {
            stateful_set::Write::Create(key, body) => {
                let owner = controller(&body)
                    .and_then(|o| o["name"].as_str())
                    .unwrap_or_default();
                let set = Key::new(Kind::StatefulSet, &key.namespace, owner);
                let is_refused = key.kind == Kind::Pod && self.trouble.pods_refused > self.now;
                let made = if is_refused {
                    Err(refused())
                } else {
                    let body = self.gated(body);
                    api::create(&mut self.store, by, key.clone(), body)
                };
                match made {
                    Ok(_) => {
                        self.failed_creates.remove(&set);
                    }
                    Err(_) => {
                        let of_group = self.store.get(&set).is_some_and(|set| {
                            let is_blind = self.facts.blind_sets.contains(uid(set));
                            let owner = controller(set);
                            !is_blind && owner.is_some_and(|o| o["kind"] == "Pod")
                        });
                        let (attempts, until) = self.failed_creates.entry(set).or_default();
                        *attempts += 1;
                        *until = self.now
                            + Duration::from_millis(5)
                                .saturating_mul(1 << (*attempts).min(17))
                                .min(Duration::from_secs(1000));
                        // ORD-84: pods without a controller do not count.
                        let holder = self.store.get(&key);
                        let is_owned = holder.is_some_and(|pod| controller(pod).is_some());
                        if !of_group || is_refused || !is_owned {
                            return;
                        }
                        let at = self.now.as_secs();
                        let all = self
                            .facts
                            .failed_creates
                            .entry(key.name.to_string())
                            .or_default();
                        all.retain(|second| second + 60 > at);
                        all.push(at);
                    }
                }
            }
            stateful_set::Write::Delete(key, uid) => {
                self.delete(by, &key, Some(uid), Cascade::Background, None)
            }
            stateful_set::Write::Patch(key, patch) => self.patch(by, &key, false, &patch),
            stateful_set::Write::Status(key, patch) => self.patch(by, &key, true, &patch),
        }
    }

    /// A scheduling gate of somebody else, as queueing systems set them.
    fn gated(&self, mut pod: Value) -> Value {
        // A leader gets its group index from admission only.
        let index = match label(&pod, names::GROUP_INDEX) {
            "" => label(&pod, "apps.kubernetes.io/pod-index"),
            index => index,
        };
        let index = index.parse::<i64>();
        let from = self.setup.gated_from.unwrap_or(i64::MAX);
        if index.is_ok_and(|index| index >= from) {
            pod["spec"]["schedulingGates"] = json!([{"name": "example.com/queue"}]);
        }
        pod
    }

    /// When the containers of a terminating pod end.
    pub(super) fn end_of_pod(&self, key: &Key) -> Option<Duration> {
        let pod = self.store.get(key)?;
        let removed: Timestamp = text(pod, "/metadata/deletionTimestamp")?.parse().ok()?;
        let grace = number(pod, "/metadata/deletionGracePeriodSeconds");
        let deleted = removed - SignedDuration::from_secs(grace);
        let since_start = Duration::try_from(deleted.duration_since(at(Duration::ZERO))).ok()?;
        Some(since_start + Duration::from_secs(self.setup.ending))
    }

    /// When pods end that are not to end yet.
    pub(super) fn ends_of_pods(&self) -> Vec<Duration> {
        if self.setup.ending == 0 {
            return Vec::new();
        }
        let pods = self.store.list(Kind::Pod);
        pods.filter_map(|(key, _)| self.end_of_pod(key)).collect()
    }

    pub(super) fn collect(&mut self, write: garbage::Write) {
        let by = "garbage-collector";
        match write {
            garbage::Write::Delete(key, uid, cascade) => {
                self.delete(by, &key, Some(uid), cascade, None)
            }
            garbage::Write::Release(key, patch) | garbage::Write::Orphan(key, patch) => {
                self.patch(by, &key, false, &patch);
            }
        }
    }

    pub(super) fn empty(&mut self, write: namespace::Write) {
        let by = "namespace-controller";
        match write {
            namespace::Write::Delete(key, uid) => {
                self.delete(by, &key, Some(uid), Cascade::Background, None);
            }
            namespace::Write::Release(key, patch) => self.patch(by, &key, false, &patch),
        }
    }

    pub(super) fn kubelet(&mut self, key: &Key, event: Event) {
        let node = *self.random.pick(&NODES).unwrap_or(&"node-a");
        let patch = self
            .store
            .get(key)
            .and_then(|pod| kubelet::patch(pod, event, node));
        match patch {
            Some((status, patch)) => self.patch("kubelet", key, status, &patch),
            None => self.store.end("kubelet", key),
        }
    }

    pub(super) fn deed(&mut self, deed: Deed) {
        let demo = user::key(Kind::LeaderWorkerSet, "demo");
        // What the API server refuses, the user learns; nothing follows.
        let _ = match deed {
            Deed::Apply(wanted) => {
                let made = api::create(&mut self.store, "user", demo, wanted.manifest());
                assert!(made.is_ok(), "the set of a scenario is valid: {made:?}");
                made
            }
            Deed::Edit(spec) => api::edit(&mut self.store, &demo, &spec),
            Deed::Patch(key, patch) => self.store.patch("user", &key, false, &patch),
            Deed::Create(key, body) => api::create(&mut self.store, "user", key, body),
            Deed::Delete(key, cascade, grace) => {
                return self.delete("user", &key, None, cascade, grace);
            }
            Deed::Wait(seconds) => {
                self.wait_until = self.now + Duration::from_secs(seconds);
                return;
            }
            Deed::Hold(kind, seconds) => {
                let until = self.now + Duration::from_secs(seconds);
                for memory in self.processes.iter_mut().flatten() {
                    memory.held.insert(kind, until);
                }
                return;
            }
            Deed::Pod(key, event) => return self.kubelet(&key, event),
            Deed::Kill => return self.kill_leader(),
            Deed::Stop => return self.stop_leader(),
            Deed::RefusePods(seconds) => {
                self.trouble.pods_refused = self.now + Duration::from_secs(seconds);
                return;
            }
            Deed::FailUs(seconds) => {
                self.trouble.we_fail = self.now + Duration::from_secs(seconds);
                return;
            }
            Deed::Change(change) => return self.change(&change),
            Deed::Settle | Deed::Rows(_) => return,
        };
    }

    pub(super) fn delete(
        &mut self,
        by: &'static str,
        key: &Key,
        uid: Option<String>,
        cascade: Cascade,
        grace: Option<i64>,
    ) {
        // Gone, or another by now: nothing to delete.
        let _ = self.store.delete(
            by,
            key,
            &Deletion {
                uid,
                version: None,
                cascade,
                grace,
            },
        );
    }

    fn patch(&mut self, by: &'static str, key: &Key, status: bool, patch: &Value) {
        // A conflict is tried again when the actor comes next.
        let _ = self.store.patch(by, key, status, patch);
    }
}

fn refused() -> Failure {
    Failure {
        class: Class::Rejected,
        message: "exceeded quota".to_owned(),
        retry_after: None,
    }
}
