//! A cluster of its own for one measurement, with the measured controller in it or without.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use lws_local_cluster::{
    Cluster, Component, Installation, InstallationOptions, Interrupt, Manager, ManagerOptions,
    Options, Progress, Target, TemporaryCluster,
};
use serde_json::{Value, json};

use super::audit::{ADMIN, Audit, CONTROLLER, Entry, Tally};
use super::manifest::NAMESPACE;
use super::process;
use super::watch::{Watch, Workload};

/// The slowest that is waited for; upstream needs more than 500 s for a rollout.
const READY_LIMIT: Duration = Duration::from_secs(900);
const START_LIMIT: Duration = Duration::from_secs(120);
/// After this time without a request of the controller a row is over; events are held back for a second.
const QUIET: Duration = Duration::from_secs(3);
const QUIET_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
/// kubectl sends its documents one after the other; so many of it make a user who is in a hurry.
const CREATORS: usize = 4;
/// As for the controllers of Kubernetes: a limit would hide every other cost.
const REQUESTS_PER_SECOND: u32 = 2_000;
const REQUEST_BURST: u32 = 4_000;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The controller.
    pub binary: PathBuf,
    /// Its arguments beside `--config` and `--kubeconfig`.
    pub arguments: Vec<String>,
    /// A tenth of everything.
    pub is_small: bool,
    /// Where progress is told.
    pub progress: Progress,
    /// Ends everything early.
    pub interrupt: Interrupt,
}

/// How a piece of work went.
#[derive(Clone, Debug)]
pub struct Course {
    /// From the first request of the user until the last status that says that all is ready.
    pub seconds: f64,
    /// All requests that were answered until it was quiet.
    pub entries: Vec<Entry>,
    /// CPU of the controller until it was quiet; none without a controller.
    pub cpu_seconds: f64,
}

impl Course {
    /// Requests of the controller.
    pub fn tally(&self) -> Tally {
        Tally::of(&self.entries)
    }
}

/// A cluster, and a controller unless it is bare.
pub struct Plant {
    controller: Option<Controller>,
    cluster: TemporaryCluster,
    audit: Audit,
    interrupt: Interrupt,
}

struct Controller {
    installation: Installation,
    options: ManagerOptions,
    manager: Manager,
}

impl Plant {
    /// A cluster without a controller.
    pub fn bare(bench: &Bench) -> Result<Self> {
        let name = format!("bench-{}", std::process::id());
        let mut options = Options::new(&name);
        options.progress = bench.progress;
        options.interrupt = bench.interrupt.clone();
        let cluster = Cluster::temporary(&options)?;
        cluster.kubectl(&["create", "namespace", NAMESPACE])?;
        Ok(Self {
            controller: None,
            audit: Audit::new(cluster.audit_log()),
            cluster,
            interrupt: bench.interrupt.clone(),
        })
    }

    /// A cluster in which the controller runs and leads.
    pub fn with_controller(bench: &Bench) -> Result<Self> {
        let mut plant = Self::bare(bench)?;
        let installation = Installation::install(&plant.cluster, &InstallationOptions::default())?;
        // Another controller than ours needs other rights than ours.
        let user = format!("--user={CONTROLLER}");
        let rights = [
            "create",
            "clusterrolebinding",
            "bench",
            "--clusterrole=cluster-admin",
        ];
        plant.cluster.kubectl(&[&rights[..], &[&user]].concat())?;
        let mut options = ManagerOptions::new(&bench.binary);
        options.arguments.clone_from(&bench.arguments);
        options.config =
            json!({"clientConnection": {"qps": REQUESTS_PER_SECOND, "burst": REQUEST_BURST}});
        let manager = Manager::start(&installation, &options)?;
        manager.wait_until_ready(START_LIMIT, &bench.interrupt)?;
        installation.check_webhooks()?;
        plant.controller = Some(Controller {
            installation,
            options,
            manager,
        });
        plant.settle(QUIET)?;
        Ok(plant)
    }

    /// kubectl.
    pub fn target(&self) -> &Target {
        &self.cluster
    }

    /// Log of a component.
    pub fn log_of(&self, component: Component) -> String {
        std::fs::read_to_string(self.cluster.log(component)).unwrap_or_default()
    }

    /// MiB that the controller has used at most.
    pub fn peak_mib(&self) -> Result<f64> {
        process::peak_mib(self.manager()?.pid())
    }

    fn manager(&self) -> Result<&Manager> {
        Ok(&self
            .controller
            .as_ref()
            .context("there is no controller")?
            .manager)
    }

    fn cpu_seconds(&self) -> Result<f64> {
        match &self.controller {
            None => Ok(0.0),
            Some(controller) => process::cpu_seconds(controller.manager.pid()),
        }
    }

    /// Creates documents and waits until all of them are ready.
    pub fn create(&mut self, workload: Workload, documents: &[Value]) -> Result<Course> {
        self.measure(workload, documents.len(), 1, |target| {
            create_all(target, documents)
        })
    }

    /// Patches one object and waits until it is ready again.
    pub fn update(&mut self, workload: Workload, name: &str, patch: &str) -> Result<Course> {
        let arguments = [
            "patch",
            workload.resource(),
            name,
            "-n",
            NAMESPACE,
            "--type=json",
            "-p",
            patch,
        ];
        self.measure(workload, 1, 2, |target| {
            Ok(target.kubectl(&arguments).map(drop)?)
        })
    }

    fn measure(
        &mut self,
        workload: Workload,
        count: usize,
        generation: u64,
        action: impl FnOnce(&Target) -> Result<()>,
    ) -> Result<Course> {
        self.audit.skip()?;
        let cpu = self.cpu_seconds()?;
        let watch = Watch::start(&self.cluster, workload)?;
        action(&self.cluster)?;
        watch.until_ready(count, generation, READY_LIMIT, &self.interrupt)?;
        let seen = Timestamp::now();
        drop(watch);
        let entries = self.settle(QUIET)?;
        Ok(Course {
            seconds: seconds(&entries, workload, seen)
                .context("the audit log lacks the requests that were made")?,
            entries,
            cpu_seconds: self.cpu_seconds()? - cpu,
        })
    }

    /// Waits until the controller has asked for nothing for a while; everything that was answered meanwhile.
    pub fn settle(&mut self, quiet: Duration) -> Result<Vec<Entry>> {
        let start = Instant::now();
        let mut last = start;
        let mut all = Vec::new();
        while last.elapsed() < quiet {
            self.check()?;
            let entries = self.audit.read()?;
            if entries.iter().any(Entry::is_counted) {
                last = Instant::now();
            }
            all.extend(entries);
            if start.elapsed() > QUIET_LIMIT {
                bail!("the controller does not come to rest within {QUIET_LIMIT:?}");
            }
            thread::sleep(POLL);
        }
        Ok(all)
    }

    /// Lets time pass; what was answered in it.
    pub fn pass(&mut self, time: Duration) -> Result<Vec<Entry>> {
        self.audit.skip()?;
        let start = Instant::now();
        while start.elapsed() < time {
            self.check()?;
            thread::sleep(POLL);
        }
        self.audit.read()
    }

    /// Does something and waits for the first request that is meant.
    pub fn until_answered(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<()>,
        is_meant: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Entry>> {
        self.audit.skip()?;
        action(self)?;
        let start = Instant::now();
        let mut all = Vec::new();
        while !all.iter().any(&is_meant) {
            self.check()?;
            if start.elapsed() > START_LIMIT {
                bail!("a request that was waited for did not come within {START_LIMIT:?}");
            }
            thread::sleep(POLL);
            all.extend(self.audit.read()?);
        }
        Ok(all)
    }

    /// Stops the controller as a rollout of its Deployment would.
    pub fn stop_controller(&mut self) -> Result<Stopped> {
        let Controller {
            installation,
            options,
            manager,
        } = self.controller.take().context("there is no controller")?;
        manager.terminate()?;
        Ok(Stopped {
            installation,
            options,
        })
    }

    /// Starts the controller again and does not wait.
    pub fn start_controller(&mut self, stopped: Stopped) -> Result<()> {
        let Stopped {
            installation,
            options,
        } = stopped;
        let manager = Manager::start(&installation, &options)?;
        self.controller = Some(Controller {
            installation,
            options,
            manager,
        });
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.interrupt.is_set() {
            bail!("interrupted");
        }
        if let Some(controller) = &self.controller {
            controller.manager.check_running()?;
        }
        Ok(())
    }
}

/// What is needed to start a controller again.
pub struct Stopped {
    installation: Installation,
    options: ManagerOptions,
}

/// From the first change that the user asked for until the last status of a workload that was written before all were `seen` ready.
fn seconds(entries: &[Entry], workload: Workload, seen: Timestamp) -> Option<f64> {
    let status = format!("{}/status", workload.resource());
    let ours = || {
        entries
            .iter()
            .filter(|entry| entry.namespace == NAMESPACE && entry.has_changed())
    };
    let first = ours()
        .filter(|entry| entry.user == ADMIN && entry.resource == workload.resource())
        .map(|entry| entry.received)
        .min()?;
    let last = ours()
        .filter(|entry| entry.resource == status && entry.received <= seen)
        .map(|entry| entry.answered)
        .max()?;
    Some(last.duration_since(first).as_secs_f64())
}

/// Creates documents, several at a time.
fn create_all(target: &Target, documents: &[Value]) -> Result<()> {
    let chunk = documents.len().div_ceil(CREATORS).max(1);
    thread::scope(|scope| {
        let creators: Vec<_> = documents
            .chunks(chunk)
            .map(|chunk| scope.spawn(|| create(target, chunk)))
            .collect();
        for creator in creators {
            creator
                .join()
                .map_err(|_| anyhow::anyhow!("a creator panicked"))??;
        }
        Ok(())
    })
}

fn create(target: &Target, documents: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    let arguments = ["create", "--validate=false", "-f", "-"];
    target.kubectl_with(&arguments, &list.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: &str, resource: &str, second: i64) -> Entry {
        let at = Timestamp::from_second(second).unwrap();
        Entry {
            user: user.into(),
            verb: "patch".into(),
            resource: resource.into(),
            namespace: NAMESPACE.into(),
            name: "a".into(),
            code: 200,
            received: at,
            answered: at,
        }
    }

    #[test]
    fn time_runs_from_the_user_to_the_last_status_before_it_was_seen() {
        let entries = [
            entry(ADMIN, "leaderworkersets", 10),
            entry(ADMIN, "leaderworkersets", 11),
            entry("x", "leaderworkersets/status", 15),
            entry("x", "pods/status", 16),
            entry("x", "leaderworkersets/status", 20),
        ];
        let at = |second| {
            seconds(
                &entries,
                Workload::Sets,
                Timestamp::from_second(second).unwrap(),
            )
        };
        assert_eq!(at(18), Some(5.0));
        assert_eq!(at(20), Some(10.0));
        assert_eq!(at(12), None);
    }
}
