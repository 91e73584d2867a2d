//! The real HorizontalPodAutoscaler. A CRD whose objects the test writes stands in for a metrics server.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::json;

const CRD: &str = "pods.metrics.k8s.io";

/// Serves `PodMetrics` from the API server's own store.
pub(crate) async fn serve_metrics(bench: &Bench) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(bench.client());
    let version = json!({
        "name": "v1beta1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": CRD,
            "annotations": {"api-approved.kubernetes.io": "unapproved, test only"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "scope": "Namespaced",
            "names": {"kind": "PodMetrics", "listKind": "PodMetricsList", "plural": "pods", "singular": "pod"},
            "versions": [version],
        },
    });
    let force = PatchParams::apply("e2e").force();
    crds.patch(CRD, &force, &Patch::Apply(crd)).await?;
    await_condition(crds, CRD, is_crd_established()).await?;
    Ok(())
}

/// Reports what the pods of a set use: each leader that much, each worker a hundred times as much.
pub(crate) async fn report_usage(bench: &Bench, set: &str, leader_milli_cpu: i64) -> Result<()> {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
    let metrics: Api<DynamicObject> =
        Api::namespaced_with(bench.client(), bench.namespace(), &resource);
    let pods: Vec<_> = bench.world().pods_of(set).cloned().collect();
    for pod in pods {
        let factor = if pod.is_leader() { 1 } else { 100 };
        let cpu = format!("{}m", factor * leader_milli_cpu);
        let object = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": pod.name(), "labels": pod.at("/metadata/labels")},
            "timestamp": Timestamp::now().to_string(),
            "window": "5s",
            "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "64Mi"}}],
        });
        let force = PatchParams::apply("e2e").force();
        metrics
            .patch(pod.name(), &force, &Patch::Apply(object))
            .await?;
    }
    Ok(())
}

async fn until_replicas(bench: &Bench, replicas: i64) -> Result<()> {
    bench
        .until(&format!("demo is scaled to {replicas}"), |world| {
            world.set("demo").number("/spec/replicas") == replicas
        })
        .await?;
    bench.until_available("demo").await
}

/// The autoscaler counts leaders only, and changes the number of groups.
async fn scaled_by_the_cpu_of_leaders(bench: &Bench, set: Manifest) -> Result<()> {
    serve_metrics(bench).await?;
    let containers = json!([
        {"name": "c", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m"}}},
    ]);
    bench
        .create(set.pod(json!({"spec": {"containers": containers}})))
        .await?;
    bench.until_available("demo").await?;
    let revision = bench.world().revisions_of("demo")[0].name().to_owned();
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "demo"},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "name": "demo",
            },
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    });
    report_usage(bench, "demo", 150).await?;
    bench.create(autoscaler).await?;
    until_replicas(bench, 3).await?;

    report_usage(bench, "demo", 10).await?;
    until_replicas(bench, 1).await?;
    let world = bench.world();
    let sizes = world
        .history()
        .iter()
        .filter(|change| change.kind == Kind::Set);
    let most = sizes
        .map(|change| change.object.number("/spec/replicas"))
        .max();
    assert_eq!(most, Some(3), "workers do not count");
    let revisions = world.revisions_of("demo");
    let names: Vec<_> = revisions.iter().map(|revision| revision.name()).collect();
    assert_eq!(names, [revision], "scaling is no template change");
    assert!(!world.has_event("Warning", "SelectorRequired", ""));
    Ok(())
}

#[tokio::test]
async fn c25_autoscaler_scales_groups_by_the_cpu_of_their_leaders() -> Result<()> {
    on_shared_cluster(async |bench| {
        scaled_by_the_cpu_of_leaders(bench, Manifest::new("demo", 1, 2)).await
    })
    .await
}

/// HASH-73: the selector finds the leaders of the Deployment.
#[tokio::test]
async fn c25_hash_73_autoscaler_scales_a_set_with_hash_identity() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 1, 2).spec(json!({"groupIdentity": "Hash"}));
        scaled_by_the_cpu_of_leaders(bench, set).await
    })
    .await
}
