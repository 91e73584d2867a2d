//! Container images made of folders, as archives that containerd imports. Nothing is pulled from anywhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::config::PAUSE;
use crate::{Error, Result, cache, process};

/// An image of one layer.
#[derive(Clone, Debug)]
pub struct Image {
    name: String,
    content: Vec<(PathBuf, String)>,
    entrypoint: Vec<String>,
    user: String,
    shell: bool,
}

impl Image {
    /// An empty image of this name and tag.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            content: Vec::new(),
            entrypoint: Vec::new(),
            user: String::new(),
            shell: false,
        }
    }

    /// With a file of the machine, or all that is in a folder, at this absolute path.
    #[must_use]
    pub fn with(mut self, source: &Path, path: &str) -> Self {
        self.content.push((source.to_path_buf(), path.to_owned()));
        self
    }

    /// With the tools of BusyBox, which must be in it, by their names.
    #[must_use]
    pub fn with_shell(mut self) -> Self {
        self.shell = true;
        self
    }

    /// Run as this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// Runs this program, unless a pod says otherwise.
    #[must_use]
    pub fn entrypoint(mut self, argv: &[&str]) -> Self {
        self.entrypoint = argv.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Writes the archive.
    pub(crate) fn write(&self, archive: &Path) -> Result<()> {
        let work = archive.with_extension("folder");
        cache::remove(&work)?;
        let root = work.join("root");
        for (source, path) in &self.content {
            copy(source, &root.join(path.trim_start_matches('/')))?;
        }
        if self.shell {
            let busybox = root.join("bin/busybox");
            let mut install = Command::new(&busybox);
            install.args(["--list"]);
            for name in process::output(&mut install)?.lines() {
                link_to_busybox(&root.join("bin").join(name))?;
            }
        }
        let layer = work.join("layer.tar");
        tar(&layer, &root, &["."])?;
        let config = self.config(&digest(&layer)?).to_string();
        cache::write(&work.join("config.json"), &config)?;
        let manifest = json!([{
            "Config": "config.json",
            "RepoTags": [self.name],
            "Layers": ["layer.tar"],
        }]);
        cache::write(&work.join("manifest.json"), &manifest.to_string())?;
        tar(
            archive,
            &work,
            &["manifest.json", "config.json", "layer.tar"],
        )?;
        cache::remove(&work)
    }

    fn config(&self, layer: &str) -> Value {
        json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "User": self.user,
                "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        })
    }
}

/// The image of the container that holds a pod's network: it sleeps.
pub(super) fn pause(runtime: &Path) -> Image {
    Image::new(PAUSE)
        .with(&runtime.join("bin/busybox"), "/bin/busybox")
        .entrypoint(&["/bin/busybox", "sleep", "1000000000"])
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Tools that are there already stay as they are.
fn link_to_busybox(path: &Path) -> Result<()> {
    match std::os::unix::fs::symlink("/bin/busybox", path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::file("make link", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Copies with links as links. `source/.` is the content of a folder.
fn copy(source: &Path, target: &Path) -> Result<()> {
    let folder = if source.is_dir() {
        Some(target)
    } else {
        target.parent()
    };
    if let Some(folder) = folder {
        cache::make_folder(folder)?;
    }
    let source = if source.is_dir() {
        source.join(".")
    } else {
        source.to_path_buf()
    };
    process::output(Command::new("cp").arg("--archive").args([&source, target])).map(drop)
}

fn tar(archive: &Path, folder: &Path, names: &[&str]) -> Result<()> {
    let mut command = Command::new("tar");
    command.args([
        "--create",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--file",
    ]);
    command
        .arg(archive)
        .arg("--directory")
        .arg(folder)
        .args(names);
    process::output(&mut command).map(drop)
}

/// By the program: layers are large, and a debug build would take long for them.
fn digest(file: &Path) -> Result<String> {
    let text = process::output(Command::new("sha256sum").arg(file))?;
    Ok(text
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(archive: &Path) -> String {
        process::output(Command::new("tar").arg("--list").arg("--file").arg(archive)).unwrap()
    }

    #[test]
    fn archive_holds_what_containerd_looks_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, "x").unwrap();
        let archive = folder.path().join("image.tar");
        let image = Image::new("lws.example/a:b").with(&file, "/bin/program");
        image.write(&archive).unwrap();
        assert_eq!(listing(&archive), "manifest.json\nconfig.json\nlayer.tar\n");
        assert!(!archive.with_extension("folder").exists());
    }

    #[test]
    fn config_names_program_user_and_layer() {
        let image = Image::new("a").entrypoint(&["/b", "c"]).user("65532:65532");
        let config = image.config("00");
        assert_eq!(config["config"]["Entrypoint"], json!(["/b", "c"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["rootfs"]["diff_ids"], json!(["sha256:00"]));
    }
}
