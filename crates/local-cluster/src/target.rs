//! A cluster as kubectl sees it: a kubeconfig file, and a folder for what belongs to it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::Value;

use crate::cache::{self, Cache};
use crate::{Error, Progress, Result, Tool, Tools, manager};

/// A cluster that something can be installed into: a local one, or one of the user's.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) kubectl: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// Kubeconfig for the manager: in a local cluster, of an account of its own that the installation makes.
    pub(crate) manager_kubeconfig: PathBuf,
    pub(crate) folder: PathBuf,
    /// Held while a cluster of the user's is in use from here.
    pub(crate) _lock: Option<Arc<File>>,
}

impl Target {
    /// A cluster of the user's, chosen on the command line. What its kubeconfig says of `context` (else of its
    /// current context) is copied, so that a change of context cannot redirect a running demo.
    ///
    /// # Errors
    /// When kubectl cannot be built or does not find the context.
    pub fn guest(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        progress: Progress,
    ) -> Result<Self> {
        let cache = Cache::from_env()?;
        let kubectl = Tools::ensure(&cache, progress)?.path(Tool::Kubectl)?;
        let folder = cache.guest();
        let lock = cache::lock_file(&folder.join("lock"))?;
        lock.try_lock().map_err(|_| Error::GuestInUse)?;
        // Left by a demo that was killed.
        manager::stop_all(&folder)?;
        let mut command = Command::new(&kubectl);
        command.args(["config", "view", "--raw", "--minify", "--flatten"]);
        if let Some(path) = kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        if let Some(context) = context {
            command.args(["--context", context]);
        }
        let view = output_of(command, None)?;
        let copy = folder.join("kubeconfig.yaml");
        cache::write_secret(&copy, &view)?;
        Ok(Self {
            kubectl,
            kubeconfig: copy.clone(),
            manager_kubeconfig: copy,
            folder,
            _lock: Some(Arc::new(lock)),
        })
    }

    /// Path of the kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Path of kubectl.
    #[must_use]
    pub fn kubectl_path(&self) -> &Path {
        &self.kubectl
    }

    /// Folder for files that belong to this cluster.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs kubectl against the cluster and returns what it printed.
    ///
    /// # Errors
    /// [`Error::Kubectl`] with its message.
    pub fn kubectl<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String> {
        output_of(self.command(arguments), None)
    }

    /// As [`Target::kubectl`], with `input` on stdin.
    ///
    /// # Errors
    /// [`Error::Kubectl`] with its message.
    pub fn kubectl_with<S: AsRef<OsStr>>(&self, arguments: &[S], input: &str) -> Result<String> {
        output_of(self.command(arguments), Some(input))
    }

    /// As [`Target::kubectl`] with `-o json`, parsed.
    ///
    /// # Errors
    /// [`Error::Kubectl`] with its message.
    pub fn kubectl_json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat())?;
        serde_json::from_str(&text).map_err(|source| Error::Json {
            what: "output of kubectl",
            source,
        })
    }

    /// A command that runs kubectl against the cluster.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env_remove("KUBECONFIG")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments);
        command
    }
}

fn output_of(mut command: Command, input: Option<&str>) -> Result<String> {
    command.stdin(if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    let program = PathBuf::from(command.get_program());
    let output = run(&mut command, input).map_err(|source| Error::Start { program, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(Error::Kubectl {
        arguments: arguments.join(" "),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn run(command: &mut Command, input: Option<&str>) -> std::io::Result<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // kubectl may end before it has read everything; its own message then says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kubectl: &str) -> Target {
        Target {
            kubectl: kubectl.into(),
            kubeconfig: "/k".into(),
            manager_kubeconfig: "/m".into(),
            folder: "/f".into(),
            _lock: None,
        }
    }

    #[test]
    fn kubeconfig_is_always_given() {
        let printed = target("echo").kubectl(&["get", "pods"]).unwrap();
        assert_eq!(printed.trim(), "--kubeconfig /k get pods");
    }

    #[test]
    fn failure_carries_the_message() {
        let error = target("ls").kubectl(&["get"]).unwrap_err();
        assert!(
            matches!(error, Error::Kubectl { arguments, .. } if arguments == "--kubeconfig /k get")
        );
    }
}
