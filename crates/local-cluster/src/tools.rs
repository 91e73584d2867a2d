//! The binaries of the control plane, and what renders the packages: which there are, and how they are built once from their Go
//! modules.
//!
//! A build is keyed by the version and by a hash of everything that is in the module folder, so that an update of
//! a module builds anew and a fresh clone of the same state builds nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::cache::{self, Cache};
use crate::progress::Lasting;
use crate::{Error, Progress, Result, process};

/// Build stamps without which the server reports a wrong version and feature gates misbehave.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";

/// A binary that is built from a Go module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The database.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers of Kubernetes.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The command line client.
    Kubectl,
    /// The fake kubelet.
    Kwok,
    /// Renders the chart.
    Helm,
    /// The kubelet of a real node.
    Kubelet,
    /// DNS of a real node, and its way to the API server and back.
    NodeNetwork,
}

impl Tool {
    /// What a cluster needs.
    const CLUSTER: [Self; 6] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
    ];
    /// What a real node needs beside packages.
    const NODE: [Self; 2] = [Self::Kubelet, Self::NodeNetwork];

    /// File name of the binary.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::Kubelet => "kubelet",
            Self::NodeNetwork => "node-network",
        }
    }

    fn source(self) -> Source {
        match self {
            Self::Etcd => Source {
                folder: "etcd",
                module: "go.etcd.io/etcd/server/v3",
                package: ".".to_owned(),
            },
            Self::ApiServer
            | Self::ControllerManager
            | Self::Scheduler
            | Self::Kubectl
            | Self::Kubelet => Source {
                folder: "kubernetes",
                module: "k8s.io/kubernetes",
                package: format!("k8s.io/kubernetes/cmd/{}", self.name()),
            },
            Self::Kwok => Source {
                folder: "kwok",
                module: "sigs.k8s.io/kwok",
                package: "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            },
            Self::Helm => Source {
                folder: "helm",
                module: "helm.sh/helm/v4",
                package: "helm.sh/helm/v4/cmd/helm".to_owned(),
            },
            Self::NodeNetwork => Source {
                folder: "node-network",
                module: "github.com/coredns/coredns",
                package: ".".to_owned(),
            },
        }
    }
}

/// Where a binary comes from.
struct Source {
    /// Module folder below `xtask/tools`.
    folder: &'static str,
    /// The module in its `go.mod` whose version counts.
    module: &'static str,
    /// The package to build.
    package: String,
}

/// The built binaries.
#[derive(Clone, Debug)]
pub struct Tools {
    cache: Cache,
    folder: PathBuf,
}

impl Tools {
    /// The paths of the binaries, whether these are there or not: to stop a cluster none is needed.
    pub(crate) fn unbuilt(cache: &Cache) -> Self {
        Self {
            cache: cache.clone(),
            folder: module_folder(),
        }
    }

    /// Builds what a cluster needs and is missing.
    ///
    /// # Errors
    /// [`Error::GoMissing`] or [`Error::Build`]; both say what to install.
    pub fn ensure(cache: &Cache, progress: Progress) -> Result<Self> {
        Self::ensure_these(&Tool::CLUSTER, cache, progress)
    }

    /// Builds what a real node needs and is missing.
    pub(crate) fn ensure_node(cache: &Cache, progress: Progress) -> Result<()> {
        Self::ensure_these(&Tool::NODE, cache, progress).map(drop)
    }

    /// Builds one tool if it is missing, and says where it is.
    ///
    /// # Errors
    /// As [`Tools::ensure`].
    pub fn ensure_one(tool: Tool, progress: Progress) -> Result<PathBuf> {
        Self::ensure_these(&[tool], &Cache::from_env()?, progress)?.path(tool)
    }

    fn ensure_these(wanted: &[Tool], cache: &Cache, progress: Progress) -> Result<Self> {
        let tools = Self::unbuilt(cache);
        if tools.missing(wanted)?.is_empty() {
            return Ok(tools);
        }
        let _lock = tools.lock(progress)?;
        // Another process may have built them while this one waited.
        let missing = tools.missing(wanted)?;
        for (index, tool) in missing.iter().enumerate() {
            tools.build(
                *tool,
                &format!("{} of {}", index + 1, missing.len()),
                progress,
            )?;
        }
        Ok(tools)
    }

    /// Path of a binary.
    ///
    /// # Errors
    /// When its `go.mod` cannot be read.
    pub fn path(&self, tool: Tool) -> Result<PathBuf> {
        let key = key(
            &self.folder.join(tool.source().folder),
            tool.source().module,
        )?;
        Ok(self.cache.binaries(&key).join(tool.name()))
    }

    /// A text that changes when any binary does.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        let keys: Result<Vec<String>> = [Tool::Etcd, Tool::ApiServer, Tool::Kwok]
            .into_iter()
            .map(|tool| {
                key(
                    &self.folder.join(tool.source().folder),
                    tool.source().module,
                )
            })
            .collect();
        Ok(keys?.join(" "))
    }

    fn missing(&self, wanted: &[Tool]) -> Result<Vec<Tool>> {
        let mut missing = Vec::new();
        for tool in wanted {
            if !self.path(*tool)?.is_file() {
                missing.push(*tool);
            }
        }
        Ok(missing)
    }

    fn lock(&self, progress: Progress) -> Result<File> {
        let path = self.cache.binaries("lock");
        let lock = cache::lock_file(&path)?;
        if lock.try_lock().is_err() {
            progress.step("waiting for another process that builds the control plane");
            lock.lock().map_err(Error::file("lock", &path))?;
        }
        Ok(lock)
    }

    /// Builds into a temporary name and renames, so that a binary that is there is whole.
    fn build(&self, tool: Tool, position: &str, progress: Progress) -> Result<()> {
        let source = tool.source();
        let folder = self.folder.join(source.folder);
        let path = self.path(tool)?;
        let temporary = path.with_extension("partial");
        let log = path.with_extension("build.log");
        if let Some(parent) = path.parent() {
            cache::make_folder(parent)?;
        }
        let mut lasting = progress.lasting(format!(
            "building {} ({position}; only once, the first takes minutes)",
            tool.name()
        ));
        let child = self.start_build(&source, &folder, &temporary, &log)?;
        if !wait(child, &mut lasting)?.success() {
            return Err(Error::Build {
                binary: tool.name(),
                reason: last_line(&process::tail(&log)),
                wanted: go_version(&folder)?,
                log,
            });
        }
        fs::rename(&temporary, &path).map_err(Error::file("rename", &temporary))?;
        cache::remove(&log)?;
        lasting.done();
        Ok(())
    }

    fn start_build(
        &self,
        source: &Source,
        folder: &Path,
        target: &Path,
        log: &Path,
    ) -> Result<Child> {
        let output = File::create(log).map_err(Error::file("create", log))?;
        let errors = output.try_clone().map_err(Error::file("open", log))?;
        let spawned = Command::new("go")
            .args([
                "build",
                "-trimpath",
                "-ldflags",
                &linker_flags(source, folder)?,
                "-o",
            ])
            .arg(target)
            .arg(&source.package)
            .current_dir(folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn();
        match spawned {
            Ok(child) => Ok(child),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::GoMissing {
                wanted: go_version(folder)?,
            }),
            Err(source) => Err(Error::Start {
                program: "go".into(),
                source,
            }),
        }
    }
}

fn module_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/tools")
}

fn wait(mut child: Child, lasting: &mut Lasting) -> Result<ExitStatus> {
    loop {
        let status = child.try_wait().map_err(|source| Error::Start {
            program: "go".into(),
            source,
        })?;
        if let Some(status) = status {
            return Ok(status);
        }
        lasting.tick();
        thread::sleep(Duration::from_millis(200));
    }
}

fn linker_flags(source: &Source, folder: &Path) -> Result<String> {
    if source.folder != "kubernetes" {
        return Ok("-s -w".to_owned());
    }
    let version = module_version(&folder.join("go.mod"), source.module)?;
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
    Ok(format!(
        "-s -w -X {VERSION_PACKAGE}.gitVersion={version} -X {VERSION_PACKAGE}.gitMajor={major} \
         -X {VERSION_PACKAGE}.gitMinor={minor}"
    ))
}

/// Key of a module folder: its name, the version of `module`, and a hash of all files in it.
fn key(folder: &Path, module: &str) -> Result<String> {
    let version = module_version(&folder.join("go.mod"), module)?;
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|found| found.path()))
                .collect()
        })
        .map_err(Error::file("list", folder))?;
    files.retain(|file| file.is_file());
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).map_err(Error::file("read", &file))?);
        hash.update([0]);
    }
    let digest: String = hash
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("{name}-{version}-{digest}"))
}

/// The version that a `go.mod` requires of `module`.
fn module_version(go_mod: &Path, module: &str) -> Result<String> {
    find_version(&cache::read(go_mod)?, module).ok_or_else(|| Error::GoModule {
        path: go_mod.to_path_buf(),
        module: module.to_owned(),
    })
}

fn find_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ").trim_start();
        let mut words = line.split_whitespace();
        let named = words.next() == Some(module);
        words
            .next()
            .filter(|word| named && word.starts_with('v'))
            .map(str::to_owned)
    })
}

fn go_version(folder: &Path) -> Result<String> {
    let text = cache::read(&folder.join("go.mod"))?;
    let version = text.lines().find_map(|line| line.strip_prefix("go "));
    Ok(version.unwrap_or("1.26").trim().to_owned())
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("no output").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(go_mod: &str, go_sum: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("go.mod"), go_mod).unwrap();
        fs::write(folder.path().join("go.sum"), go_sum).unwrap();
        folder
    }

    #[test]
    fn version_is_the_required_one() {
        let text = "module x\n\ngo 1.26.0\n\nrequire a.io/b v1.2.3\n\nrequire (\n\tc.io/d v0.4.0 // indirect\n\tc.io/d/e v9.0.0\n)\n\nreplace c.io/f => c.io/f v1.0.0\n";
        assert_eq!(find_version(text, "a.io/b").as_deref(), Some("v1.2.3"));
        assert_eq!(find_version(text, "c.io/d").as_deref(), Some("v0.4.0"));
        assert_eq!(find_version(text, "c.io/f"), None);
        assert_eq!(find_version(text, "c.io/absent"), None);
    }

    #[test]
    fn key_changes_with_each_file_and_with_nothing_else() {
        let text = "go 1.26.0\nrequire a.io/b v1.2.3\n";
        let one = module(text, "sum");
        let first = key(one.path(), "a.io/b").unwrap();
        assert!(first.contains("-v1.2.3-"), "{first}");
        assert_eq!(key(one.path(), "a.io/b").unwrap(), first);
        fs::write(one.path().join("go.sum"), "other sum").unwrap();
        let second = key(one.path(), "a.io/b").unwrap();
        assert_ne!(second, first);
        fs::write(one.path().join("main.go"), "package main").unwrap();
        assert_ne!(key(one.path(), "a.io/b").unwrap(), second);
    }

    #[test]
    fn kubernetes_is_stamped_with_its_version() {
        let folder = module("go 1.26.0\nrequire k8s.io/kubernetes v1.37.2\n", "");
        let flags = linker_flags(&Tool::Kubectl.source(), folder.path()).unwrap();
        for part in ["gitVersion=v1.37.2 ", "gitMajor=1 ", "gitMinor=37"] {
            assert!(flags.contains(part), "{flags}");
        }
        assert_eq!(
            linker_flags(&Tool::Kwok.source(), folder.path()).unwrap(),
            "-s -w"
        );
    }

    #[test]
    fn committed_modules_name_their_versions() {
        for tool in Tool::CLUSTER
            .into_iter()
            .chain(Tool::NODE)
            .chain([Tool::Helm])
        {
            let source = tool.source();
            let folder = module_folder().join(source.folder);
            assert!(key(&folder, source.module).is_ok(), "{}", tool.name());
            assert!(go_version(&folder).unwrap().starts_with("1."));
        }
    }

    #[test]
    fn reason_of_a_failed_build_is_the_last_line() {
        assert_eq!(last_line("a\nb: no space left\n\n"), "b: no space left");
        assert_eq!(last_line(""), "no output");
    }
}
