//! The document: text, and for each part of the specification a table of its rules. A row is `| id | what it says | shown by |`;
//! the last cell has the files of the tests, or words that say why there is none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::names::{Families, Rule};

/// Announces the prefix of the rules in the tables that follow.
const PREFIX: &str = "Tests begin with `";

/// The document, line by line.
#[derive(Clone, Debug)]
pub struct Document(Vec<Line>);

#[derive(Clone, Debug)]
enum Line {
    Text(String),
    Row(Row),
}

#[derive(Clone, Debug)]
struct Row {
    rule: Rule,
    says: String,
    shown: String,
}

impl Row {
    /// Whether the last cell lists tests, which is ours to write, or has words.
    fn lists_tests(&self) -> bool {
        self.shown.starts_with('`')
    }
}

impl Document {
    /// Reads a document. Every rule may stand in it once.
    pub fn parse(text: &str) -> Result<Self> {
        let mut area = String::new();
        let mut seen = BTreeSet::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            if let Some((_, after)) = line.split_once(PREFIX) {
                area = after.chars().take_while(char::is_ascii_lowercase).collect();
            }
            let Some(row) = row(line, &area)? else {
                lines.push(Line::Text(line.to_owned()));
                continue;
            };
            if !seen.insert(row.rule.clone()) {
                bail!("{} stands twice among the rules of {area}_", row.rule.id);
            }
            lines.push(Line::Row(row));
        }
        Ok(Self(lines))
    }

    /// The document as it is written.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for line in &self.0 {
            match line {
                Line::Text(line) => text.push_str(line),
                Line::Row(row) => text.push_str(&format!(
                    "| {} | {} | {} |",
                    row.rule.id, row.says, row.shown
                )),
            }
            text.push('\n');
        }
        text
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rows().map(|row| &row.rule)
    }

    /// The families that the rules belong to.
    pub fn families(&self) -> Families {
        let mut families = Families::default();
        for rule in self.rules() {
            families.add(rule);
        }
        families
    }

    /// The same document with these files of tests. Words of a rule that has none stay.
    pub fn with_tests(&self, files: &BTreeMap<Rule, BTreeSet<String>>) -> Self {
        let mut document = self.clone();
        for line in &mut document.0 {
            let Line::Row(row) = line else { continue };
            match files.get(&row.rule) {
                Some(files) => {
                    let files: Vec<_> = files.iter().map(|file| format!("`{file}`")).collect();
                    row.shown = files.join(", ");
                }
                None if row.lists_tests() => row.shown.clear(),
                None => {}
            }
        }
        document
    }

    /// Rules with neither tests nor words.
    pub fn unexplained(&self) -> impl Iterator<Item = &Rule> {
        self.rows()
            .filter(|row| row.shown.is_empty())
            .map(|row| &row.rule)
    }

    /// Rules whose last cell differs in another state of this document, and what is wrong with it.
    pub fn differing(&self, current: &Self) -> Vec<String> {
        let pairs = self.rows().zip(current.rows());
        pairs
            .filter(|(committed, current)| committed.shown != current.shown)
            .map(|(committed, _)| {
                let id = &committed.rule.id;
                if committed.lists_tests() || committed.shown.is_empty() {
                    id.clone()
                } else {
                    format!("{id} (has a test now, the reason why not is superfluous)")
                }
            })
            .collect()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().filter_map(|line| match line {
            Line::Text(_) => None,
            Line::Row(row) => Some(row),
        })
    }
}

/// The row that a line is, if it is one.
fn row(line: &str, area: &str) -> Result<Option<Row>> {
    let Some(cells) = line
        .strip_prefix('|')
        .and_then(|line| line.strip_suffix('|'))
    else {
        return Ok(None);
    };
    let cells: Vec<_> = cells.split('|').map(str::trim).collect();
    let Some(id) = cells.first().filter(|id| is_id(id)) else {
        return Ok(None);
    };
    let &[_, says, shown] = cells.as_slice() else {
        bail!("the row of {id} has not three cells");
    };
    if area.is_empty() {
        bail!("no line says what the tests of {id} begin with");
    }
    Ok(Some(Row {
        rule: Rule {
            area: area.to_owned(),
            id: (*id).to_owned(),
        },
        says: says.to_owned(),
        shown: shown.to_owned(),
    }))
}

/// `ORD-23` or `C07`.
fn is_id(cell: &str) -> bool {
    let number = cell.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let digits = number.strip_prefix('-').unwrap_or(number);
    number.len() < cell.len()
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}
