//! Rollouts of many groups.

use std::time::Duration;

use anyhow::Result;
use lws_api::names::annotation;
use lws_e2e::{Bench, Kind, Manifest, Verb, on_own_cluster};

/// Hundreds of pods take a while on a small machine.
const LIMIT: Duration = Duration::from_secs(300);

async fn until_available(bench: &Bench) -> Result<()> {
    bench
        .until_in(LIMIT, "demo is available", |world| {
            world.is_available("demo")
        })
        .await
}

/// Whether this is the name of a leader of `demo`.
fn is_leader(pod: &str) -> bool {
    pod.strip_prefix("demo-")
        .is_some_and(|index| index.chars().all(|letter| letter.is_ascii_digit()))
}

/// Every leader is deleted once, and never more groups are down than the budget allows.
#[tokio::test]
async fn rollout_of_200_groups_keeps_its_budget() -> Result<()> {
    on_own_cluster("large", async |bench| {
        let set = Manifest::new("demo", 200, 4).budget(0.into(), "10%".into());
        bench.create(set).await?;
        until_available(bench).await?;
        let (log, mark) = (bench.plant().audit_log(), bench.mark());
        let position = log.position()?;
        bench.update_image("demo", "nginx:1.28").await?;
        until_available(bench).await?;

        let requests = log.since(position)?;
        let deletions = requests.iter().filter(|request| {
            request.verb == "delete"
                && request.resource == "pods"
                && is_leader(&request.name)
                && request.code < 300
                // The fake kubelet ends what others deleted.
                && !request.agent.starts_with("kwok")
        });
        assert_eq!(deletions.count(), 200);
        let world = bench.world();
        let fewest = world.fewest_ready_groups("demo", mark);
        assert!(
            fewest >= 180,
            "only {fewest} groups were ready at some time"
        );
        assert_eq!(world.events("RecreateGroup"), Vec::<&str>::new());
        let born = world.history()[mark..].iter().filter(|change| {
            change.kind == Kind::Pod && change.verb == Verb::Added && change.object.is_leader()
        });
        assert_eq!(born.count(), 200);
        for pod in world.pods_of("demo") {
            assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
            assert_eq!(pod.annotation(annotation::SIZE), Some("4"));
        }
        Ok(())
    })
    .await
}
