//! `cargo xtask coverage`: which test shows which rule of the specification. Tests cite rules in their names; the rules, and
//! the reasons why some have no test, stand in `docs/spec-coverage.md`, whose last column this command fills in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use crate::repository;
use document::Document;
use names::Rule;
use sources::Test;

mod document;
mod names;
mod sources;

const DOCUMENT: &str = "docs/spec-coverage.md";

const EXAMPLES: &str = "Examples:
  cargo xtask coverage            brings docs/spec-coverage.md up to date
  cargo xtask coverage --check    fails when a rule has neither a test nor a reason why not
  cargo xtask coverage ORD-53     lists the tests of one rule";

/// Arguments of `cargo xtask coverage`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Writes nothing and fails when the document is not up to date.
    #[arg(long, conflicts_with = "rule")]
    check: bool,
    /// Lists the tests of this rule or case instead.
    rule: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.rule {
        Some(rule) => list(rule),
        None if arguments.check => check_committed(),
        None => write(),
    }
}

/// Fails when a rule has neither a test nor a reason, when a test cites a rule that does not exist, or when the document does
/// not say what the tests say.
pub fn check_committed() -> Result<()> {
    let (committed, tests) = read()?;
    let (current, mut problems) = judged(&committed, &tests);
    let stale = committed.differing(&current);
    if !stale.is_empty() {
        problems.push(format!(
            "{DOCUMENT} is not up to date on {}; run `cargo xtask coverage` and commit the result",
            stale.join(", ")
        ));
    }
    fail_on(&problems)
}

fn write() -> Result<()> {
    let (committed, tests) = read()?;
    let (current, problems) = judged(&committed, &tests);
    let path = repository::root().join(DOCUMENT);
    fs::write(&path, current.render()).with_context(|| format!("failed to write {DOCUMENT}"))?;
    fail_on(&problems)
}

fn list(id: &str) -> Result<()> {
    let (committed, tests) = read()?;
    let id = id.to_uppercase();
    let mut known = false;
    let families = committed.families();
    for rule in committed.rules().filter(|rule| rule.id == id) {
        known = true;
        for test in tests
            .iter()
            .filter(|test| families.cited(&test.name).contains(rule))
        {
            println!("{} {}", test.file, test.name);
        }
    }
    if !known {
        bail!("{DOCUMENT} has no rule {id}");
    }
    Ok(())
}

fn read() -> Result<(Document, Vec<Test>)> {
    let root = repository::root();
    let text = fs::read_to_string(root.join(DOCUMENT))
        .with_context(|| format!("failed to read {DOCUMENT}"))?;
    Ok((Document::parse(&text)?, sources::tests(&root)?))
}

/// The document as these tests make it, and what is wrong beside that it may differ.
fn judged(committed: &Document, tests: &[Test]) -> (Document, Vec<String>) {
    let Coverage { files, mut unknown } = Coverage::of(committed, tests);
    let current = committed.with_tests(&files);
    let unexplained: Vec<_> = current.unexplained().map(|rule| rule.id.as_str()).collect();
    if !unexplained.is_empty() {
        unknown.push(format!(
            "neither a test nor a reason why not: {}",
            unexplained.join(", ")
        ));
    }
    (current, unknown)
}

fn fail_on(problems: &[String]) -> Result<()> {
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// What the names of the tests say about the rules of a document.
struct Coverage {
    /// The files with tests of each rule.
    files: BTreeMap<Rule, BTreeSet<String>>,
    /// Tests that cite what no rule is called.
    unknown: Vec<String>,
}

impl Coverage {
    fn of(document: &Document, tests: &[Test]) -> Self {
        let families = document.families();
        let rules: BTreeSet<&Rule> = document.rules().collect();
        let mut coverage = Self {
            files: BTreeMap::new(),
            unknown: Vec::new(),
        };
        for test in tests {
            for rule in families.cited(&test.name) {
                if rules.contains(&rule) {
                    coverage
                        .files
                        .entry(rule)
                        .or_default()
                        .insert(test.file.clone());
                } else {
                    coverage.unknown.push(format!(
                        "{}: {} cites {}, which {DOCUMENT} does not have",
                        test.file, test.name, rule.id
                    ));
                }
            }
        }
        coverage
    }
}

#[cfg(test)]
mod tests;
