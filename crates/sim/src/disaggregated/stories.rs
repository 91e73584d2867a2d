//! Failures that users reported of DisaggregatedSets, and what people do to them.

use std::collections::BTreeMap;

use lws_core::disaggregatedset::children::Children;
use lws_core::disaggregatedset::revision::Target;
use lws_core::model::Ds;
use serde::Deserialize;
use serde_json::json;

use super::tables::{change, course, create, roles};
use super::wanted::{self, Change, Wanted};
use super::{Ground, facts};
use crate::actors::kubelet::BROKEN;
use crate::actors::user::Deed;
use crate::actors::{label, number};
use crate::faults::Faults;
use crate::planted::Flaw;
use crate::store::{Cascade, Key, Kind};
use crate::world::{Setup, World};

/// Seeds of a story; the odd ones have lagging watches.
pub const SEEDS: u64 = 8;

/// Something that happened to somebody.
pub struct Story {
    /// What.
    pub name: &'static str,
    /// How it is told.
    pub setup: fn() -> Setup,
    /// What must have come of it beside the properties.
    pub judge: fn(&World) -> Result<(), String>,
    /// The bug that it is about.
    pub guard: Option<Flaw>,
}

impl Story {
    /// One telling.
    pub fn under(&self, seed: u64) -> Setup {
        let mut setup = (self.setup)();
        setup.seed = seed;
        if seed % 2 == 1 {
            setup.fault_steps = 3_000;
            setup.faults = Faults {
                lag: 10,
                coalesce: 300,
                slow: true,
                ..setup.faults
            };
        }
        setup
    }
}

fn story(set: &Wanted, deeds: impl IntoIterator<Item = Deed>) -> Setup {
    let mut all = vec![create(set), Deed::Wait(30)];
    all.extend(deeds);
    Setup {
        deeds: all,
        ground: Some(Ground::default()),
        ..Setup::default()
    }
}

/// One in which nobody but us takes a ready group away, and only templates change.
fn steady(set: &Wanted, deeds: impl IntoIterator<Item = Deed>) -> Setup {
    Setup {
        ground: Some(Ground {
            holds: true,
            ..Ground::default()
        }),
        ..story(set, deeds)
    }
}

fn pair(sizes: (i64, i64), budget: (i64, i64)) -> Wanted {
    Wanted::of(roles(&[("a", sizes.0), ("b", sizes.1)], budget))
}

fn well(_: &World) -> Result<(), String> {
    Ok(())
}

/// The value of the revision that the first children have.
fn revision(set: &Wanted) -> String {
    let mut object = set.manifest();
    object["metadata"] = json!({"name": wanted::NAME, "namespace": "default", "uid": "none"});
    let read = lws_api::disaggregatedset::DisaggregatedSet::deserialize(&object);
    read.map(|set| Target::of(&Ds::from(set), &Children::default()).revision)
        .unwrap_or_default()
}

fn child(revision: &str, role: &str) -> Key {
    let name = format!("{}-0-{revision}-{role}", wanted::NAME);
    Key::new(Kind::LeaderWorkerSet, "default", &name)
}

/// The child of a role that a set has first.
pub(super) fn first_child(set: &Wanted, role: &str) -> Key {
    child(&revision(set), role)
}

/// All stories.
pub fn all() -> Vec<Story> {
    let mut all = rollouts();
    all.extend(numbers());
    all.extend(ends());
    all
}

fn images(image: &'static str) -> Deed {
    change(Change::Images(image))
}

fn rollouts() -> Vec<Story> {
    vec![
        Story {
            name: "ds_orphan_role",
            setup: || {
                steady(
                    &pair((1, 3), (0, 1)),
                    [images("v2"), Deed::Wait(2), images("v3")],
                )
            },
            judge: |world| {
                let is_orphaned = |row: &facts::Row| {
                    let live: Vec<_> = row.iter().filter(|(_, groups)| **groups > 0).collect();
                    live.len() == 1 && row.len() > 1
                };
                match world.roles.course.iter().find(|row| is_orphaned(row)) {
                    Some(row) => Err(format!("D-6: one role alone: {row:?}")),
                    None => Ok(()),
                }
            },
            guard: Some(Flaw::DrainsFirstRole),
        },
        Story {
            name: "ds_drain_order_lost",
            setup: || {
                let deeds = [
                    images("v2"),
                    Deed::Wait(1),
                    images("v3"),
                    Deed::Wait(1),
                    images("v4"),
                ];
                steady(&pair((3, 3), (1, 0)), deeds)
            },
            judge: well,
            guard: Some(Flaw::DeletesOld),
        },
        Story {
            name: "ds_surge_zero",
            setup: || steady(&pair((2, 4), (0, 1)), [images("v2")]),
            judge: |world| {
                let sum = |row: &facts::Row, role: &str| -> i64 {
                    let of_role = row.iter().filter(|((_, name), _)| name == role);
                    of_role.map(|(_, groups)| *groups).sum()
                };
                let mut rows = world.roles.course.iter();
                match rows.find(|row| sum(row, "a") > 3 || sum(row, "b") > 4) {
                    Some(row) => Err(format!(
                        "D-4: more than a bootstrap group too many: {row:?}"
                    )),
                    None => Ok(()),
                }
            },
            guard: Some(Flaw::GrowsAtOnce),
        },
        Story {
            name: "new_role_never_ready_and_then_mended",
            setup: || {
                let broken = change(Change::Image(0, BROKEN));
                steady(
                    &pair((2, 2), (1, 0)),
                    [broken, Deed::Wait(60), Deed::Settle, images("v3")],
                )
            },
            judge: well,
            guard: Some(Flaw::AllReady),
        },
        Story {
            name: "old_role_never_ready",
            setup: || {
                let broken = change(Change::Image(1, BROKEN));
                steady(
                    &pair((2, 2), (1, 1)),
                    [broken, Deed::Wait(30), images("v2")],
                )
            },
            judge: well,
            guard: None,
        },
        Story {
            name: "back_to_the_first_template",
            setup: || {
                steady(
                    &pair((3, 2), (1, 0)),
                    [images("v2"), Deed::Wait(1), images("v1")],
                )
            },
            judge: |world| {
                let mut revisions: Vec<_> = world
                    .roles
                    .course
                    .iter()
                    .flat_map(BTreeMap::keys)
                    .map(|key| &key.0)
                    .collect();
                revisions.sort_unstable();
                revisions.dedup();
                match revisions.len() {
                    1 | 2 => Ok(()),
                    n => Err(format!("D-L1: {n} revisions")),
                }
            },
            guard: None,
        },
        Story {
            name: "roles_come_go_and_are_renamed",
            setup: || {
                let deeds = [
                    Change::Add("c", 2),
                    Change::Rename(0, "e"),
                    Change::Remove(1),
                ];
                let deeds = deeds.map(change);
                story(
                    &pair((2, 2), (1, 1)),
                    deeds.into_iter().flat_map(|deed| [deed, Deed::Wait(2)]),
                )
            },
            judge: well,
            guard: Some(Flaw::KeepsDrained),
        },
    ]
}

fn numbers() -> Vec<Story> {
    vec![
        Story {
            name: "slices_come_and_go_while_rolling",
            setup: || {
                let deeds = [
                    change(Change::Slices(3)),
                    images("v2"),
                    change(Change::Slices(1)),
                ];
                story(
                    &pair((2, 1), (1, 0)),
                    deeds.into_iter().flat_map(|deed| [deed, Deed::Wait(1)]),
                )
            },
            judge: well,
            guard: Some(Flaw::KeepsSlices),
        },
        Story {
            name: "external_and_back_changes_nothing_by_itself",
            setup: || {
                let flips = [
                    change(Change::External(0, true)),
                    Deed::Settle,
                    change(Change::External(0, false)),
                ];
                story(&pair((3, 2), (1, 0)), flips)
            },
            judge: |world| {
                let rows = course(&world.roles.course, &["a", "b"]);
                match rows.as_slice() {
                    [_, row] if row == "3/2" => Ok(()),
                    rows => Err(format!("D-8: {rows:?}")),
                }
            },
            guard: Some(Flaw::SpecWins),
        },
        Story {
            name: "autoscaler_while_rolling",
            setup: || {
                let mut set = pair((2, 2), (1, 0));
                set.roles[1].external = true;
                let scale = |groups| change(Change::Scale(1, groups));
                let deeds = [
                    scale(4),
                    Deed::Settle,
                    images("v2"),
                    Deed::Wait(2),
                    scale(1),
                    Deed::Wait(3),
                    scale(3),
                ];
                story(&set, deeds)
            },
            judge: well,
            guard: Some(Flaw::DeafToScalers),
        },
        Story {
            name: "a_scaler_goes_with_its_role",
            setup: || {
                let mut set = pair((2, 2), (1, 0));
                set.roles[1].external = true;
                story(&set, [change(Change::Remove(1))])
            },
            judge: well,
            guard: Some(Flaw::KeepsScalers),
        },
        Story {
            name: "paused_and_back",
            setup: || {
                story(
                    &pair((2, 3), (0, 1)),
                    [change(Change::All(0)), Deed::Settle, change(Change::All(2))],
                )
            },
            judge: well,
            guard: None,
        },
        Story {
            name: "sub_roles_roll_and_shrink",
            setup: || {
                let mut set = pair((2, 2), (1, 0));
                set.roles[0].sub_roles = vec![("l", 2), ("s", 1)];
                let deeds = [change(Change::Replicas(0, 1)), Deed::Settle, images("v2")];
                story(&set, deeds)
            },
            judge: well,
            guard: None,
        },
    ]
}

fn ends() -> Vec<Story> {
    vec![
        Story {
            name: "foreign_child_under_our_name",
            setup: || {
                let set = pair((1, 2), (1, 0));
                let key = first_child(&set, "a");
                let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-Node-node-a-1", "controller": true});
                let revision = revision(&set);
                let labels = json!({"disaggregatedset.x-k8s.io/name": "demo", "disaggregatedset.x-k8s.io/role": "a",
                    "disaggregatedset.x-k8s.io/slice": "0", "disaggregatedset.x-k8s.io/revision": revision});
                let containers = json!([{"name": "main", "image": "other"}]);
                let body = json!({"metadata": {"labels": labels, "ownerReferences": [owner]},
                    "spec": {"replicas": 3, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": containers}}}}});
                Setup {
                    deeds: vec![
                        Deed::Create(key.clone(), body),
                        create(&set),
                        Deed::Wait(90),
                        Deed::Delete(key, Cascade::Background, None),
                    ],
                    ground: Some(Ground::default()),
                    ..Setup::default()
                }
            },
            judge: well,
            guard: Some(Flaw::AdoptsAnything),
        },
        Story {
            name: "child_deleted_at_rest_and_while_rolling",
            setup: || {
                let set = pair((2, 2), (1, 0));
                let first = first_child(&set, "a");
                let delete = |key: &Key| Deed::Delete(key.clone(), Cascade::Foreground, None);
                let deeds = [
                    delete(&first),
                    Deed::Settle,
                    images("v2"),
                    Deed::Wait(1),
                    delete(&first),
                ];
                story(&set, deeds)
            },
            judge: well,
            guard: None,
        },
        Story {
            name: "deleted_while_rolling_and_made_again",
            setup: || {
                let set = pair((2, 2), (1, 0));
                let delete = Deed::Delete(wanted::key(), Cascade::Background, None);
                let deeds = [images("v2"), Deed::Wait(1), delete, create(&set)];
                story(&set, deeds)
            },
            judge: |world| {
                let uids = world.store.list(Kind::LeaderWorkerSet);
                let old = uids.filter(|(_, child)| {
                    label(child, "disaggregatedset.x-k8s.io/name") == wanted::NAME
                });
                match old
                    .map(|(_, child)| number(child, "/spec/replicas"))
                    .sum::<i64>()
                {
                    4 => Ok(()),
                    n => Err(format!("D-L3: {n} groups")),
                }
            },
            guard: None,
        },
        Story {
            name: "nothing_is_made_for_a_set_that_ends",
            setup: || {
                let finalizers = |all: &[&str]| {
                    Deed::Patch(wanted::key(), json!({"metadata": {"finalizers": all}}))
                };
                let set = pair((1, 1), (1, 0));
                let first = first_child(&set, "a");
                let deeds = [
                    finalizers(&["example.com/held"]),
                    Deed::Delete(wanted::key(), Cascade::Background, None),
                    Deed::Delete(first, Cascade::Background, None),
                    Deed::Wait(30),
                    finalizers(&[]),
                ];
                story(&set, deeds)
            },
            judge: well,
            guard: Some(Flaw::EndIgnored),
        },
    ]
}
