//! Finding and stopping a cluster, and whether one must be started.

mod start;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::control_plane::{Component, Layout, Ports};
use crate::process::{self, ProcessId};
use crate::state::{Process, State};
use crate::{Cache, Error, Image, Interrupt, Progress, Result, Target, Tool, Tools};
use crate::{cache, manager, node};

/// How long a component may take to end by itself.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long the logs of a cluster that ended are kept.
const LOG_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_NAME: usize = 40;

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: lower-case letters, digits and dashes.
    pub name: String,
    /// Number of fake nodes.
    pub nodes: usize,
    /// Whether there is a real node, too. Beside fake nodes it takes only pods that tolerate its taint, `type=real`.
    pub real_node: bool,
    /// Whether Workload and PodGroup are served and obeyed.
    pub gang_scheduling: bool,
    /// More flags for single components.
    pub flags: BTreeMap<Component, Vec<String>>,
    /// Where progress is shown.
    pub progress: Progress,
    /// What ends waiting early.
    pub interrupt: Interrupt,
}

impl Options {
    /// Options of a usual cluster.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            nodes: 3,
            real_node: false,
            gang_scheduling: true,
            flags: BTreeMap::new(),
            progress: Progress::Quiet,
            interrupt: Interrupt::default(),
        }
    }

    /// What must be equal for a running cluster to be used again.
    fn fingerprint(&self, tools: &Tools) -> Result<String> {
        let Self {
            name: _,
            nodes,
            real_node,
            gang_scheduling,
            flags,
            progress: _,
            interrupt: _,
        } = self;
        Ok(format!(
            "{} nodes={nodes} real={real_node} gang={gang_scheduling} {flags:?}",
            tools.fingerprint()?
        ))
    }
}

/// How a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing of it is there.
    Absent,
    /// All processes run and the API server is ready.
    Healthy,
    /// It is there but not usable, for this reason.
    Broken(String),
}

/// A cluster on this machine. The value is a handle: dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Cluster {
    name: String,
    layout: Layout,
    target: Target,
    interrupt: Interrupt,
}

impl Cluster {
    /// Starts a cluster, or returns the running one of that name. One that is half-started or broken is cleaned up
    /// first.
    ///
    /// # Errors
    /// When a binary cannot be built or a component does not come up; nothing is left running then.
    /// [`Error::OtherOptions`] if one of that name runs that was started otherwise.
    pub fn up(options: &Options) -> Result<Self> {
        Self::up_for(options, None)
    }

    /// Starts a cluster that lives no longer than the returned value. Should this process be killed, the next start
    /// of any cluster cleans it up.
    ///
    /// # Errors
    /// As [`Cluster::up`]; [`Error::InUse`] if a cluster of that name runs already.
    pub fn temporary(options: &Options) -> Result<TemporaryCluster> {
        Self::up_for(options, ProcessId::this()).map(TemporaryCluster)
    }

    /// The running cluster of this name.
    ///
    /// # Errors
    /// [`Error::NoCluster`] if there is none.
    pub fn find(name: &str) -> Result<Self> {
        let cache = Cache::from_env()?;
        let cluster = Self::named(&cache, name, &Tools::unbuilt(&cache))?;
        match cluster.state()? {
            Some(_) => Ok(cluster),
            None => Err(Error::NoCluster(name.to_owned())),
        }
    }

    /// Names of all clusters that are there, in whatever health.
    ///
    /// # Errors
    /// When the cache folder cannot be read.
    pub fn names() -> Result<Vec<String>> {
        names_in(&Cache::from_env()?)
    }

    fn named(cache: &Cache, name: &str, tools: &Tools) -> Result<Self> {
        let allowed = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
            return Err(Error::BadName(name.to_owned()));
        }
        let layout = Layout {
            folder: cache.clusters().join(name),
        };
        let target = Target {
            kubectl: tools.path(Tool::Kubectl)?,
            _lock: None,
            kubeconfig: layout.kubeconfig("admin"),
            manager_kubeconfig: layout.kubeconfig("lws-manager"),
            folder: layout.folder.clone(),
        };
        Ok(Self {
            name: name.to_owned(),
            layout,
            target,
            interrupt: Interrupt::default(),
        })
    }

    fn up_for(options: &Options, owner: Option<ProcessId>) -> Result<Self> {
        let cache = Cache::from_env()?;
        let tools = Tools::ensure(&cache, options.progress)?;
        remove_orphans(&cache, &tools)?;
        remove_old_logs(&cache.clusters(), LOG_AGE)?;
        let mut cluster = Self::named(&cache, &options.name, &tools)?;
        cluster.interrupt = options.interrupt.clone();
        let _lock = cluster.lock()?;
        let fingerprint = options.fingerprint(&tools)?;
        if cluster.is_usable(&fingerprint, owner.is_some(), options.progress)? {
            return Ok(cluster);
        }
        let state = State {
            fingerprint,
            complete: false,
            owner,
            ports: Ports::of([0; 5]),
            processes: Vec::new(),
        };
        cluster.start_on_free_ports(options, &tools, &cache, state)?;
        Ok(cluster)
    }

    /// Whether what is there can be used as it is; if not, it is cleaned up, unless it is somebody's.
    fn is_usable(&self, fingerprint: &str, exclusive: bool, progress: Progress) -> Result<bool> {
        let health = self.health()?;
        let state = self.state().unwrap_or_default();
        match health {
            Health::Absent => Ok(false),
            Health::Broken(_) if state.as_ref().is_some_and(|state| state.is_in_use()) => {
                Err(Error::InUse(self.name.clone()))
            }
            Health::Broken(reason) => {
                progress.step(&format!("cluster {}: cleaning up ({reason})", self.name));
                self.stop_everything()?;
                Ok(false)
            }
            Health::Healthy if exclusive => Err(Error::InUse(self.name.clone())),
            Health::Healthy if state.is_some_and(|state| state.fingerprint == fingerprint) => {
                Ok(true)
            }
            Health::Healthy => Err(Error::OtherOptions(self.name.clone())),
        }
    }

    fn api_server_is_ready(&self) -> bool {
        self.target
            .kubectl(&["get", "--raw=/readyz", "--request-timeout=5s"])
            .is_ok()
    }

    /// How the cluster is.
    ///
    /// # Errors
    /// When its record cannot be read from disk.
    pub fn health(&self) -> Result<Health> {
        let state = match self.state() {
            Ok(None) => return Ok(Health::Absent),
            Ok(Some(state)) => state,
            Err(error @ Error::State { .. }) => return Ok(Health::Broken(error.to_string())),
            Err(error) => return Err(error),
        };
        if !state.complete {
            return Ok(Health::Broken(
                "its start was cut short, or has not ended yet".to_owned(),
            ));
        }
        if state.is_orphaned() {
            return Ok(Health::Broken(
                "the process it was started for has ended".to_owned(),
            ));
        }
        let stopped: Vec<&str> = state
            .stopped()
            .iter()
            .map(|component| component.name())
            .collect();
        if !stopped.is_empty() {
            return Ok(Health::Broken(format!(
                "{} does not run",
                stopped.join(", ")
            )));
        }
        if !self.api_server_is_ready() {
            return Ok(Health::Broken("kube-apiserver is not ready".to_owned()));
        }
        Ok(Health::Healthy)
    }

    /// Whether all processes run and the API server is ready.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        matches!(self.health(), Ok(Health::Healthy))
    }

    /// Whether another process, which still runs, started it for itself.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn is_in_use(&self) -> Result<bool> {
        Ok(self.state()?.is_some_and(|state| state.is_in_use()))
    }

    /// Stops the cluster and the managers in it, newest first, and removes its state; logs stay until the next
    /// start of a cluster of that name.
    ///
    /// # Errors
    /// [`Error::Stop`] if a process survives SIGKILL.
    pub fn down(&self) -> Result<()> {
        let _lock = self.lock()?;
        self.stop_everything()
    }

    fn stop_everything(&self) -> Result<()> {
        manager::stop_all(&self.layout.folder)?;
        match self.state() {
            Ok(state) => {
                for process in state.iter().flat_map(|state| state.processes.iter().rev()) {
                    process.stop(STOP_LIMIT)?;
                }
            }
            // Nothing is known of its processes, so none may be stopped.
            Err(Error::State { .. }) => {}
            Err(error) => return Err(error),
        }
        if self.layout.node().exists() {
            node::clean(&self.name);
        }
        let entries = match fs::read_dir(&self.layout.folder) {
            Ok(entries) => entries,
            Err(_) => return Ok(()),
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path != self.layout.logs() {
                cache::remove(&path)?;
            }
        }
        Ok(())
    }

    /// Stops one component with SIGTERM, or SIGKILL after a while.
    ///
    /// # Errors
    /// [`Error::NoComponent`], or [`Error::Stop`] if it survives.
    pub fn stop_component(&self, component: Component) -> Result<()> {
        self.process(component)?.stop(STOP_LIMIT)
    }

    /// Stops one component with SIGKILL.
    ///
    /// # Errors
    /// [`Error::NoComponent`], or [`Error::Stop`] if it survives.
    pub fn kill_component(&self, component: Component) -> Result<()> {
        self.process(component)?.id.kill(component.name())
    }

    /// Starts a stopped component again, as it was started first, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NoComponent`], or when it does not come up.
    pub fn start_component(&self, component: Component) -> Result<()> {
        let _lock = self.lock()?;
        let mut state = self.running_state()?;
        let entry = state
            .processes
            .iter_mut()
            .find(|process| process.component == component);
        let process = entry.ok_or_else(|| self.no_component(component))?;
        if !process.id.is_running() {
            process.id = self.spawn(component, &process.argv, &process.env)?;
            state.write(&self.layout.state())?;
        }
        self.wait_for_component(component, &state)
    }

    /// Starts the process of a component, and says which one is to be recorded.
    fn spawn(
        &self,
        component: Component,
        argv: &[String],
        env: &[(String, String)],
    ) -> Result<ProcessId> {
        let started = process::spawn(argv, env, &self.log(component))?;
        match component {
            Component::Node => node::first_process(started, &self.interrupt),
            _ => Ok(started),
        }
    }

    /// Makes an image known to the real node, which can pull none.
    ///
    /// # Errors
    /// [`Error::NoRealNode`], or [`Error::Program`] with what containerd says.
    pub fn import_image(&self, image: &Image) -> Result<()> {
        if self.running_state()?.process(Component::Node).is_none() {
            return Err(Error::NoRealNode(self.name.clone()));
        }
        node::import(&self.layout, image)
    }

    fn process(&self, component: Component) -> Result<Process> {
        let state = self.running_state()?;
        state
            .process(component)
            .cloned()
            .ok_or_else(|| self.no_component(component))
    }

    fn no_component(&self, component: Component) -> Error {
        Error::NoComponent {
            component: component.name(),
            cluster: self.name.clone(),
        }
    }

    fn running_state(&self) -> Result<State> {
        self.state()?
            .ok_or_else(|| Error::NoCluster(self.name.clone()))
    }

    fn state(&self) -> Result<Option<State>> {
        State::read(&self.layout.state())
    }

    fn lock(&self) -> Result<File> {
        cache::lock(&self.layout.folder.with_extension("lock"))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server's audit log: one JSON document a line and finished request.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// Log of a component.
    #[must_use]
    pub fn log(&self, component: Component) -> PathBuf {
        self.layout.log(component.name())
    }

    /// Secure port of the API server, kube-controller-manager or kube-scheduler, or the client port of etcd;
    /// `/metrics` of the middle two needs no credentials.
    ///
    /// # Errors
    /// [`Error::NoCluster`], or [`Error::NoComponent`] for those that have none.
    pub fn port(&self, component: Component) -> Result<u16> {
        let ports = self.running_state()?.ports;
        match component {
            Component::Etcd => Ok(ports.etcd),
            Component::ApiServer => Ok(ports.api_server),
            Component::ControllerManager => Ok(ports.controller_manager),
            Component::Scheduler => Ok(ports.scheduler),
            Component::Kwok | Component::NodeLink | Component::Node => {
                Err(self.no_component(component))
            }
        }
    }

    /// The components with their process id and whether it runs.
    ///
    /// # Errors
    /// [`Error::NoCluster`].
    pub fn processes(&self) -> Result<Vec<(Component, u32, bool)>> {
        let state = self.running_state()?;
        let rows = state.processes.iter();
        Ok(rows
            .map(|row| (row.component, row.id.pid, row.id.is_running()))
            .collect())
    }
}

impl Deref for Cluster {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

/// A cluster that is stopped when this value is dropped.
#[derive(Debug)]
pub struct TemporaryCluster(Cluster);

impl Deref for TemporaryCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.0
    }
}

impl Drop for TemporaryCluster {
    fn drop(&mut self) {
        // A drop cannot fail; what is left is found at the next start of any cluster.
        let _ = self.0.down();
    }
}

fn names_in(cache: &Cache) -> Result<Vec<String>> {
    let folder = cache.clusters();
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&folder).map_err(Error::file("list", &folder))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("state.json").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Stops clusters whose owner was killed before it could.
fn remove_orphans(cache: &Cache, tools: &Tools) -> Result<()> {
    for name in names_in(cache)? {
        let Ok(cluster) = Cluster::named(cache, &name, tools) else {
            continue;
        };
        if cluster
            .state()
            .is_ok_and(|state| state.is_some_and(|state| state.is_orphaned()))
        {
            cluster.down()?;
        }
    }
    Ok(())
}

/// Removes what is left of clusters that ended more than `age` ago.
fn remove_old_logs(clusters: &Path, age: Duration) -> Result<()> {
    for folder in fs::read_dir(clusters).into_iter().flatten().flatten() {
        let folder = folder.path();
        let changed = folder.metadata().and_then(|metadata| metadata.modified());
        let old = changed.is_ok_and(|time| time.elapsed().is_ok_and(|passed| passed >= age));
        if folder.is_dir() && old {
            let lock = cache::lock_file(&folder.with_extension("lock"))?;
            if lock.try_lock().is_ok()
                && !(Layout {
                    folder: folder.clone(),
                })
                .state()
                .exists()
            {
                cache::remove(&folder)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_logs_go_and_everything_else_stays() {
        let clusters = tempfile::tempdir().unwrap();
        let ended = Layout {
            folder: clusters.path().join("ended"),
        };
        let running = Layout {
            folder: clusters.path().join("running"),
        };
        for layout in [&ended, &running] {
            cache::make_folder(&layout.logs()).unwrap();
        }
        cache::write(&running.state(), "{}").unwrap();
        remove_old_logs(clusters.path(), LOG_AGE).unwrap();
        assert!(ended.logs().exists(), "not old yet");
        remove_old_logs(clusters.path(), Duration::ZERO).unwrap();
        assert!(!ended.folder.exists());
        assert!(running.logs().exists());
    }

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        let cache = Cache::from_env().unwrap();
        let tools = Tools::unbuilt(&cache);
        for name in ["", "..", "a/b", "A", "a b", &"a".repeat(MAX_NAME + 1)] {
            let refused = matches!(Cluster::named(&cache, name, &tools), Err(Error::BadName(_)));
            assert!(refused, "{name}");
        }
        assert!(Cluster::named(&cache, "e2e-1", &tools).is_ok());
    }
}
