//! Children that were deleted or changed by others.

use anyhow::Result;
use lws_api::names::label;
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::json;

async fn start(bench: &Bench) -> Result<()> {
    let set = Manifest::new("demo", 1, 2);
    bench
        .create(set.group(json!({"restartPolicy": "None"})))
        .await?;
    bench.until_available("demo").await?;
    bench.settled().await
}

#[tokio::test]
async fn c26_deleted_service_comes_back() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench).await?;
        let uid = bench.world().get(Kind::Service, "demo").uid().to_owned();
        bench.delete(Kind::Service, "demo").await?;
        bench
            .until("the Service is new", |world| {
                world
                    .find(Kind::Service, "demo")
                    .is_some_and(|service| service.uid() != uid)
            })
            .await?;
        let world = bench.world();
        let service = world.get(Kind::Service, "demo");
        assert_eq!(service.at("/spec/clusterIP"), "None");
        assert_eq!(service.at("/spec/publishNotReadyAddresses"), true);
        assert_eq!(service.at("/spec/selector"), &json!({label::NAME: "demo"}));
        assert_eq!(service.label(label::NAME), Some("demo"));
        assert!(service.is_controlled_by(world.set("demo")));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c26_deleted_worker_set_comes_back_alone() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench).await?;
        let before = bench.world().uids("demo", 0);
        let uid = bench.world().stateful_set("demo-0").uid().to_owned();
        bench.delete(Kind::StatefulSet, "demo-0").await?;
        bench
            .until("set and worker are new", |world| {
                let set = world.find(Kind::StatefulSet, "demo-0");
                let worker = world.find(Kind::Pod, "demo-0-1");
                set.is_some_and(|set| set.uid() != uid)
                    && worker.is_some_and(|worker| worker.uid() != before["demo-0-1"])
            })
            .await?;
        bench.until_available("demo").await?;
        assert_eq!(bench.world().pod("demo-0").uid(), before["demo-0"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c26_replicas_set_by_hand_are_set_back() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench).await?;
        let before = bench.world().uids("demo", 0);
        bench
            .patch(Kind::StatefulSet, "demo", json!({"spec": {"replicas": 5}}))
            .await?;
        bench
            .until("one group is left", |world| {
                world.stateful_set("demo").at("/spec/replicas") == 1
                    && world.pods_of("demo").count() == 2
                    && world.names(Kind::StatefulSet) == ["demo", "demo-0"]
            })
            .await?;
        bench.until_available("demo").await?;
        assert_eq!(bench.world().uids("demo", 0), before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c26_orphaned_leader_set_is_adopted() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench).await?;
        let before = bench.world().uids("demo", 0);
        let uid = bench.world().stateful_set("demo").uid().to_owned();
        bench
            .patch(
                Kind::StatefulSet,
                "demo",
                json!({"metadata": {"ownerReferences": null}}),
            )
            .await?;
        bench
            .until("the leader set has its owner again", |world| {
                let owner = world.set("demo");
                world.stateful_set("demo").is_controlled_by(owner)
            })
            .await?;
        bench.settled().await?;
        let world = bench.world();
        let leaders = world.stateful_set("demo");
        assert_eq!(leaders.uid(), uid);
        let owner = leaders
            .controller()
            .map(|owner| &owner["blockOwnerDeletion"]);
        assert_eq!(owner, Some(&json!(true)));
        assert_eq!(world.uids("demo", 0), before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c26_service_is_repaired_and_keeps_other_edits() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench).await?;
        let edit = json!({
            "metadata": {"labels": {"mine": "x"}},
            "spec": {
                "publishNotReadyAddresses": false,
                "selector": {"other": "y"},
                "sessionAffinity": "ClientIP",
            },
        });
        bench.patch(Kind::Service, "demo", edit).await?;
        bench
            .until("the Service is repaired", |world| {
                let service = world.get(Kind::Service, "demo");
                service.at("/spec/publishNotReadyAddresses") == true
                    && service.at("/spec/selector") == &json!({label::NAME: "demo"})
            })
            .await?;
        let world = bench.world();
        let service = world.get(Kind::Service, "demo");
        assert_eq!(service.label("mine"), Some("x"));
        assert_eq!(service.at("/spec/sessionAffinity"), "ClientIP");
        Ok(())
    })
    .await
}
