//! The per-user folder that holds built binaries and the state of running clusters.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The cache folder: `$LWS_CACHE_DIR`, else `$XDG_CACHE_HOME/lws`, else `~/.cache/lws`.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The folder that the environment names.
    ///
    /// # Errors
    /// [`Error::NoCacheFolder`] if it names none.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let set = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let root = set("LWS_CACHE_DIR")
            .or_else(|| set("XDG_CACHE_HOME").map(|base| base.join("lws")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/lws")))
            .ok_or(Error::NoCacheFolder)?;
        let root = std::path::absolute(&root).map_err(Error::file("find", &root))?;
        Ok(Self { root })
    }

    /// Folder of the binaries that were built from one state of one Go module.
    pub(crate) fn binaries(&self, key: &str) -> PathBuf {
        self.root.join("bin").join(key)
    }

    /// Folder that holds one state folder per cluster.
    #[must_use]
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// Folder for the traces of a demo on someone else's cluster.
    #[must_use]
    pub fn guest(&self) -> PathBuf {
        self.root.join("guest")
    }
}

/// Makes a folder and its parents.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::file("make folder", path))
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content).map_err(Error::file("write", path))
}

/// Writes a file that only its owner may read.
pub(crate) fn write_secret(path: &Path, content: &str) -> Result<()> {
    remove(path)?;
    let file = File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(Error::file("write", path))
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}

/// Removes a file or folder; absent is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let outcome = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens a lock file; the lock ends with the returned file.
pub(crate) fn lock_file(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(Error::file("open", path))
}

/// Holds a lock until the returned file is dropped.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let file = lock_file(path)?;
    file.lock().map_err(Error::file("lock", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        Cache::from_variables(lookup).ok().map(|cache| cache.root)
    }

    #[test]
    fn folder_is_taken_from_the_most_specific_variable() {
        let all = [
            ("LWS_CACHE_DIR", "/a"),
            ("XDG_CACHE_HOME", "/b"),
            ("HOME", "/c"),
        ];
        assert_eq!(root(&all), Some(PathBuf::from("/a")));
        assert_eq!(root(&all[1..]), Some(PathBuf::from("/b/lws")));
        assert_eq!(root(&all[2..]), Some(PathBuf::from("/c/.cache/lws")));
        assert_eq!(root(&[]), None);
    }

    #[test]
    fn empty_variable_counts_as_absent() {
        assert_eq!(
            root(&[("LWS_CACHE_DIR", ""), ("HOME", "/c")]),
            Some(PathBuf::from("/c/.cache/lws"))
        );
    }

    #[test]
    fn removing_what_is_absent_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        assert!(remove(&folder.path().join("absent")).is_ok());
        let file = folder.path().join("file");
        write(&file, "x").unwrap();
        remove(&file).unwrap();
        assert!(!file.exists());
    }
}
