//! `cargo xtask cluster`: start, stop and show local clusters.

use anyhow::Result;
use clap::{Args, Subcommand};
use lws_local_cluster::{Cluster, Error, Health, Options, Progress};

use crate::interrupt;

const EXAMPLES: &str = "Examples:
  cargo xtask cluster up
  kubectl --kubeconfig \"$(cargo xtask cluster kubeconfig)\" get nodes
  cargo xtask cluster up --name second --nodes 8
  cargo xtask cluster up --name real --nodes 0 --real-node
  cargo xtask cluster status
  cargo xtask cluster down --all

The control plane is real (etcd, kube-apiserver, kube-controller-manager, kube-scheduler); nodes and pods are fake
(KWOK): pods get Ready but run nothing; `--real-node` adds a node that runs containers. The binaries are built once, with Go, into a cache folder: $LWS_CACHE_DIR, else
$XDG_CACHE_HOME/lws, else ~/.cache/lws. KUBECONFIG is never read or changed.";

/// Arguments of `cargo xtask cluster`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a cluster; does nothing if a healthy one of that name runs.
    #[command(after_help = "Example:\n  cargo xtask cluster up --name second --nodes 8")]
    Up {
        #[command(flatten)]
        name: Name,
        /// Number of fake nodes.
        #[arg(long, default_value_t = 3)]
        nodes: usize,
        /// Add a real node, which runs containers: needs Linux, root and Debian's packages. Pods get there with
        /// `nodeSelector: {type: real}` and a toleration of the taint `type=real:NoSchedule`, which it has beside fake nodes.
        #[arg(long)]
        real_node: bool,
        /// Leave the native gang scheduling API (Workload, PodGroup) switched off.
        #[arg(long)]
        no_gang_scheduling: bool,
    },
    /// Stops a cluster and removes its data; its logs stay until it is started again.
    #[command(
        after_help = "Examples:\n  cargo xtask cluster down\n  cargo xtask cluster down --all"
    )]
    Down {
        #[command(flatten)]
        name: Name,
        /// Stop every cluster.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Shows every cluster with its processes; fails if one is broken.
    #[command(after_help = "Example:\n  cargo xtask cluster status")]
    Status,
    /// Prints the path of a cluster's kubeconfig.
    #[command(
        after_help = "Example:\n  export KUBECONFIG=\"$(cargo xtask cluster kubeconfig --name second)\""
    )]
    Kubeconfig(Name),
}

#[derive(Args)]
struct Name {
    /// Name of the cluster.
    #[arg(long, default_value = "local")]
    name: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Up {
            name,
            nodes,
            real_node,
            no_gang_scheduling,
        } => {
            let mut options = Options::new(&name.name);
            options.nodes = *nodes;
            options.real_node = *real_node;
            options.gang_scheduling = !no_gang_scheduling;
            up(options)
        }
        Command::Down { name: _, all: true } => down_all(),
        Command::Down { name, all: false } => down(&name.name),
        Command::Status => status(),
        Command::Kubeconfig(name) => {
            println!("{}", Cluster::find(&name.name)?.kubeconfig().display());
            Ok(())
        }
    }
}

fn up(mut options: Options) -> Result<()> {
    options.progress = Progress::stderr();
    options.interrupt = interrupt::on_signal()?;
    let cluster = Cluster::up(&options)?;
    println!("cluster {} runs; talk to it with\n", cluster.name());
    println!("  export KUBECONFIG={}", cluster.kubeconfig().display());
    println!("  {} get nodes", cluster.kubectl_path().display());
    Ok(())
}

fn down(name: &str) -> Result<()> {
    match Cluster::find(name) {
        Ok(cluster) => {
            cluster.down()?;
            println!("cluster {name} stopped");
            Ok(())
        }
        Err(Error::NoCluster(_)) => {
            println!("no cluster {name} runs");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn down_all() -> Result<()> {
    for name in Cluster::names()? {
        down(&name)?;
    }
    Ok(())
}

fn status() -> Result<()> {
    let mut broken = Vec::new();
    let names = Cluster::names()?;
    if names.is_empty() {
        println!("no cluster runs; `cargo xtask cluster up` starts one");
    }
    for name in names {
        let cluster = Cluster::find(&name)?;
        match cluster.health()? {
            Health::Absent => continue,
            Health::Healthy => println!("{name}: healthy"),
            Health::Broken(reason) => {
                println!("{name}: broken: {reason}");
                broken.push(name);
            }
        }
        for (component, pid, runs) in cluster.processes().unwrap_or_default() {
            let state = if runs { "runs" } else { "stopped" };
            println!(
                "  {:<24} {pid:>8}  {state:<8} {}",
                component.name(),
                cluster.log(component).display()
            );
        }
        println!("  kubeconfig {}", cluster.kubeconfig().display());
    }
    anyhow::ensure!(
        broken.is_empty(),
        "broken: {}; `cargo xtask cluster up` repairs it",
        broken.join(", ")
    );
    Ok(())
}
