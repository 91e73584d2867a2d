//! A test's place: a namespace on a cluster, watched.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};
use lws_local_cluster::Certificates;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use crate::{Kind, Object, Plant, World};

/// How long a test waits for something. It takes seconds at most; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(90);
/// A namespace is settled when nothing has changed for this time.
const QUIET: Duration = Duration::from_secs(2);
/// Taint of nodes that a test adds.
pub const RESERVED: &str = "e2e.lws/reserved";
/// Lines of the manager's log that are shown when a test fails.
const SHOWN_LINES: usize = 60;

/// Clusters of their own are heavy: one at a time.
static OWN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A namespace on a cluster, with everything in it watched.
pub struct Bench {
    client: Client,
    namespace: String,
    plant: Arc<Plant>,
    world: Arc<Mutex<World>>,
    changes: watch::Receiver<()>,
    nodes: Mutex<Vec<String>>,
    _watches: JoinSet<()>,
}

/// Runs a test in a namespace of the shared cluster.
pub async fn on_shared_cluster(test: impl AsyncFnOnce(&Bench) -> Result<()>) -> Result<()> {
    let plant = tokio::task::spawn_blocking(Plant::shared).await??;
    Bench::run(plant, any_namespace(), test).await
}

/// Metadata of a namespace whose name does not matter.
fn any_namespace() -> Value {
    json!({"generateName": "t-"})
}

/// Runs a test on a cluster that is started for it.
pub async fn on_own_cluster(
    name: &'static str,
    test: impl AsyncFnOnce(&Bench) -> Result<()>,
) -> Result<()> {
    start_own_cluster(name, any_namespace(), Certificates::Folder, test).await
}

/// Runs a test on a cluster that is started for it, where certificates are to be kept in the Secret. No manager runs yet.
pub async fn on_new_installation(
    name: &'static str,
    test: impl AsyncFnOnce(&Bench) -> Result<()>,
) -> Result<()> {
    start_own_cluster(name, any_namespace(), Certificates::Secret, test).await
}

/// Runs a test on a cluster that is started for it, in a namespace of this name.
pub async fn on_own_cluster_in(
    namespace: &str,
    name: &'static str,
    test: impl AsyncFnOnce(&Bench) -> Result<()>,
) -> Result<()> {
    start_own_cluster(name, json!({"name": namespace}), Certificates::Folder, test).await
}

/// Runs a test that starts a cluster by itself, without manager and namespace.
pub async fn with_own_turn(test: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let _turn = OWN.lock().await;
    tokio::task::spawn_blocking(test).await?
}

async fn start_own_cluster(
    name: &'static str,
    namespace: Value,
    certificates: Certificates,
    test: impl AsyncFnOnce(&Bench) -> Result<()>,
) -> Result<()> {
    let _turn = OWN.lock().await;
    let plant = tokio::task::spawn_blocking(move || Plant::own(name, certificates)).await??;
    Bench::run(Arc::new(plant), namespace, test).await
}

impl Bench {
    async fn run(
        plant: Arc<Plant>,
        namespace: Value,
        test: impl AsyncFnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let start = plant.audit_log().position()?;
        let bench = Self::start(plant, namespace).await?;
        let outcome = AssertUnwindSafe(test(&bench)).catch_unwind().await;
        if !matches!(outcome, Ok(Ok(()))) {
            println!("{}", bench.describe());
        }
        let cleaned = bench.clean_up().await;
        match outcome {
            Ok(outcome) => outcome.and(cleaned).and(bench.plant.check_rights(start)),
            Err(panic) => resume_unwind(panic),
        }
    }

    async fn start(plant: Arc<Plant>, namespace: Value) -> Result<Self> {
        let client = client(plant.target().kubeconfig()).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": namespace}))?;
        let created = namespaces
            .create(&PostParams::default(), &namespace)
            .await?;
        let namespace = created.metadata.name.context("a namespace without name")?;
        let world = Arc::new(Mutex::new(World::new()));
        let (sender, changes) = watch::channel(());
        let sender = Arc::new(sender);
        let (listed, mut lists) = mpsc::channel(Kind::ALL.len());
        let mut watches = JoinSet::new();
        for kind in Kind::ALL {
            let api = Api::namespaced_with(client.clone(), &namespace, &kind.resource());
            let (world, sender, listed) = (world.clone(), sender.clone(), listed.clone());
            watches.spawn(observe(kind, api, world, sender, listed));
        }
        for _ in Kind::ALL {
            lists.recv().await.context("a watch ended")?;
        }
        Ok(Self {
            client,
            namespace,
            plant,
            world,
            changes,
            nodes: Mutex::default(),
            _watches: watches,
        })
    }

    /// The namespace goes in the background; nothing waits for it.
    async fn clean_up(&self) -> Result<()> {
        let now = DeleteParams::default();
        let nodes: Api<Node> = Api::all(self.client.clone());
        let names = std::mem::take(&mut *lock(&self.nodes));
        for name in names {
            nodes.delete(&name, &now).await?;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &now).await?;
        Ok(())
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The cluster and its manager.
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// A client of the cluster.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What is in the namespace now. Not to be held while waiting.
    pub fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Number of changes so far, as a mark for what comes after.
    pub fn mark(&self) -> usize {
        self.world().history().len()
    }

    /// Waits until a condition holds. It must cope with objects that are not there.
    pub async fn until(&self, what: &str, condition: impl Fn(&World) -> bool) -> Result<()> {
        self.until_in(LIMIT, what, condition).await
    }

    /// As [`Bench::until`], with a limit of its own.
    pub async fn until_in(
        &self,
        limit: Duration,
        what: &str,
        condition: impl Fn(&World) -> bool,
    ) -> Result<()> {
        let deadline = tokio::time::Instant::now() + limit;
        let mut changes = self.changes.clone();
        loop {
            changes.borrow_and_update();
            if condition(&self.world()) {
                return Ok(());
            }
            if timeout_at(deadline, changes.changed()).await.is_err() {
                bail!("not within {limit:?}: {what}");
            }
        }
    }

    /// Waits until the set is available as it is written now.
    pub async fn until_available(&self, set: &str) -> Result<()> {
        let what = format!("{set} is available");
        self.until(&what, |world| world.is_available(set)).await
    }

    /// Waits until nothing has changed for a while, counted from now on.
    pub async fn settled(&self) -> Result<()> {
        self.quiet_for(QUIET).await
    }

    /// Waits until nothing has changed for a time, counted from now on.
    pub async fn quiet_for(&self, quiet: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            let since = self.world().last_change().max(start);
            let left = quiet.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                bail!("the namespace does not settle");
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Lets time pass in which something must not happen, or does happen.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Adds a node to the cluster until the test ends. Only pods that tolerate [`RESERVED`] are scheduled to it, so that
    /// no other test loses pods with the node.
    pub async fn add_node(&self, name: &str, labels: Value) -> Result<()> {
        self.add_node_with(name, labels, json!({})).await
    }

    /// As [`Bench::add_node`], with more to give than CPU, memory and pods.
    pub async fn add_node_with(&self, name: &str, labels: Value, more: Value) -> Result<()> {
        let mut resources = json!({"cpu": "1000", "memory": "1Ti", "pods": "1000"});
        for (resource, amount) in more.as_object().into_iter().flatten() {
            resources[resource] = amount.clone();
        }
        let node = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [{"key": RESERVED, "effect": "NoSchedule"}]},
            "status": {"capacity": resources, "allocatable": resources},
        });
        let nodes: Api<Node> = Api::all(self.client());
        lock(&self.nodes).push(name.to_owned());
        nodes
            .create(&PostParams::default(), &serde_json::from_value(node)?)
            .await?;
        Ok(())
    }

    /// Changes what a node has to give of a resource.
    pub async fn resize_node(&self, name: &str, resource: &str, amount: &str) -> Result<()> {
        let amounts = json!({resource: amount});
        let patch = json!({"status": {"capacity": amounts, "allocatable": amounts}});
        let nodes: Api<Node> = Api::all(self.client());
        nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Runs kubectl in the namespace.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let words = [&["-n", self.namespace()], arguments].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let target = self.plant.target().clone();
        Ok(tokio::task::spawn_blocking(move || target.kubectl(&words)).await??)
    }

    /// Lines of the manager's log that name the namespace.
    pub fn manager_log(&self) -> Vec<String> {
        let log = self.plant.manager_log();
        let lines = log.lines().filter(|line| line.contains(&self.namespace));
        lines.map(str::to_owned).collect()
    }

    fn describe(&self) -> String {
        let log = self.manager_log();
        let skipped = log.len().saturating_sub(SHOWN_LINES);
        let mut text = format!("namespace {}\n{}", self.namespace, self.world().describe());
        text.push_str("log of the manager:\n");
        for line in log.iter().skip(skipped) {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }
}

/// Waits until something holds that no watch tells of.
///
/// # Errors
/// It does not hold in time, or cannot be found out.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let waited = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    };
    tokio::time::timeout(LIMIT, waited)
        .await
        .with_context(|| format!("not in time: {what}"))?
}

/// The world stays usable when a condition panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn client(kubeconfig: &std::path::Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(Client::try_from(config)?)
}

/// Keeps the objects of a kind in the world up to date.
async fn observe(
    kind: Kind,
    api: Api<DynamicObject>,
    world: Arc<Mutex<World>>,
    changes: Arc<watch::Sender<()>>,
    listed: mpsc::Sender<()>,
) {
    let mut stream = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut present = BTreeSet::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => present.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                let object = plain(kind, &object);
                present.insert(object.name().to_owned());
                lock(&world).apply(kind, object);
            }
            Ok(watcher::Event::InitDone) => {
                let mut world = lock(&world);
                let names = world.names(kind).into_iter().map(str::to_owned);
                let gone: Vec<String> = names.filter(|name| !present.contains(name)).collect();
                for name in gone {
                    world.delete(kind, &name);
                }
                // Only the first list is waited for.
                let _ = listed.try_send(());
            }
            Ok(watcher::Event::Apply(object)) => lock(&world).apply(kind, plain(kind, &object)),
            Ok(watcher::Event::Delete(object)) => {
                lock(&world).delete(kind, &object.metadata.name.unwrap_or_default());
            }
            Err(error) => println!("watch of {kind:?}: {error}"),
        }
        changes.send_replace(());
    }
}

/// The object without its managed fields, which no test looks at here.
fn plain(kind: Kind, object: &DynamicObject) -> Object {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let resource = kind.resource();
    value["apiVersion"] = resource.api_version.into();
    value["kind"] = resource.kind.into();
    Object::new(value)
}
