//! What a new set consists of.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Kind, Manifest, Object, on_shared_cluster};
use serde_json::json;

const SAMPLE: &str = "leaderworkerset-sample";

#[tokio::test]
async fn sample_has_the_objects_of_the_readme() -> Result<()> {
    on_shared_cluster(async |bench| {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/nginx/lws.yaml");
        bench.kubectl(&["apply", "-f", example]).await?;
        bench.until_available(SAMPLE).await?;
        {
            let world = bench.world();
            let named = |suffixes: &[&str]| -> Vec<String> {
                let names = suffixes.iter().map(|suffix| format!("{SAMPLE}{suffix}"));
                names.collect()
            };
            assert_eq!(world.names(Kind::StatefulSet), named(&["", "-0", "-1"]));
            assert_eq!(
                world.names(Kind::Pod),
                named(&["-0", "-0-1", "-0-2", "-1", "-1-1", "-1-2"])
            );
            assert_eq!(world.names(Kind::Service), named(&[""]));
            assert_eq!(world.revisions_of(SAMPLE).len(), 1);
            let service = world.get(Kind::Service, SAMPLE);
            assert_eq!(service.at("/spec/clusterIP"), "None");
            assert_eq!(service.at("/spec/selector"), &json!({label::NAME: SAMPLE}));
            assert_eq!(service.at("/spec/publishNotReadyAddresses"), true);
        }
        let table = bench.kubectl(&["get", "lws"]).await?;
        let mut lines = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let header = lines.next().unwrap_or_default();
        assert_eq!(header, ["NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE"]);
        let row = lines.next().unwrap_or_default();
        assert_eq!(row[..4], [SAMPLE, "2", "2", "2"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn size_one_has_leaders_only() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("solo", 2, 1)).await?;
        bench.until_available("solo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(world.names(Kind::StatefulSet), ["solo"]);
        assert_eq!(world.names(Kind::Pod), ["solo-0", "solo-1"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c01_zero_replicas_are_available() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(Manifest::new("demo", 0, 2)).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        let leaders = world.stateful_set("demo");
        assert_eq!(leaders.at("/spec/replicas"), 0);
        assert_eq!(
            leaders.at("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
            1
        );
        assert_eq!(world.names(Kind::Service), ["demo"]);
        assert_eq!(world.revisions_of("demo").len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn leader_ready_waits_for_each_leader() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2).manual();
        bench
            .create(set.spec(json!({"startupPolicy": "LeaderReady"})))
            .await?;
        bench
            .until("both leaders exist", |world| {
                world.names(Kind::Pod).len() == 2
            })
            .await?;
        bench.settled().await?;
        assert_eq!(bench.world().names(Kind::StatefulSet), ["demo"]);
        bench.make_ready("demo-1").await?;
        bench
            .until("group 1 gets its worker", |world| {
                world.has(Kind::Pod, "demo-1-1")
            })
            .await?;
        bench.settled().await?;
        assert_eq!(bench.world().names(Kind::StatefulSet), ["demo", "demo-1"]);
        bench.make_ready("demo-0").await?;
        bench
            .until("group 0 gets its worker", |world| {
                world.has(Kind::Pod, "demo-0-1")
            })
            .await?;
        bench.play("demo").await?;
        bench.until_available("demo").await
    })
    .await
}

#[tokio::test]
async fn unique_subdomains_have_a_service_for_each_group() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 2, 2);
        let set = set.spec(json!({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(world.names(Kind::Service), ["demo-0", "demo-1"]);
        let service = world.get(Kind::Service, "demo-1");
        assert_eq!(
            service.at("/spec/selector"),
            &json!({label::NAME: "demo", label::GROUP_INDEX: "1"})
        );
        assert!(service.is_controlled_by(world.pod("demo-1")));
        assert_eq!(world.pod("demo-1-1").at("/spec/subdomain"), "demo-1");
        let address = format!("LWS_LEADER_ADDRESS=demo-1.demo-1.{}", bench.namespace());
        assert_eq!(world.pod("demo-1-1").variables("c")[0], address);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c05_name_of_fifty_characters_works() -> Result<()> {
    on_shared_cluster(async |bench| {
        let name = "a".repeat(50);
        bench.create(Manifest::new(&name, 1, 2)).await?;
        bench.until_available(&name).await?;
        let world = bench.world();
        assert_eq!(
            world.names(Kind::Pod),
            [format!("{name}-0"), format!("{name}-0-1")]
        );
        world.all(Kind::Pod).for_each(assert_has_all_labels);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c05_name_of_sixty_characters_fails_quietly() -> Result<()> {
    on_shared_cluster(async |bench| {
        let name = "b".repeat(60);
        let log = bench.plant().audit_log();
        let position = log.position()?;
        bench.create(Manifest::new(&name, 1, 2)).await?;
        bench
            .until("the API server refuses the leader", |world| {
                world.has_event("Warning", "FailedCreate", "must be no more than 63 ")
            })
            .await?;
        bench.pass(Duration::from_secs(20)).await;
        {
            let world = bench.world();
            assert!(world.has(Kind::StatefulSet, &name));
            let set = world.set(&name);
            assert_eq!(set.number("/status/readyReplicas"), 0);
            assert_eq!(set.true_conditions(), ["Progressing"]);
        }
        let requests = log.since(position)?;
        let writes = requests
            .iter()
            .filter(|request| request.namespace == bench.namespace())
            .filter(|request| request.is_ours() && request.is_write());
        assert!(
            writes.clone().count() < 10,
            "{:?}",
            writes.collect::<Vec<_>>()
        );
        bench.delete(Kind::Set, &name).await?;
        bench.until_gone(&name).await
    })
    .await
}

fn assert_has_all_labels(pod: &Object) {
    for key in [
        label::NAME,
        label::GROUP_INDEX,
        label::WORKER_INDEX,
        label::GROUP_KEY,
        label::REVISION,
    ] {
        assert!(pod.label(key).is_some(), "{} lacks {key}", pod.name());
    }
}

#[tokio::test]
async fn c07_variables_of_the_user_follow_the_injected_ones() -> Result<()> {
    on_shared_cluster(async |bench| {
        let variables = json!([
            {"name": "FOO", "value": "$(LWS_LEADER_ADDRESS):80"},
            {"name": "LWS_WORKER_INDEX", "value": "99"},
            {"name": "BAR", "value": "1"},
        ]);
        let container = |name| json!({"name": name, "image": "nginx:1.27", "env": variables});
        let set = Manifest::new("demo", 1, 2).pod(json!({"spec": {
            "initContainers": [container("i")],
            "containers": [container("c")],
        }}));
        bench.create(set).await?;
        bench.until_available("demo").await?;
        let world = bench.world();
        let leader = format!("LWS_LEADER_ADDRESS=demo-0.demo.{}", bench.namespace());
        for (pod, index) in [("demo-0", 0), ("demo-0-1", 1)] {
            let expected = [
                leader.clone(),
                "LWS_GROUP_SIZE=2".to_owned(),
                format!("LWS_WORKER_INDEX={index}"),
                "FOO=$(LWS_LEADER_ADDRESS):80".to_owned(),
                "BAR=1".to_owned(),
            ];
            for container in ["i", "c"] {
                assert_eq!(
                    world.pod(pod).variables(container),
                    expected,
                    "{pod} {container}"
                );
            }
            assert_has_all_labels(world.pod(pod));
        }
        assert_eq!(
            world.pod("demo-0-1").annotation(annotation::LEADER_NAME),
            Some("demo-0")
        );
        for set in ["demo", "demo-0"] {
            let variables = &world.stateful_set(set).template_container("c")["env"];
            let names: BTreeSet<&str> = variables
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|variable| variable["name"].as_str())
                .collect();
            assert_eq!(names, BTreeSet::from(["FOO", "LWS_WORKER_INDEX", "BAR"]));
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c07_only_pods_of_sets_are_touched() -> Result<()> {
    on_shared_cluster(async |bench| {
        let pod = |labels| {
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "hand-made-0", "labels": labels},
                "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
            })
        };
        let plain = bench.try_create(pod(json!({"app": "x"}))).await?;
        assert_eq!(plain.variables("c"), Vec::<String>::new());
        assert_eq!(plain.at("/metadata/labels"), &json!({"app": "x"}));
        let denial = bench.refused(pod(json!({label::NAME: "demo"}))).await?;
        denial.names(annotation::SIZE, "missing");
        Ok(())
    })
    .await
}
