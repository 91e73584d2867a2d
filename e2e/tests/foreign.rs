//! Objects that are not ours under names that we need, and objects that do not concern us.

use std::time::Duration;

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, Object, on_shared_cluster};
use serde_json::{Value, json};

/// A StatefulSet with nothing of ours.
fn stateful_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "serviceName": "other",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
            },
        },
    })
}

/// All that must stay of a foreign object.
fn essence(object: &Object) -> Value {
    json!([
        object.uid(),
        object["spec"],
        object.at("/metadata/labels"),
        object.at("/metadata/ownerReferences"),
        object.at("/metadata/annotations"),
    ])
}

/// A foreign object that must survive everything.
async fn foreign(bench: &Bench, kind: Kind, object: Value) -> Result<(String, Value)> {
    let created = bench.create(object).await?;
    let name = created.name().to_owned();
    bench.settled().await?;
    let essence = essence(bench.world().get(kind, &name));
    Ok((name, essence))
}

#[tokio::test]
async fn c06_foreign_service_stays_and_pods_run() -> Result<()> {
    on_shared_cluster(async |bench| {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "demo"},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
        });
        let (name, before) = foreign(bench, Kind::Service, service).await?;
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench
            .until(
                "the pods run and the Service is complained about",
                |world| {
                    world.pods_of("demo").filter(|pod| pod.is_ready()).count() == 2
                        && world.has_event("Warning", "FailedCreate", "service")
                },
            )
            .await?;
        bench.delete(Kind::Set, "demo").await?;
        bench
            .until("the rest is gone", |world| {
                world.names(Kind::Pod).is_empty() && world.names(Kind::StatefulSet).is_empty()
            })
            .await?;
        assert_eq!(essence(bench.world().get(Kind::Service, &name)), before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c06_foreign_leader_set_is_waited_for() -> Result<()> {
    on_shared_cluster(async |bench| {
        let (name, before) = foreign(bench, Kind::StatefulSet, stateful_set("demo")).await?;
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench
            .until("it is complained about", |world| {
                ["FailedCreate", "FailedUpdate"].iter().any(|reason| {
                    world.has_event(
                        "Warning",
                        reason,
                        "is not controlled by LeaderWorkerSet demo",
                    )
                })
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(essence(world.stateful_set(&name)), before);
            assert_eq!(world.names(Kind::Pod), Vec::<&str>::new());
            assert!(!world.set("demo").is("Available"));
        }
        bench.delete(Kind::StatefulSet, "demo").await?;
        bench.until_available("demo").await
    })
    .await
}

#[tokio::test]
async fn c06_foreign_worker_set_is_waited_for() -> Result<()> {
    on_shared_cluster(async |bench| {
        let (name, before) = foreign(bench, Kind::StatefulSet, stateful_set("demo-0")).await?;
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench
            .until("it is complained about", |world| {
                world.has_event("Warning", "FailedCreate", "is not controlled by Pod demo-0")
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(essence(world.stateful_set(&name)), before);
            assert_eq!(world.names(Kind::Pod), ["demo-0"]);
            let set = world.set("demo");
            assert!(!set.is("Available"));
            assert_eq!(set.number("/status/readyReplicas"), 0);
        }
        bench.delete(Kind::StatefulSet, "demo-0").await?;
        bench.until_available("demo").await
    })
    .await
}

/// ORD-133: group 0 of `a` and the set `a-0` need the same names.
#[tokio::test]
async fn colliding_sets_do_not_corrupt_each_other() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("a", 1, 2)).await?;
        bench.until_available("a").await?;
        bench.settled().await?;
        let objects = |bench: &Bench| -> Vec<Value> {
            let world = bench.world();
            let names = [
                (Kind::StatefulSet, "a"),
                (Kind::StatefulSet, "a-0"),
                (Kind::Pod, "a-0"),
                (Kind::Pod, "a-0-1"),
                (Kind::Service, "a"),
            ];
            names
                .iter()
                .map(|(kind, name)| essence(world.get(*kind, name)))
                .collect()
        };
        let before = objects(bench);
        bench.create(Manifest::new("a-0", 2, 2)).await?;
        bench
            .until("the second set complains", |world| {
                world.has_event(
                    "Warning",
                    "FailedCreate",
                    "is not controlled by LeaderWorkerSet a-0",
                )
            })
            .await?;
        bench.pass(Duration::from_secs(5)).await;
        assert_eq!(objects(bench), before);
        assert!(bench.world().is_available("a"));
        assert!(!bench.world().set("a-0").is("Available"));

        // The first set's failures stay its own: its group is recreated and keeps its names.
        let group = bench.world().uids("a", 0);
        bench.restart("a-0-1", "c").await?;
        bench
            .until("the group is made anew", |world| {
                world.is_replaced("a", 0, &group)
            })
            .await?;
        bench.until_available("a").await?;

        bench.delete(Kind::Set, "a").await?;
        bench.until_available("a-0").await?;
        let world = bench.world();
        let pods = ["a-0-0", "a-0-0-1", "a-0-1", "a-0-1-1"];
        assert_eq!(world.names(Kind::Pod), pods);
        assert!(world.stateful_set("a-0").is_controlled_by(world.set("a-0")));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn colliding_sets_born_together_converge_to_one_owner_each() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("a-0", 1, 2)).await?;
        bench.create(Manifest::new("a", 1, 2)).await?;
        bench.until_available("a-0").await?;
        bench
            .until("the other one waits for the name", |world| {
                world.has_event("Warning", "FailedCreate", "statefulset")
            })
            .await?;
        let uid = bench.world().stateful_set("a-0").uid().to_owned();
        bench.pass(Duration::from_secs(5)).await;
        {
            let world = bench.world();
            assert_eq!(world.stateful_set("a-0").uid(), uid);
            assert!(world.stateful_set("a-0").is_controlled_by(world.set("a-0")));
            assert_eq!(
                world.seen_uids(Kind::StatefulSet, "a-0").len(),
                1,
                "nobody fights"
            );
        }
        bench.delete(Kind::Set, "a-0").await?;
        bench.until_available("a").await
    })
    .await
}

#[tokio::test]
async fn c35_leader_with_a_leader_name_gets_no_workers() -> Result<()> {
    on_shared_cluster(async |bench| {
        let template = json!({
            "metadata": {"annotations": {annotation::LEADER_NAME: "demo-0"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
        });
        bench
            .create(Manifest::new("demo", 1, 2).group(json!({"leaderTemplate": template})))
            .await?;
        bench
            .until("it is complained about", |world| {
                world.has_event("Warning", "FailedCreate", annotation::LEADER_NAME)
            })
            .await?;
        bench.pass(Duration::from_secs(10)).await;
        assert_eq!(bench.world().names(Kind::StatefulSet), ["demo"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c35_pods_that_only_look_like_leaders_get_no_chain() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench.until_available("demo").await?;
        let mut impostor = stateful_set("other");
        impostor["spec"]["replicas"] = 1.into();
        let template = &mut impostor["spec"]["template"]["metadata"];
        template["labels"][label::NAME] = "demo".into();
        template["labels"][label::WORKER_INDEX] = "0".into();
        template["annotations"] = json!({annotation::SIZE: "2"});
        bench.create(impostor).await?;
        bench
            .until("the impostor runs", |world| world.has(Kind::Pod, "other-0"))
            .await?;
        bench.pass(Duration::from_secs(10)).await;
        let world = bench.world();
        let names = world.names(Kind::StatefulSet);
        assert!(
            names.iter().all(|name| !name.ends_with("-0-0")),
            "{names:?}"
        );
        assert_eq!(
            world
                .uids("demo", 0)
                .keys()
                .filter(|pod| pod.starts_with("demo"))
                .count(),
            2
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c36_objects_of_others_are_no_concern() -> Result<()> {
    on_shared_cluster(async |bench| {
        let log = bench.plant().audit_log();
        let position = log.position()?;
        for index in 0..20 {
            bench.create(stateful_set(&format!("set-{index}"))).await?;
            let mut deployment = stateful_set(&format!("deployment-{index}"));
            deployment["kind"] = "Deployment".into();
            deployment["spec"] = json!({
                "replicas": 0,
                "selector": deployment["spec"]["selector"],
                "template": deployment["spec"]["template"],
            });
            bench.create(deployment).await?;
        }
        let ghost = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "ghost-0",
                "labels": {label::NAME: "ghost", label::WORKER_INDEX: "0"},
                "annotations": {annotation::SIZE: "1"},
            },
            "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
        });
        bench.create(ghost).await?;
        for round in 0..10 {
            for index in 0..20 {
                let note = json!({"round": round.to_string()});
                bench
                    .annotate(Kind::StatefulSet, &format!("set-{index}"), note)
                    .await?;
            }
        }
        bench.settled().await?;
        let requests = log.since(position)?;
        let ours: Vec<_> = requests
            .iter()
            .filter(|request| request.is_ours() && request.namespace == bench.namespace())
            .collect();
        assert!(ours.is_empty(), "{ours:?}");
        let log = bench.manager_log();
        let loud: Vec<_> = log
            .iter()
            .filter(|line| line.contains("WARN") || line.contains("ERROR"))
            .collect();
        assert!(loud.is_empty(), "{loud:?}");
        let world = bench.world();
        let events = world
            .all(Kind::Event)
            .filter(|event| event["reportingController"] == "leaderworkerset");
        assert_eq!(events.count(), 0);
        Ok(())
    })
    .await
}
