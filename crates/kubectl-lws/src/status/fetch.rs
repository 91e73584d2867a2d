//! Reads what a status is made from.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Event, Node, Pod, Service};
use kube::api::{Api, ListParams};
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::{ds_label, label};

use super::report::Seen;
use crate::cluster::{Cluster, Kind, Named};

/// One LeaderWorkerSet, or those of all roles of a DisaggregatedSet.
pub async fn named(cluster: &Cluster, name: &Named) -> Result<Vec<Seen>> {
    let sets: Api<LeaderWorkerSet> = api(cluster);
    let sets = match name.kind {
        Kind::LeaderWorkerSet => {
            vec![
                sets.get(&name.name)
                    .await
                    .with_context(|| format!("cannot read {name}"))?,
            ]
        }
        Kind::DisaggregatedSet => {
            let selector = format!("{}={}", ds_label::NAME, name.name);
            let found = sets
                .list(&ListParams::default().labels(&selector))
                .await?
                .items;
            if found.is_empty() {
                bail!(
                    "{name} has no LeaderWorkerSets in namespace {}",
                    cluster.namespace
                );
            }
            found
        }
    };
    let around = around(cluster).await?;
    let mut seen = Vec::new();
    for set in sets {
        seen.push(one(cluster, set, &around).await?);
    }
    Ok(seen)
}

/// All LeaderWorkerSets of the namespace, or of all.
pub async fn all(cluster: &Cluster, everywhere: bool) -> Result<Vec<LeaderWorkerSet>> {
    let sets: Api<LeaderWorkerSet> = if everywhere {
        Api::all(cluster.client.clone())
    } else {
        api(cluster)
    };
    let found = sets.list(&ListParams::default()).await;
    Ok(found.context("cannot list LeaderWorkerSets")?.items)
}

/// What stands beside the sets: objects under names that a set needs may be anybody's.
struct Around {
    stateful_sets: Vec<StatefulSet>,
    services: Vec<Service>,
    deployments: Vec<Deployment>,
    events: Vec<Event>,
    nodes: Vec<Node>,
}

async fn around(cluster: &Cluster) -> Result<Around> {
    let all = ListParams::default();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    Ok(Around {
        stateful_sets: api::<StatefulSet>(cluster).list(&all).await?.items,
        services: api::<Service>(cluster).list(&all).await?.items,
        deployments: api::<Deployment>(cluster).list(&all).await?.items,
        events: api::<Event>(cluster).list(&all).await?.items,
        // Users of a namespace may often not read nodes: then nothing is said about them.
        nodes: nodes
            .list(&all)
            .await
            .map(|list| list.items)
            .unwrap_or_default(),
    })
}

async fn one(cluster: &Cluster, set: LeaderWorkerSet, around: &Around) -> Result<Seen> {
    let name = set.metadata.name.clone().unwrap_or_default();
    let selector = format!("{}={name}", label::NAME);
    let pods = api::<Pod>(cluster)
        .list(&ListParams::default().labels(&selector))
        .await?
        .items;
    Ok(Seen {
        pods,
        stateful_sets: around.stateful_sets.clone(),
        deployment: around
            .deployments
            .iter()
            .find(|found| found.metadata.name.as_ref() == Some(&name))
            .cloned(),
        services: around.services.clone(),
        events: around.events.clone(),
        nodes: around.nodes.clone(),
        now: Timestamp::now(),
        set,
    })
}

fn api<K>(cluster: &Cluster) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}
