//! `cargo xtask release`: sets the version everywhere, and makes what a release consists of (KUS-5, DEP-1). Nothing is published.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::manifests;
use crate::repository;
use version::Version;

mod artifacts;
mod notes;
mod version;

const EXAMPLES: &str = "Examples:
  cargo xtask release 0.2.0                     all artifacts, for all platforms
  cargo xtask release 0.2.0 --platform amd64    on a machine without a compiler for arm64

Needs the musl targets of rustup, and as C compilers musl-gcc for amd64 and aarch64-linux-gnu-gcc for arm64 (on Debian: musl-tools,
gcc-aarch64-linux-gnu). Changes the files that carry the version; commit and tag them afterwards.";

/// Arguments of `cargo xtask release`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The new version, without a leading v.
    version: Version,
    /// Build binaries for these platforms only.
    #[arg(long, value_delimiter = ',', default_value = "amd64,arm64")]
    platform: Vec<Platform>,
    /// Folder of the artifacts; emptied first [target/release-VERSION].
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// What binaries are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    Amd64,
    Arm64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments {
        version,
        platform,
        output,
    } = arguments;
    let root = repository::root();
    // Before the version changes: what is released is what was committed.
    let notes = notes::write(&root, version)?;
    version::set_everywhere(&root, version)?;
    manifests::write()?;
    let folder = output
        .clone()
        .unwrap_or_else(|| root.join(format!("target/release-{version}")));
    empty(&folder)?;
    fs::write(folder.join("notes.md"), notes).context("failed to write the notes")?;
    fs::copy(root.join(manifests::FILE), folder.join(manifests::FILE))
        .context("failed to copy the manifests")?;
    artifacts::package_chart(&folder, version)?;
    for platform in platform {
        artifacts::build(*platform, &folder, version)?;
    }
    artifacts::write_checksums(&folder)?;
    println!("{}", folder.display());
    Ok(())
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))
}
