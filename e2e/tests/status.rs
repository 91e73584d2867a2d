//! Conditions and numbers over the life of a set.

use anyhow::Result;
use lws_e2e::{Bench, Kind, Manifest, Object, on_shared_cluster};

const WATCHED: [&str; 3] = ["Available", "Progressing", "UpdateInProgress"];

/// The True conditions over time, repeated ones dropped.
fn sequence(bench: &Bench, since: usize) -> Vec<Vec<String>> {
    let world = bench.world();
    let mut states: Vec<Vec<String>> = Vec::new();
    for change in &world.history()[since..] {
        if change.kind != Kind::Set {
            continue;
        }
        let mut names: Vec<String> = change
            .object
            .true_conditions()
            .into_iter()
            .map(str::to_owned)
            .collect();
        names.retain(|name| WATCHED.contains(&name.as_str()));
        if !names.is_empty() && states.last() != Some(&names) {
            states.push(names);
        }
    }
    states
}

/// The set and all of its conditions are about its newest generation.
fn assert_observed(bench: &Bench) {
    let world = bench.world();
    let set = world.set("demo");
    let generation = set.at("/metadata/generation");
    assert_eq!(set.at("/status/observedGeneration"), generation);
    for condition in conditions(set) {
        assert_eq!(&condition["observedGeneration"], generation, "{condition}");
    }
}

fn conditions(set: &Object) -> &[serde_json::Value] {
    set.at("/status/conditions")
        .as_array()
        .map_or(&[], Vec::as_slice)
}

#[tokio::test]
async fn c24_conditions_follow_what_happens() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 2, 2).manual()).await?;
        bench
            .until("all pods exist", |world| world.names(Kind::Pod).len() == 4)
            .await?;
        bench.settled().await?;
        assert_observed(bench);
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        bench.scale("demo", 4).await?;
        bench
            .until("all pods exist", |world| world.names(Kind::Pod).len() == 8)
            .await?;
        bench.settled().await?;
        assert_observed(bench);
        bench.play("demo").await?;
        bench.until_available("demo").await?;
        assert_eq!(
            sequence(bench, 0),
            [
                ["Progressing"],
                ["Available"],
                ["Progressing"],
                ["Available"]
            ]
        );

        let mark = bench.mark();
        bench.update_image("demo", "nginx:1.28").await?;
        loop {
            bench.settled().await?;
            assert_observed(bench);
            let group = bench.world().highest_unready_group("demo");
            let Some(group) = group else {
                break;
            };
            let settled = bench.world().set("demo").clone();
            assert!(
                settled.is("UpdateInProgress") && settled.is("Progressing"),
                "{settled:?}"
            );
            bench.make_group_ready("demo", group).await?;
        }
        bench.until_available("demo").await?;
        let states = sequence(bench, mark);
        let last = states.iter().skip_while(|state| *state == &["Available"]);
        assert_eq!(
            last.collect::<Vec<_>>(),
            [
                &vec!["Progressing".to_owned(), "UpdateInProgress".to_owned()],
                &vec!["Available".to_owned()]
            ]
        );
        let world = bench.world();
        let reasons = [
            ("Available", "AllGroupsReady"),
            ("Progressing", "GroupsProgressing"),
            ("UpdateInProgress", "GroupsUpdating"),
        ];
        for (name, reason) in reasons {
            let entry = world.set("demo").condition_entry(name);
            assert_eq!(
                entry.map(|entry| &entry["reason"]),
                Some(&reason.into()),
                "{name}"
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c24_time_of_a_condition_moves_only_with_its_status() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 1, 1)).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let time = |bench: &Bench| {
            let world = bench.world();
            let entry = world.set("demo").condition_entry("Available");
            entry.map(|entry| entry["lastTransitionTime"].clone())
        };
        let before = time(bench);
        bench
            .patch(
                Kind::Set,
                "demo",
                serde_json::json!({"spec": {"startupPolicy": "LeaderReady"}}),
            )
            .await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        assert_observed(bench);
        assert_eq!(time(bench), before);
        Ok(())
    })
    .await
}
