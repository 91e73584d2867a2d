//! The files of a release: chart archive, binaries, checksums.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use lws_local_cluster::{Progress, Tool, Tools};
use sha2::{Digest, Sha256};

use super::Platform;
use super::version::Version;
use crate::repository::{self, cargo};

/// Package and binary of each program that is released.
const PROGRAMS: [(&str, &str); 1] = [("lws", "lws-manager")];
const CHECKSUMS: &str = "checksums.txt";

impl Platform {
    /// Name in file names, as container platforms have it.
    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "linux-amd64",
            Self::Arm64 => "linux-arm64",
        }
    }

    /// Static binaries for any distribution.
    fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Compiler of C parts.
    fn compiler(self) -> &'static str {
        match self {
            Self::Amd64 => "musl-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// What links, if it is not this machine's own linker. The target brings its C library, so one for another will do.
    fn linker(self) -> Option<&'static str> {
        match self {
            Self::Amd64 => None,
            Self::Arm64 => Some("aarch64-linux-gnu-gcc"),
        }
    }
}

/// HELM-1: the chart as `lws-chart-<version>.tgz`.
pub fn package_chart(folder: &Path, version: &Version) -> Result<()> {
    let helm = Tools::ensure_one(Tool::Helm, Progress::stderr())?;
    let mut command = Command::new(helm);
    command
        .args(["package", "charts/lws", "--destination"])
        .arg(folder);
    repository::output(command.current_dir(repository::root()))?;
    let (made, wanted) = (
        format!("lws-{version}.tgz"),
        format!("lws-chart-{version}.tgz"),
    );
    fs::rename(folder.join(made), folder.join(wanted)).context("Helm made no archive")
}

/// Builds the programs for a platform, and puts them into the folder.
pub fn build(platform: Platform, folder: &Path, version: &Version) -> Result<()> {
    let git = |arguments: &[&str]| {
        repository::output(
            Command::new("git")
                .args(arguments)
                .current_dir(repository::root()),
        )
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    // The date of the commit, so that building twice makes the same file.
    let date = git(&["log", "-1", "--format=%cI"])?;
    let target = platform.target();
    let variable = target.replace('-', "_");
    for (package, program) in PROGRAMS {
        let mut command = cargo(&["build", "--locked", "--release", "--target", target]);
        command.args(["--package", package, "--bin", program]);
        command.env("LWS_GIT_VERSION", format!("v{version}"));
        command.env("LWS_GIT_COMMIT", commit.trim());
        command.env("LWS_BUILD_DATE", date.trim());
        command.env(format!("CC_{variable}"), platform.compiler());
        if let Some(linker) = platform.linker() {
            let variable = format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase());
            command.env(variable, linker);
        }
        repository::run(&mut command)?;
        let built = repository::target_folder()?
            .join(target)
            .join("release")
            .join(program);
        let name = format!("{program}-{}", platform.name());
        fs::copy(&built, folder.join(&name)).with_context(|| format!("failed to copy {name}"))?;
    }
    Ok(())
}

/// Writes the SHA-256 of every file, as `sha256sum --check` reads it.
pub fn write_checksums(folder: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).context("failed to list the artifacts")? {
        let path = entry.context("failed to list the artifacts")?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let content = fs::read(&path).with_context(|| format!("failed to read {name}"))?;
        let digest: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        lines.push(format!("{digest}  {name}\n"));
    }
    lines.sort_by(|one, other| one.get(64..).cmp(&other.get(64..)));
    fs::write(folder.join(CHECKSUMS), lines.concat()).context("failed to write the checksums")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "").unwrap();
        fs::write(folder.path().join("a"), "abc").unwrap();
        write_checksums(folder.path()).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join(CHECKSUMS)).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }

    #[test]
    fn ops_kus_5_chart_archive_carries_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let version: Version = env!("CARGO_PKG_VERSION").parse().unwrap();
        package_chart(folder.path(), &version).unwrap();
        assert!(
            folder
                .path()
                .join(format!("lws-chart-{version}.tgz"))
                .is_file()
        );
    }
}
