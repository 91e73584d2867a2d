//! Checks of the documentation: its links lead somewhere, and it lists every name that others may read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository;

/// Folders with documentation, below the top of the checkout.
const FOLDERS: [&str; 2] = ["docs", "examples"];
/// Prefixes that docs/names.md abbreviates.
const SHORT: [(&str, &str); 2] = [
    ("leaderworkerset.sigs.k8s.io/", "lws/"),
    ("disaggregatedset.x-k8s.io/", "ds/"),
];

/// Runs both checks.
pub fn check() -> Result<()> {
    let root = repository::root();
    let mut faults = Vec::new();
    for file in pages(&root)? {
        faults.extend(dead_links(&file)?);
    }
    let source = fs::read_to_string(root.join("crates/api/src/names.rs"))?;
    let page = fs::read_to_string(root.join("docs/names.md"))?;
    faults.extend(
        missing_names(&source, &page)
            .into_iter()
            .map(|name| format!("docs/names.md does not list {name}")),
    );
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    for folder in FOLDERS {
        collect(&root.join(folder), &mut pages)?;
    }
    pages.sort();
    Ok(pages)
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

fn dead_links(page: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(page)?;
    let folder = page.parent().unwrap_or(page);
    let dead = links(&text).filter(|link| !leads_somewhere(page, folder, link));
    Ok(dead
        .map(|link| format!("{}: dead link {link}", page.display()))
        .collect())
}

/// Targets of links to files and headings of the checkout.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

fn leads_somewhere(page: &Path, folder: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_path_buf()
    } else {
        folder.join(file)
    };
    if heading.is_empty() {
        return target.exists();
    }
    fs::read_to_string(target).is_ok_and(|text| headings(&text).contains(heading))
}

/// Headings as GitHub makes anchors of them.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Names of labels, annotations, variables, gates and finalizers that the page lacks.
fn missing_names(source: &str, page: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let values = source.split('"').skip(1).step_by(2);
    let is_name = |value: &&str| {
        value.contains(".io/")
            || value.starts_with("LWS_")
            || value.starts_with("TPU_")
            || value.starts_with("DISAGGREGATEDSET_")
    };
    let names: BTreeSet<String> = values.filter(is_name).map(shortened).collect();
    names
        .into_iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect()
}

fn shortened(name: &str) -> String {
    let mut short = name.to_owned();
    for (long, abbreviation) in SHORT {
        short = short.replace(long, abbreviation);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_headings_are_found() {
        let text = "[a](x.md) [b](https://x.io/y) ![c](p.svg) [d](y.md#a-b) [e](#here)";
        assert_eq!(
            links(text).collect::<Vec<_>>(),
            ["x.md", "p.svg", "y.md#a-b", "#here"]
        );
    }

    #[test]
    fn headings_become_anchors() {
        let found = headings("# A stuck rollout\ntext\n## status: what runs, and why\n");
        assert!(
            found.contains("a-stuck-rollout") && found.contains("status-what-runs-and-why"),
            "{found:?}"
        );
    }

    #[test]
    fn names_that_the_page_lacks() {
        let source = "pub const A: &str = \"leaderworkerset.sigs.k8s.io/name\";\npub const B: &str =\n    \"LWS_GROUP_SIZE\";\npub const C: &str = \"Pod\";\n#[cfg(test)]\n\"LWS_X\"";
        assert_eq!(missing_names(source, "`lws/name`"), ["LWS_GROUP_SIZE"]);
        assert_eq!(
            missing_names(source, "`lws/name` `LWS_GROUP_SIZE`"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn documentation_is_sound() {
        check().unwrap();
    }
}
