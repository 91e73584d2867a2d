//! Names that are free only when the old group has ended.

use anyhow::Result;
use lws_e2e::{Kind, Manifest, on_shared_cluster};
use lws_local_cluster::{Component, DELETE_AFTER};
use serde_json::json;

/// ORD-84: new worker sets wait for the names of the old workers, so that the StatefulSet controller never meets one
/// that is taken, backs off and stalls.
#[tokio::test]
async fn ord_84_slow_workers_never_stand_in_the_way_of_new_ones() -> Result<()> {
    on_shared_cluster(async |bench| {
        let leader = json!({"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}});
        let set = Manifest::new("demo", 50, 2)
            .budget(0.into(), "50%".into())
            .group(json!({"leaderTemplate": leader}))
            .pod(json!({"metadata": {"annotations": {DELETE_AFTER: "3s"}}}));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        let workers = world.pods_of("demo").filter(|pod| !pod.is_leader());
        for pod in workers {
            let seen = world.seen_uids(Kind::Pod, pod.name());
            assert_eq!(seen.len(), 2, "{}", pod.name());
            assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
        }
        let log = bench.plant().log_of(Component::ControllerManager);
        let taken = log.lines().find(|line| {
            line.contains("object is being deleted") && line.contains(bench.namespace())
        });
        assert_eq!(taken, None);
        Ok(())
    })
    .await
}
