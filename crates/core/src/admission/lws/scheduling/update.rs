//! S-9 … S-11: what stays as it is once a set is scheduled in gangs.

use lws_api::wording;
use serde_json::Value;

use super::level::active_level;
use super::templates::priority_class;
use crate::admission::findings::Findings;
use crate::admission::lws::subject::{PodRole, Subject};
use crate::gang::Level;

pub(super) fn check(new: &Subject<'_>, old: &Subject<'_>, level: Level, findings: &mut Findings) {
    let (scheduling, before) = (new.field("scheduling"), old.field("scheduling"));
    let level_stays = active_level(before.json) == Some(level);
    if !level_stays {
        findings.push(
            scheduling
                .clone()
                .forbidden("cannot switch the active scheduling level after creation"),
        );
    }
    let class = |subject: &Subject<'_>| {
        let leader = priority_class(subject, PodRole::Leader);
        (leader == priority_class(subject, PodRole::Worker)).then(|| leader.to_owned())
    };
    if let (Some(now), Some(then)) = (class(new), class(old))
        && now != then
    {
        let detail = "priorityClassName is immutable while spec.scheduling is set";
        findings.push(new.field("leaderWorkerTemplate").forbidden(detail));
    }
    if level_stays && without_counts(scheduling.json.value()) != without_counts(before.json.value())
    {
        findings.push(scheduling.invalid(wording::IMMUTABLE));
    }
}

/// S-11: the count of a leaf follows size; nothing else may change, not even the spelling.
fn without_counts(scheduling: &Value) -> Value {
    let mut rest = scheduling.clone();
    for role in ["leader", "worker"] {
        let gang = rest.pointer_mut(&format!("/replica/{role}/schedulingPolicy/gang"));
        if let Some(gang) = gang.and_then(Value::as_object_mut) {
            gang.remove("minCount");
        }
    }
    rest
}
