//! A cluster with this project in it, and its manager.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lws_local_cluster::{
    Certificates, Cluster, Component, Installation, InstallationOptions, Interrupt, Manager,
    ManagerOptions, Options, Target, TemporaryCluster, name_in_checkout,
};

use serde_json::{Value, json};

use crate::AuditLog;

/// The cluster that most tests share, one a checkout. It is there already when `cargo xtask test` runs the tests; else the
/// first test starts it, and it stays for the next run (`cargo xtask cluster down --all` ends it).
const SHARED: &str = "e2e";
const MANAGER: &str = "lws-manager";
const START_LIMIT: Duration = Duration::from_secs(60);

static PLANT: OnceLock<Result<Arc<Plant>, String>> = OnceLock::new();

/// A cluster, what was installed into it, and a manager.
pub struct Plant {
    cluster: Cluster,
    installation: Installation,
    binary: PathBuf,
    manager: Mutex<Option<Manager>>,
    _temporary: Option<TemporaryCluster>,
}

impl Plant {
    /// The shared one. All processes and threads of a test run get the same.
    pub(crate) fn shared() -> Result<Arc<Self>> {
        let plant = PLANT.get_or_init(|| {
            Self::find_or_start()
                .map(Arc::new)
                .map_err(|error| format!("{error:#}"))
        });
        match plant {
            Ok(plant) => Ok(plant.clone()),
            Err(error) => bail!("the shared cluster cannot be used: {error}"),
        }
    }

    fn find_or_start() -> Result<Self> {
        let binary = build_manager()?;
        let cluster = Cluster::up(&Options::new(&name_in_checkout(SHARED)))?;
        let lock = File::create(cluster.folder().join("e2e.lock"))?;
        lock.lock()?;
        let installation = Installation::install(&cluster, &InstallationOptions::default())?;
        let plant = Self {
            cluster,
            installation,
            binary,
            manager: Mutex::new(None),
            _temporary: None,
        };
        plant.use_or_start_manager()?;
        Ok(plant)
    }

    /// The manager outlives this process, and is replaced when its binary has changed.
    fn use_or_start_manager(&self) -> Result<()> {
        let record = self.cluster.folder().join("e2e-manager");
        let identity = format!("{} {}", identity(&self.binary)?, native_gangs());
        if let Some(manager) = Manager::find(&self.installation, MANAGER)? {
            if fs::read_to_string(&record).is_ok_and(|known| known == identity) {
                manager.leave_running();
                return Ok(());
            }
            manager.terminate()?;
        }
        self.start_manager()?;
        if let Some(manager) = self.manager().take() {
            manager.leave_running();
        }
        fs::write(&record, identity)?;
        Ok(())
    }

    /// One that lives as long as the value. With certificates in a Secret no manager is started.
    pub(crate) fn own(name: &str, certificates: Certificates) -> Result<Self> {
        let binary = build_manager()?;
        let options = Options::new(&format!("e2e-{name}-{}", std::process::id()));
        let temporary = Cluster::temporary(&options)?;
        let installation = InstallationOptions {
            certificates,
            ..InstallationOptions::default()
        };
        let plant = Self {
            cluster: Cluster::clone(&temporary),
            installation: Installation::install(&temporary, &installation)?,
            binary,
            manager: Mutex::new(None),
            _temporary: Some(temporary),
        };
        if certificates == Certificates::Folder {
            plant.start_manager()?;
        }
        Ok(plant)
    }

    /// Starts the manager and waits until it is ready.
    pub fn start_manager(&self) -> Result<()> {
        self.start_manager_configured(native_gangs())
    }

    /// Starts the manager with more of a configuration than a local one needs, and waits until it is ready.
    pub fn start_manager_configured(&self, config: Value) -> Result<()> {
        let start = self.audit_log().position()?;
        let manager = self.spawn_manager_with(|options| options.config = config)?;
        manager.wait_until_ready(START_LIMIT, &Interrupt::default())?;
        self.installation.check_webhooks()?;
        *self.manager() = Some(manager);
        self.check_rights(start)
    }

    /// Fails if the manager asked for something, since a position in the audit log, that its roles do not allow. It runs with
    /// the rights of `manifests.yaml` and no others.
    pub(crate) fn check_rights(&self, since: u64) -> Result<()> {
        let forbidden = self.audit_log().forbidden_since(since)?;
        ensure!(
            forbidden.is_empty(),
            "config/rbac does not allow what the manager does: {forbidden:#?}"
        );
        Ok(())
    }

    /// Starts a manager and does not wait.
    pub fn spawn_manager(&self) -> Result<Manager> {
        self.spawn_manager_with(|_| {})
    }

    /// Starts a manager with other options and does not wait.
    pub fn spawn_manager_with(&self, change: impl FnOnce(&mut ManagerOptions)) -> Result<Manager> {
        let mut options = ManagerOptions {
            config: native_gangs(),
            ..ManagerOptions::new(&self.binary)
        };
        change(&mut options);
        Ok(Manager::start(&self.installation, &options)?)
    }

    /// Starts a manager with other options and waits until it is ready.
    pub fn start_manager_with(&self, change: impl FnOnce(&mut ManagerOptions)) -> Result<Manager> {
        let manager = self.spawn_manager_with(change)?;
        manager.wait_until_ready(START_LIMIT, &Interrupt::default())?;
        Ok(manager)
    }

    /// Stops the manager as a rollout of its Deployment would.
    pub fn terminate_manager(&self) -> Result<()> {
        let manager = self.manager().take().context("no manager runs")?;
        Ok(manager.terminate()?)
    }

    /// Stops the manager as a crash would.
    pub fn kill_manager(&self) -> Result<()> {
        let manager = self.manager().take().context("no manager runs")?;
        Ok(manager.kill()?)
    }

    /// Port of the manager's metrics.
    pub fn metrics_port(&self) -> Result<u16> {
        let manager = self.manager();
        let manager = manager.as_ref().context("no manager runs")?;
        Ok(manager.metrics_port())
    }

    fn manager(&self) -> MutexGuard<'_, Option<Manager>> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops a component of the control plane.
    pub fn stop(&self, component: Component) -> Result<()> {
        Ok(self.cluster.stop_component(component)?)
    }

    /// Starts a component that was stopped.
    pub fn start(&self, component: Component) -> Result<()> {
        Ok(self.cluster.start_component(component)?)
    }

    /// The cluster as kubectl sees it.
    pub fn target(&self) -> &Target {
        &self.cluster
    }

    /// CRDs and webhook configurations in the cluster.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The requests that the API server has answered.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::new(self.cluster.audit_log())
    }

    /// Log of a component.
    pub fn log_of(&self, component: Component) -> String {
        fs::read_to_string(self.cluster.log(component)).unwrap_or_default()
    }

    /// Log of the manager.
    pub fn manager_log(&self) -> String {
        let path = self
            .cluster
            .folder()
            .join("logs")
            .join(format!("{MANAGER}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }
}

/// The scheduler of Kubernetes itself, which leaves sets without `spec.scheduling` alone.
fn native_gangs() -> Value {
    json!({
        "featureGates": {"WorkloadAwareScheduling": true},
        "gangSchedulingManagement": {"schedulerProvider": "kubernetes"},
    })
}

/// Builds the manager as it is now, next to the running test.
pub fn build_manager() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| cargo_build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

fn cargo_build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "lws", "--bin", MANAGER])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot start cargo")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the manager cannot be built: {message}"
    );
    let this = std::env::current_exe()?;
    let profile = this.parent().and_then(Path::parent);
    let profile = profile.context("this program has no folder")?;
    Ok(profile.join(MANAGER))
}

/// What changes when a binary is built anew.
fn identity(binary: &Path) -> Result<String> {
    let metadata = fs::metadata(binary)?;
    let time = metadata.modified()?.duration_since(std::time::UNIX_EPOCH)?;
    Ok(format!(
        "{} {} {}",
        binary.display(),
        metadata.len(),
        time.as_nanos()
    ))
}
