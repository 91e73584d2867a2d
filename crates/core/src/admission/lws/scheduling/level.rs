//! Which part of a set one gang covers (NAT-6), read from an object that may be of any shape.

use crate::admission::json::Json;
use crate::gang::Level;

/// Members that activate the level they stand at.
const OWN_MEMBERS: [&str; 3] = [
    "schedulingPolicy",
    "schedulingConstraints",
    "disruptionMode",
];

/// `None` if more than one is active.
pub(super) fn active_level(scheduling: Json<'_>) -> Option<Level> {
    let has_own = |json: Json<'_>| OWN_MEMBERS.iter().any(|name| json.at(name).is_present());
    let replica = scheduling.at("replica");
    let role = replica.at("leader").is_present() || replica.at("worker").is_present();
    let group = has_own(replica) || (replica.is_present() && !role);
    Level::active(has_own(scheduling), group, role)
}

#[cfg(test)]
mod tests {
    use lws_api::scheduling::Scheduling;
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
            assert_eq!(
                active_level(Json::of(&scheduling)),
                level,
                "at admission: {scheduling}"
            );
            let typed: Scheduling = serde_json::from_value(scheduling.clone()).unwrap();
            assert_eq!(Level::of(&typed), level, "to the controllers: {scheduling}");
        }
    }
}
