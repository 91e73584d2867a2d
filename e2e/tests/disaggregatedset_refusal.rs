//! What is refused of a DisaggregatedSet, by the schema or by the webhook, and how the refusal names the place.

use anyhow::Result;
use lws_e2e::{Kind, Roles, on_shared_cluster};
use serde_json::{Value, json};

fn pair() -> Roles {
    Roles::new("pd", &[("prefill", 2), ("decode", 1)])
}

/// So many roles.
fn many(count: usize) -> Roles {
    let names: Vec<String> = (0..count).map(|index| format!("r{index}")).collect();
    let roles: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    Roles::new("pd", &roles)
}

fn with_sub_roles(list: Value) -> Roles {
    pair().role("prefill", json!({"subRoles": list}))
}

#[tokio::test]
async fn the_schema_refuses_with_path_and_words() -> Result<()> {
    const ZERO_OR_NOT: &str = "replicas must be zero for all non-External unpartitioned roles or non-zero for all non-External unpartitioned roles";
    const EXTERNAL: &str = "replicas must be omitted when scaling.mode is External";
    on_shared_cluster(async |bench| {
        for (set, path, words) in [
            (many(0), "spec.roles", "at least 1"),
            (many(11), "spec.roles", "at most 10"),
            (
                Roles::new("pd", &[("Prefill", 1)]),
                "spec.roles[0].name",
                "should match",
            ),
            (
                Roles::new("pd", &[("a", 1), ("a", 1)]),
                "spec.roles[1]",
                "Duplicate value",
            ),
            (Roles::new("pd", &[("a", 0), ("b", 3)]), "spec", ZERO_OR_NOT),
            (
                pair().spec(json!({"slices": 0})),
                "spec.slices",
                "greater than or equal to 1",
            ),
            (
                pair().spec(json!({"slices": 101})),
                "spec.slices",
                "less than or equal to 100",
            ),
            (
                pair().role("decode", json!({"scaling": {"mode": "Auto"}})),
                "spec.roles[1].scaling.mode",
                "Unsupported value",
            ),
            (
                with_sub_roles(
                    json!([{"name": "x", "replicas": 1, "scaling": {"mode": "External"}}]),
                ),
                "spec.roles[0].subRoles[0]",
                EXTERNAL,
            ),
            (
                with_sub_roles(json!([{"name": "x"}, {"name": "x"}])),
                "spec.roles[0].subRoles[1]",
                "Duplicate value",
            ),
            (
                with_sub_roles(json!([{"name": "x", "replicas": -1}])),
                "spec.roles[0].subRoles[0].replicas",
                "greater than or equal to 0",
            ),
        ] {
            bench.refused(set).await?.names(path, words);
        }
        for set in [
            Roles::new("pd", &[("a", 0), ("b", 0)]),
            with_sub_roles(json!([{"name": "x", "replicas": 0}])),
            many(10),
        ] {
            bench.try_create(set).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_webhook_refuses_creates_and_updates_with_all_errors_at_once() -> Result<()> {
    on_shared_cluster(async |bench| {
        let broken = |set: Roles| {
            let limits = json!({"partition": 1, "maxSurge": 0, "maxUnavailable": 1});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": limits});
            set.role("prefill", json!({"spec": {"rolloutStrategy": strategy}}))
                .spec(json!({"placementPolicy": {"type": "ExclusiveSlice"}}))
        };
        bench.create(pair()).await?;
        let spec = Value::from(broken(pair()))["spec"].take();
        let update = bench
            .patch_refused(Kind::DisaggregatedSet, "pd", json!({"spec": spec}))
            .await?;
        let other = broken(Roles::new("other", &[("prefill", 2), ("decode", 1)]));
        for denial in [bench.refused(other).await?, update] {
            assert_eq!((denial.code, denial.reason.as_str()), (403, "Forbidden"));
            denial.names(
                "spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration.partition",
                "Forbidden",
            );
            denial.names("spec.placementPolicy.topology", "Required value");
        }
        Ok(())
    })
    .await
}
