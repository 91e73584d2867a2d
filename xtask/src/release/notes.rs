//! Release notes: what the log says since the release before.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::version::Version;
use crate::repository;

/// What holds for every release (UPG-7).
const STANDING: &str = "\
## Upgrade and downgrade

Apply the CRDs first, then the manager: `kubectl apply --server-side -f manifests.yaml` does both in this order. Running groups are kept.
A downgrade to upstream v1.0.0 keeps the groups of every LeaderWorkerSet; a DisaggregatedSet whose current revision was made by this
controller is rolled once then, under its budgets. docs/install.md tells more.
";

/// The notes of this version.
pub fn write(root: &Path, version: &Version) -> Result<String> {
    let git = |arguments: &[&str]| {
        repository::output(Command::new("git").args(arguments).current_dir(root))
    };
    // Before the first release there is no tag.
    let last = git(&["describe", "--tags", "--abbrev=0", "--match=v*"]).ok();
    let range = last
        .as_deref()
        .map_or("HEAD".to_owned(), |tag| format!("{}..HEAD", tag.trim()));
    let log = git(&["log", "--no-merges", "--reverse", "--format=%s", &range])?;
    Ok(text(version, &log))
}

fn text(version: &Version, log: &str) -> String {
    let changes: String = log
        .lines()
        .map(|subject| format!("- {subject}\n"))
        .collect();
    format!("# v{version}\n\n## Changes\n\n{changes}\n{STANDING}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_upg_7_notes_list_changes_and_what_a_downgrade_does() {
        let notes = text(&"1.2.3".parse().unwrap(), "Make a thing\nFix another\n");
        assert!(
            notes.starts_with(
                "# v1.2.3\n\n## Changes\n\n- Make a thing\n- Fix another\n\n## Upgrade"
            ),
            "{notes}"
        );
        assert!(notes.contains("rolled once"));
    }

    #[test]
    fn log_of_this_repository_is_read() {
        let notes = write(&repository::root(), &"1.2.3".parse().unwrap()).unwrap();
        assert!(notes.lines().filter(|line| line.starts_with("- ")).count() > 0);
    }
}
