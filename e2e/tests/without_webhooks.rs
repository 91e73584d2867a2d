//! Rules that the CRDs keep by themselves, and controllers that cope without admission (API-3).

use anyhow::Result;
use lws_e2e::{Kind, Manifest, on_own_cluster};
use serde_json::{Value, json};

#[tokio::test]
async fn rules_of_the_schema_hold_without_webhooks() -> Result<()> {
    on_own_cluster("schema", async |bench| {
        bench.plant().installation().remove_webhooks()?;
        let path = "spec.leaderWorkerTemplate";
        let group = |patch: Value| Manifest::new("demo", 1, 4).group(patch);
        let spec = |patch: Value| Manifest::new("demo", 1, 4).spec(patch);
        let none = "None";
        let denied = [
            (
                group(json!({"subGroupPolicy": {}})),
                format!("{path}.subGroupPolicy.subGroupSize"),
            ),
            (
                group(json!({"subGroupPolicy": {"subGroupSize": 0}})),
                format!("{path}.subGroupPolicy.subGroupSize"),
            ),
            (
                group(json!({"subGroupPolicy": {"subGroupSize": 5}})),
                format!("{path}.subGroupPolicy.subGroupSize"),
            ),
            (
                group(json!({"maxGroupRestarts": 1, "restartPolicy": none})),
                format!("{path}.maxGroupRestarts"),
            ),
            (
                group(json!({"restartBackoff": {}, "restartPolicy": none})),
                format!("{path}.restartBackoff"),
            ),
            (
                group(json!({"restartBackoff": {"baseSeconds": 600, "capSeconds": 300}})),
                format!("{path}.restartBackoff.baseSeconds"),
            ),
            (
                spec(json!({"groupReplacementPolicy": "Immediate"})),
                "spec.groupReplacementPolicy".to_owned(),
            ),
            (
                spec(json!({"podTerminationPolicy": "Sometime"})),
                "spec.podTerminationPolicy".to_owned(),
            ),
        ];
        for (manifest, field) in denied {
            let denial = bench.refused(manifest).await?;
            assert_eq!(
                (denial.code, denial.reason.as_str()),
                (422, "Invalid"),
                "{denial:?}"
            );
            denial.names(&field, "");
        }

        bench.create(Manifest::new("demo", 0, 4)).await?;
        let policy = json!({"subGroupPolicy": {"subGroupSize": 2}});
        let change = json!({"spec": {"leaderWorkerTemplate": policy}});
        let denial = bench.patch_refused(Kind::Set, "demo", change).await?;
        denial.names("subGroupSize", "");
        let change = json!({"spec": {"groupIdentity": "Hash"}});
        bench
            .patch_refused(Kind::Set, "demo", change)
            .await?
            .names("spec.groupIdentity", "");
        // Nothing was defaulted by admission; the controller copes (ORD-22).
        bench.until_available("demo").await?;
        bench.plant().installation().add_webhooks()?;
        Ok(())
    })
    .await
}
