//! Which part of a set one gang covers (NAT-6).

use crate::admission::json::Json;

/// Members that activate the level they stand at.
const OWN_MEMBERS: [&str; 3] = [
    "schedulingPolicy",
    "schedulingConstraints",
    "disruptionMode",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Set,
    Replica,
    Role,
}

impl Level {
    /// `None` if more than one is active.
    pub(super) fn of(scheduling: Json<'_>) -> Option<Self> {
        let has_own = |json: Json<'_>| OWN_MEMBERS.iter().any(|name| json.at(name).is_present());
        let replica = scheduling.at("replica");
        let role = replica.at("leader").is_present() || replica.at("worker").is_present();
        let whole = has_own(scheduling);
        let group = has_own(replica) || (replica.is_present() && !role);
        match (whole, group, role) {
            (true, false, false) => Some(Self::Set),
            (false, _, false) => Some(Self::Replica),
            (false, false, true) => Some(Self::Role),
            (true, _, true) | (true, true, false) | (false, true, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gang_nat_6_active_level() {
        for (scheduling, level) in [
            (json!({}), Some(Level::Replica)),
            (json!({"replica": {}}), Some(Level::Replica)),
            (
                json!({"replica": {"schedulingConstraints": {"topology": []}}}),
                Some(Level::Replica),
            ),
            (
                json!({"replica": {"schedulingPolicy": {"basic": {}}}}),
                Some(Level::Replica),
            ),
            (json!({"schedulingPolicy": {"gang": {}}}), Some(Level::Set)),
            (
                json!({"schedulingConstraints": {"topology": []}}),
                Some(Level::Set),
            ),
            (
                json!({"replica": {"worker": {"schedulingPolicy": {"gang": {}}}}}),
                Some(Level::Role),
            ),
            (json!({"replica": {"leader": {}}}), Some(Level::Role)),
            (
                json!({"schedulingPolicy": {"basic": {}}, "replica": {}}),
                None,
            ),
            (
                json!({"schedulingPolicy": {"basic": {}}, "replica": {"leader": {}}}),
                None,
            ),
            (
                json!({"replica": {"disruptionMode": {"all": {}}, "worker": {}}}),
                None,
            ),
        ] {
            assert_eq!(Level::of(Json::of(&scheduling)), level, "{scheduling}");
        }
    }
}
