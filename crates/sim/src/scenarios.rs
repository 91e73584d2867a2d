//! What users of such controllers have reported, and what else has a story: a set, what people do to it, and what must have come of it (section 3 of the
//! test program). Each names the planted bug that takes its guard out.

mod processes;

use serde_json::{Value, json};

use crate::actors::user::{
    Deed, Wanted, delete_pod, force_delete_pod, hold_unready, image, key, let_go, scale,
};
use crate::actors::{controller, namespace, uid};
use crate::faults::Faults;
use crate::planted::Bug;
use crate::store::{Cascade, Change, Key, Kind, is_terminating, text};
use crate::world::{Setup, World};

/// Seeds that each scenario runs under.
pub const SEEDS: u64 = 12;

/// A story.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Set, deeds and cluster, without seed and faults.
    pub setup: fn() -> Setup,
    /// What must have come of it.
    pub judge: fn(&World) -> Result<(), String>,
    /// Without this guard it fails; nothing for stories whose guards are those of others.
    pub guard: Option<Bug>,
    /// Half of its runs have lagging and broken watches.
    pub lags: bool,
}

impl Scenario {
    /// The setup under one seed: every second one undisturbed, the others with bad watches.
    pub fn under(&self, seed: u64) -> Setup {
        let is_calm = seed.is_multiple_of(2) || !self.lags;
        let lag = Faults {
            lag: 20,
            cut: 5,
            coalesce: 300,
            ..Faults::default()
        };
        let setup = (self.setup)();
        Setup {
            seed,
            faults: if is_calm { Faults::default() } else { lag },
            fault_steps: if is_calm { 0 } else { 1500 },
            // Without the feature Kubernetes itself waits for a surge group that somebody holds.
            gate: seed % 4 < 2 || setup.gated_from.is_some(),
            ..setup
        }
    }
}

fn story(wanted: Wanted, deeds: impl IntoIterator<Item = Deed>) -> Setup {
    let first = [Deed::Apply(Box::new(wanted)), Deed::Settle];
    Setup {
        deeds: first.into_iter().chain(deeds).collect(),
        ..Setup::default()
    }
}

fn ends(world: &World, pod: &str) -> u32 {
    world.facts.pod_ends.get(pod).copied().unwrap_or(0)
}

/// These pods ended so many times.
fn ended(world: &World, pods: &[(&str, u32)]) -> Result<(), String> {
    for (pod, times) in pods {
        if ends(world, pod) != *times {
            return Err(format!(
                "{pod} ended {} times instead of {times}",
                ends(world, pod)
            ));
        }
    }
    Ok(())
}

fn well(_: &World) -> Result<(), String> {
    Ok(())
}

fn surging() -> Wanted {
    Wanted {
        surge: 1,
        unavailable: 0,
        ..Wanted::default()
    }
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    let mut all = reported();
    all.extend(further());
    all.extend(processes::all());
    all
}

/// Section 3 of the test program.
fn reported() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "worker_back_before_we_look",
            setup: || story(Wanted::default(), [force_delete_pod("demo-0-1")]),
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: Some(Bug::NoTombstones),
            lags: true,
        },
        Scenario {
            name: "leader_recreated_twice",
            setup: || Setup {
                ending: 20,
                ..story(Wanted::default(), [delete_pod("demo-0")])
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: Some(Bug::ChainIgnored),
            lags: true,
        },
        Scenario {
            name: "workers_taken_for_leaders",
            setup: || {
                let index = |n: &str| {
                    let patch = json!({"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/worker-index": n}}});
                    Deed::Patch(key(Kind::Pod, "demo-1-1"), patch)
                };
                story(Wanted::default(), [index("0"), Deed::Wait(60), index("1")])
            },
            judge: |world| match world.store.list(Kind::StatefulSet).count() {
                3 => ended(world, &[("demo-0", 0), ("demo-1", 0)]),
                n => Err(format!("{n} StatefulSets")),
            },
            guard: Some(Bug::WorkersLead),
            lags: false,
        },
        Scenario {
            name: "all_old_unready",
            setup: || all_old_unready(0),
            judge: rolled,
            guard: Some(Bug::WaitForReady),
            lags: true,
        },
        Scenario {
            name: "all_old_unready_surge",
            setup: || all_old_unready(1),
            judge: rolled,
            guard: Some(Bug::WaitForReady),
            lags: true,
        },
        Scenario {
            name: "single_replica_surge",
            setup: || {
                let wanted = Wanted {
                    replicas: 1,
                    ..surging()
                };
                story(wanted, [image("v2")])
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1)]),
            guard: Some(Bug::SurgeDropped),
            lags: true,
        },
        Scenario {
            name: "two_replicas_one_down",
            setup: || {
                let before = hold_unready("demo-0");
                let deeds =
                    before
                        .into_iter()
                        .chain([image("v2"), Deed::Wait(300), let_go("demo-0")]);
                story(Wanted::default(), deeds)
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1)]),
            guard: Some(Bug::PartitionTooLow),
            lags: true,
        },
        Scenario {
            name: "surge_reclaimed_early",
            setup: || story(surging(), [image("v2")]),
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1), ("demo-2", 1)]),
            guard: Some(Bug::SurgeDropped),
            lags: true,
        },
        Scenario {
            name: "terminating_name_taken",
            setup: || {
                let wanted = Wanted {
                    replicas: 3,
                    ..Wanted::default()
                };
                let deeds = [delete_pod("demo-0"), image("v2"), Deed::Settle, image("v1")];
                Setup {
                    ending: 25,
                    ..story(wanted, deeds)
                }
            },
            judge: well,
            guard: Some(Bug::NamesNotChecked),
            lags: true,
        },
        Scenario {
            name: "gated_surge",
            setup: || {
                let wanted = Wanted {
                    surge: 1,
                    ..Wanted::default()
                };
                Setup {
                    gated_from: Some(2),
                    ..story(wanted, [image("v2")])
                }
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1)]),
            guard: Some(Bug::WaitForReady),
            lags: true,
        },
    ]
}

fn all_old_unready(surge: i64) -> Setup {
    let wanted = Wanted {
        image: "broken",
        surge,
        ..Wanted::default()
    };
    let first = [Deed::Apply(Box::new(wanted)), Deed::Settle, image("v2")];
    Setup {
        deeds: first.into(),
        ..Setup::default()
    }
}

/// Every pod runs the new image.
fn rolled(world: &World) -> Result<(), String> {
    let old = world
        .store
        .list(Kind::Pod)
        .find(|(_, pod)| text(pod, "/spec/containers/0/image") != Some("v2"));
    old.map_or(Ok(()), |(key, _)| Err(format!("{key} was not replaced")))
}

fn further() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "leader_deleted_with_force_while_its_workers_run",
            setup: || story(Wanted::default(), [force_delete_pod("demo-0")]),
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "leader_gone_while_the_pod_watch_hangs",
            setup: || {
                // Its worker set has no pods, so nothing holds their names.
                let worker_set = key(Kind::StatefulSet, "demo-0");
                let wanted = Wanted {
                    more: json!({"leaderWorkerTemplate": {"restartPolicy": "None"}}),
                    ..Wanted::default()
                };
                let deeds = [
                    Deed::RefusePods(600),
                    Deed::Delete(worker_set, Cascade::Background, None),
                    Deed::Wait(60),
                    Deed::Hold(Kind::Pod, 300),
                    force_delete_pod("demo-0"),
                ];
                story(wanted, deeds)
            },
            judge: |world| {
                let made = world.store.log().iter().filter(|c| {
                    c.change == Change::Added && c.key == key(Kind::StatefulSet, "demo-0")
                });
                match made.count() {
                    0..=12 => Ok(()),
                    n => Err(format!("worker set demo-0 was made {n} times")),
                }
            },
            guard: Some(Bug::NoPause),
            lags: false,
        },
        Scenario {
            name: "budget_is_used_up",
            setup: || {
                let wanted = Wanted {
                    more: json!({"leaderWorkerTemplate": {"maxGroupRestarts": 1}}),
                    ..Wanted::default()
                };
                let again = [delete_pod("demo-0-1"), Deed::Settle];
                story(wanted, again.iter().cycle().take(6).cloned())
            },
            judge: |world| ended(world, &[("demo-0", 2), ("demo-1", 0)]),
            guard: Some(Bug::NoCount),
            lags: true,
        },
        Scenario {
            name: "exhausted_group_is_kept",
            setup: || {
                let wanted = Wanted {
                    more: json!({"leaderWorkerTemplate": {"maxGroupRestarts": 0}}),
                    ..Wanted::default()
                };
                story(wanted, [delete_pod("demo-0-1")])
            },
            judge: |world| match world.store.get(&key(Kind::Pod, "demo-0")) {
                Some(leader) if is_terminating(leader) => Ok(()),
                leader => Err(format!("S-13: the leader is now {leader:?}")),
            },
            guard: Some(Bug::NoMark),
            lags: true,
        },
        Scenario {
            name: "back_off_is_kept",
            setup: || {
                let more = json!({"leaderWorkerTemplate": {"restartBackoff": {"baseSeconds": 20, "capSeconds": 80}}});
                let wanted = Wanted {
                    more,
                    ..Wanted::default()
                };
                let again = [delete_pod("demo-0-1"), Deed::Wait(30)];
                story(wanted, again.iter().cycle().take(6).cloned())
            },
            judge: |world| ended(world, &[("demo-1", 0)]),
            guard: Some(Bug::NoBackoff),
            lags: false,
        },
        Scenario {
            name: "rollout_of_three_deletes_three_leaders",
            setup: || {
                let wanted = Wanted {
                    replicas: 3,
                    ..Wanted::default()
                };
                story(wanted, [image("v2")])
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1), ("demo-2", 1)]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "new_template_in_the_middle_of_a_rollout_and_back",
            setup: || story(Wanted::default(), [image("v2"), image("v1")]),
            judge: well,
            guard: None,
            lags: true,
        },
        Scenario {
            name: "two_new_templates_and_more_groups",
            setup: || story(Wanted::default(), [image("v2"), image("v3"), scale(3)]),
            judge: well,
            guard: None,
            lags: true,
        },
        Scenario {
            name: "scale_to_zero_and_back_and_delete",
            setup: || {
                let set = key(Kind::LeaderWorkerSet, "demo");
                let end = Deed::Delete(set, Cascade::Foreground, None);
                story(
                    Wanted::default(),
                    [scale(0), Deed::Settle, scale(3), Deed::Settle, end],
                )
            },
            judge: |world| match world.store.list(Kind::Pod).count() {
                0 => Ok(()),
                n => Err(format!("L-5: {n} pods are left")),
            },
            guard: None,
            lags: true,
        },
        Scenario {
            name: "namespace_ends_with_all_that_is_in_it",
            setup: || namespace_ends(json!({})),
            judge: nothing_is_left,
            guard: None,
            lags: true,
        },
        Scenario {
            name: "namespace_ends_although_a_group_is_kept",
            setup: || namespace_ends(json!({"leaderWorkerTemplate": {"maxGroupRestarts": 0}})),
            judge: nothing_is_left,
            guard: Some(Bug::DeafToSets),
            lags: true,
        },
        Scenario {
            name: "claims_stay",
            setup: || with_claims("Retain", "Retain"),
            judge: |world| claims(world, &["0", "0-1", "1", "1-1"]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "claims_of_leaders_go_when_the_set_shrinks",
            setup: || with_claims("Retain", "Delete"),
            judge: |world| claims(world, &["0", "0-1", "1-1"]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "claims_go_with_their_sets",
            setup: || with_claims("Delete", "Delete"),
            judge: |world| claims(world, &["0", "0-1"]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "size_crosses_one",
            setup: || {
                let size = |n: i64| Deed::Edit(json!({"leaderWorkerTemplate": {"size": n}}));
                story(Wanted::default(), [size(1), Deed::Settle, size(2)])
            },
            judge: well,
            guard: None,
            lags: true,
        },
        Scenario {
            name: "orphaned_leader_set_is_made_anew_and_nothing_restarts",
            setup: || {
                let leader_set = key(Kind::StatefulSet, "demo");
                story(
                    Wanted::default(),
                    [Deed::Delete(leader_set, Cascade::Orphan, None)],
                )
            },
            judge: |world| match world.pod_ends() {
                0 => Ok(()),
                n => Err(format!("{n} pods ended")),
            },
            guard: None,
            lags: true,
        },
        Scenario {
            name: "nothing_is_made_for_a_set_that_ends",
            setup: held_set,
            judge: |world| match world.store.list(Kind::Service).count() {
                0 => Ok(()),
                n => Err(format!("S-7: {n} Services")),
            },
            guard: Some(Bug::SetEndIgnored),
            lags: false,
        },
        Scenario {
            name: "foreign_leader_set_under_our_name",
            setup: || foreign("demo"),
            judge: well,
            guard: Some(Bug::AdoptsAnything),
            lags: false,
        },
        Scenario {
            name: "foreign_stateful_set_under_our_name",
            setup: || foreign("demo-0"),
            judge: |world| {
                let set = world.store.get(&key(Kind::StatefulSet, "demo-0"));
                let leader = world.store.get(&key(Kind::Pod, "demo-0"));
                match (set.and_then(|set| controller(set)), leader) {
                    (Some(owner), Some(leader)) if owner["uid"] == uid(leader) => Ok(()),
                    _ => Err("L-9: the group has no worker set".to_owned()),
                }
            },
            guard: None,
            lags: false,
        },
    ]
}

/// A StatefulSet of somebody else, although it looks like ours, is left alone until its owner removes it.
fn foreign(name: &str) -> Setup {
    let foreign = key(Kind::StatefulSet, name);
    let labels = json!({"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/worker-index": "0"});
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-Node-node-a-1", "controller": true});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": []}});
    let body = json!({"metadata": {"labels": labels, "ownerReferences": [owner]}, "spec": {"replicas": 0, "serviceName": "demo",
        "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels}, "template": template}});
    let deeds = vec![
        Deed::Create(foreign.clone(), body),
        Deed::Apply(Box::default()),
        Deed::Wait(120),
        Deed::Delete(foreign, Cascade::Background, None),
    ];
    Setup {
        deeds,
        ..Setup::default()
    }
}

/// A set with volume claims whose first group fails, and whose second one goes.
fn with_claims(deleted: &str, scaled: &str) -> Setup {
    let template = json!({
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
    });
    let wanted = Wanted {
        size: 2,
        more: json!({"leaderWorkerTemplate": template}),
        ..Wanted::default()
    };
    story(wanted, [delete_pod("demo-0-1"), Deed::Settle, scale(1)])
}

/// The claims of these pods are there, and no others.
fn claims(world: &World, pods: &[&str]) -> Result<(), String> {
    let wanted = pods.iter().map(|pod| format!("data-demo-{pod}"));
    let found = world.store.list(Kind::PersistentVolumeClaim);
    let found: Vec<String> = found.map(|(key, _)| key.name.to_string()).collect();
    if found.iter().cloned().eq(wanted) {
        Ok(())
    } else {
        Err(format!("claims {found:?} instead of those of {pods:?}"))
    }
}

/// A group fails in a namespace that is deleted soon after.
fn namespace_ends(more: Value) -> Setup {
    let namespace = Key::new(Kind::Namespace, "", "default");
    let body = json!({"metadata": {"finalizers": [namespace::FINALIZER]}});
    let wanted = Wanted {
        more,
        ..Wanted::default()
    };
    let deeds = [
        Deed::Create(namespace.clone(), body),
        delete_pod("demo-0-1"),
        Deed::Wait(2),
        Deed::Delete(namespace, Cascade::Background, None),
    ];
    story(wanted, deeds)
}

fn nothing_is_left(world: &World) -> Result<(), String> {
    let mut inside = world
        .store
        .all()
        .filter(|(key, _)| &*key.namespace == "default");
    let namespace = Key::new(Kind::Namespace, "", "default");
    match (inside.next(), world.store.get(&namespace)) {
        (None, None) => Ok(()),
        (Some((key, _)), _) => Err(format!("L-5: {key} is left")),
        (None, Some(_)) => Err("L-5: the namespace is left".to_owned()),
    }
}

/// The set is ending, but somebody holds it; meanwhile its Service is deleted.
fn held_set() -> Setup {
    let set = || key(Kind::LeaderWorkerSet, "demo");
    let finalizers = |all: &[&str]| Deed::Patch(set(), json!({"metadata": {"finalizers": all}}));
    let deeds = [
        finalizers(&["example.com/held"]),
        Deed::Delete(set(), Cascade::Background, None),
        Deed::Delete(key(Kind::Service, "demo"), Cascade::Background, None),
        Deed::Wait(60),
        finalizers(&[]),
    ];
    story(Wanted::default(), deeds)
}
