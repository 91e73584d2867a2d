//! Exclusive placement of groups.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Binding, Node};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, RESERVED, on_shared_cluster};
use serde_json::{Value, json};

/// No scheduler has this name, so that the test decides.
const BY_HAND: &str = "by-hand";

fn template(scheduler: &str) -> Value {
    json!({"spec": {
        "schedulerName": scheduler,
        "tolerations": [{"key": RESERVED, "operator": "Exists"}],
        "containers": [{"name": "c", "image": "nginx:1.27"}],
    }})
}

async fn bind(bench: &Bench, pod: &str, node: &str) -> Result<()> {
    let pods: Api<k8s_openapi::api::core::v1::Pod> =
        Api::namespaced(bench.client(), bench.namespace());
    let binding: Binding = serde_json::from_value(json!({
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }))?;
    let _: Value = pods
        .create_subresource("binding", pod, &PostParams::default(), &binding)
        .await?;
    Ok(())
}

#[tokio::test]
async fn c29_node_without_the_label_holds_only_its_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        let node = format!("n1-{}", bench.namespace());
        let rack = format!("rack-of-{}", bench.namespace());
        bench.add_node(&node, json!({"type": "kwok"})).await?;
        let set = Manifest::new("demo", 2, 2)
            .metadata(json!({"annotations": {annotation::EXCLUSIVE_TOPOLOGY: "rack"}}))
            .group(json!({"leaderTemplate": template(BY_HAND), "workerTemplate": template("default-scheduler")}));
        bench.create(set).await?;
        bench.until("both leaders exist", |world| world.names(Kind::Pod).len() == 2).await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.names(Kind::StatefulSet), ["demo"], "no leader is bound yet");
            let leader = world.pod("demo-0");
            let key = leader.label(label::GROUP_KEY).unwrap_or_default();
            let term = |expressions: Value| {
                json!([{
                    "topologyKey": "rack",
                    "labelSelector": {"matchExpressions": expressions},
                }])
            };
            let list = "requiredDuringSchedulingIgnoredDuringExecution";
            assert_eq!(
                leader.at("/spec/affinity/podAffinity")[list],
                term(json!([{"key": label::GROUP_KEY, "operator": "In", "values": [key]}]))
            );
            assert_eq!(
                leader.at("/spec/affinity/podAntiAffinity")[list],
                term(json!([
                    {"key": label::GROUP_KEY, "operator": "Exists"},
                    {"key": label::GROUP_KEY, "operator": "NotIn", "values": [key]},
                ]))
            );
        }
        bind(bench, "demo-0", &node).await?;
        bind(bench, "demo-1", "fake-1").await?;
        bench
            .until("the other group runs", |world| {
                world.find(Kind::Pod, "demo-1-1").is_some_and(|pod| pod.is_ready())
            })
            .await?;
        bench
            .until("one group is counted", |world| {
                world.set("demo").number("/status/readyReplicas") == 1
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            assert_eq!(world.names(Kind::StatefulSet), ["demo", "demo-1"]);
            let selector = world.stateful_set("demo-1").at("/spec/template/spec/nodeSelector");
            assert_eq!(selector, &json!({"rack": "rack-1"}));
        }

        let nodes: Api<Node> = Api::all(bench.client());
        let labels = Patch::Merge(json!({"metadata": {"labels": {"rack": rack}}}));
        nodes.patch(&node, &PatchParams::default(), &labels).await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        let selector = world.stateful_set("demo-0").at("/spec/template/spec/nodeSelector");
        assert_eq!(selector, &json!({"rack": rack}));
        assert_eq!(world.pod("demo-0-1").text("/spec/nodeName"), node);
        Ok(())
    })
    .await
}
