//! What a new manager makes of what it finds.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{DynamicObject, PostParams};
use lws_e2e::{Kind, Manifest, on_own_cluster};
use serde_json::{Value, json};

#[tokio::test]
async fn c16_restart_and_reencoded_revision_roll_nothing() -> Result<()> {
    on_own_cluster("restart", async |bench| {
        bench.create(Manifest::new("demo", 2, 2)).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let before = bench.world().all_uids("demo");
        let template = bench
            .world()
            .stateful_set("demo")
            .at("/spec/template")
            .clone();

        bench.plant().terminate_manager()?;
        bench.plant().start_manager()?;
        bench.settled().await?;
        assert_eq!(
            bench.world().all_uids("demo"),
            before,
            "a restart changes nothing"
        );

        bench.plant().terminate_manager()?;
        let revision = bench.world().revisions_of("demo")[0].clone();
        let reencoded = reencoded(revision.json())?;
        bench.delete(Kind::Revision, revision.name()).await?;
        bench
            .until("the revision is gone", |world| {
                !world.has(Kind::Revision, revision.name())
            })
            .await?;
        bench
            .api(Kind::Revision)
            .create(&PostParams::default(), &reencoded)
            .await?;
        bench.plant().start_manager()?;
        bench.quiet_for(Duration::from_secs(5)).await?;
        let world = bench.world();
        assert_eq!(
            world.all_uids("demo"),
            before,
            "another encoding changes nothing"
        );
        assert_eq!(world.stateful_set("demo").at("/spec/template"), &template);
        assert_eq!(world.revisions_of("demo").len(), 1);
        assert_eq!(world.events("CreatingRevision").len(), 1);
        assert!(world.is_available("demo"));
        Ok(())
    })
    .await
}

/// The same revision as another serializer would have written it.
fn reencoded(revision: &Value) -> Result<DynamicObject> {
    let mut data = revision["data"].clone();
    let template = data
        .pointer_mut("/spec/leaderWorkerTemplate/workerTemplate")
        .context("a revision holds a template")?;
    template["metadata"]["creationTimestamp"] = Value::Null;
    template["spec"]["containers"][0]["resources"] = json!({});
    Ok(serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision["metadata"]["name"],
            "labels": revision["metadata"]["labels"],
            "ownerReferences": revision["metadata"]["ownerReferences"],
        },
        "revision": revision["revision"],
        "data": data,
    }))?)
}

/// FAIL-23: what happens to a worker while no manager runs leaves no evidence; the next failure counts again.
#[tokio::test]
async fn failure_after_a_restart_recreates_the_group() -> Result<()> {
    on_own_cluster("takeover", async |bench| {
        bench.create(Manifest::new("demo", 2, 2)).await?;
        bench.until_available("demo").await?;
        bench.plant().kill_manager()?;
        bench.restart("demo-0-1", "c").await?;
        let before = bench.world().uids("demo", 0);
        bench.plant().start_manager()?;
        bench
            .until("the restart is found", |world| {
                world.is_replaced("demo", 0, &before)
            })
            .await?;
        bench.until_available("demo").await
    })
    .await
}
