//! Real containers on a real node: the manager installed as operators install it, and groups whose members talk to each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lws_e2e::{build_manager, with_own_turn};
use lws_local_cluster::{
    Cache, Cluster, Error, Image, Interrupt, Options, Packages, Progress, can_run_containers,
};
use serde_json::{Value, json};

/// A container starts within seconds; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(300);
const WAIT: &str = "--timeout=300s";
const PYTHON: &str = "lws.example/python:local";
/// Stands in for nginx: answers each request with the name of the pod.
const WEB_SERVER: &str =
    "trap exit TERM; mkdir /www; hostname >/www/index.html; httpd -f -p 80 -h /www & wait $!";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn file(path: &str) -> String {
    root().join(path).display().to_string()
}

fn packages(packages: Packages) -> Result<PathBuf> {
    Ok(packages.ensure(&Cache::from_env()?, Progress::Quiet)?)
}

/// What the Dockerfile puts into the image, with the libraries of the build that the tests use.
fn manager_image() -> Result<Image> {
    let manifests = std::fs::read_to_string(root().join("manifests.yaml"))?;
    let mut images = manifests
        .lines()
        .filter_map(|line| line.trim().strip_prefix("image: "));
    let name = images.next().context("manifests.yaml names no image")?;
    ensure!(images.next().is_none(), "manifests.yaml names more images");
    Ok(Image::new(name)
        .with(&packages(Packages::LIBRARIES)?, "/")
        .with(&build_manager()?, "/manager")
        .user("65532:65532")
        .entrypoint(&["/manager"]))
}

fn web_server_image() -> Result<Image> {
    Ok(Image::new("nginx:1.27")
        .with(&packages(Packages::BUSYBOX)?, "/")
        .with_shell()
        .entrypoint(&["/bin/sh", "-c", WEB_SERVER]))
}

fn python_image() -> Result<Image> {
    Ok(Image::new(PYTHON)
        .with(&packages(Packages::PYTHON)?, "/")
        .with(&root().join("e2e/jobs"), "/jobs")
        .with_shell())
}

fn until(what: &str, condition: impl FnMut() -> lws_local_cluster::Result<bool>) -> Result<()> {
    Ok(Interrupt::default().wait_until(what, LIMIT, condition)?)
}

fn selector(set: &str, index: usize) -> String {
    format!(
        "leaderworkerset.sigs.k8s.io/name={set},leaderworkerset.sigs.k8s.io/group-index={index}"
    )
}

/// Names and UIDs of the pods of a group.
fn group(
    cluster: &Cluster,
    set: &str,
    index: usize,
) -> lws_local_cluster::Result<BTreeMap<String, String>> {
    let list = cluster.kubectl_json(&["get", "pods", "--selector", &selector(set, index)])?;
    let pods = list["items"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = pods.map(|pod| &pod["metadata"]);
    Ok(metadata
        .map(|metadata| (text(&metadata["name"]), text(&metadata["uid"])))
        .collect())
}

/// Waits until each pod of a group is another one than before, and ready.
fn wait_for_new_group(
    cluster: &Cluster,
    set: &str,
    index: usize,
    before: &BTreeMap<String, String>,
) -> Result<()> {
    until(&format!("group {index} of {set} is made anew"), || {
        let now = group(cluster, set, index)?;
        let same_names = now.keys().eq(before.keys());
        Ok(same_names && now.iter().all(|(name, uid)| before.get(name) != Some(uid)))
    })?;
    let pods = selector(set, index);
    let ready = "--for=condition=Ready";
    cluster.kubectl(&["wait", "pods", "--selector", &pods, ready, WAIT])?;
    Ok(())
}

fn wait_until_available(cluster: &Cluster, set: &str) -> Result<()> {
    let set = format!("leaderworkerset/{set}");
    cluster.kubectl(&["wait", &set, "--for=condition=Available", WAIT])?;
    Ok(())
}

fn in_shell(cluster: &Cluster, pod: &str, script: &str) -> Result<String> {
    Ok(cluster.kubectl(&["exec", pod, "--", "/bin/sh", "-c", script])?)
}

/// `kubectl apply` and `kubectl wait`, as the installation guide says; the webhooks answer through their Service.
fn install(cluster: &Cluster) -> Result<()> {
    cluster.import_image(&manager_image()?)?;
    cluster.kubectl(&[
        "apply",
        "--server-side",
        "--filename",
        &file("manifests.yaml"),
    ])?;
    cluster.kubectl(&[
        "wait",
        "deploy/lws-controller-manager",
        "--namespace=lws-system",
        "--for=condition=available",
        WAIT,
    ])?;
    Ok(())
}

/// The first sample: members reach their leader by its address, and a group whose worker ends is made anew as a whole.
fn first_sample(cluster: &Cluster) -> Result<()> {
    let set = "leaderworkerset-sample";
    cluster.import_image(&web_server_image()?)?;
    cluster.kubectl(&[
        "apply",
        "--server-side",
        "--filename",
        &file("examples/nginx"),
    ])?;
    wait_until_available(cluster, set)?;
    let page = in_shell(
        cluster,
        &format!("{set}-1-2"),
        "wget -q -O - http://$LWS_LEADER_ADDRESS",
    )?;
    ensure!(
        page.trim() == format!("{set}-1"),
        "the leader answers {page:?}"
    );

    let (before, other) = (group(cluster, set, 0)?, group(cluster, set, 1)?);
    in_shell(cluster, &format!("{set}-0-2"), "killall httpd")?;
    wait_for_new_group(cluster, set, 0, &before)?;
    ensure!(group(cluster, set, 1)? == other, "group 1 was touched");
    cluster.kubectl(&["delete", "leaderworkerset", set])?;
    Ok(())
}

/// Asks the leader to count with all members.
fn primes(cluster: &Cluster) -> Result<Value> {
    let path = "/api/v1/namespaces/default/pods/primes-0:8080/proxy/primes/10000";
    Ok(serde_json::from_str(
        &cluster.kubectl(&["get", "--raw", path])?,
    )?)
}

fn check_primes(cluster: &Cluster) -> Result<()> {
    let answer = primes(cluster)?;
    ensure!(answer["primes"] == 1229, "{answer}");
    let members = answer["members"].as_array().map(Vec::as_slice);
    let mut hosts: Vec<&Value> = members
        .into_iter()
        .flatten()
        .map(|one| &one["host"])
        .collect();
    hosts.sort_by_key(|host| host.to_string());
    ensure!(
        hosts
            == [
                &json!("primes-0"),
                &json!("primes-0-1"),
                &json!("primes-0-2")
            ],
        "{answer}"
    );
    Ok(())
}

/// A job of three that meets by the environment of its pods, and that one lost process brings down and back as a whole.
fn job_that_meets_by_environment(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(&[
        "apply",
        "--server-side",
        "--filename",
        &file("e2e/jobs/primes.yaml"),
    ])?;
    wait_until_available(cluster, "primes")?;
    check_primes(cluster)?;
    let before = group(cluster, "primes", 0)?;
    ensure!(before.len() == 3, "{before:?}");
    in_shell(cluster, "primes-0-1", "killall -9 python3")?;
    wait_for_new_group(cluster, "primes", 0, &before)?;
    check_primes(cluster)
}

/// A job that is given master address, number of nodes and node rank.
fn job_that_meets_at_a_master(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(&[
        "apply",
        "--server-side",
        "--filename",
        &file("e2e/jobs/reduce.yaml"),
    ])?;
    for (rank, pod) in ["reduce-0", "reduce-0-1", "reduce-0-2"].iter().enumerate() {
        let wanted = format!("rank {rank} of 3: sum 111");
        until(&format!("{pod} says {wanted:?}"), || {
            let said = cluster.kubectl(&["logs", pod]);
            Ok(said.is_ok_and(|said| said.trim() == wanted))
        })?;
    }
    Ok(())
}

fn everything() -> Result<()> {
    let mut options = Options::new(&format!("e2e-real-{}", std::process::id()));
    options.nodes = 0;
    options.real_node = true;
    let cluster = Cluster::temporary(&options)?;
    install(&cluster)?;
    first_sample(&cluster)?;
    cluster.import_image(&python_image()?)?;
    job_that_meets_by_environment(&cluster)?;
    job_that_meets_at_a_master(&cluster)
}

/// Skipped, and says so, where the machine cannot run containers.
#[tokio::test]
async fn groups_of_an_installed_manager_run_in_real_containers() -> Result<()> {
    match can_run_containers() {
        Err(Error::NoContainers(reason)) => {
            println!("skipped: {reason}");
            Ok(())
        }
        outcome => {
            outcome?;
            with_own_turn(everything).await
        }
    }
}
