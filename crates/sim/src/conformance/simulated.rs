//! The simulated side: requests to the store, and rest after each.

use lws_core::run::{Class, Failure};
use serde_json::Value;

use super::trace::{LONG_AGO, NOBODY};
use super::{Named, Names, Operation, View};
use crate::api;
use crate::store::{self, Answer, Cascade, Deletion, Key, text};
use crate::world::{Setup, World};

/// A rule of API servers that a simulated one can be made to break, to show that traces notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// UIDs and versions in requests count for nothing.
    Preconditions,
    /// Dependents always go in the background.
    Propagation,
    /// What an applier no longer names stays.
    Ownership,
}

impl Break {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Preconditions, Self::Propagation, Self::Ownership];
}

/// A simulated cluster that is given requests.
pub struct Simulated {
    world: World,
    namespace: String,
    names: Names,
    broken: Option<Break>,
}

impl Simulated {
    /// An empty cluster. What happens is in `namespace`; with `ours`, one process of ours runs.
    pub fn new(seed: u64, namespace: &str, ours: bool) -> Self {
        let setup = Setup {
            seed,
            processes: usize::from(ours),
            ..Setup::default()
        };
        Self {
            world: World::new(setup),
            namespace: namespace.to_owned(),
            names: Names::default(),
            broken: None,
        }
    }

    /// The same with a broken rule.
    pub fn broken(self, rule: Break) -> Self {
        Self {
            broken: Some(rule),
            ..self
        }
    }

    fn breaks(&self, rule: Break) -> bool {
        self.broken == Some(rule)
    }

    fn key(&self, named: &Named) -> Key {
        Key::new(named.kind, &self.namespace, &named.name)
    }

    /// Makes a request. The answer is a line: code, reason, and whether the object was changed.
    pub fn make(&mut self, operation: &Operation) -> String {
        let key = self.key(operation.target());
        let live = self.world.store.get(&key).cloned();
        let owner = |named: &Named| {
            let owner = self.world.store.get(&self.key(named))?;
            text(owner, "/metadata/uid").map(str::to_owned)
        };
        let mut body = operation.body(live.as_deref(), owner);
        let is_patch = !matches!(operation, Operation::Apply(..));
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && self.breaks(Break::Preconditions)
            && is_patch
        {
            metadata.remove("uid");
            metadata.remove("resourceVersion");
        }
        let answer = self.send(operation, key.clone(), live.as_deref(), body);
        let after = self.world.store.get(&key).map(|object| &**object);
        let is_changed = operation.is_changed(live.as_deref(), after);
        match answer {
            Ok(_) => format!("OK{}", if is_changed { "" } else { ", unchanged" }),
            Err(failure) => reason(&failure),
        }
    }

    fn send(
        &mut self,
        operation: &Operation,
        key: Key,
        live: Option<&Value>,
        body: Value,
    ) -> Answer {
        let fenced = !self.breaks(Break::Preconditions);
        let by_policy = !self.breaks(Break::Propagation);
        let merges = self.breaks(Break::Ownership);
        let store = &mut self.world.store;
        match operation {
            Operation::Apply(..) if merges => store.patch("applier", &key, false, &body),
            Operation::Create(..) => api::create(store, "user", key, body),
            Operation::Generate(..) => api::generate(store, "user", &key, body),
            Operation::Apply(..) => store.apply("applier", &key, &body),
            Operation::Patch(..) | Operation::Scale(..) => api::patch(store, "user", &key, &body),
            Operation::PatchStatus(..) => store.patch("user", &key, true, &body),
            Operation::Delete(_, by_uid, by_version, cascade, grace) => {
                let of = |pointer| live.and_then(|object| text(object, pointer));
                let uid = by_uid.value(of("/metadata/uid"), NOBODY);
                let version = by_version.value(of("/metadata/resourceVersion"), LONG_AGO);
                let cascade = cascade.unwrap_or_else(|| as_before(live));
                let deletion = Deletion {
                    uid: uid.filter(|_| fenced),
                    version: version.filter(|_| fenced),
                    cascade: if by_policy {
                        cascade
                    } else {
                        Cascade::Background
                    },
                    grace: *grace,
                };
                store.delete("user", &key, &deletion)
            }
        }
    }

    /// Everybody does what is due, until nobody has anything left to do; a violated property is an error.
    pub fn rest(&mut self) -> Result<View, String> {
        let outcome = self.world.run();
        outcome.map_err(|violation| format!("the simulated cluster: {violation:?}"))?;
        let objects = self.world.store.all();
        let here = objects.filter(|(key, _)| *key.namespace == *self.namespace);
        let objects: Vec<(Named, Value)> = here
            .map(|(key, object)| {
                let named = Named {
                    kind: key.kind,
                    name: key.name.to_string(),
                };
                (named, (**object).clone())
            })
            .collect();
        Ok(View::of(&objects, &mut self.names))
    }
}

/// Without a policy, that of an earlier deletion stands.
fn as_before(live: Option<&Value>) -> Cascade {
    let held = live.map(store::finalizers).unwrap_or_default();
    if held.contains(&store::ORPHAN) {
        Cascade::Orphan
    } else if held.contains(&store::FOREGROUND) {
        Cascade::Foreground
    } else {
        Cascade::Background
    }
}

/// What an API server answers.
fn reason(failure: &Failure) -> String {
    let reason = match failure.class {
        Class::Gone => "404 NotFound",
        Class::Conflict => "409 Conflict",
        Class::Exists => "409 AlreadyExists",
        Class::Rejected => "422 Invalid",
        Class::Throttled => "429 TooManyRequests",
        Class::Terminating => "403 Forbidden",
        Class::Unknown => "500 InternalError",
    };
    reason.to_owned()
}
