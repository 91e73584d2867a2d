//! Where this checkout is, and running cargo in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Top of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A cargo command at the top of the checkout.
pub fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command with its output on the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    let text = words(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start {text}"))?;
    if !status.success() {
        bail!("{text} failed");
    }
    Ok(())
}

/// Runs a command and returns what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let text = words(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start {text}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{text} failed: {}", message.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{text} printed no text"))
}

/// The command as one would type it.
pub fn words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Builds the manager and returns the path of its binary.
pub fn build_manager() -> Result<PathBuf> {
    run(&mut cargo(&[
        "build",
        "--package",
        "lws",
        "--bin",
        "lws-manager",
    ]))?;
    Ok(target_folder()?.join("debug").join("lws-manager"))
}

/// Builds a binary of a package as it is released, and returns its path.
pub fn build_release(package: &str, binary: &str) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package", package, "--bin", binary];
    run(&mut cargo(&arguments))?;
    Ok(target_folder()?.join("release").join(binary))
}

/// Cargo's target folder: this binary was built into `<target>/<profile>`.
pub fn target_folder() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let folder = this
        .parent()
        .and_then(Path::parent)
        .context("this program has no folder")?;
    Ok(folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }

    #[test]
    fn words_are_what_one_would_type() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["fmt", "--check"]);
        assert_eq!(words(&command), "cargo fmt --check");
    }
}
