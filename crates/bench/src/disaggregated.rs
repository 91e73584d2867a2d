//! How long the plan of a large DisaggregatedSet takes, settled and in the middle of a rollout.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use lws_core::disaggregatedset::{observe, plan};
use lws_core::intent::{Kind, Target};
use lws_core::model::ObjectKey;
use serde_json::{Value, json};

use crate::samples::Samples;
use crate::world::{World, now};

const NAME: &str = "pd";
const RUNS: u32 = 100;
/// Passes after which all children are there.
const PASSES: u32 = 3;

/// Medians of observing and planning.
pub fn measure(roles: u32, groups: u32, slices: u32) -> Result<Value> {
    let mut world = World::default();
    let key = world.create(Kind::DisaggregatedSet, &set(roles, groups, slices))?;
    let children = settle(&mut world, &key)?;
    ensure!(
        children == roles * slices,
        "{children} children instead of {}",
        roles * slices
    );
    let settled = time(&world, &key);
    let target = Target {
        kind: Kind::DisaggregatedSet,
        key: key.clone(),
    };
    world.patch(
        &target,
        &json!({"spec": {"roles": roles_json(roles, groups, "nginx:1.28")}}),
    )?;
    let children = settle(&mut world, &key)?;
    ensure!(
        children == 2 * roles * slices,
        "{children} children in a rollout"
    );
    let rolling = time(&world, &key);
    Ok(json!({
        "roles": roles, "groups": groups, "slices": slices,
        "settledMilliseconds": settled.microseconds(0.5) / 1000.0,
        "rollingMilliseconds": rolling.microseconds(0.5) / 1000.0,
    }))
}

/// Lets the plan make its children, and gives each of them its groups; the number of children.
fn settle(world: &mut World, key: &ObjectKey) -> Result<u32> {
    for _ in 0..PASSES {
        let snapshot = observe(key, &world.cache).context("no set")?;
        world.perform(plan(&snapshot, now()).plan.steps)?;
        let children: Vec<ObjectKey> = world
            .cache
            .children_of(key)
            .map(|child| child.key().clone())
            .collect();
        for child in children {
            if world.cache.groups_of(&child).next().is_none() {
                world.fill(&child)?;
            }
        }
    }
    Ok(u32::try_from(world.cache.children_of(key).count())?)
}

fn time(world: &World, key: &ObjectKey) -> Samples {
    Samples::of(RUNS, || {
        if let Some(snapshot) = observe(key, &world.cache) {
            black_box(plan(&snapshot, now()));
        }
    })
}

fn set(roles: u32, groups: u32, slices: u32) -> Value {
    json!({
        "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "metadata": {"name": NAME},
        "spec": {"slices": slices, "roles": roles_json(roles, groups, "nginx:1.27")},
    })
}

fn roles_json(roles: u32, groups: u32, image: &str) -> Vec<Value> {
    let template = json!({"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": image}]}}});
    (0..roles)
        .map(|role| json!({"name": format!("role-{role}"), "spec": {"replicas": groups, "leaderWorkerTemplate": template}}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_states_are_planned() {
        let figures = measure(2, 3, 2).unwrap();
        assert!(figures["settledMilliseconds"].as_f64().unwrap() > 0.0);
        assert!(figures["rollingMilliseconds"].as_f64().unwrap() > 0.0);
    }
}
