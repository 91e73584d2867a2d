//! The version, and the files that carry it.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use crate::repository::{self, cargo};

/// `MAJOR.MINOR.PATCH`, perhaps with `-PRERELEASE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(String);

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (numbers, prerelease) = text
            .split_once('-')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let parts: Vec<_> = numbers.split('.').collect();
        let is_number = |part: &&str| {
            let leads_with_zero = part.len() > 1 && part.starts_with('0');
            !part.is_empty() && !leads_with_zero && part.chars().all(|digit| digit.is_ascii_digit())
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '.')
        };
        if parts.len() == 3 && parts.iter().all(is_number) && prerelease.is_none_or(is_label) {
            return Ok(Self(text.to_owned()));
        }
        Err("expected MAJOR.MINOR.PATCH or MAJOR.MINOR.PATCH-PRERELEASE".to_owned())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A line with the version: its file, how the line begins, how it goes on before and after the version.
type Place = (&'static str, &'static str, &'static str, &'static str);

const PLACES: [Place; 4] = [
    ("Cargo.toml", "version = ", "\"", "\""),
    ("config/manager/kustomization.yaml", "  newTag: ", "v", ""),
    ("charts/lws/Chart.yaml", "version: ", "", ""),
    ("charts/lws/Chart.yaml", "appVersion: ", "v", ""),
];

/// Writes the version into every file that carries it.
pub fn set_everywhere(root: &Path, version: &Version) -> Result<()> {
    set_in_files(root, version)?;
    repository::run(&mut cargo(&[
        "update",
        "--quiet",
        "--workspace",
        "--offline",
    ]))
}

fn set_in_files(root: &Path, version: &Version) -> Result<()> {
    for (file, start, before, after) in PLACES {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {file}"))?;
        let changed = replace(&text, start, &format!("{start}{before}{version}{after}"))
            .with_context(|| format!("failed to set the version in {file}"))?;
        fs::write(&path, changed).with_context(|| format!("failed to write {file}"))?;
    }
    Ok(())
}

/// Replaces the one line that begins so.
fn replace(text: &str, start: &str, line: &str) -> Result<String> {
    let found = text.lines().filter(|line| line.starts_with(start)).count();
    if found != 1 {
        bail!("{found} lines begin with {start:?}, not one");
    }
    let lines = text
        .lines()
        .map(|old| if old.starts_with(start) { line } else { old });
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for text in ["0.1.0", "1.20.300", "1.0.0-rc.1", "1.0.0-alpha"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "1",
            "1.0",
            "v1.0.0",
            "1.0.0.0",
            "1.0.x",
            "01.0.0",
            "1.0.0-",
            "1.0.0-a b",
            "1..0",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_place_is_there_once() {
        let copy = tempfile::tempdir().unwrap();
        for (file, ..) in PLACES {
            let target = copy.path().join(file);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(repository::root().join(file), target).unwrap();
        }
        set_in_files(copy.path(), &"7.8.9-rc.1".parse().unwrap()).unwrap();
        let read = |file: &str| fs::read_to_string(copy.path().join(file)).unwrap();
        assert!(read("Cargo.toml").contains("\nversion = \"7.8.9-rc.1\"\n"));
        assert!(read("config/manager/kustomization.yaml").contains("\n  newTag: v7.8.9-rc.1\n"));
        let chart = read("charts/lws/Chart.yaml");
        assert!(
            chart.contains("\nversion: 7.8.9-rc.1\nappVersion: v7.8.9-rc.1\n"),
            "{chart}"
        );
    }

    #[test]
    fn doubtful_lines_are_left_alone() {
        assert!(replace("a: 1\na: 2\n", "a: ", "a: 3").is_err());
        assert!(replace("b: 1\n", "a: ", "a: 3").is_err());
        assert_eq!(
            replace("a: 1\nb: 2\n", "a: ", "a: 3").unwrap(),
            "a: 3\nb: 2\n"
        );
    }
}
