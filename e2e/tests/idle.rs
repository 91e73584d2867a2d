//! What a settled set costs.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use lws_e2e::{Bench, Manifest, on_own_cluster};
use serde_json::json;

#[tokio::test]
async fn settled_sets_cost_no_requests() -> Result<()> {
    on_own_cluster("idle", async |bench| {
        bench.create(Manifest::new("demo", 2, 3)).await?;
        bench.create(Manifest::new("solo", 2, 1)).await?;
        for set in ["demo", "solo"] {
            bench.until_available(set).await?;
        }
        silent_for(bench, Duration::from_secs(60)).await
    })
    .await
}

#[tokio::test]
async fn ops_upg_6_what_an_older_crd_does_not_keep_is_not_written_again_and_again() -> Result<()> {
    on_own_cluster("older-crd", async |bench| {
        let crds: Api<CustomResourceDefinition> = Api::all(bench.client());
        let name = "leaderworkersets.leaderworkerset.x-k8s.io";
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        let patch = json!([{"op": "remove", "path": format!("{status}/hpaPodSelector")}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
        crds.patch(name, &PatchParams::default(), &patch).await?;
        bench.create(Manifest::new("demo", 2, 2)).await?;
        bench.until_available("demo").await?;
        assert_eq!(bench.world().set("demo").text("/status/hpaPodSelector"), "");
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        silent_for(bench, Duration::from_secs(15)).await
    })
    .await
}

/// Asserts that the manager asks for nothing but its Lease.
async fn silent_for(bench: &Bench, time: Duration) -> Result<()> {
    // Events may be sent late, joined with others of the same second.
    bench.quiet_for(Duration::from_secs(5)).await?;
    let log = bench.plant().audit_log();
    let position = log.position()?;
    bench.pass(time).await;
    let requests: Vec<_> = log
        .since(position)?
        .into_iter()
        .filter(|request| request.is_ours())
        .collect();
    assert!(
        requests.iter().any(|request| request.resource == "leases"),
        "the manager is at work and holds its Lease"
    );
    let others: Vec<_> = requests
        .iter()
        .filter(|request| request.resource != "leases" && request.verb != "watch")
        .collect();
    assert!(others.is_empty(), "{others:?}");
    Ok(())
}
