//! Statuses for people.

use super::report::{Group, Member, Report, Summary};
use crate::output::{Cell, Paint, Table, Tone, age};

/// Characters of a revision key that are shown.
const SHOWN: usize = 8;

/// One line per set.
pub fn list(sets: &[Summary], with_namespace: bool, paint: Paint) -> String {
    if sets.is_empty() {
        return "No LeaderWorkerSets found.\n".to_owned();
    }
    let mut heading = vec![
        "NAME",
        "READY",
        "DESIRED",
        "UP-TO-DATE",
        "IDENTITY",
        "CONDITIONS",
    ];
    if with_namespace {
        heading.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&heading);
    for set in sets {
        let mut row: Vec<Cell> = vec![
            set.name.as_str().into(),
            Cell::toned(
                tone(set.ready >= set.desired, set.ready > 0),
                set.ready.to_string(),
            ),
            set.desired.to_string().into(),
            set.updated.to_string().into(),
            set.identity.as_str().into(),
            set.conditions.join(",").into(),
        ];
        if with_namespace {
            row.insert(0, set.namespace.as_str().into());
        }
        table.row(row);
    }
    table.render(paint)
}

/// The trees of sets.
pub fn trees(reports: &[Report], wide: bool, paint: Paint) -> String {
    let trees: Vec<String> = reports
        .iter()
        .map(|report| tree(report, wide, paint))
        .collect();
    trees.join("\n")
}

fn tree(report: &Report, wide: bool, paint: Paint) -> String {
    let Summary {
        namespace,
        name,
        desired,
        ready,
        updated,
        conditions,
        ..
    } = &report.summary;
    let mut text = format!(
        "LeaderWorkerSet {namespace}/{name}: {ready} of {desired} groups ready, {updated} up to date"
    );
    if !conditions.is_empty() {
        text.push_str(&format!(" ({})", conditions.join(", ")));
    }
    if let Some(partition) = report.partition.filter(|partition| *partition > 0) {
        text.push_str(&format!(", updated from group {partition} on"));
    }
    text.push('\n');
    for reason in &report.reasons {
        text.push_str(&paint.paint(Tone::Bad, &format!("! {reason}")));
        text.push('\n');
    }
    let mut heading = vec!["NAME", "READY", "STATUS", "REVISION", "RESTARTS", "NODE"];
    if wide {
        heading.push("AGE");
    }
    let mut table = Table::new(&heading);
    let last = report.groups.len().saturating_sub(1);
    for (at, group) in report.groups.iter().enumerate() {
        rows(&mut table, group, at == last, wide);
    }
    text.push_str(&table.render(paint));
    text
}

fn rows(table: &mut Table, group: &Group, is_last: bool, wide: bool) {
    let (branch, trunk) = if is_last {
        ("└─", "   ")
    } else {
        ("├─", "│  ")
    };
    let is_ready = group.ready >= group.size;
    table.row(vec![
        format!("{branch} group {}", group.index).into(),
        Cell::toned(
            tone(is_ready, group.ready > 0),
            format!("{}/{}", group.ready, group.size),
        ),
        state(group).into(),
        revision(&group.revision, group.is_updated).into(),
        restarts(group).into(),
    ]);
    for reason in &group.reasons {
        table.text(Tone::Bad, format!("{trunk}! {reason}"));
    }
    let last = group.pods.len().saturating_sub(1);
    for (at, member) in group.pods.iter().enumerate() {
        let branch = if at == last { "└─" } else { "├─" };
        table.row(pod(member, &format!("{trunk}{branch} "), wide));
        if let Some(reason) = &member.reason {
            let trunk = if at == last {
                format!("{trunk}   ")
            } else {
                format!("{trunk}│  ")
            };
            table.text(Tone::Bad, format!("{trunk}! {reason}"));
        }
    }
}

fn pod(member: &Member, branch: &str, wide: bool) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![
        format!("{branch}{}", member.name).into(),
        Cell::toned(
            tone(member.is_ready, false),
            if member.is_ready { "yes" } else { "no" },
        ),
        member.phase.as_str().into(),
        shortened(&member.revision).into(),
        member.restarts.to_string().into(),
        member.node.as_str().into(),
    ];
    if wide {
        row.push(age(member.age_seconds).into());
    }
    row
}

fn tone(is_good: bool, is_partly: bool) -> Tone {
    match (is_good, is_partly) {
        (true, _) => Tone::Good,
        (false, true) => Tone::Busy,
        (false, false) => Tone::Bad,
    }
}

fn state(group: &Group) -> String {
    if group.is_exhausted {
        return "Exhausted".to_owned();
    }
    match (group.backoff_seconds, group.ready >= group.size) {
        (Some(seconds), _) => format!("BackOff {seconds}s"),
        (None, true) => "Ready".to_owned(),
        (None, false) => "NotReady".to_owned(),
    }
}

fn restarts(group: &Group) -> String {
    match group.budget_left {
        Some(left) => format!("{}, {left} left", group.restarts),
        None => group.restarts.to_string(),
    }
}

fn revision(key: &str, is_current: bool) -> String {
    let key = shortened(key);
    if key.is_empty() || is_current {
        key
    } else {
        format!("{key} (old)")
    }
}

fn shortened(key: &str) -> String {
    key.chars().take(SHOWN).collect()
}
