//! The judge: what must hold after every commit, for every decision, and when all is quiet (section 7 of the test program).

mod commits;
mod decisions;
mod rest;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::store::Kind;

pub use commits::{Writing, check_commit};
pub use decisions::check_decision;
pub use rest::check_rest;

/// A property does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its id.
    pub property: &'static str,
    /// What is wrong.
    pub text: String,
}

/// Makes a violation.
pub fn violated(property: &'static str, text: impl Into<String>) -> Violation {
    Violation {
        property,
        text: text.into(),
    }
}

/// What is known of every object that ever was.
#[derive(Clone, Debug)]
pub struct Known {
    /// Kind.
    pub kind: Kind,
    /// Name.
    pub name: String,
    /// UID of its controller.
    pub controller: Option<String>,
}

/// History of a run.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Every object by UID.
    pub known: BTreeMap<String, Known>,
    /// Incidents by UID of the leader.
    pub incidents: BTreeMap<String, u32>,
    /// Leaders with an incident that must be answered, and which of our processes knew the pod that failed.
    pub owed: BTreeMap<String, BTreeSet<usize>>,
    /// Leaders that we deleted.
    pub deleted_leaders: BTreeSet<String>,
    /// An answer was lost, a process died, or two led.
    pub may_repeat: bool,
    /// FM-12: our clock was wrong at some time.
    pub clock_stepped: bool,
    /// Leaders that were ready at some time.
    pub ready_leaders: BTreeSet<String>,
    /// Recreations by set, revision and group index, since the last recovery.
    pub recreations: BTreeMap<(String, String, String), u32>,
    /// Highest partition that the user asked for.
    pub user_partition: i64,
    /// Our writes.
    pub writes: u64,
    /// Pods that were deleted, by name.
    pub pod_ends: BTreeMap<String, u32>,
    /// Worker sets that were made before their maker had been told of a pod under one of their names.
    pub blind_sets: BTreeSet<String>,
    /// Failed creates of pods by the StatefulSet controller, by name, in the last minute.
    pub failed_creates: BTreeMap<String, Vec<u64>>,
}

impl Facts {
    /// The UID of the leader that a pod belongs to by its chain of controllers, be it that leader itself.
    pub fn leader_of(&self, pod: &Value) -> Option<String> {
        let owner = crate::actors::controller(pod)?["uid"].as_str()?;
        let set = self.known.get(owner)?;
        match &set.controller {
            Some(above) if self.known.get(above).is_some_and(|k| k.kind == Kind::Pod) => {
                Some(above.clone())
            }
            _ if crate::actors::label(pod, lws_api::names::label::WORKER_INDEX) == "0" => {
                Some(crate::actors::uid(pod).to_owned())
            }
            _ => None,
        }
    }

    /// S-1: the chain of controllers of `uid` ends at a set.
    pub fn is_ours(&self, uid: &str) -> bool {
        let mut uid = uid.to_owned();
        for _ in 0..6 {
            match self.known.get(&uid) {
                Some(known) if known.kind == Kind::LeaderWorkerSet => return true,
                Some(Known {
                    controller: Some(above),
                    ..
                }) => uid.clone_from(above),
                Some(_) | None => return false,
            }
        }
        false
    }
}
