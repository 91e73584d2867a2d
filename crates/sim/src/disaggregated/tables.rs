//! Rollouts that the rules write out row by row (their section 10).

use std::collections::BTreeMap;

use super::wanted::{self, Change, Role, Wanted};
use super::{Ground, facts};
use crate::actors::user::Deed;
use crate::world::{Setup, World};

/// Somebody changes something.
pub(super) fn change(change: Change) -> Deed {
    Deed::Change(Box::new(change))
}

/// Somebody creates the set.
pub(super) fn create(set: &Wanted) -> Deed {
    Deed::Create(wanted::key(), set.manifest())
}

/// A rollout that is written out: wanted groups per role of the revisions in the order of their coming, `1/2 0/1`.
pub struct Table {
    /// Its number in the rules.
    pub name: &'static str,
    roles: &'static [&'static str],
    before: Vec<Role>,
    policy: &'static str,
    deeds: Vec<Deed>,
    rows: &'static [&'static str],
}

impl Table {
    /// How it is run: everything that is asked for is ready at the next look.
    pub fn setup(&self, seed: u64) -> Setup {
        let mut set = Wanted::of(self.before.clone());
        set.policy = self.policy;
        let mut deeds = vec![create(&set), Deed::Settle];
        deeds.extend(self.deeds.iter().cloned());
        Setup {
            seed,
            deeds,
            ground: Some(Ground {
                patient: true,
                ..Ground::default()
            }),
            ..Setup::default()
        }
    }

    /// Whether the run went row by row.
    ///
    /// # Errors
    /// What it did instead.
    pub fn judge(&self, world: &World) -> Result<(), String> {
        let rows = course(&world.roles.course, self.roles);
        let found = rows
            .iter()
            .position(|row| self.rows.first() == Some(&row.as_str()));
        let rows = rows.get(found.unwrap_or(0)..).unwrap_or_default();
        let is_same = rows.len() >= self.rows.len()
            && self.rows.iter().zip(rows).all(|(one, other)| one == other);
        if is_same {
            Ok(())
        } else {
            Err(format!(
                "{}: {rows:?} instead of {:?}",
                self.name, self.rows
            ))
        }
    }
}

/// The rows of a run, each once, with the revisions in the order of their coming.
pub(super) fn course(all: &[facts::Row], roles: &[&str]) -> Vec<String> {
    let mut revisions: Vec<&str> = Vec::new();
    for (revision, _) in all.iter().flat_map(BTreeMap::keys) {
        if !revisions.contains(&revision.as_str()) {
            revisions.push(revision);
        }
    }
    let mut rows: Vec<String> = Vec::new();
    for row in all {
        let of = |revision: &&str| {
            let counts = roles.iter().map(|role| {
                let key = ((*revision).to_owned(), (*role).to_owned());
                row.get(&key).copied().unwrap_or(0).to_string()
            });
            counts.collect::<Vec<_>>().join("/")
        };
        let text = revisions.iter().map(of).collect::<Vec<_>>().join(" ");
        if rows.last() != Some(&text) {
            rows.push(text);
        }
    }
    rows
}

/// Roles of these sizes with one budget.
pub(super) fn roles(sizes: &[(&'static str, i64)], budget: (i64, i64)) -> Vec<Role> {
    let all = sizes.iter();
    all.map(|(name, replicas)| Role::new(name, *replicas, budget))
        .collect()
}

fn template(
    name: &'static str,
    sizes: &[(&'static str, i64)],
    budget: (i64, i64),
    rows: &'static [&'static str],
) -> Table {
    let names: &'static [&'static str] = if sizes.len() == 1 {
        &["a"]
    } else {
        &["a", "b"]
    };
    Table {
        name,
        roles: names,
        before: roles(sizes, budget),
        policy: "RolloutCoupled",
        deeds: vec![change(Change::Images("v2"))],
        rows,
    }
}

/// Tables of the rules.
pub fn tables() -> Vec<Table> {
    let mut all = templates();
    all.extend(resized());
    all.extend(interrupted());
    all
}

fn templates() -> Vec<Table> {
    vec![
        template(
            "T01",
            &[("a", 1), ("b", 1)],
            (0, 1),
            &["1/1 0/0", "0/0 0/0", "0/0 1/1"],
        ),
        template(
            "T02",
            &[("a", 1), ("b", 1)],
            (1, 0),
            &["1/1 0/0", "1/1 1/1", "0/0 1/1"],
        ),
        template(
            "T03",
            &[("a", 1), ("b", 2)],
            (0, 1),
            &[
                "1/2 0/0", "1/1 0/0", "1/1 0/1", "1/1 1/1", "0/0 1/1", "0/0 1/2",
            ],
        ),
        template(
            "T07",
            &[("a", 3), ("b", 7)],
            (1, 1),
            &[
                "3/7 0/0", "2/6 1/1", "2/5 1/2", "1/4 2/3", "1/3 2/4", "1/2 3/5", "1/1 3/6",
                "0/0 3/7",
            ],
        ),
        template(
            "T08",
            &[("a", 1), ("b", 5)],
            (0, 1),
            &[
                "1/5 0/0", "1/4 0/0", "1/4 0/1", "1/4 1/1", "1/3 1/1", "1/3 1/2", "1/2 1/2",
                "1/2 1/3", "1/1 1/3", "1/1 1/4", "0/0 1/4", "0/0 1/5",
            ],
        ),
        template(
            "T09",
            &[("a", 3)],
            (0, 1),
            &["3 0", "2 0", "2 1", "1 1", "1 2", "0 2", "0 3"],
        ),
        template(
            "T13",
            &[("a", 8), ("b", 4)],
            (2, 2),
            &["8/4 0/0", "6/2 2/2", "4/1 4/3", "2/1 6/4", "0/0 8/4"],
        ),
        template(
            "T22",
            &[("a", 4), ("b", 4)],
            (2, 0),
            &["4/4 0/0", "4/4 2/2", "2/2 2/2", "2/2 4/4", "0/0 4/4"],
        ),
    ]
}

fn resized() -> Vec<Table> {
    let coupled = "RolloutCoupled";
    let images = || change(Change::Images("v2"));
    let with = |name, sizes: &[(&'static str, i64)], names, deeds, rows| Table {
        name,
        roles: names,
        before: roles(sizes, (1, 0)),
        policy: coupled,
        deeds,
        rows,
    };
    vec![
        with(
            "T14",
            &[("a", 2), ("b", 4)],
            &["a", "b"],
            vec![
                images(),
                change(Change::Replicas(0, 4)),
                change(Change::Replicas(1, 8)),
            ],
            &[
                "2/4 0/0", "2/4 1/1", "1/3 2/2", "1/2 2/3", "1/1 3/4", "0/0 3/5", "0/0 4/8",
            ],
        ),
        with(
            "T15",
            &[("a", 4), ("b", 8)],
            &["a", "b"],
            vec![
                images(),
                change(Change::Replicas(0, 2)),
                change(Change::Replicas(1, 4)),
            ],
            &[
                "4/8 0/0", "2/4 1/1", "1/3 2/2", "1/2 2/3", "1/1 2/4", "0/0 2/4",
            ],
        ),
        with(
            "T16",
            &[("a", 2), ("b", 2)],
            &["a", "b", "c"],
            vec![change(Change::Add("c", 2))],
            &[
                "2/2/0 0/0/0",
                "2/2/0 1/1/2",
                "1/1/0 1/1/2",
                "1/1/0 2/2/2",
                "0/0/0 2/2/2",
            ],
        ),
        with(
            "T17",
            &[("a", 2), ("b", 2), ("c", 2)],
            &["a", "b", "c"],
            vec![change(Change::Remove(2))],
            &[
                "2/2/2 0/0/0",
                "2/2/1 1/1/0",
                "1/1/1 1/1/0",
                "1/1/1 2/2/0",
                "0/0/0 2/2/0",
            ],
        ),
        with(
            "T18",
            &[("a", 2), ("b", 2)],
            &["a", "c", "b"],
            vec![change(Change::Rename(1, "c"))],
            &[
                "2/0/2 0/0/0",
                "2/0/1 1/2/0",
                "1/0/1 1/2/0",
                "1/0/1 2/2/0",
                "0/0/0 2/2/0",
            ],
        ),
        with(
            "T19",
            &[("a", 2), ("b", 2)],
            &["c", "e", "a", "b"],
            vec![
                change(Change::Rename(0, "c")),
                change(Change::Rename(1, "e")),
            ],
            &[
                "0/0/2/2 0/0/0/0",
                "0/0/2/2 1/1/0/0",
                "0/0/1/1 2/2/0/0",
                "0/0/0/0 2/2/0/0",
            ],
        ),
    ]
}

/// Changes while a rollout runs; the number of rows that were seen before tells when.
fn interrupted() -> Vec<Table> {
    let four = || roles(&[("a", 4), ("b", 4)], (1, 0));
    let of = |name, policy, deeds, rows| Table {
        name,
        roles: &["a", "b"],
        before: four(),
        policy,
        deeds,
        rows,
    };
    let images = |image| change(Change::Images(image));
    let shrunk = |rows| vec![images("v2"), Deed::Rows(rows), change(Change::All(1))];
    vec![
        of(
            "M06",
            "RolloutCoupled",
            vec![images("v2"), Deed::Rows(5), images("v3")],
            &[
                "3/3 2/2 0/0",
                "3/3 1/1 0/0",
                "3/3 1/1 1/1",
                "3/3 0/0 1/1",
                "3/3 0/0 2/2",
                "2/2 0/0 2/2",
                "2/2 0/0 3/3",
                "1/1 0/0 3/3",
                "1/1 0/0 4/4",
                "0/0 0/0 4/4",
            ],
        ),
        of(
            "M09",
            "RolloutCoupled",
            vec![images("v2"), Deed::Rows(5), images("v1")],
            &["3/3 2/2", "3/3 1/1", "4/4 1/1", "4/4 0/0"],
        ),
        of(
            "M11",
            "RolloutCoupled",
            shrunk(7),
            &[
                "4/4 0/0", "4/4 1/1", "3/3 1/1", "3/3 2/2", "2/2 2/2", "2/2 3/3", "0/0 3/3",
                "0/0 1/1",
            ],
        ),
        of(
            "M12",
            "AdvanceRollout",
            shrunk(7),
            &[
                "4/4 0/0", "4/4 1/1", "3/3 1/1", "3/3 2/2", "2/2 2/2", "2/2 3/3", "0/0 3/3",
                "0/0 1/1",
            ],
        ),
    ]
}
