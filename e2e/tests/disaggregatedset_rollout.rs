//! Rollouts of several roles in step (C32), and what starts none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use lws_api::names::{ds_label, label};
use lws_e2e::{Bench, Kind, Roles, Verb, World, on_shared_cluster};
use serde_json::json;

const IMAGE: &str = "nginx:1.28";

/// Wanted groups by revision and role after each change of a child.
fn states(world: &World, mark: usize) -> Vec<BTreeMap<(String, String), i64>> {
    let mut state = BTreeMap::new();
    let mut states = Vec::new();
    for (index, change) in world.history().iter().enumerate() {
        let object = &change.object;
        let Some(revision) = object
            .label(ds_label::REVISION)
            .filter(|_| change.kind == Kind::Set)
        else {
            continue;
        };
        let key = (
            revision.to_owned(),
            object.label(ds_label::ROLE).unwrap_or_default().to_owned(),
        );
        match change.verb {
            Verb::Deleted => state.remove(&key),
            Verb::Added | Verb::Modified => state.insert(key, object.number("/spec/replicas")),
        };
        if index >= mark && states.last() != Some(&state) {
            states.push(state.clone());
        }
    }
    states
}

/// Groups of a role that serve, after each change of a pod.
fn ready_groups(world: &World, mark: usize, role: &str) -> Vec<usize> {
    let mut ready = BTreeSet::new();
    let mut counts = Vec::new();
    for (index, change) in world.history().iter().enumerate() {
        let pod = &change.object;
        if change.kind != Kind::Pod || pod.label(ds_label::ROLE) != Some(role) {
            continue;
        }
        if change.verb != Verb::Deleted && pod.is_ready() && !pod.is_terminating() {
            ready.insert(pod.name().to_owned());
        } else {
            ready.remove(pod.name());
        }
        if index >= mark {
            counts.push(ready.len());
        }
    }
    counts
}

/// D-4 to D-6: what holds at every observed state of a rollout of two roles.
fn check(world: &World, mark: usize, roles: &[(&str, i64)], surge: i64, unavailable: i64) {
    let states = states(world, mark);
    for state in &states {
        for (role, wanted) in roles {
            let groups: i64 = state
                .iter()
                .filter(|((_, of), _)| of == role)
                .map(|(_, groups)| groups)
                .sum();
            assert!(groups <= wanted + surge, "{role}: {state:?}");
        }
    }
    let is_uneven = |state: &BTreeMap<(String, String), i64>| {
        let revisions: BTreeSet<&String> = state.keys().map(|(revision, _)| revision).collect();
        revisions.into_iter().any(|revision| {
            let groups = state
                .iter()
                .filter(|((of, _), _)| of == revision)
                .map(|(_, groups)| *groups > 0);
            groups.collect::<BTreeSet<bool>>().len() > 1
        })
    };
    for pair in states.windows(2) {
        assert!(
            !(is_uneven(&pair[0]) && is_uneven(&pair[1])),
            "one role is left behind: {pair:?}"
        );
    }
    for (role, wanted) in roles {
        let least = ready_groups(world, mark, role)
            .into_iter()
            .min()
            .unwrap_or_default();
        let least = i64::try_from(least).expect("a number of groups");
        assert!(
            least >= wanted - unavailable,
            "{role} had only {least} of {wanted} ready"
        );
    }
}

async fn roll(bench: &Bench, set: Roles) -> Result<usize> {
    let name = set.name().to_owned();
    bench.create(set.clone()).await?;
    bench.until_roles_available(&name).await?;
    bench.settled().await?;
    let mark = bench.mark();
    bench.replace_roles(set.image(IMAGE)).await?;
    Ok(mark)
}

async fn until_rolled(bench: &Bench, set: &str, limit: u64) -> Result<()> {
    let limit = std::time::Duration::from_secs(limit);
    bench
        .until_in(limit, "the rollout is over", |world| {
            let pods = world.all(Kind::Pod);
            let is_new = pods
                .filter(|pod| !pod.is_terminating())
                .all(|pod| pod.container("c")["image"] == IMAGE);
            is_new && world.are_roles_available(set)
        })
        .await
}

#[tokio::test]
async fn a_rollout_of_6_and_14_keeps_the_bounds_of_both_roles() -> Result<()> {
    on_shared_cluster(async |bench| {
        let is_full = std::env::var_os("LWS_FULL").is_some();
        let sizes = if is_full {
            [("prefill", 30), ("decode", 70)]
        } else {
            [("prefill", 6), ("decode", 14)]
        };
        let mark = roll(bench, Roles::new("pd", &sizes)).await?;
        until_rolled(bench, "pd", 900).await?;
        {
            let world = bench.world();
            check(&world, mark, &sizes, 0, 1);
            assert_eq!(world.children("pd").len(), 2, "old children are gone");
        }
        bench
            .until("the events are told", |world| {
                // So many steps exceed what may be told of one object (KRS-65), but not the end.
                [
                    "RollingUpdateStarted",
                    "ScalingUp",
                    "ScalingDown",
                    "RollingUpdateCompleted",
                ]
                .iter()
                .all(|reason| world.has_event("Normal", reason, ""))
            })
            .await
    })
    .await
}

#[tokio::test]
async fn c32_with_surge_no_ready_group_is_lost() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Roles::new("pd", &[("prefill", 4), ("decode", 2)])
            .budget("prefill", json!(1), json!(0))
            .budget("decode", json!(1), json!(0));
        let mark = roll(bench, set).await?;
        until_rolled(bench, "pd", 180).await?;
        check(&bench.world(), mark, &[("prefill", 4), ("decode", 2)], 1, 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn roles_with_hash_identity_roll_and_scale_in_step() -> Result<()> {
    on_shared_cluster(async |bench| {
        let sizes = [("prefill", 3), ("decode", 2)];
        let ordinal = Roles::new("pd", &sizes)
            .budget("prefill", json!(1), json!(0))
            .budget("decode", json!(1), json!(0));
        let hash = |set: Roles| set.role("prefill", json!({"spec": {"groupIdentity": "Hash"}}));
        bench.create(ordinal.clone()).await?;
        bench.until_roles_available("pd").await?;
        bench.settled().await?;
        let is_hash = |world: &World| {
            let children = world.children_of_role("pd", "prefill");
            !children.is_empty()
                && children
                    .iter()
                    .all(|child| world.has(Kind::Deployment, child.name()))
        };
        for set in [hash(ordinal.clone()), hash(ordinal).image(IMAGE)] {
            let mark = bench.mark();
            let old: Vec<String> = bench
                .world()
                .child_names("pd")
                .into_iter()
                .map(str::to_owned)
                .collect();
            bench.replace_roles(set).await?;
            bench
                .until("both roles are new", |world| {
                    let names = world.child_names("pd");
                    let is_new = |name: &&str| !old.iter().any(|old| old == name);
                    names.iter().all(is_new) && is_hash(world) && world.are_roles_available("pd")
                })
                .await?;
            check(&bench.world(), mark, &sizes, 1, 0);
        }
        let fewer = json!({"spec": {"replicas": 1}});
        let smaller = hash(Roles::new("pd", &sizes))
            .role("prefill", fewer)
            .image(IMAGE);
        bench.replace_roles(smaller).await?;
        bench
            .until("one group is left", |world| {
                world.are_roles_available("pd") && world.role_status("pd", "prefill") == [1; 4]
            })
            .await
    })
    .await
}

#[tokio::test]
async fn c32_a_role_that_never_becomes_ready_stops_both() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = || Roles::new("pd", &[("prefill", 4), ("decode", 2)]);
        bench.create(set()).await?;
        bench.until_roles_available("pd").await?;
        let old = bench.world().children("pd")[0]
            .label(ds_label::REVISION)
            .map(str::to_owned);
        let stuck = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {
            "metadata": {"annotations": {lws_local_cluster::MANUAL_STATUS: "true"}},
        }}}});
        bench
            .replace_roles(set().image(IMAGE).role("decode", stuck))
            .await?;
        bench
            .until("the rollout waits", |world| {
                world.has_event("Normal", "RevisionDrainBlocked", "decode")
            })
            .await?;
        let serving = |role: &str| {
            let world = bench.world();
            let child = world.children_of_role("pd", role);
            let child = child
                .iter()
                .find(|child| child.label(ds_label::REVISION) == old.as_deref());
            child.map_or(0, |child| child.number("/spec/replicas"))
        };
        assert!(
            serving("prefill") > 0 && serving("decode") > 0,
            "both old roles serve"
        );
        bench.replace_roles(set().image("nginx:1.29")).await?;
        bench.until_roles_available("pd").await?;
        let world = bench.world();
        assert!(
            world
                .all(Kind::Pod)
                .all(|pod| pod.container("c")["image"] == "nginx:1.29")
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn d_l1_back_to_the_earlier_template_uses_its_children() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = || Roles::new("pd", &[("prefill", 3), ("decode", 3)]);
        bench.create(set()).await?;
        bench.until_roles_available("pd").await?;
        let first: Vec<String> = bench
            .world()
            .children("pd")
            .iter()
            .map(|child| child.uid().to_owned())
            .collect();
        bench.replace_roles(set().image(IMAGE)).await?;
        bench
            .until("new groups run", |world| {
                let pods = world
                    .all(Kind::Pod)
                    .filter(|pod| pod.label(label::WORKER_INDEX) == Some("0"));
                pods.filter(|pod| pod.container("c")["image"] == IMAGE)
                    .count()
                    > 0
            })
            .await?;
        bench.replace_roles(set()).await?;
        bench
            .until("only the first children are left", |world| {
                let uids: Vec<String> = world
                    .children("pd")
                    .iter()
                    .map(|child| child.uid().to_owned())
                    .collect();
                uids == first && world.are_roles_available("pd")
            })
            .await
    })
    .await
}

#[tokio::test]
async fn d_9_slices_roll_at_the_same_time_and_by_themselves() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = Roles::new("pd", &[("prefill", 2), ("decode", 2)]).spec(json!({"slices": 2}));
        roll(bench, set).await?;
        until_rolled(bench, "pd", 180).await?;
        assert_eq!(bench.world().children("pd").len(), 4);
        bench
            .until("the end is told", |world| {
                world.has_event("Normal", "RollingUpdateCompleted", "")
            })
            .await
    })
    .await
}
