//! A draft as JSON patch of exactly the paths that change (ADM-2).

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation};
use lws_api::names::REPLACEMENT_GATE;
use serde_json::{Map, Value, json};

use super::draft::{Draft, Entry};
use super::place::{self, Kind};
use super::tpu::Addition;
use crate::admission::json::Json;

/// The two lists of a pod whose containers get variables (ENV-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerList {
    Main,
    Init,
}

impl ContainerList {
    /// Member of the pod's spec.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Main => "containers",
            Self::Init => "initContainers",
        }
    }
}

/// Operations in the order in which they must be applied.
#[derive(Default)]
struct Operations(Vec<PatchOperation>);

/// Everything that was decided about the pod; empty if the pod is so already.
pub(super) fn build(draft: &Draft<'_>, front: &[Entry; 3], tpu: &[Addition]) -> Patch {
    let mut operations = Operations::default();
    let metadata = draft.metadata();
    operations.set_entries("labels", metadata.at("labels"), draft.labels());
    operations.set_entries(
        "annotations",
        metadata.at("annotations"),
        draft.annotations(),
    );
    operations.set_spec(draft, "hostname", draft.new_hostname().map(Value::from));
    operations.set_spec(draft, "subdomain", draft.new_subdomain().map(Value::from));
    let group = draft.pod_group().map(|name| json!({"podGroupName": name}));
    operations.set_spec(draft, "schedulingGroup", group);
    operations.add_gate(draft);
    operations.add_placements(draft);
    for list in [ContainerList::Init, ContainerList::Main] {
        for (index, container) in draft.spec().at(list.member()).items().enumerate() {
            let own = tpu
                .iter()
                .find(|addition| addition.list == list && addition.index == index);
            let back = own.map_or_else(Default::default, |addition| addition.entries.as_slice());
            operations.set_env(list, index, container, front, back);
        }
    }
    Patch(operations.0)
}

impl Operations {
    /// Sets members of a map of the metadata. The map itself may be absent.
    fn set_entries(&mut self, member: &str, current: Json<'_>, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        if !current.is_object() {
            let all = entries
                .iter()
                .map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
            return self.add(path(&["metadata", member]), Value::Object(all.collect()));
        }
        for (key, value) in entries {
            if current.at(key).string() != Some(value) {
                self.add(
                    path(&["metadata", member, key]),
                    Value::from(value.as_str()),
                );
            }
        }
    }

    fn set_spec(&mut self, draft: &Draft<'_>, member: &str, value: Option<Value>) {
        if let Some(value) = value.filter(|value| draft.spec().at(member) != Json::of(value)) {
            self.add(path(&["spec", member]), value);
        }
    }

    /// Our gate after those of the template.
    fn add_gate(&mut self, draft: &Draft<'_>) {
        let gates = draft.spec().at("schedulingGates");
        let has_it = gates
            .items()
            .any(|gate| gate.at("name").text() == REPLACEMENT_GATE);
        if !draft.is_gated() || has_it {
            return;
        }
        let gate = json!({"name": REPLACEMENT_GATE});
        match gates.array() {
            Some(_) => self.add(path(&["spec", "schedulingGates", "-"]), gate),
            None => self.add(path(&["spec", "schedulingGates"]), json!([gate])),
        }
    }

    /// The terms of exclusive placement after the user's, with whatever is missing above them.
    fn add_placements(&mut self, draft: &Draft<'_>) {
        if draft.placements().is_empty() {
            return;
        }
        let affinity = draft.spec().at("affinity");
        let terms = |kind| -> Vec<Value> {
            draft
                .placements()
                .iter()
                .map(|each| place::term(kind, each))
                .collect()
        };
        if !affinity.is_object() {
            let both = Kind::BOTH.map(|kind| {
                (
                    kind.member().to_owned(),
                    json!({place::REQUIRED: terms(kind)}),
                )
            });
            return self.add(
                path(&["spec", "affinity"]),
                Value::Object(Map::from_iter(both)),
            );
        }
        for kind in Kind::BOTH {
            let parent = path(&["spec", "affinity", kind.member()]);
            let list = parent.with_trailing_token(place::REQUIRED);
            let current = affinity.at(kind.member());
            if current.at(place::REQUIRED).array().is_some() {
                for term in terms(kind) {
                    self.add(list.with_trailing_token("-"), term);
                }
            } else if current.is_object() {
                self.add(list, terms(kind).into());
            } else {
                self.add(parent, json!({place::REQUIRED: terms(kind)}));
            }
        }
    }

    /// ENV-1, ENV-4: `front`, what the user wrote under other names, then `back`; of equal names the first stays.
    fn set_env(
        &mut self,
        list: ContainerList,
        index: usize,
        container: Json<'_>,
        front: &[Entry],
        back: &[Entry],
    ) {
        if !container.is_object() {
            return;
        }
        let list = path(&["spec", list.member(), &index.to_string(), "env"]);
        let Some(current) = container.at("env").array() else {
            let all: Vec<_> = front.iter().chain(back).map(variable).collect();
            return self.add(list, all.into());
        };
        let starts_so = current.len() >= front.len()
            && current
                .iter()
                .zip(front)
                .all(|(own, wanted)| *own == variable(wanted));
        let kept = if starts_so { front.len() } else { 0 };
        let mut names: Vec<&str> = front.iter().map(|(name, _)| *name).collect();
        let mut repeated = Vec::new();
        for (position, entry) in current.iter().enumerate().skip(kept) {
            match Json::of(entry).at("name").string() {
                Some(name) if names.contains(&name) => repeated.push(position),
                Some(name) => names.push(name),
                None => {}
            }
        }
        for position in repeated.into_iter().rev() {
            self.remove(list.with_trailing_token(position));
        }
        for (position, entry) in front.iter().enumerate().skip(kept) {
            self.add(list.with_trailing_token(position), variable(entry));
        }
        for entry in back.iter().filter(|(name, _)| !names.contains(name)) {
            self.add(list.with_trailing_token("-"), variable(entry));
        }
    }

    fn add(&mut self, path: PointerBuf, value: Value) {
        self.0
            .push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn remove(&mut self, path: PointerBuf) {
        self.0
            .push(PatchOperation::Remove(RemoveOperation { path }));
    }
}

fn path(tokens: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(tokens.iter().copied())
}

fn variable((name, value): &Entry) -> Value {
    json!({"name": name, "value": value})
}
