//! Rolling updates. H order makes their sequences repeatable.

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::{Value, json};

/// A row of a rollout table.
struct Row {
    replicas: i64,
    max_surge: i64,
    max_unavailable: i64,
    sequence: &'static [(i64, i64)],
    fewest_ready: usize,
}

async fn check(row: Row) -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", row.replicas, 2);
        bench
            .start_by_hand(set.budget(row.max_surge.into(), row.max_unavailable.into()))
            .await?;
        let mark = bench.mark();
        bench.update_image("demo", "nginx:1.28").await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.rollout("demo", mark), row.sequence);
            assert_eq!(world.fewest_ready_groups("demo", mark), row.fewest_ready);
            for pod in world.pods_of("demo") {
                assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
            }
            let budget = (row.max_surge + row.max_unavailable).max(1);
            let leaders = world.stateful_set("demo");
            assert_eq!(
                leaders.at("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
                budget
            );
            let surge = format!("demo-{}", row.replicas);
            let has_surged = !world.seen_uids(Kind::Pod, &surge).is_empty();
            assert_eq!(has_surged, row.max_surge > 0);
        }
        bench.world().assert_at_rest("demo", row.replicas);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c10_surge_and_unavailable_two_of_four() -> Result<()> {
    check(Row {
        replicas: 4,
        max_surge: 2,
        max_unavailable: 2,
        sequence: &[(6, 4), (6, 2), (6, 1), (6, 0), (4, 0)],
        fewest_ready: 2,
    })
    .await
}

#[tokio::test]
async fn c10_single_group_surges_first() -> Result<()> {
    check(Row {
        replicas: 1,
        max_surge: 1,
        max_unavailable: 0,
        sequence: &[(2, 1), (2, 0), (1, 0)],
        fewest_ready: 1,
    })
    .await
}

#[tokio::test]
async fn c10_one_unavailable_of_four() -> Result<()> {
    check(Row {
        replicas: 4,
        max_surge: 0,
        max_unavailable: 1,
        sequence: &[(4, 4), (4, 3), (4, 2), (4, 1), (4, 0)],
        fewest_ready: 3,
    })
    .await
}

#[tokio::test]
async fn c10_two_unavailable_of_four() -> Result<()> {
    check(Row {
        replicas: 4,
        max_surge: 0,
        max_unavailable: 2,
        sequence: &[(4, 4), (4, 2), (4, 1), (4, 0)],
        fewest_ready: 2,
    })
    .await
}

#[tokio::test]
async fn c10_surge_and_unavailable_one_of_four() -> Result<()> {
    check(Row {
        replicas: 4,
        max_surge: 1,
        max_unavailable: 1,
        sequence: &[(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (4, 0)],
        fewest_ready: 3,
    })
    .await
}

#[tokio::test]
async fn c10_one_unavailable_of_two() -> Result<()> {
    check(Row {
        replicas: 2,
        max_surge: 0,
        max_unavailable: 1,
        sequence: &[(2, 2), (2, 1), (2, 0)],
        fewest_ready: 1,
    })
    .await
}

#[tokio::test]
async fn c10_progress_is_announced() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.start_by_hand(Manifest::new("demo", 2, 1)).await?;
        bench.update_image("demo", "nginx:1.28").await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench
            .until("both steps are announced", |world| {
                ["Updating replica 1", "Updating replica 0"]
                    .iter()
                    .all(|note| world.has_event("Normal", "GroupsUpdating", note))
            })
            .await
    })
    .await
}

/// C11: the old groups never were ready.
async fn check_broken(surge: i64, unavailable: i64, sequence: &[(i64, i64)]) -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 4, 2).manual();
        bench
            .create(set.budget(surge.into(), unavailable.into()))
            .await?;
        bench
            .until("all pods exist", |world| world.pods_of("demo").count() == 8)
            .await?;
        bench.settled().await?;
        let mark = bench.mark();
        bench.update_image("demo", "nginx:1.28").await?;
        play_new_groups(bench).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        assert_eq!(bench.world().rollout("demo", mark), sequence);
        bench.world().assert_at_rest("demo", 4);
        Ok(())
    })
    .await
}

/// H order, but old groups stay as they are.
async fn play_new_groups(bench: &Bench) -> Result<()> {
    for _ in 0..20 {
        bench.settled().await?;
        let highest = {
            let world = bench.world();
            let groups = world.groups("demo");
            let mut groups = groups.into_iter().rev();
            groups.find(|group| {
                let pods = world.group("demo", *group);
                pods.iter().any(|pod| !pod.is_ready())
                    && pods
                        .iter()
                        .all(|pod| pod.container("c")["image"] == "nginx:1.28")
            })
        };
        let Some(group) = highest else {
            return Ok(());
        };
        bench.make_group_ready("demo", group).await?;
    }
    anyhow::bail!("the rollout does not end")
}

#[tokio::test]
async fn c11_broken_groups_do_not_block_a_surge() -> Result<()> {
    check_broken(1, 0, &[(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (4, 0)]).await
}

#[tokio::test]
async fn c11_broken_groups_do_not_block_the_budget() -> Result<()> {
    check_broken(0, 1, &[(4, 4), (4, 3), (4, 2), (4, 1), (4, 0)]).await
}

fn partition(value: i64) -> Value {
    json!({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": value}}}})
}

#[tokio::test]
async fn c12_partition_keeps_the_lower_groups_old() -> Result<()> {
    on_shared_cluster(async |bench| {
        let strategy = json!({
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "partition": 2},
        });
        let set = Manifest::new("demo", 4, 2).spec(json!({"rolloutStrategy": strategy}));
        bench.create(set.manual()).await?;
        bench
            .until("all pods exist", |world| world.pods_of("demo").count() == 8)
            .await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        let before = bench.world().all_uids("demo");
        let mark = bench.mark();

        bench.update_image("demo", "nginx:1.28").await?;
        bench.play("demo").await?;
        {
            let world = bench.world();
            assert_eq!(world.rollout("demo", mark), [(4, 4), (4, 3), (4, 2)]);
            for (group, image) in [
                (0, "nginx:1.27"),
                (1, "nginx:1.27"),
                (2, "nginx:1.28"),
                (3, "nginx:1.28"),
            ] {
                for pod in world.group("demo", group) {
                    assert_eq!(pod.container("c")["image"], image, "{}", pod.name());
                    let same = before[pod.name()] == pod.uid();
                    assert_eq!(same, group < 2, "{}", pod.name());
                }
            }
            let set = world.set("demo");
            assert_eq!(set.true_conditions(), ["Available"]);
            assert_eq!(set.number("/status/updatedReplicas"), 2);
            assert_eq!(world.revisions_of("demo").len(), 2);
        }

        bench.restart("demo-0-1", "c").await?;
        let group = bench.world().uids("demo", 0);
        bench
            .until("group 0 is made anew", |world| {
                world.is_replaced("demo", 0, &group)
            })
            .await?;
        bench.play("demo").await?;
        for pod in bench.world().group("demo", 0) {
            assert_eq!(pod.container("c")["image"], "nginx:1.27", "{}", pod.name());
        }

        let mark = bench.mark();
        bench.patch(Kind::Set, "demo", partition(0)).await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        assert_eq!(bench.world().rollout("demo", mark), [(4, 1), (4, 0)]);
        for pod in bench.world().pods_of("demo") {
            assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
        }
        bench.world().assert_at_rest("demo", 4);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c13_scaling_does_not_surge() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2).budget(1.into(), 0.into());
        bench.start_by_hand(set).await?;
        let before = bench.world().all_uids("demo");
        let mark = bench.mark();
        bench.scale("demo", 3).await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.rollout("demo", mark), [(3, 0)]);
            for (pod, uid) in &before {
                assert_eq!(world.pod(pod).uid(), uid);
            }
            assert_eq!(world.revisions_of("demo").len(), 1);
        }

        let mark = bench.mark();
        bench.scale("demo", 1).await?;
        bench.until_available("demo").await?;
        bench
            .until("two groups are gone", |world| {
                world.pods_of("demo").count() == 2
            })
            .await?;
        bench.settled().await?;
        assert_eq!(bench.world().rollout("demo", mark), [(1, 0)]);
        let now = bench.world().all_uids("demo");
        assert!(
            now.iter().all(|(pod, uid)| before.get(pod) == Some(uid)),
            "group 0 stays"
        );
        bench.world().assert_at_rest("demo", 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c13_scaling_up_with_an_update_brings_new_groups_first() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench
            .start_by_hand(Manifest::new("demo", 2, 2).budget(1.into(), 0.into()))
            .await?;
        let mark = bench.mark();
        let manifest = Manifest::new("demo", 3, 2).budget(1.into(), 0.into());
        bench
            .replace_spec(manifest.manual().image("nginx:1.28"))
            .await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(
                world.rollout("demo", mark),
                [(3, 2), (4, 2), (4, 1), (4, 0), (3, 0)]
            );
            assert_eq!(world.fewest_ready_groups("demo", mark), 2);
            assert_eq!(world.seen_uids(Kind::Pod, "demo-2").len(), 1, "born new");
        }
        bench.world().assert_at_rest("demo", 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c14_good_image_after_a_bad_one_needs_no_help() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.start_by_hand(Manifest::new("demo", 2, 2)).await?;
        let group = bench.world().uids("demo", 0);
        let mark = bench.mark();
        bench.update_image("demo", "nginx:broken").await?;
        bench
            .until("group 1 is new", |world| {
                let leader = world.find(Kind::Pod, "demo-1");
                leader.is_some_and(|pod| pod.container("c")["image"] == "nginx:broken")
            })
            .await?;
        bench.settled().await?;
        assert_eq!(bench.world().rollout("demo", mark), [(2, 2), (2, 1)]);
        assert_eq!(bench.world().uids("demo", 0), group);

        let mark = bench.mark();
        bench.update_image("demo", "nginx:1.28").await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.rollout("demo", mark), [(2, 2), (2, 1), (2, 0)]);
            assert_eq!(world.fewest_ready_groups("demo", mark), 1);
        }
        bench.world().assert_at_rest("demo", 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c02_budget_of_nothing_still_rolls() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 20, 1).budget(0.into(), "10%".into());
        bench.create(set).await?;
        bench.until_available("demo").await?;
        bench.scale("demo", 5).await?;
        bench.until_available("demo").await?;
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        let leaders = world.stateful_set("demo");
        assert_eq!(
            leaders.at("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
            1
        );
        for pod in world.pods_of("demo") {
            assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c28_removed_members_are_gone_after_the_rollout() -> Result<()> {
    on_shared_cluster(async |bench| {
        let full = Manifest::new("demo", 1, 2)
            .metadata(json!({"labels": {"team": "x"}}))
            .pod(json!({
                "metadata": {"annotations": {"note": "a"}},
                "spec": {
                    "nodeSelector": {"rack": "rack-1"},
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "containers": [
                        {"name": "c", "image": "nginx:1.27", "env": [{"name": "A", "value": "1"}]},
                        {"name": "d", "image": "nginx:1.27"},
                    ],
                },
            }));
        bench.apply(full).await?;
        bench.until_available("demo").await?;
        bench.apply(Manifest::new("demo", 1, 2)).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let mark = bench.mark();
        let world = bench.world();
        let leaders = world.stateful_set("demo");
        assert_eq!(leaders.label("team"), None);
        assert!(leaders.annotation(annotation::REPLICAS).is_some());
        let templates = ["demo", "demo-0"].map(|set| {
            let template = world.stateful_set(set).at("/spec/template");
            (&template["metadata"], &template["spec"])
        });
        let pods = ["demo-0", "demo-0-1"].map(|pod| {
            let pod = world.pod(pod).json();
            (&pod["metadata"], &pod["spec"])
        });
        for (metadata, spec) in templates.into_iter().chain(pods) {
            assert!(metadata["annotations"]["note"].is_null(), "{metadata}");
            assert!(
                metadata["annotations"][annotation::SIZE].is_string(),
                "{metadata}"
            );
            assert!(metadata["labels"][label::NAME].is_string(), "{metadata}");
            assert!(spec["nodeSelector"].is_null(), "{spec}");
            let containers = spec["containers"].to_string();
            assert!(
                !containers.contains("\"d\"") && !containers.contains("\"A\""),
                "{spec}"
            );
            assert!(!spec["tolerations"].to_string().contains("\"k\""), "{spec}");
        }
        assert_eq!(world.seen_uids(Kind::Pod, "demo-0").len(), 2, "one rollout");
        assert_eq!(world.rollout("demo", mark), []);
        Ok(())
    })
    .await
}
