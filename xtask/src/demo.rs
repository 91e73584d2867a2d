//! `cargo xtask demo`: a LeaderWorkerSet at work, before one's eyes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use lws_local_cluster::{
    Cluster, Installation, InstallationOptions, Interrupt, Manager, ManagerOptions, Options,
    Progress, Target,
};

use crate::demo::uids::{GROUP_LABEL, Uids};
use crate::{interrupt, repository};

mod uids;

const EXAMPLES: &str = "Examples:
  cargo xtask demo                      on a local cluster; stays up until Ctrl-C
  cargo xtask demo --exit               the same, ends when everything was shown
  cargo xtask demo --context my-kind    on a cluster of yours

Without --kubeconfig or --context the demo uses its own local cluster, whatever KUBECONFIG says. On a cluster of yours
it refuses to start if LeaderWorkerSet is already installed there, and removes everything it made when it ends. The
manager runs on this machine, so that cluster's API server must reach this machine: see --webhook-host.";

const EXAMPLE: &str = "examples/nginx/lws.yaml";
const SET: &str = "leaderworkerset-sample";
const VICTIM: &str = "leaderworkerset-sample-0-1";
const MANAGER_LIMIT: Duration = Duration::from_secs(60);
/// Fake pods are ready within seconds; real ones pull an image first.
const READY_LIMIT: Duration = Duration::from_secs(300);

/// Arguments of `cargo xtask demo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// End when everything was shown, instead of staying up.
    #[arg(long)]
    exit: bool,
    /// Use the cluster of this kubeconfig instead of a local one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Use the cluster of this context instead of a local one.
    #[arg(long)]
    context: Option<String>,
    /// Host or address under which the API server of your cluster reaches this machine.
    #[arg(long, default_value = "127.0.0.1")]
    webhook_host: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = interrupt::on_signal()?;
    let outcome = match (&arguments.kubeconfig, &arguments.context) {
        (None, None) => on_local_cluster(arguments, &interrupt),
        (Some(_), _) | (None, Some(_)) => on_guest_cluster(arguments, &interrupt),
    };
    match outcome {
        // Ctrl-C while it stays up is how the demo is meant to end; before that it is a failure.
        Err(error) if interrupt.is_set() => Err(error.context("stopped")),
        outcome => outcome,
    }
}

/// The local cluster ends with the demo.
fn on_local_cluster(arguments: &Arguments, interrupt: &Interrupt) -> Result<()> {
    heading("1. A control plane on this machine");
    let mut options = Options::new("demo");
    options.progress = Progress::stderr();
    options.interrupt = interrupt.clone();
    let cluster = Cluster::temporary(&options)?;
    play(&cluster, arguments, interrupt)?;
    println!("\nStopping the cluster.");
    cluster.down()?;
    Ok(())
}

/// Someone's cluster is left as it was found.
fn on_guest_cluster(arguments: &Arguments, interrupt: &Interrupt) -> Result<()> {
    heading("1. Your cluster");
    let target = Target::guest(
        arguments.kubeconfig.as_deref(),
        arguments.context.as_deref(),
        Progress::stderr(),
    )?;
    let server = target.kubectl(&[
        "config",
        "view",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ])?;
    println!("API server: {server}");
    let outcome = play(&target, arguments, interrupt);
    println!("\nRemoving from your cluster what the demo made there.");
    let removed = Installation::remove_from(&target);
    outcome?;
    removed.context(
        "the cluster could not be cleaned up; start the demo once more with the same cluster",
    )
}

fn play(target: &Target, arguments: &Arguments, interrupt: &Interrupt) -> Result<()> {
    heading("2. CRDs, webhooks and the manager");
    let binary = repository::build_manager()?;
    let options = InstallationOptions {
        webhook_host: arguments.webhook_host.clone(),
        ..InstallationOptions::default()
    };
    let installation = Installation::install(target, &options)?;
    let manager = Manager::start(&installation, &ManagerOptions::new(&binary))?;
    manager.wait_until_ready(MANAGER_LIMIT, interrupt)?;
    installation
        .check_webhooks()
        .context("pass the address of this machine with --webhook-host")?;
    println!(
        "The manager runs as process {} (log: {}).",
        manager.pid(),
        manager.log().display()
    );

    heading("3. A LeaderWorkerSet of two groups of three pods");
    let example = repository::root().join(EXAMPLE).display().to_string();
    print!("{}", target.kubectl(&["apply", "-f", &example])?);
    wait_until_ready(target, &manager, interrupt)?;
    show(target, "lws,sts,pods,svc")?;

    heading("4. One worker is deleted: its group is made anew, the other is left alone");
    let before = Uids::read(target, SET)?;
    println!("$ kubectl delete pod {VICTIM}");
    print!("{}", target.kubectl(&["delete", "pod", VICTIM])?);
    wait_until_replaced(target, &manager, interrupt, &before)?;
    let after = Uids::read(target, SET)?;
    print!("\n{}", before.compare(&after));
    before.check_recreated(&after)?;
    show(target, "lws,pods")?;

    if !arguments.exit {
        stay(target, &manager, interrupt)?;
    }
    target.kubectl(&[
        "delete",
        "lws",
        SET,
        "--cascade=foreground",
        "--timeout=120s",
    ])?;
    manager.terminate()?;
    Ok(())
}

fn wait_until_ready(target: &Target, manager: &Manager, interrupt: &Interrupt) -> Result<()> {
    let what = format!(
        "{SET} does not get ready (log of the manager: {})",
        manager.log().display()
    );
    interrupt.wait_until(&what, READY_LIMIT, || {
        manager.check_running()?;
        is_ready(target)
    })?;
    Ok(())
}

fn is_ready(target: &Target) -> lws_local_cluster::Result<bool> {
    let path = "jsonpath={.status.readyReplicas} {.status.replicas} {.spec.replicas}";
    let counts = target.kubectl(&["get", "lws", SET, "-o", path])?;
    let mut counts = counts.split_whitespace();
    let ready = counts.next();
    Ok(counts.next() == ready && counts.next() == ready && ready.is_some())
}

/// Waits until all pods of the victim's group are new and the set is ready again.
fn wait_until_replaced(
    target: &Target,
    manager: &Manager,
    interrupt: &Interrupt,
    before: &Uids,
) -> Result<()> {
    let what = format!(
        "group 0 is not made anew (log of the manager: {})",
        manager.log().display()
    );
    interrupt.wait_until(&what, READY_LIMIT, || {
        manager.check_running()?;
        Ok(before.is_replaced_by(&Uids::read(target, SET)?) && is_ready(target)?)
    })?;
    Ok(())
}

/// Prints what kubectl shows of some kinds.
fn show(target: &Target, kinds: &str) -> Result<()> {
    println!("\n$ kubectl get {kinds}");
    print!("{}", target.kubectl(&["get", kinds])?);
    Ok(())
}

/// Says how to talk to the cluster and waits for Ctrl-C.
fn stay(target: &Target, manager: &Manager, interrupt: &Interrupt) -> Result<()> {
    heading("5. Your turn");
    let kubectl = target.kubectl_path().display();
    println!("In another terminal:\n");
    println!("  export KUBECONFIG={}", target.kubeconfig().display());
    println!("  alias kubectl={kubectl}");
    println!("  kubectl get lws,sts,pods -L {GROUP_LABEL}");
    println!("  kubectl scale lws {SET} --replicas=4");
    println!("  kubectl delete pod {VICTIM} --force --grace-period=0");
    println!("  tail -f {}\n", manager.log().display());
    println!("Ctrl-C here stops everything.");
    while !interrupt.is_set() {
        if !manager.is_running() {
            bail!("the manager ended; see {}", manager.log().display());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    println!();
    Ok(())
}

fn heading(text: &str) {
    println!("\n== {text}");
}
