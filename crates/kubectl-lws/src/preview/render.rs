//! Previews for people.

use super::report::{Against, Groups, Report, Slice};
use crate::output::{Cell, Paint, Table, Tone};

/// All reports as text.
pub fn render(reports: &[Report], paint: Paint) -> String {
    let reports: Vec<String> = reports.iter().map(|report| one(report, paint)).collect();
    reports.join("\n")
}

fn one(report: &Report, paint: Paint) -> String {
    let against = match report.against {
        Against::Nothing => "as a new object",
        Against::LiveObject => "against the live object",
        Against::OtherFile => "against the other file",
    };
    let mut text = format!("{} {}, {against}: ", report.kind, report.name);
    match &report.denial {
        Some(denial) => text.push_str(&paint.paint(Tone::Bad, &format!("denied: {denial}"))),
        None => text.push_str(&paint.paint(Tone::Good, "valid")),
    }
    text.push('\n');
    for warning in &report.warnings {
        text.push_str(&paint.paint(Tone::Busy, &format!("warning: {warning}")));
        text.push('\n');
    }
    if !report.changes.is_empty() {
        text.push_str(&format!("Changes: {}\n", report.changes.join(", ")));
    }
    if let Some(unclear) = &report.unclear {
        text.push_str(&format!("Not foretold: {unclear}\n"));
    }
    if let Some(group) = &report.groups {
        text.push_str(&groups(group, paint));
    }
    for fate in &report.slices {
        text.push_str(&slice(fate, paint));
    }
    text
}

fn groups(groups: &Groups, paint: Paint) -> String {
    let mut text = match (groups.template_changed, groups.rolls.as_slice()) {
        (true, []) => "The template changes, but no group is made anew now.\n".to_owned(),
        (true, rolls) => format!(
            "The template changes: groups {} are made anew, in this order.\n",
            numbers(rolls)
        ),
        (false, []) if groups.steps.is_empty() => return "No group is touched.\n".to_owned(),
        (false, []) => "No group is made anew.\n".to_owned(),
        (false, rolls) => format!(
            "The rollout goes on: groups {} are made anew.\n",
            numbers(rolls)
        ),
    };
    let mut table = Table::new(&[
        "STEP",
        "REPLICAS",
        "PARTITION",
        "REPLACED",
        "CREATED",
        "REMOVED",
        "READY AT LEAST",
    ]);
    for (at, step) in groups.steps.iter().enumerate() {
        let tone = tone(step.lowest_ready, groups.desired);
        table.row(vec![
            (at + 1).to_string().into(),
            step.replicas.to_string().into(),
            step.partition.to_string().into(),
            numbers(&step.replaced).into(),
            numbers(&step.created).into(),
            numbers(&step.removed).into(),
            Cell::toned(tone, step.lowest_ready.to_string()),
        ]);
    }
    if !groups.steps.is_empty() {
        text.push_str(&table.render(paint));
    }
    text.push_str(&format!(
        "At least {} of {} groups are ready at any time; {} are now.\n",
        groups.lowest_ready, groups.desired, groups.ready
    ));
    text
}

fn tone(ready: u32, desired: u32) -> Tone {
    if ready >= desired {
        Tone::Good
    } else if ready > 0 {
        Tone::Busy
    } else {
        Tone::Bad
    }
}

fn numbers<T: ToString>(list: &[T]) -> String {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    list.join(" ")
}

fn slice(slice: &Slice, paint: Paint) -> String {
    let heading = format!("Slice {}", slice.slice);
    let counts = |counts: &[u64]| {
        let pairs = slice.roles.iter().zip(counts);
        let pairs: Vec<String> = pairs
            .map(|(role, count)| format!("{role} {count}"))
            .collect();
        pairs.join(", ")
    };
    match slice.course {
        "created" => return format!("{heading} is created: {}\n", counts(&slice.to)),
        "removed" => return format!("{heading} is removed\n"),
        "scaled" => {
            return format!(
                "{heading} is scaled: {} -> {}\n",
                counts(&slice.from),
                counts(&slice.to)
            );
        }
        "unchanged" => return format!("{heading} is left alone\n"),
        _ => {}
    }
    let columns = slice
        .roles
        .iter()
        .map(|role| format!("{} OLD+NEW (SERVING)", role.to_uppercase()));
    let columns: Vec<String> = ["STEP".to_owned(), "KIND".to_owned()]
        .into_iter()
        .chain(columns)
        .collect();
    let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, step) in slice.steps.iter().enumerate() {
        let mut row: Vec<Cell> = vec![(at + 1).to_string().into(), step.kind.into()];
        let counts = step.old.iter().zip(&step.new).zip(&step.serving);
        row.extend(
            counts.map(|((old, new), serving)| Cell::from(format!("{old}+{new} ({serving})"))),
        );
        table.row(row);
    }
    format!(
        "{heading} is rolled in {} steps, from {}\n{}At least serving at any time: {}\n",
        slice.steps.len(),
        counts(&slice.from),
        table.render(paint),
        counts(&slice.lowest_serving)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Manifest, parse};
    use crate::preview::report::offline;
    use crate::validate::Assumed;

    fn set(image: &str) -> Manifest {
        let text = format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {{name: llm}}, spec: {{replicas: 2, leaderWorkerTemplate: {{size: 2, workerTemplate: {{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}}}}}}}"
        );
        parse(&text).unwrap().remove(0)
    }

    #[test]
    fn ord_50_preview_for_people() {
        let report = offline(&set("b"), Some(&set("a")), Assumed::default()).unwrap();
        let expected = "LeaderWorkerSet llm, against the other file: valid
Changes: spec.leaderWorkerTemplate.workerTemplate
The template changes: groups 1 0 are made anew, in this order.
STEP   REPLICAS   PARTITION   REPLACED   CREATED   REMOVED   READY AT LEAST
1      2          2                                          2
2      2          1           1                              1
3      2          0           0                              1
At least 1 of 2 groups are ready at any time; 2 are now.
";
        assert_eq!(render(&[report], Paint::default()), expected);
        let same = offline(&set("a"), Some(&set("a")), Assumed::default()).unwrap();
        assert!(render(&[same], Paint::default()).ends_with("valid\nNo group is touched.\n"));
    }
}
