//! The manager as a local process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// A running manager; killed when dropped.
#[derive(Debug)]
pub struct Manager {
    name: String,
    id: ProcessId,
    record: PathBuf,
    log: PathBuf,
    health_port: u16,
    metrics_port: u16,
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
        let logs = target.folder().join("logs");
        cache::make_folder(&folder)?;
        cache::make_folder(&logs)?;
        let record = folder.join(format!("{}.process", options.name));
        if recorded(&record).is_some_and(|id| id.is_running()) {
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
        let log = logs.join(format!("{}.log", options.name));
        let id = process::spawn(&argv, &options.environment, &log)?;
        let manager = Self {
            name: options.name.clone(),
            id,
            record,
            log,
            health_port,
            metrics_port,
            left_running: false,
        };
        manager.write_record()?;
        Ok(manager)
    }

    fn write_record(&self) -> Result<()> {
        let record = serde_json::to_string(&self.id).map_err(|source| Error::State {
            path: self.record.clone(),
            source,
        })?;
        cache::write(&self.record, &record)
    }

    /// Whether its readiness check succeeds (HLT-4).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        http::get(self.health_port, "/readyz").is_some_and(|(code, _)| code == 200)
    }

    /// Whether its process runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.id.is_running()
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
        self.id.stop(&self.name, STOP_LIMIT)
    }

    /// Stops it with SIGKILL, as a crash would.
    ///
    /// # Errors
    /// [`Error::Stop`].
    pub fn kill(self) -> Result<()> {
        self.id.kill(&self.name)
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
        self.id.pid
    }

    /// Port of `/healthz` and `/readyz`.
    #[must_use]
    pub fn health_port(&self) -> u16 {
        self.health_port
    }

    /// Port of `/metrics`.
    #[must_use]
    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if !self.left_running {
            // A drop cannot fail; what is left ends with its cluster.
            let _ = self.id.kill(&self.name);
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
            if let Some(id) = recorded(&path) {
                id.stop("lws-manager", STOP_LIMIT)?;
            }
            cache::remove(&path)?;
        }
    }
    Ok(())
}

/// The process of a record; `None` if there is no readable one.
fn recorded(record: &Path) -> Option<ProcessId> {
    serde_json::from_str(&cache::read(record).ok()?).ok()
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
            "certDir": installation.certificates(),
        },
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health_port}")},
        "metrics": {"bindAddress": format!("127.0.0.1:{metrics_port}")},
        "internalCertManagement": {"enable": false},
        "leaderElection": {"leaderElect": true},
    });
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
        let record = managers.join("lws-manager.process");
        cache::write(&record, &serde_json::to_string(&id).unwrap()).unwrap();
        stop_all(cluster.path()).unwrap();
        assert!(!id.is_running());
        assert!(!record.exists());
    }
}
