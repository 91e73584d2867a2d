//! All objects of a namespace at rest, in a form that two clusters can have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Named, mask};
use crate::store::{Kind, text};

/// What has been seen of a cluster so far: it tells which object of a name this is, and which revision of a set.
#[derive(Clone, Debug, Default)]
pub struct Names {
    uids: BTreeMap<Named, Vec<String>>,
    revisions: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

/// Masked objects by kind and name.
#[derive(Clone, Debug, PartialEq)]
pub struct View(BTreeMap<String, Value>);

impl View {
    /// The view of some objects.
    pub fn of(objects: &[(Named, Value)], names: &mut Names) -> Self {
        names.learn(objects);
        let live: BTreeSet<&str> = objects
            .iter()
            .filter_map(|(_, object)| text(object, "/metadata/uid"))
            .collect();
        let masked = objects.iter().map(|(named, object)| {
            let mut object = object.clone();
            mask::apply(named.kind, &mut object);
            names.replace(named, &mut object, &live);
            let name = format!("{} {}", named.kind.name(), names.name(&named.name));
            (name, object)
        });
        Self(masked.collect())
    }
}

impl Names {
    fn learn(&mut self, objects: &[(Named, Value)]) {
        for (named, object) in objects {
            let uid = text(object, "/metadata/uid").unwrap_or_default().to_owned();
            let uids = self.uids.entry(named.clone()).or_default();
            if !uids.contains(&uid) {
                uids.push(uid);
            }
            // Five letters are the API server's; a set numbers its pods.
            if let Some(prefix) = text(object, "/metadata/generateName")
                && named.name.len() == prefix.len() + 5
            {
                self.generated
                    .insert(named.name.clone(), format!("{prefix}*"));
            }
        }
        let mut revisions: Vec<(i64, &str, &str)> = objects
            .iter()
            .filter(|(named, _)| named.kind == Kind::ControllerRevision)
            .filter_map(|(named, object)| {
                let set = text(object, "/metadata/ownerReferences/0/name")?;
                let is_of_stateful_set =
                    text(object, "/metadata/ownerReferences/0/kind") == Some("StatefulSet");
                let number = object["revision"].as_i64().unwrap_or_default();
                is_of_stateful_set.then_some((number, named.name.as_str(), set))
            })
            .collect();
        revisions.sort_unstable();
        for (_, name, set) in revisions {
            let known = self.revisions.values();
            let prefix = format!("{set}@");
            let number = known.filter(|known| known.starts_with(&prefix)).count() + 1;
            self.revisions
                .entry(name.to_owned())
                .or_insert(format!("{prefix}{number}"));
        }
    }

    /// A name as both clusters have it.
    fn name(&self, name: &str) -> String {
        let known = self.revisions.get(name).or(self.generated.get(name));
        known.map_or_else(|| name.to_owned(), Clone::clone)
    }

    fn replace(&self, named: &Named, object: &mut Value, live: &BTreeSet<&str>) {
        let uid = text(object, "/metadata/uid").unwrap_or_default();
        let uids = self.uids.get(named);
        let instance = uids.and_then(|uids| uids.iter().position(|known| known == uid));
        object["metadata"]["uid"] = json!(format!("of instance {}", instance.unwrap_or(0) + 1));
        let references = object.pointer_mut("/metadata/ownerReferences");
        for reference in references
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let is_live = reference["uid"]
                .as_str()
                .is_some_and(|uid| live.contains(uid));
            reference["uid"] = json!(if is_live {
                "of what lives"
            } else {
                "of what is gone"
            });
        }
        self.rename(object);
    }

    fn rename(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.name(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.rename(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Where the simulated and the real view are not equal, one line each.
pub fn differences(simulated: &View, real: &View) -> Vec<String> {
    let mut lines = Vec::new();
    let names: BTreeSet<&String> = simulated.0.keys().chain(real.0.keys()).collect();
    for name in names {
        compare(name, simulated.0.get(name), real.0.get(name), &mut lines);
    }
    lines
}

fn compare(path: &str, simulated: Option<&Value>, real: Option<&Value>, lines: &mut Vec<String>) {
    match (simulated, real) {
        (simulated, real) if simulated == real => {}
        (Some(Value::Object(simulated)), Some(Value::Object(real))) => {
            let names: BTreeSet<&String> = simulated.keys().chain(real.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                compare(&path, simulated.get(name), real.get(name), lines);
            }
        }
        (Some(Value::Array(simulated)), Some(Value::Array(real)))
            if simulated.len() == real.len() =>
        {
            for (index, pair) in simulated.iter().zip(real).enumerate() {
                compare(
                    &format!("{path}/{index}"),
                    Some(pair.0),
                    Some(pair.1),
                    lines,
                );
            }
        }
        (simulated, real) => {
            let word = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            lines.push(format!(
                "  {path}\n    simulated  {}\n    real       {}",
                word(simulated),
                word(real)
            ));
        }
    }
}
