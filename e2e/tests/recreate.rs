//! Groups that are made anew because one of their pods failed.

use std::collections::BTreeMap;

use anyhow::Result;
use lws_api::names::{BUDGET_FINALIZER, annotation};
use lws_e2e::{Bench, Kind, Manifest, World, on_shared_cluster};
use serde_json::{Value, json};

/// UIDs by pod name.
type Uids = BTreeMap<String, String>;

/// Creates a set whose pods run by themselves and waits for it.
async fn start(bench: &Bench, set: Manifest) -> Result<()> {
    let name = set.name().to_owned();
    bench.create(set).await?;
    bench.until_available(&name).await
}

fn uids(bench: &Bench) -> [Uids; 2] {
    let world = bench.world();
    [world.uids("demo", 0), world.uids("demo", 1)]
}

/// Waits until group 0 is made anew once and judges what happened.
async fn recreated_once(bench: &Bench, before: &[Uids; 2]) -> Result<()> {
    bench
        .until("group 0 is made anew", |world| {
            world.is_replaced("demo", 0, &before[0])
        })
        .await?;
    bench.until_available("demo").await?;
    bench.settled().await?;
    let world = bench.world();
    for (pod, uid) in &before[0] {
        let seen = world.seen_uids(Kind::Pod, pod);
        let now = world.pod(pod).uid();
        assert!(now != uid && seen.contains(now), "{pod}");
    }
    assert_eq!(world.uids("demo", 1), before[1], "group 1 is left alone");
    Ok(())
}

/// How often each pod of group 0 existed.
fn incarnations(world: &World) -> Vec<usize> {
    let pods = world.group("demo", 0);
    pods.iter()
        .map(|pod| world.seen_uids(Kind::Pod, pod.name()).len())
        .collect()
}

#[tokio::test]
async fn deleted_worker_recreates_the_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 2, 3)).await?;
        let before = uids(bench);
        bench.kubectl(&["delete", "pod", "demo-0-1"]).await?;
        recreated_once(bench, &before).await?;
        assert_eq!(bench.world().events("RecreateGroup").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn worker_deleted_by_force_recreates_the_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 2, 3)).await?;
        let before = uids(bench);
        bench
            .kubectl(&["delete", "pod", "demo-0-1", "--force", "--grace-period=0"])
            .await?;
        recreated_once(bench, &before).await?;
        assert_eq!(bench.world().events("RecreateGroup").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c18_restarted_container_of_a_worker_recreates_the_group() -> Result<()> {
    restart_recreates("demo-0-2").await
}

#[tokio::test]
async fn c18_restarted_container_of_the_leader_recreates_the_group() -> Result<()> {
    restart_recreates("demo-0").await
}

async fn restart_recreates(pod: &str) -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 2, 3).init_container()).await?;
        let before = uids(bench);
        bench.restart(pod, "c").await?;
        recreated_once(bench, &before).await?;
        let world = bench.world();
        assert_eq!(incarnations(&world), [2, 2, 2]);
        let events = world.events("RecreateGroup");
        assert_eq!(events.len(), 1, "{events:?}");
        for part in [
            &format!("pod {pod} failed"),
            "leader pod demo-0",
            "group 0",
            "container c exited with code 137 (OOMKilled), restart count 1",
        ] {
            assert!(events[0].contains(part), "{events:?} lacks {part}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c18_restarted_init_container_recreates_the_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench
            .create(Manifest::new("demo", 2, 3).init_container().manual())
            .await?;
        bench
            .until("all pods exist", |world| world.names(Kind::Pod).len() == 6)
            .await?;
        for pod in ["demo-0", "demo-0-2", "demo-1", "demo-1-1", "demo-1-2"] {
            bench.make_ready(pod).await?;
        }
        bench.settled().await?;
        let before = uids(bench);
        bench.restart("demo-0-1", "i").await?;
        bench
            .until("group 0 is made anew", |world| {
                world.is_replaced("demo", 0, &before[0])
            })
            .await?;
        bench.play("demo").await?;
        recreated_once(bench, &before).await?;
        let world = bench.world();
        assert_eq!(incarnations(&world), [2, 2, 2]);
        let events = world.events("RecreateGroup");
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(
            events[0].contains("init container i exited with code 137"),
            "{events:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c18_restart_policy_none_leaves_the_group_alone() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 3).init_container();
        start(bench, set.group(json!({"restartPolicy": "None"}))).await?;
        let before = uids(bench);
        bench.restart("demo-0-2", "c").await?;
        bench.settled().await?;
        assert_eq!(uids(bench), before);
        assert_eq!(bench.world().events("RecreateGroup"), Vec::<&str>::new());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c19_old_workers_do_not_recreate_the_new_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 1, 2)).await?;
        let before = bench.world().uids("demo", 0);
        bench.hold(&["demo-0", "demo-0-1"]).await?;
        bench.delete(Kind::Pod, "demo-0").await?;
        bench.settled().await?;
        bench.release(&["demo-0"]).await?;
        bench
            .until("the new leader is there and the old worker ends", |world| {
                let is_new = |pod: &str| {
                    world
                        .find(Kind::Pod, pod)
                        .is_some_and(|now| before[pod] != now.uid())
                };
                is_new("demo-0") && world.pod("demo-0-1").is_terminating()
            })
            .await?;
        bench.quiet_for(std::time::Duration::from_secs(3)).await?;
        bench.release(&["demo-0-1"]).await?;
        bench
            .until("the group is new", |world| {
                world.is_replaced("demo", 0, &before)
            })
            .await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(incarnations(&world), [2, 2]);
        assert_eq!(world.events("RecreateGroup"), Vec::<&str>::new());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c19_update_replaces_each_pod_once() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 1, 2)).await?;
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(incarnations(&world), [2, 2]);
        assert_eq!(world.pod("demo-0-1").container("c")["image"], "nginx:1.28");
        assert_eq!(world.events("RecreateGroup"), Vec::<&str>::new());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c20_evicted_worker_recreates_the_group_once() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 2, 3)).await?;
        let before = uids(bench);
        bench.fail("demo-0-1").await?;
        recreated_once(bench, &before).await?;
        let world = bench.world();
        let events = world.events("RecreateGroup");
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].contains("Evicted"), "{events:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c20_evicted_worker_is_replaced_alone_with_policy_none() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 3).group(json!({"restartPolicy": "None"}));
        start(bench, set).await?;
        let before = uids(bench);
        bench.fail("demo-0-1").await?;
        bench
            .until("the worker is replaced", |world| {
                let worker = world.find(Kind::Pod, "demo-0-1");
                worker.is_some_and(|worker| worker.uid() != before[0]["demo-0-1"])
            })
            .await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let after = uids(bench);
        for pod in ["demo-0", "demo-0-2"] {
            assert_eq!(after[0][pod], before[0][pod], "{pod}");
        }
        assert_eq!(after[1], before[1]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c21_recreation_waits_until_the_group_has_started() -> Result<()> {
    starting_group_is_left_alone(
        Manifest::new("demo", 1, 3).group(json!({"restartPolicy": "RecreateGroupAfterStart"})),
    )
    .await
}

#[tokio::test]
async fn c21_annotation_waits_as_the_policy_does() -> Result<()> {
    starting_group_is_left_alone(
        Manifest::new("demo", 1, 3)
            .metadata(json!({"annotations": {annotation::RECREATE_AFTER_START: "true"}})),
    )
    .await
}

async fn starting_group_is_left_alone(set: Manifest) -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(set.manual()).await?;
        bench
            .until("all pods exist", |world| world.names(Kind::Pod).len() == 3)
            .await?;
        for pod in ["demo-0", "demo-0-1"] {
            bench.make_ready(pod).await?;
        }
        let before = bench.world().uids("demo", 0);
        bench.restart("demo-0-1", "c").await?;
        bench.quiet_for(std::time::Duration::from_secs(12)).await?;
        assert_eq!(
            bench.world().uids("demo", 0),
            before,
            "one pod is still Pending"
        );

        bench.make_ready("demo-0-2").await?;
        bench.restart("demo-0", "c").await?;
        bench
            .until("the group is new", |world| {
                world.is_replaced("demo", 0, &before)
            })
            .await?;
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        assert_eq!(incarnations(&world), [2, 2, 2]);
        assert_eq!(world.events("RecreateGroup").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c22_group_stays_down_when_its_restart_budget_is_used_up() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2);
        start(bench, set.group(json!({"maxGroupRestarts": 1}))).await?;
        let before = uids(bench);
        bench.restart("demo-0-1", "c").await?;
        recreated_once(bench, &before).await?;
        let second = uids(bench);
        recover(bench).await?;
        bench.restart("demo-0-1", "c").await?;
        bench
            .until("the group is given up", |world| {
                let pods = world.group("demo", 0);
                world.set("demo").is("Degraded") && pods.iter().all(|pod| pod.is_terminating())
            })
            .await?;
        for pod in ["demo-0", "demo-0-1"] {
            bench.end(pod).await?;
        }
        bench
            .until("the group no longer counts as ready", |world| {
                world.set("demo").number("/status/readyReplicas") == 1
            })
            .await?;
        bench.settled().await?;
        assert_retained(bench, &second);

        bench.patch(Kind::Set, "demo", limit(5)).await?;
        bench.settled().await?;
        assert_retained(bench, &second);

        recover(bench).await?;
        recreated_once(bench, &second).await?;
        let world = bench.world();
        let set = world.set("demo");
        assert_eq!(set.condition("Degraded"), Some("False"));
        assert_eq!(set.annotation(annotation::GROUP_RESTART_COUNTS), None);
        assert_eq!(world.uids("demo", 1), before[1]);
        assert_eq!(world.revisions_of("demo").len(), 1);
        assert_eq!(world.events("RecreateGroup").len(), 1);
        Ok(())
    })
    .await
}

/// Asks for the recovery of group 0. Asked for before the group is given up, it has no effect.
async fn recover(bench: &Bench) -> Result<()> {
    bench
        .annotate(Kind::Pod, "demo-0", json!({annotation::RECOVER: "true"}))
        .await?;
    Ok(())
}

fn limit(restarts: i64) -> Value {
    json!({"spec": {"leaderWorkerTemplate": {"maxGroupRestarts": restarts}}})
}

/// Both pods of group 0 are kept while terminating; the set says so; group 1 runs.
fn assert_retained(bench: &Bench, before: &[Uids; 2]) {
    assert_eq!(&uids(bench), before);
    let world = bench.world();
    for pod in world.group("demo", 0) {
        assert!(pod.is_terminating(), "{}", pod.name());
        let finalizers = pod.at("/metadata/finalizers").to_string();
        assert!(finalizers.contains(BUDGET_FINALIZER), "{finalizers}");
    }
    assert!(world.has_event("Warning", "ReplicaRestartBudgetExceeded", "group 0"));
    let set = world.set("demo");
    assert_eq!(set.true_conditions(), ["Degraded"]);
    for condition in ["Available", "Progressing", "UpdateInProgress", "Degraded"] {
        let reason = set.condition_entry(condition).map(|entry| &entry["reason"]);
        let expected = json!("ReplicaRestartBudgetExceeded");
        assert_eq!(reason, Some(&expected), "{condition}");
    }
}

#[tokio::test]
async fn c22_without_a_limit_a_group_is_recreated_again_and_again() -> Result<()> {
    on_shared_cluster(async |bench| {
        start(bench, Manifest::new("demo", 2, 2)).await?;
        for _ in 0..3 {
            let before = uids(bench);
            bench.restart("demo-0-1", "c").await?;
            recreated_once(bench, &before).await?;
        }
        assert!(!bench.world().set("demo").is("Degraded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn restart_backoff_delays_the_recreation() -> Result<()> {
    on_shared_cluster(async |bench| {
        let backoff = json!({"restartBackoff": {"baseSeconds": 12, "capSeconds": 12}});
        start(bench, Manifest::new("demo", 2, 2).group(backoff)).await?;
        let before = uids(bench);
        bench.restart("demo-0-1", "c").await?;
        bench
            .until("the wait is announced", |world| {
                !world.events("GroupRestartBackoff").is_empty()
            })
            .await?;
        assert_eq!(uids(bench), before, "nothing is deleted while it waits");
        recreated_once(bench, &before).await?;
        let world = bench.world();
        assert_eq!(world.events("GroupRestartBackoff").len(), 1);
        assert_eq!(world.events("RecreateGroup").len(), 1);
        Ok(())
    })
    .await
}
