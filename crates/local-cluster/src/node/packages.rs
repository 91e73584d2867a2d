//! Debian packages, unpacked into the cache folder and not installed: what a node is made of beside Go modules, and root
//! file systems for images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Cache, Error, Progress, Result, cache, process};

/// Packages by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packages {
    names: &'static [&'static str],
    /// Whether everything they depend on is wanted, too.
    whole: bool,
}

impl Packages {
    /// What runs containers on a machine that has the libraries.
    pub(crate) const RUNTIME: Self = Self {
        names: &[
            "containerd",
            "runc",
            "containernetworking-plugins",
            "busybox-static",
        ],
        whole: false,
    };
    /// A shell and the usual tools, statically linked.
    pub const BUSYBOX: Self = Self {
        names: &["busybox-static"],
        whole: true,
    };
    /// The libraries of programs that were built on this machine.
    pub const LIBRARIES: Self = Self {
        names: &["libc6", "libgcc-s1"],
        whole: true,
    };
    /// Python with its standard library, and a shell.
    pub const PYTHON: Self = Self {
        names: &["python3-minimal", "libpython3-stdlib", "busybox-static"],
        whole: true,
    };

    /// Folder of the unpacked packages, whether it is there or not.
    pub(crate) fn folder(self, cache: &Cache) -> PathBuf {
        let digest = Sha256::digest(self.names.join(" "));
        let digest: String = digest
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let kind = if self.whole { "system" } else { "packages" };
        cache.binaries(&format!("{kind}-{digest}"))
    }

    /// Downloads and unpacks them if they are not there.
    ///
    /// # Errors
    /// [`Error::Packages`] where `apt-get` is absent or does not find them.
    pub fn ensure(self, cache: &Cache, progress: Progress) -> Result<PathBuf> {
        let folder = self.folder(cache);
        let _lock = cache::lock(&folder.with_extension("lock"))?;
        if folder.is_dir() {
            return Ok(folder);
        }
        progress.step(&format!(
            "fetching Debian packages {}",
            self.names.join(", ")
        ));
        let partial = folder.with_extension("partial");
        cache::remove(&partial)?;
        self.fetch(&partial).map_err(|error| Error::Packages {
            names: self.names.join(" "),
            reason: error.to_string(),
        })?;
        fs::rename(&partial, &folder).map_err(Error::file("rename", &partial))?;
        Ok(folder)
    }

    fn fetch(self, folder: &Path) -> Result<()> {
        let downloads = folder.join("downloads");
        cache::make_folder(&downloads)?;
        process::output(Command::new("apt-get").args(["--quiet", "update"]))?;
        let mut names: Vec<String> = self.names.iter().map(|&name| name.to_owned()).collect();
        if self.whole {
            names = closure(&names)?;
        }
        let mut download = Command::new("apt-get");
        // As the user that runs it: the folder is nobody else's.
        download.args(["--quiet", "--option", "APT::Sandbox::User=root", "download"]);
        process::output(download.args(&names).current_dir(&downloads))?;
        let archives = fs::read_dir(&downloads).map_err(Error::file("list", &downloads))?;
        for archive in archives.flatten() {
            let mut unpack = Command::new("dpkg-deb");
            process::output(unpack.arg("--extract").arg(archive.path()).arg(folder))?;
        }
        cache::remove(&downloads)
    }
}

/// The packages and all that they depend on.
fn closure(names: &[String]) -> Result<Vec<String>> {
    let mut command = Command::new("apt-cache");
    command.args([
        "depends",
        "--recurse",
        // Of packages that will do as well only the first.
        "--option=APT::Cache::ShowOnlyFirstOr=true",
        "--no-recommends",
        "--no-suggests",
        "--no-conflicts",
        "--no-breaks",
        "--no-replaces",
        "--no-enhances",
    ]);
    let text = process::output(command.args(names))?;
    Ok(real_packages(&text))
}

/// Package names are at the start of a line; those in brackets are virtual, and the rest is about other architectures.
fn real_packages(listing: &str) -> Vec<String> {
    let lines = listing.lines();
    lines
        .filter(|line| !line.starts_with([' ', '<', '|']) && !line.contains(':'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_the_lines_that_name_a_package() {
        let listing = "libc6\n  Depends: libgcc-s1\n  Depends: <virtual>\n<virtual>\nlibgcc-s1\nlibgcc-s1:i386\n";
        assert_eq!(real_packages(listing), ["libc6", "libgcc-s1"]);
    }

    #[test]
    fn other_packages_are_kept_elsewhere() {
        let cache = Cache::from_env().unwrap();
        assert_ne!(
            Packages::RUNTIME.folder(&cache),
            Packages::PYTHON.folder(&cache)
        );
    }
}
