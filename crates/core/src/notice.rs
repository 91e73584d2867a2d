//! Events as plans state them (ORD-115).

pub mod sink;

use std::borrow::Cow;
use std::sync::Arc;

use crate::intent::{Kind, Target};
use crate::model::{Lws, ObjectKey, Pod, Uid};

/// Longest note that the API takes, in bytes.
pub const NOTE_LIMIT: usize = 1024;

/// Event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something went as it should.
    Normal,
    /// A person may have to look.
    Warning,
}

impl Severity {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Event action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Something was or was to be created.
    Create,
    /// … updated.
    Update,
    /// … deleted.
    Delete,
    /// Something goes above a limit to get started.
    Bootstrap,
    /// Something goes below a limit to make room.
    ReleaseCapacity,
    /// Something is waited for.
    Wait,
    /// A value that was lost is made up for.
    Recover,
    /// Something of somebody else stands in the way.
    Conflict,
    /// Something is left alone.
    Ignore,
}

impl Action {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::Bootstrap => "Bootstrap",
            Self::ReleaseCapacity => "ReleaseCapacity",
            Self::Wait => "Wait",
            Self::Recover => "Recover",
            Self::Conflict => "Conflict",
            Self::Ignore => "Ignore",
        }
    }
}

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Kind and name.
    pub target: Target,
    /// UID, empty if not known yet.
    pub uid: Uid,
}

impl From<&Lws> for Reference {
    fn from(lws: &Lws) -> Self {
        Self {
            target: Target {
                kind: Kind::LeaderWorkerSet,
                key: lws.key().clone(),
            },
            uid: lws.meta.uid.clone(),
        }
    }
}

impl From<&Pod> for Reference {
    fn from(pod: &Pod) -> Self {
        Self {
            target: Target {
                kind: Kind::Pod,
                key: pod.key().clone(),
            },
            uid: pod.meta.uid.clone(),
        }
    }
}

impl Reference {
    /// A revision by its name.
    pub fn revision(key: ObjectKey, uid: Uid) -> Self {
        Self {
            target: Target {
                kind: Kind::ControllerRevision,
                key,
            },
            uid,
        }
    }
}

/// The text of an event. Texts that differ in one name only are joined (ORD-115), so such a text keeps that name apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// A text without a name to join on.
    Text(String),
    /// `<one> <name><tail>`, or for several `<many> <name>, <name> and <n> more<tail>`.
    Named {
        /// Text before one name.
        one: Cow<'static, str>,
        /// Text before several names.
        many: Cow<'static, str>,
        /// The name.
        name: Arc<str>,
        /// Text after the name or names.
        tail: String,
    },
}

impl Note {
    /// The text for this one event.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Named {
                one, name, tail, ..
            } => format!("{one} {name}{tail}"),
        }
    }

    /// The same note followed by more words.
    #[must_use]
    pub fn followed_by(self, words: &str) -> Self {
        match self {
            Self::Text(text) => Self::Text(text + words),
            Self::Named {
                one,
                many,
                name,
                tail,
            } => Self::Named {
                one,
                many,
                name,
                tail: tail + words,
            },
        }
    }
}

/// An event that a plan wants posted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notice {
    /// What the event is about.
    pub regarding: Reference,
    /// A second object that explains it.
    pub related: Option<Reference>,
    /// Type.
    pub severity: Severity,
    /// Reason, one of API 5.3.
    pub reason: &'static str,
    /// Action.
    pub action: Action,
    /// Text.
    pub note: Note,
    /// It tells of one step among many, and must not keep the object from telling how they end (KRS-65).
    pub is_routine: bool,
}

impl Notice {
    /// A Normal event.
    pub fn normal(
        regarding: impl Into<Reference>,
        reason: &'static str,
        action: Action,
        note: impl Into<Note>,
    ) -> Self {
        Self {
            regarding: regarding.into(),
            related: None,
            severity: Severity::Normal,
            reason,
            action,
            note: note.into(),
            is_routine: false,
        }
    }

    /// A Warning event.
    pub fn warning(
        regarding: impl Into<Reference>,
        reason: &'static str,
        action: Action,
        note: impl Into<Note>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(regarding, reason, action, note)
        }
    }

    /// With a related object.
    #[must_use]
    pub fn related(mut self, related: impl Into<Reference>) -> Self {
        self.related = Some(related.into());
        self
    }

    /// One step among many.
    #[must_use]
    pub fn routine(mut self) -> Self {
        self.is_routine = true;
        self
    }

    /// The same event with `: <words>` appended, as failures are told.
    #[must_use]
    pub fn because(mut self, words: &str) -> Self {
        self.note = self.note.followed_by(&format!(": {words}"));
        self
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
