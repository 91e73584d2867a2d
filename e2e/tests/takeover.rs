//! Sets of another controller, taken over as they run.

use std::collections::BTreeMap;

use anyhow::Result;
use lws_api::names::{ds_annotation, label, role};
use lws_e2e::{Bench, Kind, Verb, on_own_cluster_in};
use lws_local_cluster::Component;
use serde_json::{Value, json};

const RECORDED: &str = include_str!("../golden/upstream-2026-08.jsonl");
const ROLES: &str = include_str!("../golden/upstream-2026-08-roles.jsonl");
/// The namespace stands in addresses and keys of the recorded pods.
const NAMESPACE: &str = "golden";
/// All but `volumes`, whose pods wait for volumes.
const RUNNING: [&str; 5] = ["perreplica", "plain", "single", "subgroups", "tpu"];
const NODES: usize = 5;

/// What must stay: pods by UID, templates and revisions of the StatefulSets, revisions of the sets.
#[derive(Debug, PartialEq)]
struct Fixed {
    pods: BTreeMap<String, String>,
    templates: BTreeMap<String, [Value; 4]>,
    revisions: BTreeMap<String, String>,
}

fn fixed(bench: &Bench) -> Fixed {
    let world = bench.world();
    let uids = |kind| {
        let objects = world.all(kind);
        objects
            .map(|object| (object.name().to_owned(), object.uid().to_owned()))
            .collect()
    };
    let sets = world.all(Kind::StatefulSet);
    let templates = sets.map(|set| {
        let parts = [
            "/metadata/uid",
            "/spec/template",
            "/status/currentRevision",
            "/status/updateRevision",
        ];
        let parts = parts.map(|part| set.at(part).clone());
        (set.name().to_owned(), parts)
    });
    Fixed {
        pods: uids(Kind::Pod),
        templates: templates.collect(),
        revisions: uids(Kind::Revision),
    }
}

/// Puts the recorded objects into the cluster while nobody acts on them.
async fn restore(bench: &Bench, recorded: &str) -> Result<()> {
    let plant = bench.plant();
    bench.until_pods_are_admitted().await?;
    plant.terminate_manager()?;
    plant.installation().remove_webhooks()?;
    plant.stop(Component::ControllerManager)?;
    bench.restore(recorded).await?;
    for index in 0..NODES {
        let labels = json!({"type": "kwok", "rack": format!("rack-{index}")});
        bench.add_node(&format!("node-{index}"), labels).await?;
    }
    plant.start(Component::ControllerManager)?;
    bench.settled().await
}

#[tokio::test]
async fn sets_of_upstream_are_taken_over_without_a_restart() -> Result<()> {
    on_own_cluster_in(NAMESPACE, "upgrade", async |bench| {
        restore(bench, RECORDED).await?;
        let (before, mark) = (fixed(bench), bench.mark());
        assert_eq!((before.pods.len(), before.templates.len()), (22, 13));

        bench.plant().installation().add_webhooks()?;
        bench.plant().start_manager()?;
        bench
            .until("all leader sets are ours", |world| {
                let sets = world.all(Kind::Set).map(|set| set.name());
                sets.filter_map(|set| world.find(Kind::StatefulSet, set))
                    .all(|leaders| leaders.label(label::ROLE) == Some(role::LEADER))
            })
            .await?;
        bench.settled().await?;
        assert_eq!(fixed(bench), before);
        {
            let world = bench.world();
            for change in world.history()[mark..]
                .iter()
                .filter(|change| change.kind == Kind::Pod)
            {
                assert!(!change.object.is_terminating(), "{}", change.object.name());
            }
            for set in RUNNING {
                assert!(world.is_available(set), "{set}");
                assert!(!world.set(set).is("UpdateInProgress"), "{set}");
            }
            for reason in [
                "CreatingRevision",
                "RecreateGroup",
                "FailedCreate",
                "FailedUpdate",
            ] {
                assert_eq!(world.events(reason), Vec::<&str>::new(), "{reason}");
            }
        }
        works(bench).await
    })
    .await
}

/// What was taken over is managed: a label goes, a group fails, a set grows, a template changes.
async fn works(bench: &Bench) -> Result<()> {
    let before = bench.world().uids("plain", 1);
    let unlabelled = json!({"metadata": {"labels": {"team": null}}});
    bench.patch(Kind::Set, "plain", unlabelled).await?;
    bench
        .until("the label is gone from the leader set too", |world| {
            world.stateful_set("plain").label("team").is_none()
        })
        .await?;
    let failing = bench.world().uids("plain", 0);
    bench.restart("plain-0-1", "worker").await?;
    bench
        .until("the group is made anew", |world| {
            world.is_replaced("plain", 0, &failing)
        })
        .await?;
    bench.until_available("plain").await?;
    bench.scale("plain", 3).await?;
    bench.until_available("plain").await?;
    assert_eq!(bench.world().uids("plain", 1), before);

    bench.update_image("perreplica", "nginx:1.28").await?;
    bench.until_available("perreplica").await?;
    for pod in bench.world().pods_of("perreplica") {
        assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
    }
    Ok(())
}

/// UPG-2, REV-7: children keep their names, and only our annotations are added to them.
#[tokio::test]
async fn roles_of_upstream_are_taken_over_without_a_restart() -> Result<()> {
    on_own_cluster_in(NAMESPACE, "upgrade", async |bench| {
        restore(bench, ROLES).await?;
        let (before, mark) = (fixed(bench), bench.mark());
        assert_eq!(before.pods.len(), 5);
        let children = [
            "nginx-disagg-0-59e828fe-decode",
            "nginx-disagg-0-59e828fe-prefill",
        ];
        bench.plant().installation().add_webhooks()?;
        bench.plant().start_manager()?;
        bench
            .until("the children are marked", |world| {
                world.child_names("nginx-disagg") == children
                    && world.children("nginx-disagg").iter().all(|child| {
                        child.annotation(ds_annotation::CONTENT_HASH).is_some()
                            && child.annotation(ds_annotation::INITIAL_REPLICAS).is_some()
                    })
                    && world.are_roles_available("nginx-disagg")
            })
            .await?;
        bench.settled().await?;
        assert_eq!(fixed(bench), before);
        {
            let world = bench.world();
            let set = world.get(Kind::DisaggregatedSet, "nginx-disagg");
            assert_eq!(set.annotation(ds_annotation::REVISION_HASH_VERSION), None, "not yet a set of ours");
            for change in world.history()[mark..].iter() {
                let is_child = change.kind == Kind::Set;
                assert!(!(is_child && change.verb == Verb::Added), "{}", change.object.name());
                assert!(!is_child || change.object.number("/metadata/generation") == 1, "no spec was written");
            }
        }
        let image = json!([{"op": "replace", "path": "/spec/roles/0/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image", "value": "nginx:1.28"}]);
        bench.kubectl(&["patch", "disaggregatedset", "nginx-disagg", "--type=json", "-p", &image.to_string()]).await?;
        bench
            .until("the next change rolls", |world| {
                let is_new = |name: &&str| !children.contains(name);
                world.child_names("nginx-disagg").iter().all(is_new) && world.are_roles_available("nginx-disagg")
            })
            .await
    })
    .await
}
