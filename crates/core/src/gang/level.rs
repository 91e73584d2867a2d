//! Which part of a set one gang covers (NAT-6).

use lws_api::scheduling::Scheduling;

/// What one PodGroup covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The whole set.
    Set,
    /// A group.
    Replica,
    /// The leader of a group, and its workers.
    Role,
}

impl Level {
    /// The level of a set that has members of its own at the top, at the groups, or at leaders and workers; `None` if at more than one.
    pub(crate) fn active(whole: bool, group: bool, role: bool) -> Option<Self> {
        match (whole, group, role) {
            (true, false, false) => Some(Self::Set),
            (false, _, false) => Some(Self::Replica),
            (false, false, true) => Some(Self::Role),
            (true, _, true) | (true, true, false) | (false, true, true) => None,
        }
    }

    /// The active level; `None` if more than one is.
    pub fn of(scheduling: &Scheduling) -> Option<Self> {
        let replica = scheduling.replica.as_ref();
        let whole = scheduling.scheduling_policy.is_some()
            || scheduling.scheduling_constraints.is_some()
            || scheduling.disruption_mode.is_some();
        let role = replica.is_some_and(|of| of.leader.is_some() || of.worker.is_some());
        let own = replica.is_some_and(|of| {
            of.scheduling_policy.is_some()
                || of.scheduling_constraints.is_some()
                || of.disruption_mode.is_some()
        });
        Self::active(whole, own || (replica.is_some() && !role), role)
    }

    /// NAT-28: what the annotation of pods says.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "lws",
            Self::Replica => "replica",
            Self::Role => "role",
        }
    }

    /// NAT-29: older releases wrote `true` for what is `replica` now.
    pub(crate) fn of_mode(mode: &str) -> Option<Self> {
        match mode {
            "lws" => Some(Self::Set),
            "replica" | "true" => Some(Self::Replica),
            "role" => Some(Self::Role),
            _ => None,
        }
    }
}
