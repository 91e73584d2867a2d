//! What is, and what is not, a change of the template.

use std::collections::BTreeMap;

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::{Value, json};

/// What must stay while nothing relevant changes.
#[derive(Debug, PartialEq)]
struct Fixed {
    uids: BTreeMap<String, String>,
    template: Value,
    revisions: Vec<String>,
}

fn fixed(bench: &Bench) -> Fixed {
    let world = bench.world();
    let groups = [world.uids("demo", 0), world.uids("demo", 1)];
    Fixed {
        uids: groups.into_iter().flatten().collect(),
        template: world.stateful_set("demo").at("/spec/template").clone(),
        revisions: world
            .revisions_of("demo")
            .into_iter()
            .map(|revision| revision.name().to_owned())
            .collect(),
    }
}

#[tokio::test]
async fn c16_other_changes_roll_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2);
        bench.create(set.clone()).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let before = fixed(bench);
        let budget =
            json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}});
        let changes = [
            json!({"metadata": {"labels": {"team": "x"}}}),
            json!({"metadata": {"labels": {"team": "y"}}}),
            json!({"spec": {"replicas": 3}}),
            json!({"spec": {"replicas": 2}}),
            json!({"spec": budget}),
            json!({"spec": {"startupPolicy": "LeaderReady"}}),
            json!({"spec": {"networkConfig": {"subdomainPolicy": "Shared"}}}),
        ];
        for change in changes {
            bench.patch(Kind::Set, "demo", change.clone()).await?;
            bench.until_available("demo").await?;
            bench.settled().await?;
            assert_eq!(fixed(bench), before, "{change}");
        }
        let world = bench.world();
        assert_eq!(world.stateful_set("demo").label("team"), Some("y"));
        assert_eq!(world.events("CreatingRevision").len(), 1);
        let updating = world
            .history()
            .iter()
            .any(|change| change.kind == Kind::Set && change.object.is("UpdateInProgress"));
        assert!(!updating, "UpdateInProgress is never True");
        for name in world.names(Kind::StatefulSet) {
            let object = world.stateful_set(name);
            assert!(object.label(label::ROLE).is_some(), "{name}");
            let labels = object.at("/spec/template/metadata/labels");
            assert!(
                labels[label::ROLE].is_null() && labels["team"].is_null(),
                "{labels}"
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c16_the_same_manifest_again_rolls_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2);
        bench.apply(set.clone()).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let before = fixed(bench);
        for _ in 0..5 {
            bench.apply(set.clone()).await?;
        }
        bench.settled().await?;
        assert_eq!(fixed(bench), before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c16_metadata_of_the_controller_wins() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 1, 2).metadata(json!({
            "labels": {label::NAME: "evil", label::REVISION: "evil", label::GROUP_INDEX: "7", "team": "x"},
            "annotations": {annotation::REPLICAS: "9", "note": "a", annotation::LAST_APPLIED: "{}"},
        }));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        for name in ["demo", "demo-0"] {
            let object = world.stateful_set(name);
            assert_eq!(object.label(label::NAME), Some("demo"), "{name}");
            assert_ne!(object.label(label::REVISION), Some("evil"), "{name}");
            assert_eq!(object.label("team"), Some("x"), "{name}");
            assert_eq!(object.annotation("note"), Some("a"), "{name}");
            assert_eq!(object.annotation(annotation::LAST_APPLIED), None, "{name}");
        }
        assert_eq!(world.stateful_set("demo").annotation(annotation::REPLICAS), Some("1"));
        assert_eq!(world.stateful_set("demo-0").label(label::GROUP_INDEX), Some("0"));
        for pod in ["demo-0", "demo-0-1"] {
            assert_eq!(world.pod(pod).label(label::NAME), Some("demo"), "{pod}");
            assert_eq!(world.pod(pod).label("team"), None, "{pod}");
        }
        Ok(())
    })
    .await
}
