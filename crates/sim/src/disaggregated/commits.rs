//! What must hold after every commit, on the store (S-1, S-2, S-7, S-16, D-1 … D-3, D-5, D-8, D-10, D-11).

use lws_api::names::{ds_annotation as annotations, ds_label as labels};
use lws_core::disaggregatedset::Snapshot;
use lws_core::intent::Why;
use serde_json::Value;

use super::decisions::holds;
use super::facts::Facts;
use super::{children, read};
use crate::actors::{annotation, controller, is_ready, label, number, uid};
use crate::properties::{Violation, Writing, violated};
use crate::store::{Change, Commit, Key, Kind, Store, is_terminating, text};

/// Annotations of children that the controller writes.
const WRITTEN: [&str; 6] = [
    annotations::INITIAL_REPLICAS,
    annotations::CONTENT_HASH,
    annotations::SUBROLE_REPLICAS,
    annotations::INITIAL_SUBROLE_REPLICAS,
    annotations::SUBROLE_PLAN,
    annotations::SUBROLE_SCALE_PLAN,
];

/// Takes a commit into the history and judges it. `holds`: nobody takes groups away but us.
pub fn check_commit(
    store: &Store,
    facts: &mut Facts,
    commit: &Commit,
    writing: &Writing,
    keeps: bool,
) -> Result<(), Violation> {
    let is_ours = commit.by.starts_with("lws");
    if commit.key.kind == Kind::DisaggregatedSet {
        set(facts, commit, is_ours)?;
    }
    let Some(seen) = writing.seen_roles.as_deref().filter(|_| is_ours) else {
        learn(facts, commit, is_ours);
        return Ok(());
    };
    owned(seen, commit, writing)?;
    match (commit.key.kind, &commit.before) {
        (Kind::LeaderWorkerSet, None) => born(store, facts, commit, seen)?,
        (Kind::LeaderWorkerSet, Some(before))
            if commit.change == Change::Deleted
                || (is_terminating(&commit.object) && !is_terminating(before)) =>
        {
            ended(facts, before, writing, seen)?;
        }
        (Kind::LeaderWorkerSet, Some(before)) => {
            changed(facts, commit, before, seen)?;
            if keeps && facts.was_available {
                kept(store, seen)?;
            }
        }
        (Kind::RoleScaler, Some(before)) if before["spec"] != commit.object["spec"] => {
            return Err(violated("D-8", "the number of a scaler is overwritten"));
        }
        _ => {}
    }
    Ok(())
}

/// What others do.
fn learn(facts: &mut Facts, commit: &Commit, is_ours: bool) {
    let is_child = commit.key.kind == Kind::LeaderWorkerSet;
    let people = matches!(commit.by, "user" | "monkey");
    let is_below = matches!(
        commit.key.kind,
        Kind::Pod | Kind::StatefulSet | Kind::LeaderWorkerSet
    );
    if people && is_below {
        facts.disturbed = true;
    }
    if people && is_child && !is_ours {
        facts.meddled.insert(uid(&commit.object).to_owned());
    }
    if let Some(before) = &commit.before
        && commit.key.kind == Kind::Pod
        && commit.by == "kubelet"
        && is_ready(before)
        && !is_ready(&commit.object)
    {
        facts.disturbed = true;
    }
}

/// S-16, D-11.
fn set(facts: &mut Facts, commit: &Commit, is_ours: bool) -> Result<(), Violation> {
    let new = &commit.object;
    facts.learn(new);
    facts.was_available |= holds(new, "Available");
    let Some(old) = &commit.before else {
        return Ok(());
    };
    if is_ours
        && (old["spec"] != new["spec"] || old["metadata"]["labels"] != new["metadata"]["labels"])
    {
        return Err(violated("S-16", "the spec of the set is ours to read only"));
    }
    let observed = |set: &Value| number(set, "/status/observedGeneration");
    if observed(new) > number(new, "/metadata/generation") || observed(new) < observed(old) {
        return Err(violated(
            "D-11",
            format!(
                "observedGeneration goes from {} to {}",
                observed(old),
                observed(new)
            ),
        ));
    }
    let conditions = |set: &Value| {
        set["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    for condition in conditions(new) {
        let before = conditions(old);
        let before = before
            .iter()
            .find(|before| before["type"] == condition["type"]);
        let Some(before) = before else { continue };
        let is_same = before["status"] == condition["status"];
        if is_same != (before["lastTransitionTime"] == condition["lastTransitionTime"]) && is_same {
            return Err(violated("D-11", format!("{before} becomes {condition}")));
        }
    }
    if holds(new, "Available") && holds(new, "Progressing") {
        return Err(violated("D-11", "both Available and Progressing"));
    }
    Ok(())
}

/// S-1, S-2.
fn owned(seen: &Snapshot, commit: &Commit, writing: &Writing) -> Result<(), Violation> {
    let object = commit.before.as_ref().unwrap_or(&commit.object);
    let set = seen.set.meta.uid.as_str();
    if let Some(decided) = writing
        .decided
        .as_deref()
        .filter(|decided| *decided != uid(object))
    {
        return Err(violated(
            "S-2",
            format!("{} was deleted as {decided}", commit.key),
        ));
    }
    let is_ours = match commit.key.kind {
        Kind::DisaggregatedSet => uid(object) == set,
        Kind::Pod => children::is_below(object),
        _ => controller(object).is_some_and(|owner| owner["uid"] == set),
    };
    if is_ours {
        Ok(())
    } else {
        Err(violated("S-1", format!("{} is not ours", commit.key)))
    }
}

fn revision(child: &Value) -> &str {
    label(child, labels::REVISION)
}

fn slice(child: &Value) -> u32 {
    label(child, labels::SLICE).parse().unwrap_or(u32::MAX)
}

/// D-1, D-2: a child is named after what it is, is there once, and is of the one revision that the set stands for.
fn born(
    store: &Store,
    facts: &mut Facts,
    commit: &Commit,
    seen: &Snapshot,
) -> Result<(), Violation> {
    let (child, set) = (&commit.object, &seen.set);
    let part = |name: &str| label(child, name).to_owned();
    let role = part(labels::ROLE);
    let name = format!(
        "{}-{}-{}-{role}",
        set.key().name,
        part(labels::SLICE),
        revision(child)
    );
    let slices = u32::try_from(set.spec.slices()).unwrap_or_default();
    let is_role = set.spec.roles.iter().any(|wanted| wanted.name == role);
    if *commit.key.name != *name || !is_role || slice(child) >= slices {
        return Err(violated("D-1", format!("{} should be {name}", commit.key)));
    }
    let is_same = |other: &Value| {
        [labels::ROLE, labels::SLICE, labels::REVISION]
            .iter()
            .all(|name| label(other, name) == label(child, name))
            && controller(other).map(|by| &by["uid"]) == controller(child).map(|by| &by["uid"])
    };
    let twins = store
        .list(Kind::LeaderWorkerSet)
        .filter(|(_, other)| is_same(other));
    if twins.count() > 1 {
        return Err(violated("D-1", format!("{} is there twice", commit.key)));
    }
    named(facts, child, seen)
}

/// D-2, REV-7: a new child is of the target; that is the hash of what the set wants, or a revision that was seen to be there. Under one revision a role
/// has one template.
fn named(facts: &mut Facts, child: &Value, seen: &Snapshot) -> Result<(), Violation> {
    let (name, role) = (revision(child), label(child, labels::ROLE));
    let (set, target) = (seen.set.meta.uid.as_str().to_owned(), &seen.target);
    let id = (set.clone(), seen.set.meta.generation);
    let content = facts.contents.get(&id).cloned().unwrap_or_default();
    facts
        .made_for
        .insert(uid(child).to_owned(), content.clone());
    let mut there = seen.children.list.iter();
    let is_known = name == target.hash || there.any(|child| child.revision() == name);
    if name != target.revision || !is_known {
        return Err(violated("D-2", format!("{name} is not of the target")));
    }
    let wants: Vec<(String, Value)> = serde_json::from_str(&content).unwrap_or_default();
    let template = wants.into_iter().find(|(wanted, _)| wanted == role);
    let of_name = (set.clone(), name.to_owned(), role.to_owned());
    let template = template.map_or(Value::Null, |(_, template)| template);
    let first = facts.templates.entry(of_name);
    if *first.or_insert_with(|| template.clone()) != template {
        return Err(violated(
            "D-2",
            format!("{name} has two templates of {role}"),
        ));
    }
    let hash = facts.hashes.entry((set.clone(), content.clone()));
    let hash = hash.or_insert_with(|| target.hash.clone()).clone();
    let of_hash = |((of, _), other): (&(String, String), &String)| *of == set && *other == hash;
    let stands_for = facts.hashes.iter().filter(|entry| of_hash(*entry)).count();
    if hash != target.hash || stands_for > 1 {
        let text = format!("{} and {hash} stand for {content}", target.hash);
        return Err(violated("D-2", text));
    }
    Ok(())
}

/// D-7, D-9.
fn ended(
    facts: &Facts,
    before: &Value,
    writing: &Writing,
    seen: &Snapshot,
) -> Result<(), Violation> {
    let name = text(before, "/metadata/name").unwrap_or_default();
    match writing.why {
        Some(Why::RevisionDrained) => {
            let is_meddled = facts.meddled.contains(uid(before));
            let groups = number(before, "/spec/replicas");
            if revision(before) == seen.target.revision || (groups > 0 && !is_meddled) {
                return Err(violated(
                    "D-7",
                    format!("{name} is deleted with {groups} groups"),
                ));
            }
        }
        Some(Why::SliceRemoved) => {
            let slices = u32::try_from(seen.set.spec.slices()).unwrap_or_default();
            if slice(before) < slices {
                return Err(violated("D-9", format!("{name} is deleted with its slice")));
            }
        }
        why => {
            return Err(violated(
                "D-7",
                format!("{name} is deleted because of {why:?}"),
            ));
        }
    }
    Ok(())
}

/// S-2, OWS-4, D-3, D-5, D-8, D-10.
fn changed(
    facts: &Facts,
    commit: &Commit,
    before: &Value,
    seen: &Snapshot,
) -> Result<(), Violation> {
    let (key, child) = (&commit.key, &*commit.object);
    if bare(before) != bare(child) {
        return Err(violated(
            "D-3",
            format!("more of {key} is changed than its groups"),
        ));
    }
    let groups = |child: &Value| number(child, "/spec/replicas");
    let is_old = revision(child) != seen.target.revision;
    let rolls = read::is_rolling(seen, slice(child));
    let rises = groups(child) > groups(before);
    let falls = groups(child) < groups(before);
    let advances =
        seen.set.spec.during_rollout() == lws_api::disaggregatedset::DuringRollout::AdvanceRollout;
    let was_seen = seen.children.list.iter().any(|seen| {
        *seen.lws.meta.resource_version
            == *text(before, "/metadata/resourceVersion").unwrap_or_default()
    });
    if !was_seen {
        let text = format!("{key} is changed in another version than was seen");
        return Err(violated("S-2", text));
    }
    if (is_old && rises) || (!is_old && rolls && falls && !advances && !has_sub_roles(child)) {
        return Err(violated(
            "D-5",
            format!("{key} goes from {} to {}", groups(before), groups(child)),
        ));
    }
    baseline(facts, key, before, child, seen)?;
    divided(key, child)
}

fn has_sub_roles(child: &Value) -> bool {
    !annotation(child, annotations::SUBROLE_REPLICAS).is_empty()
}

/// A child without what may be changed of it.
fn bare(child: &Value) -> Value {
    let mut bare = child.clone();
    if let Some(spec) = bare["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    if let Some(members) = bare.as_object_mut() {
        members.remove("status");
    }
    if let Some(meta) = bare["metadata"].as_object_mut() {
        for name in ["resourceVersion", "generation", "managedFields"] {
            meta.remove(name);
        }
        if let Some(all) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            all.retain(|name, _| !WRITTEN.contains(&name.as_str()));
        }
    }
    bare
}

/// D-10: the intended size of an old revision is never changed, and was a size of the role when the revision was wanted.
fn baseline(
    facts: &Facts,
    key: &Key,
    before: &Value,
    child: &Value,
    seen: &Snapshot,
) -> Result<(), Violation> {
    let size = |child: &Value| {
        let text = annotation(child, annotations::INITIAL_REPLICAS);
        text.parse::<u32>().ok().map(i64::from)
    };
    let is_old = revision(child) != seen.target.revision;
    let role = label(child, labels::ROLE);
    if is_old && size(before).is_some() && size(before) != size(child) && !has_sub_roles(child) {
        return Err(violated(
            "D-10",
            format!(
                "the baseline of {key} goes from {:?} to {:?}",
                size(before),
                size(child)
            ),
        ));
    }
    let is_scaled = facts.scaled.contains(role);
    let of_set = seen.set.meta.uid.as_str().to_owned();
    let content = facts.made_for.get(uid(child)).cloned().unwrap_or_default();
    let known = facts.sizes.get(&(of_set, content, role.to_owned()));
    let is_known = known.is_none_or(|known| size(child).is_none_or(|size| known.contains(&size)));
    let is_plain = !facts.meddled.contains(uid(child)) && !is_scaled && !has_sub_roles(child);
    if is_old && is_plain && !facts.disturbed && !is_known {
        return Err(violated(
            "D-10",
            format!("{key} was never meant to have {:?} groups", size(child)),
        ));
    }
    Ok(())
}

/// D-8: the counts of sub-roles sum up to the groups.
fn divided(key: &Key, child: &Value) -> Result<(), Violation> {
    let text = annotation(child, annotations::SUBROLE_REPLICAS);
    let Ok(counts) = serde_json::from_str::<std::collections::BTreeMap<String, i64>>(text) else {
        return Ok(());
    };
    let groups = number(child, "/spec/replicas");
    if counts.values().sum::<i64>() != groups {
        return Err(violated(
            "D-8",
            format!("{key} has {groups} groups, divided as {text}"),
        ));
    }
    Ok(())
}

/// D-4, on the truth: the ready groups that a write of ours leaves are as many as the budgets keep.
fn kept(store: &Store, seen: &Snapshot) -> Result<(), Violation> {
    for (role, unavailable) in read::budgets(seen) {
        for slice in 0..seen.set.spec.slices() {
            let slice = slice.to_string();
            let children = store.list(Kind::LeaderWorkerSet).filter(|(_, child)| {
                label(child, labels::ROLE) == role.name && label(child, labels::SLICE) == slice
            });
            let ready: usize = children
                .map(|(key, child)| {
                    let groups = number(child, "/spec/replicas");
                    let leaders = children::leaders(store, key);
                    leaders
                        .filter(|(ordinal, _, pod)| {
                            *ordinal < groups && is_ready(pod) && !is_terminating(pod)
                        })
                        .count()
                })
                .sum();
            let wanted = read::desired(seen, role).unwrap_or(0);
            if i64::try_from(ready).unwrap_or(0) < wanted - unavailable {
                return Err(violated(
                    "D-4",
                    format!(
                        "{ready} ready groups of {} in slice {slice}, {wanted} wanted, {unavailable} may be missing",
                        role.name
                    ),
                ));
            }
        }
    }
    Ok(())
}
