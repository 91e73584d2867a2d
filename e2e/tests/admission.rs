//! What is refused, and how it is said.

use anyhow::Result;
use lws_api::names::annotation;
use lws_e2e::{Kind, Manifest, on_shared_cluster};
use serde_json::{Value, json};

const REPLICAS: &str = "spec.replicas";
const SIZE: &str = "spec.leaderWorkerTemplate.size";
const MAX_UNAVAILABLE: &str = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable";
const MAX_SURGE: &str = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge";
const SUBGROUP_SIZE: &str = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize";

#[tokio::test]
async fn c01_replica_bounds() -> Result<()> {
    on_shared_cluster(async |bench| {
        for replicas in [-1, 1_000_001] {
            let denial = bench.refused(Manifest::new("demo", replicas, 1)).await?;
            assert_eq!((denial.code, denial.reason.as_str()), (422, "Invalid"));
            denial.names(REPLICAS, "");
        }
        let denial = bench
            .refused(Manifest::new("demo", 1_000_000, 2148))
            .await?;
        denial.names(REPLICAS, "2147483647");
        denial.names(REPLICAS, "2148000000");
        bench
            .try_create(Manifest::new("demo", 1_000_000, 2147))
            .await?;
        bench
            .refused(Manifest::new("demo", 1, 0))
            .await?
            .names(SIZE, "1");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c02_budgets() -> Result<()> {
    let table = [
        (2, json!(0), json!(0), Some((MAX_UNAVAILABLE, "maxSurge"))),
        (
            2,
            json!("0%"),
            json!("0%"),
            Some((MAX_UNAVAILABLE, "maxSurge")),
        ),
        (
            2,
            json!("10%"),
            json!(0),
            Some((MAX_UNAVAILABLE, "maxSurge")),
        ),
        (2, json!(0), json!("10%"), None),
        (0, json!(0), json!(0), None),
        (2, json!("150%"), json!(0), Some((MAX_UNAVAILABLE, "100%"))),
        (2, json!(-1), json!(1), Some((MAX_UNAVAILABLE, ""))),
        (2, json!("abc"), json!(1), Some((MAX_UNAVAILABLE, ""))),
        (2, json!(5), json!(0), None),
        (2, json!(1), json!("150%"), Some((MAX_SURGE, "100%"))),
        (2, json!(1), json!(-1), Some((MAX_SURGE, ""))),
    ];
    on_shared_cluster(async |bench| {
        for (replicas, unavailable, surge, denied) in table {
            let set = Manifest::new("demo", replicas, 1).budget(surge, unavailable);
            match denied {
                Some((field, text)) => bench.refused(set).await?.names(field, text),
                None => drop(bench.try_create(set).await?),
            }
        }
        Ok(())
    })
    .await
}

fn subgroups(policy: Value) -> Manifest {
    Manifest::new("demo", 1, 4).group(json!({"subGroupPolicy": policy}))
}

#[tokio::test]
async fn c03_half_filled_subgroups() -> Result<()> {
    on_shared_cluster(async |bench| {
        let denied = [
            (json!({}), "required"),
            (json!({"subGroupPolicyType": "LeaderWorker"}), "required"),
            (json!({"subGroupSize": 0}), "1"),
            (json!({"subGroupSize": -2}), "1"),
            (json!({"subGroupSize": 5}), ""),
            (
                json!({"subGroupSize": 4, "subGroupPolicyType": "LeaderExcluded"}),
                "",
            ),
        ];
        for (policy, text) in denied {
            let denial = bench.refused(subgroups(policy)).await?;
            let denial = lws_e2e::Denial {
                message: denial.message.to_lowercase(),
                ..denial
            };
            denial.names(&SUBGROUP_SIZE.to_lowercase(), text);
        }
        bench
            .try_create(subgroups(json!({"subGroupSize": 3})))
            .await?;
        let accepted = bench
            .try_create(subgroups(json!({"subGroupSize": 2})))
            .await?;
        let policy = accepted.at("/spec/leaderWorkerTemplate/subGroupPolicy");
        assert_eq!(policy["subGroupPolicyType"], "LeaderWorker");

        let topology = json!({"annotations": {annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack"}});
        let denial = bench
            .refused(Manifest::new("demo", 1, 4).metadata(topology))
            .await?;
        denial.names(
            "metadata.annotations",
            annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY,
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c03_subgroups_cannot_be_changed_later() -> Result<()> {
    on_shared_cluster(async |bench| {
        let policy =
            |value: Value| json!({"spec": {"leaderWorkerTemplate": {"subGroupPolicy": value}}});
        bench.create(Manifest::new("plain", 0, 4)).await?;
        let grouped = Manifest::new("grouped", 0, 4);
        let size = json!({"subGroupSize": 2});
        bench
            .create(grouped.group(json!({"subGroupPolicy": size.clone()})))
            .await?;
        let changes = [
            ("plain", policy(size)),
            ("grouped", policy(json!({"subGroupSize": 4}))),
            ("grouped", policy(Value::Null)),
        ];
        for (name, change) in changes {
            let denial = bench.patch_refused(Kind::Set, name, change).await?;
            denial.names(SUBGROUP_SIZE, "");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c05_names() -> Result<()> {
    on_shared_cluster(async |bench| {
        for name in [&"a".repeat(64), "1demo", "de.mo"] {
            let denial = bench.refused(Manifest::new(name, 1, 1)).await?;
            denial.names("metadata.name", "");
        }
        let long = Manifest::new(&"b".repeat(60), 1, 2).json().to_string();
        let file = std::env::temp_dir().join(format!("{}.json", bench.namespace()));
        std::fs::write(&file, long)?;
        let arguments = ["-n", bench.namespace(), "create", "--dry-run=server", "-f"];
        let output = bench
            .plant()
            .target()
            .command(&arguments)
            .arg(&file)
            .output()?;
        std::fs::remove_file(&file)?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("Warning:") && said.contains("50"), "{said}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c22_budget_needs_a_recreating_policy() -> Result<()> {
    on_shared_cluster(async |bench| {
        let policies = [
            json!({"maxGroupRestarts": 1, "restartPolicy": "None"}),
            json!({"maxGroupRestarts": -1}),
        ];
        for policy in policies {
            let denial = bench
                .refused(Manifest::new("demo", 2, 2).group(policy))
                .await?;
            denial.names("spec.leaderWorkerTemplate.maxGroupRestarts", "");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn defaults_are_filled_in() -> Result<()> {
    on_shared_cluster(async |bench| {
        let mut manifest = Manifest::new("demo", 1, 1).json();
        let spec = manifest["spec"].as_object_mut();
        spec.map(|spec| spec.remove("replicas"));
        let stored = bench.try_create(manifest).await?;
        let spec = &stored["spec"];
        assert_eq!(spec["replicas"], 1);
        assert_eq!(spec["startupPolicy"], "LeaderCreated");
        assert_eq!(spec["networkConfig"], json!({"subdomainPolicy": "Shared"}));
        assert_eq!(
            spec["rolloutStrategy"],
            json!({
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
            })
        );
        let policy = &spec["leaderWorkerTemplate"]["restartPolicy"];
        assert_eq!(policy, "RecreateGroupOnPodRestart");
        let old = Manifest::new("demo", 1, 1).group(json!({"restartPolicy": "Default"}));
        let stored = bench.try_create(old).await?;
        assert_eq!(
            stored.at("/spec/leaderWorkerTemplate/restartPolicy"),
            "None"
        );
        Ok(())
    })
    .await
}
