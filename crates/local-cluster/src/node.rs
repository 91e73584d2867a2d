//! A real node: kubelet, containerd and CoreDNS in namespaces of their own on this machine, with nothing but Unix sockets to
//! the outside.
//!
//! The whole node is one process to the rest of the crate, the first of its process namespace: with it all others end, and
//! with them their mounts, addresses and links. Only its control groups are left, which [`clean`] removes.

mod config;
mod image;
mod packages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::control_plane::{Layout, Ports};
use crate::process::ProcessId;
use crate::{Cache, Error, Interrupt, Progress, Result, Tool, Tools, cache, process};

use config::{ADDRESS, DNS_ADDRESS};
pub(crate) use config::{API_ADDRESS, USER};
pub use image::Image;
pub use packages::Packages;

/// Name of the node.
pub const REAL_NODE: &str = "real-0";
/// Label value and taint of the node, as KWOK's nodes have `type=kwok`.
pub const REAL: &str = "real";

const INIT: &str = include_str!("node/init.sh");
/// What isolates a node.
pub(crate) const PROGRAM: &str = "unshare";
/// In what, and that the node ends with the program.
const ISOLATION: [&str; 8] = [
    "--net",
    "--mount",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
];
/// How long it may take to isolate a node.
const START_LIMIT: Duration = Duration::from_secs(10);
const GROUPS: &str = "/sys/fs/cgroup";

/// Whether this machine can run containers: root, all namespaces, and writable control groups.
///
/// # Errors
/// [`Error::NoContainers`] with what is missing.
pub fn can_run_containers() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NoContainers("this is not root".to_owned()));
    }
    let mut isolated = Command::new(PROGRAM);
    isolated
        .args(ISOLATION)
        .args(["mount", "-t", "tmpfs", "node", "/run"]);
    process::output(&mut isolated).map_err(|error| Error::NoContainers(error.to_string()))?;
    let probe = format!("lws-probe-{}", std::process::id());
    for parent in hierarchies() {
        let group = parent.join(&probe);
        fs::create_dir(&group)
            .and_then(|()| fs::remove_dir(&group))
            .map_err(|error| Error::NoContainers(format!("{}: {error}", group.display())))?;
    }
    Ok(())
}

/// Builds and fetches what a real node needs, so that no cluster has to.
///
/// # Errors
/// As [`can_run_containers`]; [`Error::Build`] or [`Error::Packages`], which say what to install.
pub fn prepare_real_node(progress: Progress) -> Result<()> {
    can_run_containers()?;
    let cache = Cache::from_env()?;
    Tools::ensure_node(&cache, progress)?;
    Packages::RUNTIME.ensure(&cache, progress).map(drop)
}

/// What the API server needs to get into the node's network: everything that is meant for nodes, pods and Services goes through
/// a proxy there. Webhooks are reached at the addresses of their pods, since no Service has one.
pub(crate) fn api_server_flags(layout: &Layout) -> Vec<String> {
    let egress = layout.config("egress.json");
    vec![
        format!("--egress-selector-config-file={}", egress.display()),
        "--enable-aggregator-routing=true".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
    ]
}

/// What a node is made of.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    layout: &'a Layout,
    tools: &'a Tools,
    runtime: PathBuf,
}

impl<'a> Node<'a> {
    /// Fetches and builds what is missing.
    pub(crate) fn ensure(
        layout: &'a Layout,
        tools: &'a Tools,
        cache: &Cache,
        progress: Progress,
    ) -> Result<Self> {
        can_run_containers()?;
        Tools::ensure_node(cache, progress)?;
        let runtime = Packages::RUNTIME.ensure(cache, progress)?;
        Ok(Self {
            layout,
            tools,
            runtime,
        })
    }

    /// Writes everything that the node reads. `tainted` keeps pods away that do not ask for it.
    pub(crate) fn prepare(&self, cluster: &str, tainted: bool) -> Result<()> {
        let layout = self.layout;
        let folder = layout.node();
        cache::remove(&folder)?;
        for part in ["cni", "kubelet"] {
            cache::make_folder(&folder.join(part))?;
        }
        let group = group(cluster);
        for parent in hierarchies() {
            cache::make_folder(&parent.join(&group))?;
        }
        let write = |name: &str, text: &str| cache::write(&layout.config(name), text);
        write("egress.json", &config::egress(layout).to_string())?;
        write(
            "kubelet.json",
            &config::kubelet(layout, &group, tainted).to_string(),
        )?;
        write(
            "containerd.toml",
            &config::containerd(layout, &self.runtime),
        )?;
        write("Corefile", &config::corefile(layout, cluster))?;
        let network = config::pod_network(layout).to_string();
        cache::write(&folder.join("cni/pods.conflist"), &network)?;
        cache::write(&folder.join("init.sh"), &self.script()?)?;
        image::pause(&self.runtime).write(&folder.join("pause.tar"))
    }

    /// The script that the first process runs, with what it needs to know.
    fn script(&self) -> Result<String> {
        let layout = self.layout;
        let text = |path: PathBuf| path.display().to_string();
        let path = format!(
            "{0}/usr/bin:{0}/usr/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            self.runtime.display()
        );
        let variables = [
            ("PATH", path),
            ("BUSYBOX", text(self.runtime.join("bin/busybox"))),
            ("NODE", text(layout.node())),
            ("LOGS", text(layout.logs())),
            ("CONFIG", text(layout.configs())),
            ("RUNTIME", text(layout.node_socket("containerd"))),
            ("API", text(layout.node_socket("api"))),
            ("PROXY", text(layout.node_socket("proxy"))),
            ("NETWORK", text(self.tools.path(Tool::NodeNetwork)?)),
            ("KUBELET", text(self.tools.path(Tool::Kubelet)?)),
            ("CREDENTIALS", text(layout.kubeconfig(USER))),
            ("NAME", REAL_NODE.to_owned()),
            ("NODE_IP", ADDRESS.to_owned()),
            (
                "ADDRESSES",
                format!("{API_ADDRESS} {DNS_ADDRESS} {ADDRESS}"),
            ),
        ];
        let lines = variables.map(|(name, value)| format!("export {name}='{value}'\n"));
        Ok(lines.concat() + INIT)
    }
}

/// Arguments of the program that leads from the node to the API server.
pub(crate) fn link_arguments(layout: &Layout, ports: &Ports) -> Vec<String> {
    vec![
        format!("-serve-api={}", layout.node_socket("api").display()),
        format!("-api=127.0.0.1:{}", ports.api_server),
    ]
}

/// Arguments of [`PROGRAM`] for a node.
pub(crate) fn arguments(layout: &Layout) -> Vec<String> {
    let script = layout.node().join("init.sh").display().to_string();
    let mut arguments = ISOLATION.map(str::to_owned).to_vec();
    arguments.extend(["sh".to_owned(), script]);
    arguments
}

/// The first process of the node that a program isolates. It ends only when all others have ended, unlike that program.
pub(crate) fn first_process(isolating: ProcessId, interrupt: &Interrupt) -> Result<ProcessId> {
    let children = format!("/proc/{0}/task/{0}/children", isolating.pid);
    let mut first = None;
    interrupt.wait_until("the node does not start", START_LIMIT, || {
        let text = fs::read_to_string(&children).unwrap_or_default();
        first = text.trim().parse().ok().and_then(ProcessId::of);
        Ok(first.is_some() || !isolating.is_running())
    })?;
    Ok(first.unwrap_or(isolating))
}

/// Removes the control groups that a node of the cluster had. It must have ended.
pub(crate) fn clean(cluster: &str) {
    for parent in hierarchies() {
        remove_groups(&parent.join(group(cluster)));
    }
}

/// A control group goes when nothing is below it; its files go with it.
fn remove_groups(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    // One that is not empty is one of a process that was not started here.
    let _ = fs::remove_dir(folder);
}

/// Control group of the node, below which those of its pods are.
fn group(cluster: &str) -> String {
    format!("lws-{cluster}")
}

/// Where control groups are made: with version 2 in one place, with version 1 once a controller.
fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(GROUPS);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_path_buf()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Imports an image into the node of a cluster.
pub(crate) fn import(layout: &Layout, image: &Image) -> Result<()> {
    let archive = layout.node().join("import.tar");
    image.write(&archive)?;
    let runtime = Packages::RUNTIME.folder(&Cache::from_env()?);
    let mut command = Command::new(runtime.join("usr/bin/ctr"));
    command
        .arg("--address")
        .arg(layout.node_socket("containerd"))
        .args(["--namespace", "k8s.io", "images", "import"])
        .arg(&archive);
    process::output(&mut command)?;
    cache::remove(&archive)
}
