//! Finds the tests of this repository in its sources.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A test function.
#[derive(Debug, Eq, PartialEq)]
pub struct Test {
    /// Path of its file below the top of the checkout.
    pub file: String,
    /// Name of the function.
    pub name: String,
}

/// All tests below a folder, in the order of their files.
pub fn tests(root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    visit(root, root, &mut tests)?;
    Ok(tests)
}

fn visit(root: &Path, folder: &Path, tests: &mut Vec<Test>) -> Result<()> {
    let failed = || format!("failed to read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        paths.push(entry.with_context(failed)?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            visit(root, &path, tests)?;
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            let file = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            tests.extend(names(&text).map(|name| Test {
                file: file.clone(),
                name: name.to_owned(),
            }));
        }
    }
    Ok(())
}

/// The names of the functions that carry a test attribute. A test that is switched off shows nothing.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut marked = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if line.starts_with("#[ignore") {
            marked = false;
        }
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        }
        let (_, after) = line.split_once("fn ")?;
        let name = after
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()?;
        std::mem::take(&mut marked).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_functions_are_found_and_others_are_not() {
        let text = "\
            #[test]\nfn plain() {}\n\
            fn no_test() {}\n\
            #[tokio::test(start_paused = true)]\nasync fn with_runtime() {}\n\
            proptest! {\n    #[test]\n    fn of_any_input(x in any::<u8>()) {}\n}\n\
            #[test]\n#[ignore = \"broken\"]\nfn switched_off() {}\n";
        assert_eq!(
            names(text).collect::<Vec<_>>(),
            ["plain", "with_runtime", "of_any_input"]
        );
    }

    #[test]
    fn this_test_is_found() {
        let root = crate::repository::root();
        let found = tests(&root).unwrap();
        assert!(found.contains(&Test {
            file: "xtask/src/coverage/sources.rs".to_owned(),
            name: "this_test_is_found".to_owned(),
        }));
    }
}
