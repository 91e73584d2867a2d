//! What must hold for every decision, given what was seen (S-7, S-10, S-11, S-17).

use lws_api::names::{annotation, label};
use lws_core::group::GroupSnapshot;
use lws_core::intent::{Intent, Step, Why};
use lws_core::leaderworkerset::Snapshot;
use lws_core::leaderworkerset::rollout::Budget;
use lws_core::model::{Phase, Pod, StatefulSet};
use serde_json::Value;

use super::{Violation, violated};
use crate::actors::{controller, number};
use crate::replica::Decision;
use crate::store::text;

/// Judges a decision.
pub fn check_decision(decision: &Decision<'_>) -> Result<(), Violation> {
    match decision {
        // Judged by what is about them.
        Decision::Roles(..) => Ok(()),
        Decision::Set(snapshot, steps) => {
            let dying = snapshot.lws.meta.is_terminating();
            no_birth_in_the_dying(steps, snapshot.lws.meta.uid.as_str(), dying)?;
            let bodies = steps.iter().filter_map(leader_set);
            for body in bodies {
                surge(snapshot, body)?;
                availability(snapshot, body)?;
            }
            Ok(())
        }
        Decision::Report(snapshot, steps) => steps
            .iter()
            .filter(|step| step.why == Why::StatusDiffers)
            .try_for_each(|step| available(snapshot, step)),
        Decision::Group(snapshot, steps) => {
            let Some(leader) = &snapshot.leader else {
                return Ok(());
            };
            not_while_pending(snapshot, leader, steps)?;
            no_birth_in_the_dying(
                steps,
                leader.meta.uid.as_str(),
                leader.meta.is_terminating(),
            )
        }
    }
}

/// S-15: RecreateGroupAfterStart ends no group that has a pending pod, unless that was decided before.
fn not_while_pending(
    snapshot: &GroupSnapshot,
    leader: &Pod,
    steps: &[Step],
) -> Result<(), Violation> {
    let ends =
        |step: &Step| step.why == Why::GroupFailed && matches!(step.intent, Intent::Delete { .. });
    let policy = snapshot
        .revision
        .as_ref()
        .and_then(|r| text(&r.data, "/spec/leaderWorkerTemplate/restartPolicy"));
    let is_decided = leader.meta.annotation(annotation::GROUP_RECREATE_PENDING) == "true";
    let is_pending = snapshot.peers.iter().any(|pod| pod.phase == Phase::Pending);
    if policy == Some("RecreateGroupAfterStart")
        && !is_decided
        && is_pending
        && steps.iter().any(ends)
    {
        return Err(violated(
            "S-15",
            format!("{} is ended while a pod is pending", leader.key()),
        ));
    }
    Ok(())
}

/// S-7.
fn no_birth_in_the_dying(steps: &[Step], owner: &str, dying: bool) -> Result<(), Violation> {
    let births = steps.iter().filter_map(|step| match &step.intent {
        Intent::Create { body, .. } => Some(body),
        Intent::Apply { .. }
        | Intent::Patch { .. }
        | Intent::SetCondition { .. }
        | Intent::Delete { .. } => None,
    });
    for body in births {
        if dying && controller(body).is_some_and(|c| c["uid"] == owner) {
            return Err(violated(
                "S-7",
                format!("a child for {owner}, which is ending"),
            ));
        }
    }
    Ok(())
}

fn leader_set(step: &Step) -> Option<&Value> {
    match (&step.intent, step.why) {
        (Intent::Apply { body, .. }, Why::LeaderSetDiffers) => Some(body),
        (Intent::Create { body, .. }, Why::LeaderSetMissing) => Some(body),
        _ => None,
    }
}

struct Seen {
    ready: bool,
    updated: bool,
}

fn workers<'a>(snapshot: &'a Snapshot, leader: &Pod) -> Option<&'a StatefulSet> {
    let set = snapshot.stateful_sets.get(&leader.key().name)?;
    set.meta.is_controlled_by(&leader.meta.uid).then_some(set)
}

fn seen(snapshot: &Snapshot, index: i64, key: &str) -> Option<Seen> {
    let of_index =
        |pod: &&std::sync::Arc<Pod>| pod.meta.label(label::GROUP_INDEX) == index.to_string();
    let leader = snapshot.leaders.iter().find(of_index)?;
    let alone = leader.meta.annotation(annotation::SIZE) == "1";
    let set = workers(snapshot, leader);
    let serves = set.is_some_and(|s| s.replicas == s.status.available);
    Some(Seen {
        ready: leader.is_running_and_ready() && (alone || serves),
        updated: leader.meta.label(label::REVISION) == key
            && (alone || set.is_some_and(|s| s.meta.label(label::REVISION) == key)),
    })
}

/// S-11.
fn surge(snapshot: &Snapshot, body: &Value) -> Result<(), Violation> {
    let Ok(budget) = Budget::of(&snapshot.lws.spec) else {
        return Ok(());
    };
    let wanted = i64::from(budget.desired_replicas);
    let replicas = number(body, "/spec/replicas");
    if replicas > wanted + i64::from(budget.max_surge) {
        return Err(violated("S-11", format!("{replicas} groups of {wanted}")));
    }
    if replicas < wanted {
        return Err(violated(
            "S-11",
            format!("only {replicas} groups of {wanted}"),
        ));
    }
    let Some(have) = &snapshot.leader_set else {
        return Ok(());
    };
    let key = body["metadata"]["labels"][label::REVISION]
        .as_str()
        .unwrap_or_default();
    let is_new = have.meta.label(label::REVISION) != key;
    let scales = have.meta.annotation(annotation::REPLICAS) != wanted.to_string();
    if is_new || scales || i64::from(have.replicas) <= replicas {
        return Ok(());
    }
    let undone = (0..wanted)
        .filter(|i| !seen(snapshot, *i, key).is_some_and(|s| s.ready && s.updated))
        .count();
    let missing = i64::try_from(undone).unwrap_or(i64::MAX) - i64::from(budget.max_unavailable);
    if replicas - wanted < missing.min(i64::from(budget.max_surge)) {
        return Err(violated(
            "S-11",
            format!("surge is given up with {undone} groups to go"),
        ));
    }
    Ok(())
}

/// S-10 with the exceptions of ORD-53: lowering the partition takes no ready old group that the bound needs. Groups that are broken above the floor
/// are not counted.
fn availability(snapshot: &Snapshot, body: &Value) -> Result<(), Violation> {
    let (Ok(budget), Some(have)) = (Budget::of(&snapshot.lws.spec), &snapshot.leader_set) else {
        return Ok(());
    };
    let key = body["metadata"]["labels"][label::REVISION]
        .as_str()
        .unwrap_or_default();
    let new = number(body, "/spec/updateStrategy/rollingUpdate/partition");
    let wanted = i64::from(budget.desired_replicas);
    let scales = have.meta.annotation(annotation::REPLICAS) != wanted.to_string();
    let is_new = have.meta.label(label::REVISION) != key;
    if scales || (!is_new && new >= i64::from(have.partition)) {
        return Ok(());
    }
    let group = |i: i64| seen(snapshot, i, key);
    let done = |i: &i64| group(*i).is_some_and(|s| s.ready && s.updated);
    let from_the_top = (0..i64::from(have.replicas)).rev().take_while(done).count();
    let from_the_top = i64::try_from(from_the_top).unwrap_or(0);
    let floor = (wanted - from_the_top - i64::from(budget.max_unavailable)).max(0);
    let broken = (0..floor).filter(|i| !group(*i).is_some_and(|s| s.ready));
    let least = floor + i64::try_from(broken.count()).unwrap_or(0);
    // ORD-50 case 2: with a new template every surge group is made anew.
    let least = if is_new { least.min(wanted) } else { least };
    let taken = (new..least.min(i64::from(have.replicas)))
        .find(|i| group(*i).is_some_and(|s| s.ready && !s.updated));
    match taken {
        Some(index) => Err(violated(
            "S-10",
            format!(
                "partition {} → {new} takes group {index}, which is needed",
                have.partition
            ),
        )),
        None => Ok(()),
    }
}

/// S-17: Available only if all groups were seen ready.
fn available(snapshot: &Snapshot, step: &Step) -> Result<(), Violation> {
    let Intent::Patch { body, .. } = &step.intent else {
        return Ok(());
    };
    let claims = body
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Available" && c["status"] == "True");
    let wanted = i64::from(snapshot.lws.spec.replicas());
    let ready = (0..wanted)
        .filter(|i| seen(snapshot, *i, "").is_some_and(|s| s.ready))
        .count();
    if claims && i64::try_from(ready) != Ok(wanted) {
        return Err(violated(
            "S-17",
            format!("Available with {ready} ready groups of {wanted}"),
        ));
    }
    Ok(())
}
