//! `docs/performance.md`: the part between two marks is what the last run printed.

use std::fs;

use anyhow::{Context, Result};

use super::figure::table;
use super::plot;
use super::sessions::Findings;
use crate::repository;

const DOCUMENT: &str = "docs/performance.md";
const PICTURE: &str = "docs/performance.svg";
const BEGIN: &str = "<!-- written by `cargo xtask bench --write-docs`: begin -->\n";
const END: &str = "<!-- written by `cargo xtask bench --write-docs`: end -->\n";

/// Puts the figures of a whole run into the document.
pub fn write(findings: &Findings, machine: &str) -> Result<()> {
    let path = repository::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let figures = format!("{machine}\n\n{}", table(&findings.figures, false));
    let text = replaced(&text, &figures).with_context(|| format!("{DOCUMENT} has no marks"))?;
    fs::write(&path, text).with_context(|| format!("cannot write {DOCUMENT}"))?;
    let picture = repository::root().join(PICTURE);
    fs::write(picture, plot::svg(&findings.growth))
        .with_context(|| format!("cannot write {PICTURE}"))
}

fn replaced(text: &str, figures: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{figures}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        let new = replaced(&text, "new").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}b\n"));
        assert_eq!(replaced(&new, "new"), Some(new.clone()));
        assert_eq!(replaced("nothing", "new"), None);
    }

    #[test]
    fn document_has_the_marks() {
        let text = fs::read_to_string(repository::root().join(DOCUMENT)).unwrap();
        assert!(replaced(&text, "").is_some());
    }
}
