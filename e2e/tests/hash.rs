//! Groups with Hash identity: leaders made by a Deployment, told apart by keys.
//!
//! The nodes do not set readiness gates: a leader is Ready only if the manager says that its group is.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use lws_api::names::{GROUP_READY, REPLACEMENT_GATE, annotation, label};
use lws_e2e::{Bench, Kind, Manifest, Object, Verb, World, on_shared_cluster};
use serde_json::json;

fn hash(replicas: i64, size: i64) -> Manifest {
    Manifest::new("demo", replicas, size).spec(json!({"groupIdentity": "Hash"}))
}

/// Leaders that are not on their way out, by name, with their UIDs.
fn leaders(world: &World) -> BTreeMap<String, String> {
    world
        .pods_of("demo")
        .filter(|pod| pod.is_leader() && !pod.is_terminating())
        .map(|pod| (pod.name().to_owned(), pod.uid().to_owned()))
        .collect()
}

fn workers_of<'a>(world: &'a World, leader: &'a Object) -> impl Iterator<Item = &'a Object> {
    world.pods_of("demo").filter(|pod| {
        !pod.is_leader() && pod.label(label::GROUP_KEY) == leader.label(label::GROUP_KEY)
    })
}

fn is_gated(pod: &Object) -> bool {
    let gates = pod.at("/spec/schedulingGates").as_array();
    gates.is_some_and(|gates| gates.iter().any(|gate| gate["name"] == REPLACEMENT_GATE))
}

/// A worker of the first group, and its leader.
fn a_worker(bench: &Bench) -> Result<(String, String)> {
    let world = bench.world();
    let worker = world
        .pods_of("demo")
        .find(|pod| !pod.is_leader())
        .context("a worker")?;
    let leader = worker
        .annotation(annotation::LEADER_NAME)
        .context("its leader")?;
    Ok((worker.name().to_owned(), leader.to_owned()))
}

#[tokio::test]
async fn lws_api_15_lws_api_30_hash_12_hash_27_a_set_gets_a_deployment_and_worker_sets_named_after_keys()
-> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(hash(2, 3)).await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        let deployment = world.get(Kind::Deployment, "demo");
        assert!(deployment.is_controlled_by(world.set("demo")));
        assert_eq!(
            deployment.at("/spec/selector/matchLabels"),
            &json!({label::NAME: "demo", label::WORKER_INDEX: "0"})
        );
        assert!(
            !world.has(Kind::StatefulSet, "demo"),
            "no leader StatefulSet"
        );
        let names = leaders(&world);
        assert_eq!(names.len(), 2);
        for name in names.keys() {
            let leader = world.pod(name);
            let key = leader.label(label::GROUP_KEY).expect("a key");
            assert_eq!(leader.label(label::GROUP_INDEX), Some(key));
            let host = format!("demo-{}", &key[..8]);
            assert_eq!(leader.text("/spec/hostname"), host);
            assert!(!is_gated(leader));
            assert_eq!(leader.annotation(annotation::POD_DELETION_COST), None);
            assert_eq!(leader.condition(GROUP_READY), Some("True"));
            assert!(world.stateful_set(&host).is_controlled_by(leader));
            let workers: Vec<_> = workers_of(&world, leader).map(Object::name).collect();
            assert_eq!(workers, [format!("{host}-1"), format!("{host}-2")]);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c34_scale_down_removes_the_broken_group_and_keeps_the_healthy_ones() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(hash(3, 2)).await?;
        bench.until_available("demo").await?;
        let (worker, broken) = a_worker(bench)?;
        let mut kept = leaders(&bench.world());
        kept.remove(&broken);
        bench.make_unready(&worker).await?;
        bench
            .until("the leader of the broken group is not ready", |world| {
                !world.pod(&broken).is_ready()
            })
            .await?;
        bench.scale("demo", 2).await?;
        bench.until_available("demo").await?;
        bench
            .until("the broken group is gone", |world| {
                world.pods_of("demo").count() == 4 && world.all(Kind::StatefulSet).count() == 2
            })
            .await?;
        assert_eq!(leaders(&bench.world()), kept);
        Ok(())
    })
    .await
}

/// The fewest leaders that were Ready at any time since a mark.
fn fewest_ready_leaders(world: &World, since: usize) -> usize {
    let mut ready: BTreeSet<&str> = BTreeSet::new();
    let mut fewest = usize::MAX;
    for (index, change) in world.history().iter().enumerate() {
        let pod = &change.object;
        if change.kind == Kind::Pod && pod.is_leader() {
            if change.verb != Verb::Deleted && pod.is_ready() && !pod.is_terminating() {
                ready.insert(pod.name());
            } else {
                ready.remove(pod.name());
            }
        }
        if index >= since {
            fewest = fewest.min(ready.len());
        }
    }
    fewest
}

#[tokio::test]
async fn hash_57_a_rollout_without_unavailable_groups_never_drops_below_20() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(hash(20, 2).budget(json!(1), json!(0))).await?;
        bench.until_available("demo").await?;
        let before = leaders(&bench.world());
        let mark = bench.mark();
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        assert_eq!(fewest_ready_leaders(&world, mark), 20);
        let after = leaders(&world);
        assert!(
            after.keys().all(|name| !before.contains_key(name)),
            "all are new"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hash_55_changes_outside_the_revision_never_deadlock_a_rollout() -> Result<()> {
    on_shared_cluster(async |bench| {
        // One group, so that the old and the new one find racks of their own on three nodes.
        bench.create(hash(1, 2).budget(json!(1), json!(0))).await?;
        bench.until_available("demo").await?;
        for topology in [json!("rack"), json!(null)] {
            let before = leaders(&bench.world());
            let annotations = json!({annotation::EXCLUSIVE_TOPOLOGY: topology});
            bench.annotate(Kind::Set, "demo", annotations).await?;
            bench
                .until("all leaders are new", |world| {
                    let now = leaders(world);
                    now.len() == 1 && now.keys().all(|name| !before.contains_key(name))
                })
                .await?;
            bench.until_available("demo").await?;
        }
        assert_eq!(bench.world().revisions_of("demo").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hash_59_a_failed_worker_replaces_its_group_and_no_other() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(hash(2, 3)).await?;
        bench.until_available("demo").await?;
        let (worker, failed) = a_worker(bench)?;
        let mut others = leaders(&bench.world());
        others.remove(&failed);
        bench.restart(&worker, "c").await?;
        bench
            .until("the group is replaced", |world| {
                !world.has(Kind::Pod, &failed) && world.pods_of("demo").count() == 6
            })
            .await?;
        bench.until_available("demo").await?;
        let now = leaders(&bench.world());
        assert!(others.iter().all(|(name, uid)| now.get(name) == Some(uid)));
        bench
            .until("the cause is told", |world| {
                world.has_event("Normal", "RecreateGroup", &worker)
            })
            .await
    })
    .await
}

#[tokio::test]
async fn lws_api_16_hash_42_a_replacement_waits_for_the_last_pod_of_the_old_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(hash(2, 2)).await?;
        bench.until_available("demo").await?;
        let (worker, failed) = a_worker(bench)?;
        bench.hold(&[&worker]).await?;
        bench.delete(Kind::Pod, &failed).await?;
        bench
            .until("the replacement is told to wait", |world| {
                world.has_event("Normal", "GroupReplacementDeferred", "waits for 1")
            })
            .await?;
        let gated = |world: &World| {
            world
                .pods_of("demo")
                .filter(|pod| pod.is_leader() && is_gated(pod))
                .count()
        };
        assert_eq!(gated(&bench.world()), 1);
        bench.release(&[&worker]).await?;
        bench.until_available("demo").await?;
        assert_eq!(gated(&bench.world()), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn hash_63_an_exhausted_group_is_retained_and_recovered() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench
            .create(hash(2, 2).group(json!({"maxGroupRestarts": 0})))
            .await?;
        bench.until_available("demo").await?;
        let (worker, failed) = a_worker(bench)?;
        bench.restart(&worker, "c").await?;
        bench
            .until("the set is degraded and the replacement held", |world| {
                world.set("demo").is("Degraded")
                    && world.has(Kind::Pod, &failed)
                    && world
                        .pods_of("demo")
                        .any(|pod| pod.is_leader() && is_gated(pod))
            })
            .await?;
        bench
            .annotate(Kind::Pod, &failed, json!({annotation::RECOVER: "true"}))
            .await?;
        // The set may say Available all along: its other group is enough of a budget of one.
        bench
            .until("the failed leader is gone and the set is whole", |world| {
                !world.has(Kind::Pod, &failed) && !world.set("demo").is("Degraded")
            })
            .await?;
        bench.until_available("demo").await
    })
    .await
}
