//! The number of groups.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::json;

/// Waits for that many groups of two pods, and nothing else.
async fn until_groups(bench: &Bench, groups: i64) -> Result<()> {
    bench.until_available("demo").await?;
    bench
        .until(&format!("there are pods of {groups} groups"), |world| {
            let indexes: Vec<i64> = world.groups("demo").into_iter().collect();
            indexes == (0..groups).collect::<Vec<_>>()
                && world.all(Kind::Pod).count() == 2 * indexes.len()
                && world.all(Kind::StatefulSet).count() == 1 + indexes.len()
        })
        .await
}

#[tokio::test]
async fn kubectl_scales_up_to_zero_and_back() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 2, 2)).await?;
        until_groups(bench, 2).await?;
        let first = bench.world().all_uids("demo");
        for replicas in [5, 0, 2] {
            let argument = format!("--replicas={replicas}");
            bench.kubectl(&["scale", "lws", "demo", &argument]).await?;
            bench
                .until("the set is scaled", |world| {
                    world.set("demo").number("/spec/replicas") == replicas
                })
                .await?;
            until_groups(bench, replicas).await?;
            if replicas == 5 {
                let now = bench.world().all_uids("demo");
                assert!(
                    first.iter().all(|pod| now.get(pod.0) == Some(pod.1)),
                    "old groups stay"
                );
            }
            assert!(bench.world().has(Kind::Service, "demo"));
        }
        assert_eq!(bench.world().revisions_of("demo").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn subresource_scales_up_to_zero_and_back() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 2, 2)).await?;
        until_groups(bench, 2).await?;
        for replicas in [5, 0, 2] {
            bench.scale("demo", replicas).await?;
            until_groups(bench, replicas).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c25_scale_subresource_counts_groups() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 3).manual();
        bench.apply(set.clone()).await?;
        bench
            .until("both leaders exist", |world| {
                world.set("demo").number("/status/replicas") == 2
            })
            .await?;
        let selector =
            "leaderworkerset.sigs.k8s.io/name=demo,leaderworkerset.sigs.k8s.io/worker-index=0";
        let scale = bench.api(Kind::Set).get_scale("demo").await?;
        assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
        let status = scale.status.unwrap_or_default();
        assert_eq!(
            (status.replicas, status.selector.as_deref()),
            (2, Some(selector))
        );

        bench
            .kubectl(&["scale", "lws", "demo", "--replicas=3"])
            .await?;
        bench
            .until("the third leader exists", |world| {
                world.set("demo").number("/status/replicas") == 3
            })
            .await?;
        let status = bench.api(Kind::Set).get_scale("demo").await?.status;
        assert_eq!(
            status.unwrap_or_default().selector.as_deref(),
            Some(selector)
        );
        let selected = bench
            .kubectl(&["get", "pods", "-l", selector, "-o", "name"])
            .await?;
        assert_eq!(
            selected.lines().collect::<Vec<_>>(),
            ["pod/demo-0", "pod/demo-1", "pod/demo-2"]
        );

        let mut manifest = set.json();
        if let Some(spec) = manifest["spec"].as_object_mut() {
            spec.remove("replicas");
        }
        bench.apply(manifest).await?;
        assert_eq!(bench.world().set("demo").at("/spec/replicas"), 3);
        assert_eq!(bench.world().revisions_of("demo").len(), 1);

        bench.play("demo").await?;
        bench.until_available("demo").await?;
        let table = bench
            .kubectl(&["get", "lws", "demo", "--no-headers"])
            .await?;
        let columns: Vec<&str> = table.split_whitespace().collect();
        assert_eq!(columns[..4], ["demo", "3", "3", "3"]);
        Ok(())
    })
    .await
}

/// The scale subresource reaches no webhook; only the schema's bounds hold there.
#[tokio::test]
async fn c01_scale_subresource_keeps_the_bounds() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 0, 1)).await?;
        for replicas in [-1, 1_000_001] {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let api = bench.api(Kind::Set);
            let outcome = api
                .patch_scale("demo", &PatchParams::default(), &patch)
                .await;
            let message = outcome
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(message.contains("spec.replicas"), "{replicas}: {message}");
        }
        Ok(())
    })
    .await
}
