//! Requests of a trace. They name what they mean; UIDs and versions are looked up when a request is made.

use std::fmt;

use serde_json::{Value, json};

use super::families;
use crate::random::Random;
use crate::store::{Cascade, Kind};

/// A UID that no object has.
pub const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
/// A version that no object has any more.
pub const LONG_AGO: &str = "1";

/// Requests of one family, made from a seed.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The seed.
    pub seed: u64,
    /// What the requests are about.
    pub family: &'static str,
    /// Whether our controllers take part.
    pub is_ours: bool,
    /// They, in order.
    pub operations: Vec<Operation>,
}

impl Trace {
    /// The trace of a seed. Families take turns, so that a range of seeds has them all.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let turn = usize::try_from(seed).unwrap_or(0) % families::ALL.len();
        let (family, is_ours, make) = families::ALL[turn];
        Self {
            seed,
            family,
            is_ours,
            operations: make(&mut random),
        }
    }
}

/// An object by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Kind.
    pub kind: Kind,
    /// Name.
    pub name: String,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.name)
    }
}

/// A precondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// None.
    Absent,
    /// It holds, if the object is there.
    Right,
    /// It does not hold.
    Wrong,
}

impl Fence {
    /// The value to send, given that of the object.
    pub fn value(self, live: Option<&str>, wrong: &str) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Right => Some(live.unwrap_or(wrong).to_owned()),
            Self::Wrong => Some(wrong.to_owned()),
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub enum Operation {
    /// POST.
    Create(Named, Value),
    /// POST with `generateName`: the name stands for the prefix.
    Generate(Named, Value),
    /// Server-side apply as our controller does: its manager, forced, with the UID.
    Apply(Named, Fence, Value),
    /// Merge patch of the object with UID and version.
    Patch(Named, Fence, Fence, Value),
    /// Merge patch of its status.
    PatchStatus(Named, Fence, Fence, Value),
    /// Merge patch of its scale subresource.
    Scale(Named, i64),
    /// DELETE with UID, version, propagation policy and grace period.
    Delete(Named, Fence, Fence, Option<Cascade>, Option<i64>),
}

impl Operation {
    /// What it is about.
    pub fn target(&self) -> &Named {
        match self {
            Self::Create(named, ..)
            | Self::Generate(named, ..)
            | Self::Apply(named, ..)
            | Self::Patch(named, ..)
            | Self::PatchStatus(named, ..)
            | Self::Scale(named, ..)
            | Self::Delete(named, ..) => named,
        }
    }

    /// Whether a request that was taken changed something that can be seen; who wrote which member, and when, cannot. Of a new object and of a
    /// deletion, which the garbage collector may have answered meanwhile, it is not asked.
    pub fn is_changed(&self, before: Option<&Value>, after: Option<&Value>) -> bool {
        let visible = |object: Option<&Value>| {
            let mut object = object.cloned().unwrap_or_default();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
                metadata.remove("resourceVersion");
            }
            object
        };
        matches!(self, Self::Generate(..) | Self::Delete(..)) || visible(before) != visible(after)
    }

    /// The body to send, given the object as it is: with the UID and version that are wanted, and with the real UIDs of owners.
    pub fn body(&self, live: Option<&Value>, owner: impl Fn(&Named) -> Option<String>) -> Value {
        let text = |pointer: &str| {
            live.and_then(|o| o.pointer(pointer))
                .and_then(Value::as_str)
        };
        let (uid, version) = (text("/metadata/uid"), text("/metadata/resourceVersion"));
        let mut body = match self {
            Self::Create(_, body)
            | Self::Generate(_, body)
            | Self::Apply(_, _, body)
            | Self::Patch(_, _, _, body)
            | Self::PatchStatus(_, _, _, body) => body.clone(),
            Self::Scale(_, replicas) => json!({"spec": {"replicas": replicas}}),
            Self::Delete(..) => json!({}),
        };
        let (wanted_uid, wanted_version) = match self {
            Self::Apply(_, fence, _) => (fence.value(uid, NOBODY), None),
            Self::Patch(_, by_uid, by_version, _) | Self::PatchStatus(_, by_uid, by_version, _) => {
                (
                    by_uid.value(uid, NOBODY),
                    by_version.value(version, LONG_AGO),
                )
            }
            Self::Create(..) | Self::Generate(..) | Self::Scale(..) | Self::Delete(..) => {
                (None, None)
            }
        };
        if let Some(uid) = wanted_uid {
            body["metadata"]["uid"] = json!(uid);
        }
        if let Some(version) = wanted_version {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        name_owners(&mut body, owner);
        body
    }
}

/// Owner references in a trace have no UID: it is that of the owner now.
fn name_owners(body: &mut Value, owner: impl Fn(&Named) -> Option<String>) {
    let references = body.pointer_mut("/metadata/ownerReferences");
    for reference in references
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| reference["kind"] == kind.name());
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        let uid = kind.and_then(|kind| owner(&Named { kind, name }));
        reference["uid"] = json!(uid.as_deref().unwrap_or(NOBODY));
    }
}
