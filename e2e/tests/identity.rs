//! Subgroups and TPU variables of pods.

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Bench, Kind, Manifest, Object, on_shared_cluster};
use serde_json::{Value, json};

/// Creates a set and waits for its pods, whether or not they can run.
async fn pods(bench: &Bench, set: Manifest, count: usize) -> Result<()> {
    let name = set.name().to_owned();
    bench.create(set).await?;
    let what = format!("all pods of {name} exist");
    bench
        .until(&what, |world| world.pods_of(&name).count() == count)
        .await
}

/// A row of C08: what the pods of a group get.
struct SubgroupRow {
    size: i64,
    subgroup: i64,
    policy: &'static str,
    leader: Option<&'static str>,
    workers: &'static [&'static str],
}

#[tokio::test]
async fn c08_subgroup_index_of_every_pod() -> Result<()> {
    let row = |size, subgroup, policy, leader, workers| SubgroupRow {
        size,
        subgroup,
        policy,
        leader,
        workers,
    };
    let table = [
        row(4, 2, "LeaderWorker", Some("0"), &["0", "1", "1"]),
        row(5, 2, "LeaderWorker", Some("0"), &["0", "0", "1", "1"]),
        row(4, 3, "LeaderWorker", Some("0"), &["0", "0", "0"]),
        row(3, 3, "LeaderWorker", Some("0"), &["0", "0"]),
        row(3, 1, "LeaderWorker", Some("0"), &["1", "2"]),
        row(5, 2, "LeaderExcluded", None, &["0", "0", "1", "1"]),
        row(5, 4, "LeaderExcluded", None, &["0", "0", "0", "0"]),
    ];
    on_shared_cluster(async |bench| {
        for (number, row) in table.into_iter().enumerate() {
            let SubgroupRow {
                size,
                subgroup,
                policy,
                leader,
                workers,
            } = row;
            let name = format!("row-{number}");
            let group = json!({"subGroupPolicy": {
                "subGroupSize": subgroup,
                "subGroupPolicyType": policy,
            }});
            let set = Manifest::new(&name, 1, size).group(group);
            pods(bench, set, 1 + workers.len()).await?;
            let world = bench.world();
            let all = world.group(&name, 0);
            let index = |pod: &Object| pod.label(label::SUBGROUP_INDEX).map(str::to_owned);
            assert_eq!(index(all[0]).as_deref(), leader, "{name}");
            let indexes: Vec<String> = all[1..].iter().filter_map(|pod| index(pod)).collect();
            assert_eq!(indexes, workers, "{name}");
            for pod in all {
                let wanted = subgroup.to_string();
                assert_eq!(
                    pod.annotation(annotation::SUBGROUP_SIZE),
                    Some(wanted.as_str())
                );
                assert_eq!(
                    pod.annotation(annotation::SUBGROUP_POLICY_TYPE),
                    Some(policy)
                );
                assert_eq!(
                    pod.label(label::SUBGROUP_KEY).is_some(),
                    index(pod).is_some(),
                    "{}",
                    pod.name()
                );
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c08_subgroup_keys_differ_between_groups() -> Result<()> {
    on_shared_cluster(async |bench| {
        let policy = json!({"subGroupPolicy": {"subGroupSize": 2}});
        pods(bench, Manifest::new("my-lws", 2, 4).group(policy), 8).await?;
        let world = bench.world();
        let key = |pod: &str| {
            world
                .pod(pod)
                .label(label::SUBGROUP_KEY)
                .unwrap_or_default()
        };
        // pods.md section 4: SHA-1 of `my-lws-0/0` and `my-lws-0/1`.
        assert_eq!(key("my-lws-0"), "5deee8c4a097c2901d4bc8feeb358a6e7ef32eac");
        assert_eq!(key("my-lws-0-1"), key("my-lws-0"));
        assert_eq!(
            key("my-lws-0-2"),
            "342acf7ff6f85b42bb1b926ba95b46e5f1d93839"
        );
        assert_eq!(key("my-lws-0-3"), key("my-lws-0-2"));
        assert_ne!(key("my-lws-1"), key("my-lws-0"));
        assert_ne!(key("my-lws-1-3"), key("my-lws-0-3"));
        Ok(())
    })
    .await
}

const TPU_VARIABLES: [&str; 5] = [
    "TPU_WORKER_HOSTNAMES",
    "TPU_WORKER_ID",
    "TPU_NAME",
    "TPU_PROCESS_ADDRESSES",
    "TPU_PROCESS_PORT",
];

fn tpu_container(variables: Value) -> Value {
    json!({"containers": [{
        "name": "c",
        "image": "nginx:1.27",
        "env": variables,
        "resources": {"limits": {"google.com/tpu": "4"}},
    }]})
}

/// The TPU variables of a pod, in order.
fn tpu(pod: &Object) -> Vec<String> {
    let mut variables = pod.variables("c");
    variables.retain(|variable| variable.starts_with("TPU_"));
    variables
}

/// The expected variables; addresses are the hosts with the port.
fn expected(hosts: &[&str], id: i64, port: i64) -> Vec<String> {
    let addresses: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
    let values = [
        hosts.join(","),
        id.to_string(),
        "demo-0".to_owned(),
        addresses.join(","),
        port.to_string(),
    ];
    let pairs = TPU_VARIABLES.iter().zip(values);
    pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn plain_leader() -> Value {
    json!({"leaderTemplate": {"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}})
}

#[tokio::test]
async fn c09_subgroups_of_one_are_slices_of_their_own() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 1, 3)
            .pod(json!({"spec": tpu_container(json!([{"name": "A", "value": "1"}]))}))
            .group(json!({"subGroupPolicy": {"subGroupSize": 1}}));
        pods(bench, set, 3).await?;
        let world = bench.world();
        for pod in ["demo-0", "demo-0-1", "demo-0-2"] {
            let host = format!("{pod}.demo");
            assert_eq!(tpu(world.pod(pod)), expected(&[&host], 0, 8476), "{pod}");
            let variables = world.pod(pod).variables("c");
            assert_eq!(
                variables[3], "A=1",
                "the user's variables stand before them"
            );
        }
        for pod in ["demo-0-1", "demo-0-2"] {
            let value = world.pod(pod).annotation(annotation::LEADER_REQUESTS_TPUS);
            assert_eq!(value, Some("true"), "{pod}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c09_leader_without_tpus_is_not_part_of_the_slice() -> Result<()> {
    let hosts = ["demo-0-1.demo", "demo-0-2.demo"];
    on_shared_cluster(async |bench| {
        let set = Manifest::new("demo", 1, 3)
            .pod(json!({"spec": tpu_container(json!([]))}))
            .group(plain_leader());
        pods(bench, set, 3).await?;
        let world = bench.world();
        assert_eq!(tpu(world.pod("demo-0")), Vec::<String>::new());
        assert_eq!(tpu(world.pod("demo-0-1")), expected(&hosts, 0, 8476));
        assert_eq!(tpu(world.pod("demo-0-2")), expected(&hosts, 1, 8476));
        let value = world
            .pod("demo-0-1")
            .annotation(annotation::LEADER_REQUESTS_TPUS);
        assert_eq!(value, None);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c09_port_and_id_of_the_user_count() -> Result<()> {
    on_shared_cluster(async |bench| {
        let port = json!([{"name": "TPU_PROCESS_PORT", "value": "9000"}]);
        let set = Manifest::new("demo", 1, 3)
            .pod(json!({"spec": tpu_container(port)}))
            .group(plain_leader());
        pods(bench, set, 3).await?;
        let id = json!([{"name": "TPU_WORKER_ID", "value": "7"}]);
        let set = Manifest::new("own-id", 1, 3)
            .pod(json!({"spec": tpu_container(id)}))
            .group(plain_leader());
        pods(bench, set, 3).await?;
        let world = bench.world();
        let variables = tpu(world.pod("demo-0-2"));
        let addresses = "TPU_PROCESS_ADDRESSES=demo-0-1.demo:9000,demo-0-2.demo:9000".to_owned();
        assert!(variables.contains(&addresses), "{variables:?}");
        let ports = variables
            .iter()
            .filter(|variable| variable.starts_with("TPU_PROCESS_PORT"));
        assert_eq!(ports.collect::<Vec<_>>(), ["TPU_PROCESS_PORT=9000"]);
        assert_eq!(tpu(world.pod("own-id-0-1")), ["TPU_WORKER_ID=7"]);
        assert!(world.has(Kind::Pod, "own-id-0-2"));
        Ok(())
    })
    .await
}
