//! What must hold after every commit, on the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::names::{BUDGET_FINALIZER, annotation as names, env as variables, label as labels};
use lws_core::intent::Why;
use serde_json::Value;

use super::{Facts, Known, Violation, violated};
use crate::actors::{annotation, controller, is_ready, label, number, restarts, uid};
use crate::store::{Change, Commit, Kind, Store, is_terminating, text};

/// Who makes a commit of ours, and why.
#[derive(Clone, Debug, Default)]
pub struct Writing {
    /// Why; nothing if it is not ours.
    pub why: Option<Why>,
    /// The UID that was decided on, for deletes.
    pub decided: Option<String>,
    /// Key of the revision that the leader set was seen to have.
    pub seen_revision: Option<String>,
    /// Up to which version its process had been told of pods.
    pub pods_seen: u64,
    /// The DisaggregatedSet that it was decided from.
    pub seen_roles: Option<Arc<lws_core::disaggregatedset::Snapshot>>,
}

/// Takes a commit into the history and judges it.
pub fn check_commit(
    store: &Store,
    facts: &mut Facts,
    commit: &Commit,
    writing: &Writing,
) -> Result<(), Violation> {
    // Whose it was before counts: what a write of ours makes of it is not known yet.
    ownership(facts, commit, writing)?;
    learn(facts, commit);
    match commit.key.kind {
        Kind::LeaderWorkerSet => set(facts, commit, writing)?,
        Kind::StatefulSet => {
            learn_blind_set(store, facts, commit, writing);
            stateful_set(store, facts, commit, writing)?;
        }
        Kind::Pod => pod(store, facts, commit, writing)?,
        Kind::ControllerRevision => revision(commit, writing)?,
        _ => {}
    }
    Ok(())
}

fn learn(facts: &mut Facts, commit: &Commit) {
    let object = &commit.object;
    let owner = controller(object).and_then(|o| o["uid"].as_str());
    let known = facts
        .known
        .entry(uid(object).to_owned())
        .or_insert_with(|| Known {
            kind: commit.key.kind,
            name: commit.key.name.to_string(),
            controller: None,
        });
    if let Some(owner) = owner {
        known.controller = Some(owner.to_owned());
    }
    if commit.key.kind == Kind::LeaderWorkerSet {
        let partition = number(
            object,
            "/spec/rolloutStrategy/rollingUpdateConfiguration/partition",
        );
        facts.user_partition = facts.user_partition.max(partition);
    }
    if commit.key.kind == Kind::Pod {
        learn_pod(facts, commit);
    }
}

/// A deletion or restart of a pod of a group whose leader lives is an incident of that leader.
fn learn_pod(facts: &mut Facts, commit: &Commit) {
    let pod = &commit.object;
    if is_ready(pod) && label(pod, labels::WORKER_INDEX) == "0" {
        facts.ready_leaders.insert(uid(pod).to_owned());
    }
    let Some(before) = &commit.before else { return };
    // A pod that restarted before it was adopted counts for the leader that it comes to.
    let leader = facts.leader_of(pod);
    if restarts(pod) > 0 && leader != facts.leader_of(before) {
        facts
            .incidents
            .entry(leader.unwrap_or_default())
            .or_default();
    }
    let ends = !is_terminating(before) && (is_terminating(pod) || commit.change == Change::Deleted);
    if ends {
        *facts
            .pod_ends
            .entry(commit.key.name.to_string())
            .or_default() += 1;
    }
    let fails = ends || restarts(pod) > restarts(before);
    let is_ours = commit.by.starts_with("lws");
    if let Some(leader) = facts.leader_of(before).filter(|_| fails && !is_ours) {
        *facts.incidents.entry(leader).or_default() += 1;
    }
}

/// S-20 counts only what its maker could know.
fn learn_blind_set(store: &Store, facts: &mut Facts, commit: &Commit, writing: &Writing) {
    let names = format!("{}-", commit.key.name);
    let is_news =
        |other: &Commit| other.key.kind == Kind::Pod && other.key.name.starts_with(&names);
    let is_ours = writing.why == Some(Why::WorkerSetMissing) && commit.before.is_none();
    if is_ours && store.since(writing.pods_seen).any(is_news) {
        facts.blind_sets.insert(uid(&commit.object).to_owned());
    }
}

/// S-1, S-2.
fn ownership(facts: &mut Facts, commit: &Commit, writing: &Writing) -> Result<(), Violation> {
    if !commit.by.starts_with("lws") || commit.key.kind == Kind::Lease {
        return Ok(());
    }
    facts.writes += 1;
    let Some(before) = &commit.before else {
        return Ok(());
    };
    if let Some(decided) = writing.decided.as_deref().filter(|d| *d != uid(before)) {
        return Err(violated(
            "S-2",
            format!(
                "{} was deleted as {decided}, but is {}",
                commit.key,
                uid(before)
            ),
        ));
    }
    let is_orphan = commit.key.kind == Kind::StatefulSet && controller(before).is_none();
    if !is_orphan && !facts.is_ours(uid(before)) {
        return Err(violated("S-1", format!("{} is not ours", commit.key)));
    }
    Ok(())
}

fn set(facts: &mut Facts, commit: &Commit, _: &Writing) -> Result<(), Violation> {
    let (Some(before), new) = (&commit.before, &commit.object) else {
        return Ok(());
    };
    let ours = commit.by.starts_with("lws");
    if ours && before["spec"] != new["spec"] {
        return Err(violated("S-16", "we changed the spec of the set"));
    }
    if ours {
        let strip = |object: &Value| {
            let mut all = object["metadata"]["annotations"].clone();
            if let Some(all) = all.as_object_mut() {
                all.remove(names::GROUP_RESTART_COUNTS);
            }
            (
                if all.as_object().is_some_and(|a| a.is_empty()) {
                    Value::Null
                } else {
                    all
                },
                object["metadata"]["labels"].clone(),
            )
        };
        if strip(before) != strip(new) {
            return Err(violated(
                "S-16",
                "we changed labels or annotations of the user",
            ));
        }
    }
    if annotation(before, names::GROUP_RESTART_COUNTS)
        != annotation(new, names::GROUP_RESTART_COUNTS)
        && !ours
    {
        facts.recreations.clear();
    }
    if ours {
        counts(facts, before, new)?;
    }
    status(before, new)
}

/// S-13: a count never falls. It may go (FAIL-74, FAIL-76, FAIL-77), and then its group begins anew.
fn counts(facts: &mut Facts, before: &Value, new: &Value) -> Result<(), Violation> {
    let read = |lws: &Value| -> BTreeMap<String, u32> {
        serde_json::from_str(annotation(lws, names::GROUP_RESTART_COUNTS)).unwrap_or_default()
    };
    let now = read(new);
    for (key, count) in read(before) {
        match now.get(&key) {
            Some(now) if *now < count => {
                let text = format!("the count of {key} fell from {count} to {now}");
                return Err(violated("S-13", text));
            }
            Some(_) => {}
            None => facts
                .recreations
                .retain(|(_, revision, group), _| format!("{revision}/{group}") != key),
        }
    }
    Ok(())
}

/// S-17.
fn status(before: &Value, new: &Value) -> Result<(), Violation> {
    let observed = |o: &Value| number(o, "/status/observedGeneration");
    if observed(new) > number(new, "/metadata/generation") || observed(new) < observed(before) {
        return Err(violated("S-17", "observedGeneration is wrong"));
    }
    let conditions = |o: &Value| {
        o.pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let new = conditions(new);
    let holds = |kind: &str| {
        new.iter()
            .any(|c| c["type"] == kind && c["status"] == "True")
    };
    if holds("Available") && (holds("Progressing") || holds("UpdateInProgress")) {
        return Err(violated(
            "S-17",
            "conditions that exclude each other are True",
        ));
    }
    for old in conditions(before) {
        let Some(now) = new.iter().find(|c| c["type"] == old["type"]) else {
            continue;
        };
        let flipped = now["status"] != old["status"];
        let moved = now["lastTransitionTime"] != old["lastTransitionTime"];
        if moved && !flipped {
            return Err(violated(
                "S-17",
                format!(
                    "lastTransitionTime of {} moved without a change",
                    old["type"]
                ),
            ));
        }
    }
    Ok(())
}

fn stateful_set(
    store: &Store,
    facts: &Facts,
    commit: &Commit,
    writing: &Writing,
) -> Result<(), Violation> {
    if !commit.by.starts_with("lws") {
        return Ok(());
    }
    match &commit.before {
        None if writing.why == Some(Why::WorkerSetMissing) => worker_set(store, facts, commit),
        Some(before) if writing.why == Some(Why::LeaderSetDiffers) => {
            same_template(before, &commit.object)?;
            partition(facts, before, &commit.object, writing)
        }
        None | Some(_) => Ok(()),
    }
}

/// S-3, S-4, S-8, S-12.
fn worker_set(store: &Store, facts: &Facts, commit: &Commit) -> Result<(), Violation> {
    let set = &commit.object;
    let Some(owner) = controller(set).and_then(|o| o["uid"].as_str()) else {
        return Err(violated("S-3", format!("{} has no controller", commit.key)));
    };
    let mine = |o: &Value| controller(o).is_some_and(|c| c["uid"] == owner);
    let of_leader = store
        .list(Kind::StatefulSet)
        .filter(|(_, other)| mine(other))
        .count();
    if of_leader > 1 {
        return Err(violated(
            "S-3",
            format!("leader {owner} has two worker sets"),
        ));
    }
    let Some((_, leader)) = store.list(Kind::Pod).find(|(_, pod)| uid(pod) == owner) else {
        return Ok(());
    };
    let is_of_a_group = controller(leader)
        .and_then(|o| facts.known.get(o["uid"].as_str()?)?.controller.clone())
        .is_some_and(|above| facts.known.get(&above).is_some_and(|k| k.kind == Kind::Pod));
    if label(leader, labels::WORKER_INDEX) != "0" || is_of_a_group {
        return Err(violated("S-4", format!("{} is for a worker", commit.key)));
    }
    if label(leader, labels::REVISION) != label(set, labels::REVISION) {
        return Err(violated(
            "S-8",
            format!("{} has another revision than its leader", commit.key),
        ));
    }
    let lws = store
        .list(Kind::LeaderWorkerSet)
        .find(|(key, _)| *key.name == *label(set, labels::NAME));
    let waits = lws.is_some_and(|(_, l)| text(l, "/spec/startupPolicy") == Some("LeaderReady"));
    if waits && !facts.ready_leaders.contains(owner) {
        return Err(violated(
            "S-12",
            format!("{} came before its leader was ready", commit.key),
        ));
    }
    Ok(())
}

/// S-8: leaders of another template are of another revision, or none would notice that the old ones are not updated.
fn same_template(before: &Value, new: &Value) -> Result<(), Violation> {
    let same = label(before, labels::REVISION) == label(new, labels::REVISION);
    if same && before["spec"]["template"] != new["spec"]["template"] {
        return Err(violated(
            "S-8",
            "leaders have another template under the same revision",
        ));
    }
    Ok(())
}

/// S-9. Who sees the leader set still under the revision before, and finds the new one there, holds it to be new: then the partition may rise.
fn partition(
    facts: &Facts,
    before: &Value,
    new: &Value,
    writing: &Writing,
) -> Result<(), Violation> {
    let of = |o: &Value| number(o, "/spec/updateStrategy/rollingUpdate/partition");
    let revision = label(new, labels::REVISION);
    let same = label(before, labels::REVISION) == revision
        && writing.seen_revision.as_deref() == Some(revision);
    if same && of(new) > of(before) && of(new) > facts.user_partition {
        return Err(violated(
            "S-9",
            format!("the partition rose from {} to {}", of(before), of(new)),
        ));
    }
    Ok(())
}

fn pod(
    store: &Store,
    facts: &mut Facts,
    commit: &Commit,
    writing: &Writing,
) -> Result<(), Violation> {
    let pod = &commit.object;
    if commit.change == Change::Added {
        contract(store, facts, pod)?;
        return group_shape(store, facts, commit);
    }
    let ours = commit.by.starts_with("lws");
    let ends = matches!(writing.why, Some(Why::GroupFailed | Why::BudgetExhausted))
        && writing.decided.is_some();
    if ours && ends {
        recreation(store, facts, pod, commit, writing)?;
    }
    Ok(())
}

/// S-18: a pod of a set has what its containers count on, and agrees with its leader about it.
fn contract(store: &Store, facts: &Facts, pod: &Value) -> Result<(), Violation> {
    let Some(leader) = facts.leader_of(pod) else {
        return Ok(());
    };
    let bare = [
        labels::NAME,
        labels::GROUP_INDEX,
        labels::WORKER_INDEX,
        labels::REVISION,
    ]
    .into_iter()
    .find(|name| label(pod, name).is_empty());
    let broken = |what: &str| {
        let name = text(pod, "/metadata/name").unwrap_or_default();
        Err(violated("S-18", format!("pod {name} has {what}")))
    };
    if let Some(name) = bare {
        return broken(&format!("no label {name}"));
    }
    let size = variable(pod, variables::GROUP_SIZE);
    if size.is_none() || size != Some(annotation(pod, names::SIZE)) {
        return broken("another size than its variable");
    }
    if variable(pod, variables::WORKER_INDEX) != Some(label(pod, labels::WORKER_INDEX)) {
        return broken("another index than its variable");
    }
    let address = variable(pod, variables::LEADER_ADDRESS);
    let of_leader = store
        .list(Kind::Pod)
        .find(|(_, other)| uid(other) == leader);
    let agrees = of_leader.is_none_or(|(_, l)| variable(l, variables::LEADER_ADDRESS) == address);
    if address.is_none() || !agrees {
        return broken("another leader address than its leader");
    }
    Ok(())
}

fn variable<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    let variables = pod.pointer("/spec/containers/0/env")?.as_array()?;
    variables.iter().find(|v| v["name"] == name)?["value"].as_str()
}

/// S-3: pods of a group by the chain of their controllers.
fn group_shape(store: &Store, facts: &Facts, commit: &Commit) -> Result<(), Violation> {
    let pod = &commit.object;
    let Some(leader) = facts.leader_of(pod) else {
        return Ok(());
    };
    let size: usize = annotation(pod, names::SIZE).parse().unwrap_or(1);
    let live = store
        .list(Kind::Pod)
        .filter(|(_, other)| {
            !is_terminating(other) && facts.leader_of(other).as_deref() == Some(&leader)
        })
        .count();
    if live > size {
        return Err(violated(
            "S-3",
            format!("group of {} has {live} pods", commit.key),
        ));
    }
    Ok(())
}

/// S-6, S-13, S-14: a leader that we end.
fn recreation(
    store: &Store,
    facts: &mut Facts,
    leader: &Value,
    commit: &Commit,
    writing: &Writing,
) -> Result<(), Violation> {
    let id = uid(leader).to_owned();
    let fresh = commit.before.as_deref().is_some_and(|b| !is_terminating(b));
    if !facts.deleted_leaders.insert(id.clone()) {
        // Whoever could not learn that it was done does it again.
        if facts.may_repeat {
            return Ok(());
        }
        return Err(violated("S-6", format!("{} was ended twice", commit.key)));
    }
    if !facts.incidents.contains_key(&id) {
        return Err(violated(
            "S-6",
            format!(
                "{} ({id}) was ended without an incident of its own",
                commit.key
            ),
        ));
    }
    if fresh && writing.why == Some(Why::BudgetExhausted) && !facts.may_repeat && !is_kept(leader) {
        let text = format!("{} is ended for good, and nothing keeps it", commit.key);
        return Err(violated("S-13", text));
    }
    if !fresh || writing.why != Some(Why::GroupFailed) {
        return Ok(());
    }
    let set = label(leader, labels::NAME);
    let found = store
        .list(Kind::LeaderWorkerSet)
        .find(|(key, _)| *key.name == *set);
    let Some((_, lws)) = found else {
        return Ok(());
    };
    let slot = (
        uid(lws).to_owned(),
        label(leader, labels::REVISION).to_owned(),
        label(leader, labels::GROUP_INDEX).to_owned(),
    );
    let count = facts.recreations.entry(slot).or_default();
    let before = *count;
    *count += 1;
    let template = &lws["spec"]["leaderWorkerTemplate"];
    if template["maxGroupRestarts"]
        .as_i64()
        .is_some_and(|max| i64::from(before) >= max)
    {
        return Err(violated(
            "S-13",
            format!("{} was recreated {} times", commit.key, before + 1),
        ));
    }
    if facts.clock_stepped {
        return Ok(());
    }
    backoff(template, before, leader, commit)
}

/// FAIL-72: the leader is marked, and held, so that nobody makes it anew.
fn is_kept(leader: &Value) -> bool {
    let finalizers = leader["metadata"]["finalizers"].as_array();
    let is_held = finalizers.is_some_and(|all| all.iter().any(|one| one == BUDGET_FINALIZER));
    is_held && annotation(leader, names::RESTART_BUDGET_EXHAUSTED) == "true"
}

fn backoff(
    template: &Value,
    before: u32,
    leader: &Value,
    commit: &Commit,
) -> Result<(), Violation> {
    let backoff = &template["restartBackoff"];
    if !backoff.is_object() {
        return Ok(());
    }
    let base = backoff["baseSeconds"].as_i64().unwrap_or(10);
    let cap = backoff["capSeconds"].as_i64().unwrap_or(300);
    let least = (base << before.min(20)).min(cap);
    let created: jiff::Timestamp = text(leader, "/metadata/creationTimestamp")
        .unwrap_or_default()
        .parse()
        .unwrap_or_default();
    let lived = commit.at.duration_since(created).as_secs();
    if lived < least {
        return Err(violated(
            "S-14",
            format!(
                "{} was recreated after {lived} s instead of {least} s",
                commit.key
            ),
        ));
    }
    Ok(())
}

/// S-8: revisions of ours are never modified.
fn revision(commit: &Commit, writing: &Writing) -> Result<(), Violation> {
    if commit.change == Change::Modified && writing.why.is_some() && writing.decided.is_none() {
        return Err(violated("S-8", format!("{} was modified", commit.key)));
    }
    Ok(())
}
