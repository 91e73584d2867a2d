//! Groups of another size than before.

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Kind, Manifest, on_shared_cluster};
use serde_json::json;

#[tokio::test]
async fn c15_old_group_is_rebuilt_from_its_own_revision() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.start_by_hand(Manifest::new("demo", 2, 2)).await?;
        let key = |pod: &str| {
            bench
                .world()
                .pod(pod)
                .label(label::REVISION)
                .map(str::to_owned)
        };
        let old = key("demo-0");
        bench
            .replace_spec(Manifest::new("demo", 2, 3).manual().image("nginx:1.28"))
            .await?;
        bench
            .until("group 1 is new", |world| world.has(Kind::Pod, "demo-1-2"))
            .await?;
        bench.settled().await?;
        let group = bench.world().uids("demo", 0);
        bench.delete(Kind::Pod, "demo-0").await?;
        bench
            .until("group 0 is made anew", |world| {
                world.is_replaced("demo", 0, &group)
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            let leader = world.pod("demo-0");
            assert_eq!(leader.label(label::REVISION).map(str::to_owned), old);
            assert_eq!(leader.annotation(annotation::SIZE), Some("2"));
            let workers = world.stateful_set("demo-0");
            assert_eq!(workers.at("/spec/replicas"), 1);
            assert_eq!(workers.label(label::REVISION).map(str::to_owned), old);
            assert_eq!(workers.template_container("c")["image"], "nginx:1.27");
            for pod in world.group("demo", 0) {
                assert_eq!(pod.container("c")["image"], "nginx:1.27");
                assert_eq!(pod.variables("c")[1], "LWS_GROUP_SIZE=2");
            }
            assert!(!world.has(Kind::Pod, "demo-0-2"));
            assert_eq!(world.stateful_set("demo-1").at("/spec/replicas"), 2);
            for pod in world.group("demo", 1) {
                assert_eq!(pod.container("c")["image"], "nginx:1.28");
                assert_eq!(pod.variables("c")[1], "LWS_GROUP_SIZE=3");
            }
        }
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        assert_eq!(bench.world().pods_of("demo").count(), 6);
        bench.world().assert_at_rest("demo", 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c17_resize_rolls_group_by_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        let policy = json!({"subGroupPolicy": {"subGroupSize": 3}});
        bench
            .start_by_hand(Manifest::new("demo", 2, 6).group(policy))
            .await?;
        let size = |size: i64| json!({"spec": {"leaderWorkerTemplate": {"size": size}}});
        for bad in [5, 2] {
            let denial = bench.patch_refused(Kind::Set, "demo", size(bad)).await?;
            denial.names("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize", "");
        }
        let mark = bench.mark();
        bench.patch(Kind::Set, "demo", size(7)).await?;
        bench
            .until("group 1 is new", |world| world.has(Kind::Pod, "demo-1-6"))
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.stateful_set("demo-1").at("/spec/replicas"), 6);
            assert_eq!(world.pod("demo-1-6").variables("c")[1], "LWS_GROUP_SIZE=7");
            assert_eq!(world.stateful_set("demo-0").at("/spec/replicas"), 5);
            assert_eq!(world.pod("demo-0").variables("c")[1], "LWS_GROUP_SIZE=6");
        }
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.rollout("demo", mark), [(2, 2), (2, 1), (2, 0)]);
            for set in ["demo-0", "demo-1"] {
                assert_eq!(
                    world.seen_uids(Kind::StatefulSet, set).len(),
                    2,
                    "{set} is replaced"
                );
                let scaled = world.history().iter().any(|change| {
                    let object = &change.object;
                    object.name() == set
                        && change.kind == Kind::StatefulSet
                        && object.number("/metadata/generation") > 2
                });
                assert!(!scaled, "{set} is never scaled in place");
            }
        }
        bench.world().assert_at_rest("demo", 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c17_resize_to_one_leaves_no_workers() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.start_by_hand(Manifest::new("solo", 2, 3)).await?;
        let size = json!({"spec": {"leaderWorkerTemplate": {"size": 1}}});
        bench.patch(Kind::Set, "solo", size).await?;
        bench.play("solo").await?;
        bench.until_available("solo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(world.names(Kind::StatefulSet), ["solo"]);
        assert_eq!(world.names(Kind::Pod), ["solo-0", "solo-1"]);
        Ok(())
    })
    .await
}
