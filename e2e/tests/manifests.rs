//! What operators apply, on a real API server. No manager runs: pods of the Deployment are fake, too.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use lws_local_cluster::{Cluster, Options, Progress, Target, Tool, Tools};
use serde_json::Value;

const APPLY: [&str; 2] = ["apply", "--filename"];
const SERVER_SIDE: [&str; 3] = ["apply", "--server-side", "--filename"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn kubectl(target: &Target, arguments: &[&str], file: &str) -> Result<String> {
    Ok(target.kubectl(&[arguments, &[file]].concat())?)
}

/// The installed objects without what their controllers write.
fn installed(target: &Target, file: &str) -> Result<Vec<Value>> {
    let mut list = target.kubectl_json(&["get", "--filename", file])?;
    let items = list["items"].as_array_mut().map(std::mem::take);
    let mut items = items.unwrap_or_default();
    ensure!(items.len() > 20, "{} objects are installed", items.len());
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.remove("status");
        let metadata = item["metadata"].as_object_mut();
        if let Some(metadata) = metadata {
            metadata.remove("resourceVersion");
            if let Some(annotations) = metadata
                .get_mut("annotations")
                .and_then(Value::as_object_mut)
            {
                annotations.remove("deployment.kubernetes.io/revision");
            }
        }
    }
    Ok(items)
}

/// Applies the file twice; the second time must change nothing. What kubectl says is no measure: it calls an object configured when
/// it sent a patch, even if that changed nothing.
fn apply_twice(target: &Target, arguments: &[&str], file: &str) -> Result<()> {
    kubectl(target, arguments, file)?;
    let before = installed(target, file)?;
    let printed = kubectl(target, arguments, file)?;
    ensure!(
        installed(target, file)? == before,
        "changed by {arguments:?} again: {printed}"
    );
    Ok(())
}

/// OPS-16: what Helm renders is valid for the API server.
fn chart_is_valid(target: &Target) -> Result<()> {
    let helm = Tools::ensure_one(Tool::Helm, Progress::Quiet)?;
    let rendered = std::process::Command::new(helm)
        .args([
            "template",
            "lws",
            "charts/lws",
            "--namespace=lws-system",
            "--set=replicaCount=2",
        ])
        .current_dir(root())
        .output()?;
    ensure!(
        rendered.status.success(),
        "{}",
        String::from_utf8_lossy(&rendered.stderr)
    );
    let dry_run = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--filename",
        "-",
    ];
    target.kubectl_with(&dry_run, &String::from_utf8_lossy(&rendered.stdout))?;
    Ok(())
}

fn manifests_apply_in_both_ways() -> Result<()> {
    let file = root().join("manifests.yaml").display().to_string();
    let options = Options::new(&format!("e2e-manifests-{}", std::process::id()));
    let cluster = Cluster::temporary(&options)?;
    apply_twice(&cluster, &SERVER_SIDE, &file)?;
    apply_twice(&cluster, &APPLY, &file)?;
    chart_is_valid(&cluster)?;
    kubectl(&cluster, &["delete", "--filename"], &file)?;
    apply_twice(&cluster, &APPLY, &file)?;
    apply_twice(&cluster, &SERVER_SIDE, &file)
}

#[tokio::test]
async fn ops_20_dep_6_kus_5_manifests_apply_in_both_ways_and_orders() -> Result<()> {
    lws_e2e::with_own_turn(manifests_apply_in_both_ways).await
}
