//! Roles whose groups are divided among sub-roles: every group carries one label, and sizes follow the sub-roles.

use std::collections::BTreeMap;

use anyhow::Result;
use lws_api::names::{ds_annotation, ds_label};
use lws_e2e::{Bench, Kind, Roles, World, on_shared_cluster};
use serde_json::{Value, json};

/// Role `decode` has groups of two pods.
fn divided(sub_roles: Value) -> Roles {
    let patch = json!({"subRoles": sub_roles, "spec": {"replicas": null, "leaderWorkerTemplate": {"size": 2}}});
    Roles::new("pd", &[("prefill", 1), ("decode", 1)])
        .role("decode", patch)
        .budget("decode", json!(1), json!(0))
}

fn shares(long: i64, short: i64) -> Roles {
    divided(json!([{"name": "long", "replicas": long}, {"name": "short", "replicas": short}]))
}

/// Pods of the role per sub-role; those without a label count for the empty one.
fn labelled(world: &World) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for pod in world.all(Kind::Pod) {
        if pod.label(ds_label::ROLE) == Some("decode") && !pod.is_terminating() {
            *counts
                .entry(pod.label(ds_label::SUBROLE).unwrap_or_default())
                .or_default() += 1;
        }
    }
    counts
}

/// Whether the role is as it is written, with these pods per sub-role.
fn is_settled(world: &World, pods: &[(&str, usize)]) -> bool {
    let set = world.get(Kind::DisaggregatedSet, "pd");
    world.are_roles_available("pd")
        && set.is("SubRolesAssigned")
        && labelled(world) == pods.iter().copied().collect()
}

async fn until_settled(bench: &Bench, what: &str, pods: &[(&str, usize)]) -> Result<()> {
    bench.until(what, |world| is_settled(world, pods)).await
}

#[tokio::test]
async fn srl_5_every_group_belongs_to_one_sub_role() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(shares(1, 2)).await?;
        until_settled(
            bench,
            "all groups are assigned",
            &[("long", 2), ("short", 4)],
        )
        .await?;
        let child = {
            let world = bench.world();
            for (entry, groups) in [("decode", 3), ("decode/long", 1), ("decode/short", 2)] {
                assert_eq!(world.role_status("pd", entry), [groups; 4], "{entry}");
            }
            let [child] = world.children_of_role("pd", "decode")[..] else {
                panic!("one child")
            };
            let counts = Some(r#"{"long":1,"short":2}"#);
            assert_eq!(child.annotation(ds_annotation::SUBROLE_REPLICAS), counts);
            assert_eq!(
                child.annotation(ds_annotation::INITIAL_SUBROLE_REPLICAS),
                counts
            );
            assert_eq!(child.annotation(ds_annotation::INITIAL_REPLICAS), Some("3"));
            child.name().to_owned()
        };
        let before = bench.world().all_uids(&child);

        bench.replace_roles(shares(2, 1)).await?;
        until_settled(
            bench,
            "a group has changed sides",
            &[("long", 4), ("short", 2)],
        )
        .await?;
        assert_eq!(
            bench.world().all_uids(&child),
            before,
            "SRL-15: no pod restarts"
        );

        bench.replace_roles(shares(1, 1)).await?;
        bench
            .until("one group is gone", |world| {
                is_settled(world, &[("long", 2), ("short", 2)]) && world.all_uids(&child).len() == 4
            })
            .await?;
        let after = bench.world().all_uids(&child);
        assert!(after.iter().all(|pod| before.get(pod.0) == Some(pod.1)));

        bench.delete(Kind::Pod, &format!("{child}-0")).await?;
        bench
            .until("the group is back with its label", |world| {
                let now = world.all_uids(&child);
                let is_new = now.get(&format!("{child}-0-1")) != after.get(&format!("{child}-0-1"));
                is_new && is_settled(world, &[("long", 2), ("short", 2)])
            })
            .await
    })
    .await
}

#[tokio::test]
async fn srl_17_a_rollout_exchanges_each_sub_role() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(shares(2, 2)).await?;
        until_settled(
            bench,
            "all groups are assigned",
            &[("long", 4), ("short", 4)],
        )
        .await?;
        let old = bench.world().pods_of_roles("pd");
        bench
            .replace_roles(shares(2, 2).image("nginx:1.28"))
            .await?;
        bench
            .until("the rollout is over", |world| {
                let pods = world.pods_of_roles("pd");
                pods.keys().all(|pod| !old.contains_key(pod))
                    && is_settled(world, &[("long", 4), ("short", 4)])
            })
            .await?;
        bench
            .until("its end is told", |world| {
                world.has_event("Normal", "RollingUpdateCompleted", "slice 0")
            })
            .await
    })
    .await
}

#[tokio::test]
async fn srl_10_a_sub_role_is_scaled_from_outside_and_the_division_ends() -> Result<()> {
    on_shared_cluster(async |bench| {
        let external = json!([
            {"name": "long", "scaling": {"mode": "External"}},
            {"name": "short", "replicas": 1},
        ]);
        bench.create(divided(external)).await?;
        until_settled(
            bench,
            "all groups are assigned",
            &[("long", 2), ("short", 2)],
        )
        .await?;
        bench
            .kubectl(&[
                "scale",
                "disaggregatedsetrolescaler",
                "pd-decode-long",
                "--replicas=2",
            ])
            .await?;
        until_settled(
            bench,
            "the sub-role has grown",
            &[("long", 4), ("short", 2)],
        )
        .await?;
        bench
            .until("the scaler counts the groups of its sub-role", |world| {
                world
                    .get(Kind::Scaler, "pd-decode-long")
                    .number("/status/replicas")
                    == 2
            })
            .await?;
        let before = bench.world().pods_of_roles("pd");
        let whole = divided(Value::Null).role("decode", json!({"spec": {"replicas": 3}}));
        bench.replace_roles(whole).await?;
        bench
            .until("no group has a label", |world| {
                let set = world.get(Kind::DisaggregatedSet, "pd");
                let children = world.children_of_role("pd", "decode");
                world.are_roles_available("pd")
                    && labelled(world) == BTreeMap::from([("", 6)])
                    && set.condition("SubRolesAssigned").is_none()
                    && !world.has(Kind::Scaler, "pd-decode-long")
                    && children
                        .iter()
                        .all(|child| child.annotation(ds_annotation::SUBROLE_REPLICAS).is_none())
            })
            .await?;
        assert_eq!(bench.world().pods_of_roles("pd"), before);
        Ok(())
    })
    .await
}
