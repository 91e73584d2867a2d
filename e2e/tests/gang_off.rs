//! Gang scheduling that is asked for where it is not available.

use anyhow::Result;
use lws_e2e::{Kind, Manifest, Object, World, on_own_cluster};
use serde_json::json;

fn counts(world: &World) -> Vec<i64> {
    let live = world.all(Kind::Pod).filter(|pod| pod.is_leader());
    live.map(|leader| {
        let name = leader.text("/spec/schedulingGroup/podGroupName");
        let group = world.find(Kind::PodGroup, name);
        group.map_or(0, |group| {
            group.number("/spec/schedulingPolicy/gang/minCount")
        })
    })
    .collect()
}

#[tokio::test]
async fn c30_gang_scheduling_asked_for_but_not_available() -> Result<()> {
    on_own_cluster("c30", async |bench| {
        let plain = || Manifest::new("demo", 2, 2).spec(json!({"scheduling": {}}));
        bench.plant().terminate_manager()?;
        bench.plant().start_manager_configured(json!({}))?;
        let denial = bench.refused(plain()).await?;
        denial.names("spec.scheduling", "WorkloadAwareScheduling");

        bench.plant().terminate_manager()?;
        bench.plant().start_manager()?;
        let late = plain().spec(json!({"startupPolicy": "LeaderReady"}));
        bench
            .refused(late)
            .await?
            .names("spec.scheduling", "LeaderReady");
        let leader = json!({"leaderTemplate": {"spec": {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "c", "image": "nginx:1.27"}],
        }}});
        bench
            .refused(plain().group(leader))
            .await?
            .names("spec.scheduling", "priorityClassName");

        bench.create(plain()).await?;
        bench.until_available("demo").await?;
        let has_group = |pod: &Object| !pod.text("/spec/schedulingGroup/podGroupName").is_empty();
        assert!(bench.world().pods_of("demo").all(has_group));
        assert_eq!(counts(&bench.world()), [2, 2]);
        bench
            .patch(
                Kind::Set,
                "demo",
                json!({"spec": {"leaderWorkerTemplate": {"size": 3}}}),
            )
            .await?;
        bench
            .until("the counts follow the size", |world| {
                counts(world) == [3, 3] && world.pods_of("demo").count() == 6
            })
            .await?;
        bench.until_available("demo").await?;
        assert!(bench.world().pods_of("demo").all(has_group));
        Ok(())
    })
    .await
}
