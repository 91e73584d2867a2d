//! How reports are printed: tables, colours, JSON and YAML.

use std::io::{IsTerminal, Write};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For people with wide screens.
    Wide,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    is_on: bool,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// On the way.
    Busy,
    /// Wrong.
    Bad,
    /// Nothing special.
    Plain,
}

impl Paint {
    /// On a terminal, unless `NO_COLOR` says otherwise.
    pub fn of_stdout() -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            is_on: !forbidden && std::io::stdout().is_terminal(),
        }
    }

    /// The text in the colour.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Bad => "31",
            Tone::Plain => return text.to_owned(),
        };
        if self.is_on && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell(String, Tone);

impl Cell {
    /// A cell in a colour.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self(text.into(), tone)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self(text.to_owned(), Tone::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self(text, Tone::Plain)
    }
}

/// Rows in columns, with lines of text between them.
#[derive(Debug, Default)]
pub struct Table {
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    Row(Vec<Cell>),
    Text(Tone, String),
}

impl Table {
    /// A table with a heading.
    pub fn new(heading: &[&str]) -> Self {
        let row = heading.iter().map(|text| Cell::from(*text)).collect();
        Self {
            lines: vec![Line::Row(row)],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.lines.push(Line::Row(cells));
    }

    /// Adds a line that keeps to no column.
    pub fn text(&mut self, tone: Tone, text: impl Into<String>) {
        self.lines.push(Line::Text(tone, text.into()));
    }

    /// The table as text, three blanks between columns, as kubectl's.
    pub fn render(&self, paint: Paint) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Row(cells) => text.push_str(&render_row(cells, &widths, paint)),
                Line::Text(tone, line) => text.push_str(&paint.paint(*tone, line)),
            }
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.lines {
            let Line::Row(cells) = line else { continue };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, Cell(text, _)) in widths.iter_mut().zip(cells) {
                *width = (*width).max(text.chars().count());
            }
        }
        widths
    }
}

fn render_row(cells: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut row = String::new();
    let last = cells.len().saturating_sub(1);
    for (at, (Cell(text, tone), width)) in cells.iter().zip(widths).enumerate() {
        row.push_str(&paint.paint(*tone, text));
        if at < last {
            let blanks = width.saturating_sub(text.chars().count()) + 3;
            row.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    row.trim_end().to_owned()
}

/// The report as JSON or YAML; `None` for the formats that a command writes itself.
pub fn structured<T: Serialize>(report: &T, format: Format) -> Result<Option<String>> {
    Ok(match format {
        Format::Table | Format::Wide => None,
        Format::Json => Some(format!("{}\n", serde_json::to_string_pretty(report)?)),
        Format::Yaml => Some(serde_saphyr::to_string(report)?),
    })
}

/// Writes to stdout.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A time span as kubectl shows ages: 12s, 5m, 3h, 2d.
pub fn age(seconds: i64) -> String {
    let (minute, hour, day) = (60, 3600, 86400);
    match seconds.max(0) {
        s if s < 2 * minute => format!("{s}s"),
        s if s < 2 * hour => format!("{}m", s / minute),
        s if s < 2 * day => format!("{}h", s / hour),
        s => format!("{}d", s / day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kc_columns_are_aligned_and_colours_take_no_room() {
        let mut table = Table::new(&["NAME", "READY"]);
        table.row(vec!["├─ a".into(), Cell::toned(Tone::Good, "1/1")]);
        table.text(Tone::Bad, "   why");
        table.row(vec!["longer-name".into(), "0/1".into()]);
        let expected = "NAME          READY\n├─ a          1/1\n   why\nlonger-name   0/1\n";
        assert_eq!(table.render(Paint { is_on: false }), expected);
        let painted = table.render(Paint { is_on: true });
        assert!(
            painted.contains("├─ a          \u{1b}[32m1/1\u{1b}[0m\n"),
            "{painted}"
        );
    }

    #[test]
    fn kc_ages_as_kubectl_shows_them() {
        for (seconds, text) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7200, "2h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn kc_structured_formats() {
        let report = serde_json::json!({"a": [1]});
        assert_eq!(structured(&report, Format::Table).unwrap(), None);
        assert_eq!(
            structured(&report, Format::Json).unwrap().unwrap(),
            "{\n  \"a\": [\n    1\n  ]\n}\n"
        );
        assert!(
            structured(&report, Format::Yaml)
                .unwrap()
                .unwrap()
                .starts_with("a:")
        );
    }
}
