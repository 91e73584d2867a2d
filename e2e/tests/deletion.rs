//! Deleting sets and what belongs to them.

use std::time::Duration;

use anyhow::Result;
use lws_e2e::{Bench, Kind, Manifest, Verb, on_shared_cluster};

async fn start(bench: &Bench, replicas: i64) -> Result<()> {
    bench.create(Manifest::new("demo", replicas, 2)).await?;
    bench.until_available("demo").await
}

#[tokio::test]
async fn background_delete_leaves_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, 2).await?;
        bench.delete(Kind::Set, "demo").await?;
        bench.until_gone("demo").await
    })
    .await
}

#[tokio::test]
async fn foreground_delete_leaves_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, 2).await?;
        bench.delete_foreground(Kind::Set, "demo").await?;
        bench.until_gone("demo").await
    })
    .await
}

#[tokio::test]
async fn c23_nothing_is_born_while_the_set_is_deleted() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 3, 2).manual()).await?;
        bench
            .until("all pods exist", |world| world.names(Kind::Pod).len() == 6)
            .await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.update_image("demo", "nginx:1.28").await?;
        bench
            .until("group 2 is new", |world| {
                let worker = world.find(Kind::Pod, "demo-2-1");
                worker.is_some_and(|pod| pod.container("c")["image"] == "nginx:1.28")
            })
            .await?;
        bench.settled().await?;
        let pods = [
            "demo-0", "demo-0-1", "demo-1", "demo-1-1", "demo-2", "demo-2-1",
        ];
        bench.hold(&pods).await?;
        let mark = bench.mark();
        bench.delete_foreground(Kind::Set, "demo").await?;
        bench.pass(Duration::from_secs(10)).await;
        {
            let world = bench.world();
            for change in &world.history()[mark..] {
                let name = change.object.name();
                // The StatefulSet controller keeps revisions of its own for sets that are being deleted.
                let is_theirs = change.kind == Kind::Revision
                    && change
                        .object
                        .controller()
                        .is_some_and(|owner| owner["kind"] == "StatefulSet");
                let is_new = change.verb == Verb::Added && change.kind != Kind::Event && !is_theirs;
                assert!(!is_new, "{:?} {name} is born", change.kind);
                let earlier = world.history()[..mark]
                    .iter()
                    .rev()
                    .find(|earlier| earlier.object.uid() == change.object.uid());
                if let Some(earlier) = earlier {
                    let (then, now) = (&earlier.object["spec"], &change.object["spec"]);
                    assert_eq!(then, now, "{:?} {name} is changed", change.kind);
                }
            }
            assert_eq!(world.names(Kind::Pod), pods);
        }
        bench.release(&pods).await?;
        bench.until_gone("demo").await
    })
    .await
}

#[tokio::test]
async fn c23_deleted_leader_statefulset_comes_back_with_its_revision() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, 2).await?;
        bench.settled().await?;
        let (uid, revision) = {
            let world = bench.world();
            let revisions = world.revisions_of("demo");
            (
                world.stateful_set("demo").uid().to_owned(),
                revisions[0].name().to_owned(),
            )
        };
        bench.delete_foreground(Kind::StatefulSet, "demo").await?;
        bench
            .until("the leader set is new", |world| {
                world
                    .find(Kind::StatefulSet, "demo")
                    .is_some_and(|set| set.uid() != uid)
            })
            .await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(world.seen_uids(Kind::StatefulSet, "demo").len(), 2);
        let revisions = world.revisions_of("demo");
        assert_eq!(revisions.len(), 1);
        assert_eq!(revisions[0].name(), revision);
        assert_eq!(world.pods_of("demo").count(), 4);
        let warnings: Vec<_> = world
            .all(Kind::Event)
            .filter(|event| {
                event["type"] == "Warning" && event["regarding"]["kind"] == "LeaderWorkerSet"
            })
            .collect();
        assert!(warnings.is_empty(), "{warnings:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c23_scaled_down_group_is_gone() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, 2).await?;
        let before = bench.world().uids("demo", 0);
        bench.scale("demo", 1).await?;
        bench
            .until("group 1 is gone", |world| {
                ["demo-1", "demo-1-1"]
                    .iter()
                    .all(|pod| !world.has(Kind::Pod, pod))
                    && !world.has(Kind::StatefulSet, "demo-1")
            })
            .await?;
        bench.until_available("demo").await?;
        assert_eq!(bench.world().uids("demo", 0), before);
        assert!(bench.world().has(Kind::Service, "demo"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c23_set_of_the_same_name_takes_nothing_over() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, 2).await?;
        let old: Vec<String> = {
            let world = bench.world();
            let kinds = [Kind::StatefulSet, Kind::Pod, Kind::Service, Kind::Revision];
            let objects = kinds.into_iter().flat_map(|kind| world.all(kind));
            objects.map(|object| object.uid().to_owned()).collect()
        };
        let pods = ["demo-0", "demo-0-1", "demo-1", "demo-1-1"];
        bench.hold(&pods).await?;
        bench.delete(Kind::Set, "demo").await?;
        bench.create(Manifest::new("demo", 2, 2)).await?;
        bench.pass(Duration::from_secs(3)).await;
        for pod in pods {
            if bench
                .world()
                .find(Kind::Pod, pod)
                .is_some_and(|pod| old.contains(&pod.uid().to_owned()))
            {
                bench.release(&[pod]).await?;
            }
        }
        bench.until_available("demo").await?;
        bench
            .until("nothing old is left", |world| {
                [Kind::StatefulSet, Kind::Pod, Kind::Service, Kind::Revision]
                    .into_iter()
                    .flat_map(|kind| world.all(kind))
                    .all(|object| !old.contains(&object.uid().to_owned()))
            })
            .await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        let set = world.set("demo");
        assert!(world.stateful_set("demo").is_controlled_by(set));
        assert!(world.get(Kind::Service, "demo").is_controlled_by(set));
        assert_eq!(world.revisions_of("demo").len(), 1);
        assert_eq!(
            world
                .all(Kind::Revision)
                .filter(|revision| revision.is_controlled_by(set))
                .count(),
            1
        );
        assert_eq!(world.pods_of("demo").count(), 4);
        Ok(())
    })
    .await
}
