//! Roles that are scaled from outside (C33), by hand and by a real HorizontalPodAutoscaler.

use anyhow::Result;
use lws_e2e::{Bench, Kind, Object, Roles, on_shared_cluster};
use serde_json::json;

use crate::autoscaling::{report_usage, serve_metrics};

fn pair() -> Roles {
    Roles::new("pd", &[("prefill", 3), ("decode", 2)])
}

fn external(set: Roles) -> Roles {
    set.role(
        "prefill",
        json!({"scaling": {"mode": "External"}, "spec": {"replicas": null}}),
    )
}

async fn until_size(bench: &Bench, role: &str, groups: i64) -> Result<()> {
    bench
        .until(&format!("{role} has {groups} groups"), |world| {
            world.are_roles_available("pd") && world.role_status("pd", role) == [groups; 4]
        })
        .await
}

#[tokio::test]
async fn c33_a_role_keeps_its_size_when_it_becomes_external() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(pair()).await?;
        bench.until_roles_available("pd").await?;
        let mark = bench.mark();
        bench.replace_roles(external(pair())).await?;
        bench
            .until("the scaler is bound", |world| {
                world.find(Kind::Scaler, "pd-prefill").is_some_and(|scaler| scaler.is("Ready"))
            })
            .await?;
        {
            let world = bench.world();
            let scaler = world.get(Kind::Scaler, "pd-prefill");
            assert_eq!((scaler.number("/spec/replicas"), scaler.number("/status/replicas")), (3, 3));
            assert!(scaler.is_controlled_by(world.get(Kind::DisaggregatedSet, "pd")));
            assert_eq!(
                scaler.text("/status/selector"),
                "disaggregatedset.x-k8s.io/name=pd,disaggregatedset.x-k8s.io/role=prefill,leaderworkerset.sigs.k8s.io/worker-index=0"
            );
        }
        bench.kubectl(&["scale", "disaggregatedsetrolescaler", "pd-prefill", "--replicas=5"]).await?;
        until_size(bench, "prefill", 5).await?;
        {
            let world = bench.world();
            let sizes = world.history()[mark..].iter().filter(|change| change.kind == Kind::Set);
            let least = sizes.filter(|change| change.object.name().ends_with("prefill")).map(|change| change.object.number("/spec/replicas")).min();
            assert!(least >= Some(3), "never scaled down on the way");
        }
        bench.replace_roles(external(pair()).image("nginx:1.28")).await?;
        bench
            .until("the rollout is over", |world| {
                let is_new = world.all(Kind::Pod).all(|pod| pod.container("c")["image"] == "nginx:1.28");
                is_new && world.are_roles_available("pd")
            })
            .await?;
        assert_eq!(bench.world().role_status("pd", "prefill"), [5, 5, 5, 5]);
        bench.replace_roles(pair().image("nginx:1.28")).await?;
        bench
            .until("the scaler is gone", |world| !world.has(Kind::Scaler, "pd-prefill"))
            .await?;
        until_size(bench, "prefill", 3).await?;
        bench
            .until("both changes are told", |world| {
                ["ScalerCreated", "ScalerDeleted"]
                    .iter()
                    .all(|reason| world.has_event("Normal", reason, "pd-prefill"))
            })
            .await
    })
    .await
}

#[tokio::test]
async fn c33_a_foreign_scaler_is_left_alone_and_holds_up_the_set() -> Result<()> {
    on_shared_cluster(async |bench| {
        let foreign = json!({
            "apiVersion": "disaggregatedset.x-k8s.io/v1",
            "kind": "DisaggregatedSetRoleScaler",
            "metadata": {"name": "pd-prefill"},
            "spec": {"replicas": 7},
        });
        let foreign: Object = bench.create(foreign).await?;
        bench.create(external(pair())).await?;
        bench
            .until("the obstacle is told", |world| {
                let set = world.find(Kind::DisaggregatedSet, "pd");
                let is_told = set.and_then(|set| set.condition_entry("Progressing"));
                world.has_event("Warning", "ScalerConflict", "pd-prefill")
                    && is_told
                        .is_some_and(|condition| condition["reason"] == "ReplicaTargetsUnresolved")
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(
                world
                    .get(Kind::Scaler, "pd-prefill")
                    .at("/metadata/resourceVersion"),
                foreign.at("/metadata/resourceVersion")
            );
            assert!(
                world.names(Kind::Set).is_empty(),
                "nothing is created before all targets are known"
            );
        }
        bench.delete(Kind::Scaler, "pd-prefill").await?;
        until_size(bench, "prefill", 1).await
    })
    .await
}

#[tokio::test]
async fn c33_external_roles_and_slices() -> Result<()> {
    on_shared_cluster(async |bench| {
        let denial = bench
            .refused(external(pair()).spec(json!({"slices": 2})))
            .await?;
        denial.names("spec.slices", "set slices to 1 or make the role Static");
        bench
            .try_create(pair().role("prefill", json!({"scaling": {"mode": "External"}})))
            .await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_autoscaler_drives_a_role() -> Result<()> {
    on_shared_cluster(async |bench| {
        serve_metrics(bench).await?;
        let containers = json!([{"name": "c", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m"}}}]);
        let set = Roles::new("pd", &[("prefill", 1), ("decode", 1)]).pods(json!({"spec": {"containers": containers}}));
        bench.create(external(set)).await?;
        bench.until_roles_available("pd").await?;
        let target = json!({"type": "Utilization", "averageUtilization": 50});
        let autoscaler = json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "prefill"},
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": "disaggregatedset.x-k8s.io/v1",
                    "kind": "DisaggregatedSetRoleScaler",
                    "name": "pd-prefill",
                },
                "minReplicas": 1,
                "maxReplicas": 5,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            },
        });
        let child = bench.world().children_of_role("pd", "prefill")[0].name().to_owned();
        report_usage(bench, &child, 150).await?;
        bench.create(autoscaler).await?;
        until_size(bench, "prefill", 3).await?;
        assert_eq!(bench.world().role_status("pd", "decode"), [1, 1, 1, 1]);
        Ok(())
    })
    .await
}
