//! The manager as a local process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json::merge;
use crate::process::{self, ProcessId};
use crate::{Error, Installation, Interrupt, Result, cache, http, ports};

/// The manager ends within 8 s (SHD-2).
const STOP_LIMIT: Duration = Duration::from_secs(12);

/// How a manager is started.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// Name of its log and its other files; two managers of one cluster need two names.
    pub name: String,
    /// The binary `lws-manager`.
    pub binary: PathBuf,
    /// Merged over the configuration that [`Manager::start`] writes.
    pub config: Value,
    /// More arguments.
    pub arguments: Vec<String>,
    /// More environment.
    pub environment: Vec<(String, String)>,
    /// Port of its webhooks, when not the one that the webhook configurations lead to.
    pub webhook_port: Option<u16>,
}

impl ManagerOptions {
    /// Options of a single manager.
    #[must_use]
    pub fn new(binary: &Path) -> Self {
        Self {
            name: "lws-manager".to_owned(),
            binary: binary.to_path_buf(),
            config: json!({}),
            arguments: Vec::new(),
            environment: Vec::new(),
            webhook_port: None,
        }
    }
}

/// What is recorded of a running manager.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    id: ProcessId,
    health_port: u16,
    metrics_port: u16,
}

/// A running manager. One that this process started is killed when dropped.
#[derive(Debug)]
pub struct Manager {
    name: String,
    record: Record,
    log: PathBuf,
    left_running: bool,
}

impl Manager {
    /// Starts a manager on free ports of loopback; [`Manager::wait_until_ready`] waits for it.
    ///
    /// # Errors
    /// When the binary cannot be started; [`Error::ManagerRuns`] if one of that name runs in the cluster.
    pub fn start(installation: &Installation, options: &ManagerOptions) -> Result<Self> {
        let target = installation.target();
        let folder = folder(target.folder());
        cache::make_folder(&folder)?;
        cache::make_folder(&target.folder().join("logs"))?;
        if Self::find(installation, &options.name)?.is_some() {
            return Err(Error::ManagerRuns(options.name.clone()));
        }
        let [health_port, metrics_port] = ports::pick(&BTreeSet::new())?;
        let config = config(installation, options, health_port, metrics_port);
        let config_file = folder.join(format!("{}.json", options.name));
        cache::write(&config_file, &config.to_string())?;
        let mut argv = vec![
            options.binary.display().to_string(),
            format!("--config={}", config_file.display()),
            format!("--kubeconfig={}", target.manager_kubeconfig.display()),
        ];
        argv.extend(options.arguments.iter().cloned());
        let log = log_file(target.folder(), &options.name);
        let id = process::spawn(&argv, &options.environment, &log)?;
        let record = Record {
            id,
            health_port,
            metrics_port,
        };
        // Made before the record is written, so that a failure there ends the process.
        let manager = Self {
            name: options.name.clone(),
            record,
            log,
            left_running: false,
        };
        manager
            .record
            .write(&record_file(target.folder(), &options.name))?;
        Ok(manager)
    }

    /// The running manager of this name, started by this or another process. It runs on when the value is dropped.
    ///
    /// # Errors
    /// [`Error::State`] if its record is damaged.
    pub fn find(installation: &Installation, name: &str) -> Result<Option<Self>> {
        let cluster = installation.target().folder();
        let Some(record) = Record::read(&record_file(cluster, name))? else {
            return Ok(None);
        };
        let found = Self {
            name: name.to_owned(),
            record,
            log: log_file(cluster, name),
            left_running: true,
        };
        Ok(found.is_running().then_some(found))
    }

    /// Whether its readiness check succeeds (HLT-4).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        http::get(self.record.health_port, "/readyz").is_some_and(|(code, _)| code == 200)
    }

    /// Whether its process runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.record.id.is_running()
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of its log, or [`Error::Timeout`].
    pub fn wait_until_ready(&self, limit: Duration, interrupt: &Interrupt) -> Result<()> {
        let what = format!(
            "{} does not get ready (log: {})",
            self.name,
            self.log.display()
        );
        interrupt.wait_until(&what, limit, || {
            self.check_running()?;
            Ok(self.is_ready())
        })
    }

    /// Fails if its process ended.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of its log.
    pub fn check_running(&self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let (name, log, tail) = (
            self.name.clone(),
            self.log.clone(),
            process::tail(&self.log),
        );
        Err(Error::Ended { name, log, tail })
    }

    /// Stops it with SIGTERM, as a rollout of its Deployment would.
    ///
    /// # Errors
    /// [`Error::Stop`].
    pub fn terminate(self) -> Result<()> {
        self.record.id.stop(&self.name, STOP_LIMIT)
    }

    /// Stops it with SIGKILL, as a crash would.
    ///
    /// # Errors
    /// [`Error::Stop`].
    pub fn kill(self) -> Result<()> {
        self.record.id.kill(&self.name)
    }

    /// Stops it for a while with SIGSTOP, as a machine that hangs would.
    ///
    /// # Errors
    /// [`Error::Signal`].
    pub fn pause(&self) -> Result<()> {
        self.record.id.send(&self.name, Signal::STOP)
    }

    /// Lets it go on after [`Manager::pause`].
    ///
    /// # Errors
    /// [`Error::Signal`].
    pub fn resume(&self) -> Result<()> {
        self.record.id.send(&self.name, Signal::CONT)
    }

    /// Lets it run on; it ends with its cluster.
    pub fn leave_running(mut self) {
        self.left_running = true;
    }

    /// Its log; a manager started under the same name appends to it.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.record.id.pid
    }

    /// Port of `/healthz` and `/readyz`.
    #[must_use]
    pub fn health_port(&self) -> u16 {
        self.record.health_port
    }

    /// Port of `/metrics`.
    #[must_use]
    pub fn metrics_port(&self) -> u16 {
        self.record.metrics_port
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if !self.left_running {
            // A drop cannot fail; what is left ends with its cluster.
            let _ = self.record.id.kill(&self.name);
        }
    }
}

/// Stops all managers that were started for a cluster.
pub(crate) fn stop_all(cluster: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder(cluster)) else {
        return Ok(());
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path
            .extension()
            .is_some_and(|extension| extension == "process")
        {
            if let Ok(Some(record)) = Record::read(&path) {
                record.id.stop("lws-manager", STOP_LIMIT)?;
            }
            cache::remove(&path)?;
        }
    }
    Ok(())
}

impl Record {
    /// `None` if there is none.
    fn read(file: &Path) -> Result<Option<Self>> {
        if !file.exists() {
            return Ok(None);
        }
        let record = serde_json::from_str(&cache::read(file)?);
        record.map(Some).map_err(Self::damaged(file))
    }

    fn damaged(file: &Path) -> impl FnOnce(serde_json::Error) -> Error {
        let path = file.to_path_buf();
        move |source| Error::State { path, source }
    }

    fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(Self::damaged(file))?;
        cache::write(file, &text)
    }
}

fn record_file(cluster: &Path, name: &str) -> PathBuf {
    folder(cluster).join(format!("{name}.process"))
}

fn log_file(cluster: &Path, name: &str) -> PathBuf {
    cluster.join("logs").join(format!("{name}.log"))
}

fn folder(cluster: &Path) -> PathBuf {
    cluster.join("managers")
}

fn config(
    installation: &Installation,
    options: &ManagerOptions,
    health_port: u16,
    metrics_port: u16,
) -> Value {
    let mut config = json!({
        "apiVersion": "config.lws.x-k8s.io/v1",
        "kind": "Configuration",
        "webhook": {
            "host": installation.webhook_bind_address(),
            "port": options.webhook_port.unwrap_or(installation.webhook_port()),
        },
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health_port}")},
        "metrics": {"bindAddress": format!("127.0.0.1:{metrics_port}")},
        "leaderElection": {"leaderElect": true},
    });
    merge(&mut config, &installation.certificate_config());
    merge(&mut config, &options.config);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_managers_are_stopped() {
        let cluster = tempfile::tempdir().unwrap();
        let managers = folder(cluster.path());
        cache::make_folder(&managers).unwrap();
        let argv = ["sleep".to_owned(), "600".to_owned()];
        let id = process::spawn(&argv, &[], &cluster.path().join("log")).unwrap();
        let file = record_file(cluster.path(), "lws-manager");
        let record = Record {
            id,
            health_port: 1,
            metrics_port: 2,
        };
        record.write(&file).unwrap();
        stop_all(cluster.path()).unwrap();
        assert!(!record.id.is_running());
        assert!(!file.exists());
    }
}
