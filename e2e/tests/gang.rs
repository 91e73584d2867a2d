//! Native gang scheduling, with the scheduler of Kubernetes itself.
//!
//! A node of each test's own has a resource of that test's own, so that there is room for so many pods and no more.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, Object, RESERVED, World, on_shared_cluster};
use serde_json::{Value, json};

/// A set of pods that need one place each on the node of the test.
fn placed(resource: &str, replicas: i64, size: i64) -> Manifest {
    let amounts = json!({resource: "1"});
    let container = json!({
        "name": "c", "image": "nginx:1.27", "resources": {"requests": amounts, "limits": amounts},
    });
    Manifest::new("demo", replicas, size).pod(json!({"spec": {
        "containers": [container],
        "tolerations": [{"key": RESERVED, "operator": "Exists"}],
    }}))
}

fn gang(resource: &str, replicas: i64, size: i64) -> Manifest {
    placed(resource, replicas, size).spec(json!({"scheduling": {}}))
}

/// A node with room for so many pods.
async fn add_places(bench: &Bench, resource: &str, places: &str) -> Result<String> {
    let node = format!("{}-node", bench.namespace());
    let more = json!({resource: places});
    bench
        .add_node_with(&node, json!({"type": "kwok"}), more)
        .await?;
    Ok(node)
}

/// Bound pods by group.
fn bound(world: &World) -> BTreeMap<String, usize> {
    let mut bound = BTreeMap::new();
    for pod in world.pods_of("demo") {
        let group = pod.label(label::GROUP_INDEX).unwrap_or_default().to_owned();
        *bound.entry(group).or_default() += usize::from(is_bound(pod));
    }
    bound
}

fn is_bound(pod: &Object) -> bool {
    !pod.text("/spec/nodeName").is_empty()
}

/// Numbers of bound pods of the groups, the least first.
fn sizes(world: &World) -> Vec<usize> {
    let mut sizes: Vec<_> = bound(world).into_values().collect();
    sizes.sort_unstable();
    sizes
}

fn is_refused(group: &Object) -> bool {
    let conditions = group.at("/status/conditions").as_array();
    conditions.is_some_and(|list| {
        list.iter().any(|of| {
            of["type"] == "PodGroupInitiallyScheduled"
                && of["status"] == "False"
                && of["reason"] == "Unschedulable"
        })
    })
}

fn pod_group(pod: &Object) -> &str {
    pod.text("/spec/schedulingGroup/podGroupName")
}

#[tokio::test]
async fn gang_nat_48_sch_3_a_group_runs_whole_or_has_no_pod_bound() -> Result<()> {
    on_shared_cluster(async |bench| {
        const PLACE: &str = "e2e.lws/gang";
        let node = add_places(bench, PLACE, "5").await?;
        bench.create(gang(PLACE, 2, 3)).await?;
        bench
            .until("one group runs and the other is refused", |world| {
                sizes(world) == [0, 3] && world.all(Kind::PodGroup).any(is_refused)
            })
            .await?;
        bench.settled().await?;
        let waiting: BTreeSet<String> = {
            let world = bench.world();
            assert_eq!(sizes(&world), [0, 3]);
            let groups = bound(&world).into_iter();
            groups.filter(|(_, n)| *n == 0).map(|(i, _)| i).collect()
        };
        let ever_bound = bench.world().history().iter().any(|change| {
            let group = change.object.label(label::GROUP_INDEX).unwrap_or_default();
            change.kind == Kind::Pod && waiting.contains(group) && is_bound(&change.object)
        });
        assert!(!ever_bound, "no pod of the waiting group was ever bound");
        bench.resize_node(&node, PLACE, "6").await?;
        bench.until_available("demo").await?;
        assert_eq!(sizes(&bench.world()), [3, 3]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn gang_without_scheduling_the_same_set_leaves_half_a_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        const PLACE: &str = "e2e.lws/single";
        add_places(bench, PLACE, "5").await?;
        bench.create(placed(PLACE, 2, 3)).await?;
        bench
            .until("five pods are bound", |world| sizes(world) == [2, 3])
            .await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(sizes(&world), [2, 3]);
        assert_eq!(world.all(Kind::PodGroup).count(), 0);
        assert!(world.pods_of("demo").all(|pod| pod_group(pod).is_empty()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn gang_nat_36_sch_12_a_whole_set_runs_or_has_no_pod_bound() -> Result<()> {
    on_shared_cluster(async |bench| {
        const PLACE: &str = "e2e.lws/whole";
        let node = add_places(bench, PLACE, "5").await?;
        let whole = json!({"scheduling": {"schedulingPolicy": {"gang": {}}}});
        bench.create(placed(PLACE, 2, 3).spec(whole)).await?;
        bench
            .until("the set is refused", |world| {
                world.pods_of("demo").count() == 6 && world.all(Kind::PodGroup).any(is_refused)
            })
            .await?;
        bench.settled().await?;
        assert_eq!(sizes(&bench.world()), [0, 0]);
        bench.resize_node(&node, PLACE, "6").await?;
        bench.until_available("demo").await
    })
    .await
}

/// What PodGroups the pods of a set name, each with its least number and the number of pods.
fn named(world: &World) -> BTreeMap<String, (i64, usize)> {
    let mut named: BTreeMap<String, (i64, usize)> = BTreeMap::new();
    for pod in world.pods_of("demo").filter(|pod| !pod.is_terminating()) {
        let group = world.find(Kind::PodGroup, pod_group(pod));
        let count = group.map_or(0, |group| {
            group.number("/spec/schedulingPolicy/gang/minCount")
        });
        let entry = named.entry(pod_group(pod).to_owned()).or_insert((count, 0));
        entry.1 += 1;
    }
    named
}

#[tokio::test]
async fn gang_nat_35_nat_44_a_recreated_group_gets_a_pod_group_of_its_own() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2).spec(json!({"scheduling": {}}));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        let before = named(&bench.world());
        let of_failed = pod_group(bench.world().pod("demo-0")).to_owned();
        assert!(before.values().all(|of| *of == (2, 2)), "{before:?}");
        bench.restart("demo-0-1", "c").await?;
        bench
            .until("the group has another PodGroup", |world| {
                world.has(Kind::Pod, "demo-0") && pod_group(world.pod("demo-0")) != of_failed
            })
            .await?;
        bench
            .until(
                "both groups are whole, and the old PodGroup is gone",
                |world| {
                    let after = named(world);
                    after.values().eq([&(2, 2), &(2, 2)])
                        && !after.contains_key(&of_failed)
                        && !world.has(Kind::PodGroup, &of_failed)
                },
            )
            .await?;
        bench.until_available("demo").await?;
        assert!(bench.world().set("demo").is("WorkloadSchedulingCreated"));
        bench.delete(Kind::Set, "demo").await?;
        bench.until_gone("demo").await
    })
    .await
}

#[tokio::test]
async fn gang_nat_47_hash_groups_are_gangs_too() -> Result<()> {
    on_shared_cluster(async |bench| {
        let both = json!({"groupIdentity": "Hash", "scheduling": {}});
        let set = Manifest::new("demo", 2, 3).spec(both);
        bench.create(set.budget(json!(1), json!(0))).await?;
        bench.until_available("demo").await?;
        let before = named(&bench.world());
        assert_eq!(before.values().collect::<Vec<_>>(), [&(3, 3), &(3, 3)]);
        bench.update_image("demo", "nginx:1.28").await?;
        bench.until_available("demo").await?;
        bench
            .until(
                "two whole groups are left, with PodGroups of their own",
                |world| {
                    let after = named(world);
                    after.values().eq([&(3, 3), &(3, 3)])
                        && after.keys().all(|name| !before.contains_key(name))
                },
            )
            .await
    })
    .await
}

#[tokio::test]
async fn gang_nat_57_nat_58_a_role_of_a_disaggregated_set_is_a_gang() -> Result<()> {
    on_shared_cluster(async |bench| {
        let role = |name: &str, scheduling: Value| {
            let mut spec = Manifest::new(name, 1, 2).json()["spec"].clone();
            spec["scheduling"] = scheduling;
            json!({"name": name, "spec": spec})
        };
        let set = |roles: Vec<Value>| {
            json!({
                "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet",
                "metadata": {"name": "pd"}, "spec": {"roles": roles},
            })
        };
        let two = json!({"schedulingPolicy": {"gang": {}}, "replica": {}});
        let denial = bench
            .refused(set(vec![role("decode", json!({})), role("prefill", two)]))
            .await?;
        denial.names("spec.roles[1].spec.scheduling", "");
        bench
            .create(set(vec![
                role("decode", json!({})),
                role("prefill", json!({})),
            ]))
            .await?;
        bench
            .until(
                "each role has a Workload, and its pods run as a gang",
                |world| {
                    let pods = || world.all(Kind::Pod);
                    world.all(Kind::Workload).count() == 2
                        && pods().count() == 4
                        && pods().all(|pod| !pod_group(pod).is_empty() && pod.is_ready())
                },
            )
            .await
    })
    .await
}

#[tokio::test]
async fn gang_nat_53_api_12_a_deleted_pod_group_is_told_and_made_anew() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 1, 2).spec(json!({"scheduling": {}}));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        let (name, workload) = {
            let world = bench.world();
            let leader = world.pod("demo-0");
            let workload = leader.annotation(annotation::WORKLOAD_NAME);
            (
                pod_group(leader).to_owned(),
                workload.unwrap_or_default().to_owned(),
            )
        };
        assert!(name.starts_with(&workload), "{name} {workload}");
        bench.delete(Kind::PodGroup, &name).await?;
        let reason = |world: &World| {
            let conditions = world.set("demo").at("/status/conditions").clone();
            let list = conditions.as_array().cloned().unwrap_or_default();
            let found = list
                .iter()
                .find(|of| of["type"] == "WorkloadSchedulingCreated");
            found.map(|of| of["reason"].clone())
        };
        bench
            .until("the end of the PodGroup is told", |world| {
                reason(world) == Some(json!("PodGroupCleanupBlocked"))
                    && world.has_event("Warning", "PodGroupCleanupBlocked", &name)
            })
            .await?;
        bench.restart("demo-0-1", "c").await?;
        bench
            .until("the next incarnation has one", |world| {
                reason(world) == Some(json!("SchedulingPrerequisitesCreated"))
            })
            .await?;
        bench.until_available("demo").await?;
        bench
            .until("the old one went with its pods", |world| {
                !world.has(Kind::PodGroup, &name)
            })
            .await
    })
    .await
}
