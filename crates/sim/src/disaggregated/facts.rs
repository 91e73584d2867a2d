//! History of the DisaggregatedSets of a run.

use std::collections::{BTreeMap, BTreeSet};

use lws_core::disaggregatedset::Snapshot;
use serde_json::{Value, json};

use crate::actors::{number, uid};
use crate::store::text;

/// Steps of rollouts that left a role with fewer groups than its own budget keeps, as the coordination of roles permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dips {
    /// Steps that take groups away.
    pub drains: u64,
    /// Those of them that are dips.
    pub dips: u64,
    /// Most groups below what the budget keeps.
    pub deepest: u64,
}

impl Dips {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.drains += other.drains;
        self.dips += other.dips;
        self.deepest = self.deepest.max(other.deepest);
    }
}

/// Wanted groups of the children of a set, by revision and role.
pub type Row = BTreeMap<(String, String), i64>;

/// History of a run.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What the roles of a set wanted of their groups, by its UID and generation.
    pub contents: BTreeMap<(String, i64), String>,
    /// D-2: the hash that stands for such a want, by UID of the set.
    pub hashes: BTreeMap<(String, String), String>,
    /// D-2: what the first child was made of, by UID of the set, revision and role.
    pub templates: BTreeMap<(String, String, String), Value>,
    /// D-10: sizes that a role had while its set wanted this, by UID of the set, want and role.
    pub sizes: BTreeMap<(String, String, String), BTreeSet<i64>>,
    /// Roles that a scaler or sub-roles gave their size at some time.
    pub scaled: BTreeSet<String>,
    /// The want that a child was made for, by its UID.
    pub made_for: BTreeMap<String, String>,
    /// Children that somebody else changed the spec or the annotations of, by UID.
    pub meddled: BTreeSet<String>,
    /// Somebody else took groups away, or changed a child.
    pub disturbed: bool,
    /// The set was available once.
    pub was_available: bool,
    /// Dips in what was decided.
    pub dips: Dips,
    /// Wanted groups by revision and role, as every look at the set found them.
    pub course: Vec<Row>,
}

impl Facts {
    /// Learns what a set wants.
    pub fn learn(&mut self, set: &Value) {
        let content = content(set);
        let id = (uid(set).to_owned(), number(set, "/metadata/generation"));
        for role in set["spec"]["roles"].as_array().into_iter().flatten() {
            let name = text(role, "/name").unwrap_or_default().to_owned();
            if role.get("scaling").is_some() || role.get("subRoles").is_some() {
                self.scaled.insert(name.clone());
            }
            let of = (id.0.clone(), content.clone(), name);
            let sizes = self.sizes.entry(of).or_default();
            sizes.insert(number(role, "/spec/replicas"));
        }
        self.contents.insert(id, content);
    }

    /// Notes a look at a set.
    pub fn look(&mut self, seen: &Snapshot) {
        let children = seen.children.list.iter();
        let row: Row = children
            .map(|child| {
                let key = (child.revision().to_owned(), child.role().to_owned());
                (key, child.replicas().into())
            })
            .collect();
        if self.course.last() != Some(&row) {
            self.course.push(row);
        }
    }
}

/// REV-3, REV-4: what a set wants of its groups, in the order of role names.
pub fn content(set: &Value) -> String {
    let roles = set["spec"]["roles"].as_array();
    let mut wants: Vec<(String, Value)> = roles
        .into_iter()
        .flatten()
        .map(|role| {
            let name = text(role, "/name").unwrap_or_default().to_owned();
            let mut spec = role["spec"].clone();
            if let Some(members) = spec.as_object_mut() {
                members.remove("replicas");
                members.remove("rolloutStrategy");
            }
            (name, spec)
        })
        .collect();
    wants.sort_by(|(one, _), (other, _)| one.cmp(other));
    json!(wants).to_string()
}
