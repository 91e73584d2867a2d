//! Measured figures, what they are held against, and how they are shown.

use serde_json::{Value, json};

use super::row::Row;

/// What a figure may be at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This value.
    AtMost(f64),
    /// Exactly this value.
    Exactly(f64),
    /// So many times what bare StatefulSets need in the same run.
    TimesBare(f64),
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Wall or CPU time.
    Seconds,
    /// Wall time.
    Milliseconds,
    /// Wall time.
    Microseconds,
    /// Memory.
    MiB,
    /// A number of things.
    Count,
    /// A quotient.
    Ratio,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "µs",
            Self::MiB => "MiB",
            Self::Count => "",
            Self::Ratio => "×",
        }
    }

    /// The value as it is shown.
    pub fn show(self, value: f64) -> String {
        let number = match self {
            Self::Count => format!("{value:.0}"),
            Self::Seconds | Self::Ratio => format!("{value:.2}"),
            Self::Milliseconds | Self::Microseconds | Self::MiB => format!("{value:.1}"),
        };
        format!("{number} {}", self.name()).trim_end().to_owned()
    }
}

/// One measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The work.
    pub row: Row,
    /// What was measured.
    pub what: String,
    /// Unit of all values.
    pub unit: Unit,
    /// The same for bare StatefulSets.
    pub bare: Option<f64>,
    /// The value.
    pub value: f64,
    /// What it is held against.
    pub limit: Option<Limit>,
}

impl Figure {
    /// A figure without a limit.
    pub fn new(row: Row, what: &str, unit: Unit, value: f64) -> Self {
        Self {
            row,
            what: what.to_owned(),
            unit,
            bare: None,
            value,
            limit: None,
        }
    }

    /// Holds it against a limit.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets it beside the same of bare StatefulSets.
    pub fn beside(mut self, bare: f64) -> Self {
        self.bare = Some(bare);
        self
    }

    /// How many times that of bare StatefulSets it is.
    fn ratio(&self) -> Option<f64> {
        self.bare
            .filter(|bare| *bare > 0.0)
            .map(|bare| self.value / bare)
    }

    /// Whether it keeps its limit; `None` without one.
    pub fn is_kept(&self) -> Option<bool> {
        Some(match self.limit? {
            Limit::AtMost(most) => self.value <= most,
            Limit::Exactly(wanted) => (self.value - wanted).abs() < 0.5,
            Limit::TimesBare(most) => self.ratio()? <= most,
        })
    }

    fn limit_text(&self) -> String {
        match self.limit {
            None => String::new(),
            Some(Limit::AtMost(most)) => format!("≤ {}", self.unit.show(most)),
            Some(Limit::Exactly(wanted)) => self.unit.show(wanted),
            Some(Limit::TimesBare(most)) => format!("≤ {most} × bare"),
        }
    }

    fn cells(&self, is_small: bool) -> [String; 7] {
        let kept = match self.is_kept() {
            None => "",
            Some(true) => "yes",
            Some(false) => "NO",
        };
        [
            self.row.work(is_small),
            self.what.clone(),
            self.bare
                .map_or_else(String::new, |bare| self.unit.show(bare)),
            self.unit.show(self.value),
            self.ratio()
                .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            self.limit_text(),
            kept.to_owned(),
        ]
    }

    /// For programs.
    pub fn json(&self, is_small: bool) -> Value {
        json!({
            "row": self.row.name(),
            "work": self.row.work(is_small),
            "figure": self.what,
            "unit": self.unit.name(),
            "bare": self.bare,
            "value": self.value,
            "timesBare": self.ratio(),
            "limit": self.limit.map(|_| self.limit_text()),
            "kept": self.is_kept(),
        })
    }
}

const HEADINGS: [&str; 7] = [
    "Work", "Figure", "Bare", "Measured", "× bare", "Limit", "Kept",
];

/// A Markdown table whose columns line up on a terminal too; the work is named once.
pub fn table(figures: &[Figure], is_small: bool) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(figures.iter().map(|figure| figure.cells(is_small)));
    let mut last = String::new();
    for [work, ..] in &mut rows {
        if *work == last {
            work.clear();
        } else {
            last.clone_from(work);
        }
    }
    let width = |column: usize| {
        let lengths = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        lengths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths)).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    lines.insert(1, line(&rule, &widths));
    lines.join("\n") + "\n"
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    format!("| {} |", padded.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(value: f64, bare: f64) -> Figure {
        Figure::new(Row::Groups200, "wall", Unit::Seconds, value)
            .beside(bare)
            .limit(Limit::TimesBare(1.25))
    }

    #[test]
    fn limits_are_judged() {
        assert_eq!(wall(10.0, 8.0).is_kept(), Some(true));
        assert_eq!(wall(10.1, 8.0).is_kept(), Some(false));
        let count = |value| Figure::new(Row::Rollout, "leaders", Unit::Count, value);
        assert_eq!(count(200.0).is_kept(), None);
        assert_eq!(
            count(200.0).limit(Limit::Exactly(200.0)).is_kept(),
            Some(true)
        );
        assert_eq!(
            count(201.0).limit(Limit::Exactly(200.0)).is_kept(),
            Some(false)
        );
        assert_eq!(
            count(201.0).limit(Limit::AtMost(200.0)).is_kept(),
            Some(false)
        );
    }

    #[test]
    fn table_names_work_once_and_lines_up() {
        let requests = Figure::new(Row::Groups200, "requests", Unit::Count, 230.0);
        let text = table(&[wall(10.0, 8.0), requests], false);
        let lines: Vec<&str> = text.lines().collect();
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(
            lines[2].starts_with("| 200 groups × 4 pods, create | wall     | 8.00 s | 10.00 s"),
            "{text}"
        );
        assert!(
            lines[2].ends_with("| 1.25   | ≤ 1.25 × bare | yes  |"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("|                             | requests |"),
            "{text}"
        );
    }
}
