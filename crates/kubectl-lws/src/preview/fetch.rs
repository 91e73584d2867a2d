//! Reads what a preview is compared with. The object as it would be stored comes from a dry run, so that defaults and denials are the cluster's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::{ds_label, label};
use lws_api::rolescaler::DisaggregatedSetRoleScaler;
use lws_core::cache::{Cache, Change};
use lws_core::disaggregatedset::children::Children;
use lws_core::disaggregatedset::targets::LeafKey;
use lws_core::leaderworkerset::{Snapshot, observe};
use lws_core::model::{Lws, RoleScaler, Uid};
use serde_json::{Value, json};

use super::report::lws;
use crate::cluster::{Cluster, Kind};
use crate::manifest::Manifest;

/// What there is, and what there would be.
pub struct Seen {
    /// The live object.
    pub old: Option<Value>,
    /// The object as it would be stored, or why it is refused.
    pub new: Result<Value, String>,
    /// What the live object runs.
    pub running: Running,
}

/// What a live object runs.
pub enum Running {
    /// Nothing, or it does not matter.
    Nothing,
    /// The groups of a LeaderWorkerSet, which already has the new spec.
    Groups(Box<Snapshot>),
    /// The slices of a DisaggregatedSet.
    Slices {
        /// Its children.
        children: Children,
        /// What its scalers say.
        scalers: BTreeMap<LeafKey, i32>,
    },
}

/// Reads it.
pub async fn fetch(cluster: &Cluster, manifest: &Manifest) -> Result<Seen> {
    let namespace = manifest.namespace().unwrap_or(&cluster.namespace);
    let resource = match manifest.kind {
        Kind::LeaderWorkerSet => ApiResource::erase::<LeaderWorkerSet>(&()),
        Kind::DisaggregatedSet => ApiResource::erase::<DisaggregatedSet>(&()),
    };
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let old = api
        .get_opt(manifest.name())
        .await
        .context("cannot read the live object")?;
    let old = old.map(serde_json::to_value).transpose()?;
    let new = dry_run(&api, &wanted(manifest, old.as_ref()), old.is_some()).await?;
    let running = match (&old, &new, manifest.kind) {
        (None, _, _) | (_, Err(_), _) => Running::Nothing,
        (Some(_), Ok(new), Kind::LeaderWorkerSet) => {
            groups(cluster, namespace, lws(new.clone())?).await?
        }
        (Some(old), Ok(_), Kind::DisaggregatedSet) => slices(cluster, namespace, old).await?,
    };
    Ok(Seen { old, new, running })
}

/// The manifest laid over the live object: its spec as a whole, but for replicas that it leaves to others.
fn wanted(manifest: &Manifest, old: Option<&Value>) -> Value {
    let mut object = manifest.object.clone();
    let Some(old) = old else {
        return object;
    };
    let is_open = object.pointer("/spec/replicas").is_none_or(Value::is_null);
    let live = old.pointer("/spec/replicas").filter(|_| is_open).cloned();
    if let (Some(live), Some(spec)) = (
        live,
        object.pointer_mut("/spec").and_then(Value::as_object_mut),
    ) {
        spec.insert("replicas".to_owned(), live);
    }
    let given = |member: &str| {
        let pairs = manifest.object.pointer(&format!("/metadata/{member}"));
        pairs
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let mut metadata = old.get("metadata").cloned().unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut() {
        for member in ["labels", "annotations"] {
            let pairs = metadata.entry(member).or_insert_with(|| json!({}));
            if let Some(pairs) = pairs.as_object_mut() {
                pairs.extend(given(member));
            }
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.insert("metadata".to_owned(), metadata);
    }
    object
}

async fn dry_run(
    api: &Api<DynamicObject>,
    object: &Value,
    exists: bool,
) -> Result<Result<Value, String>> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let outcome = if exists {
        api.replace(&name, &dry, &object).await
    } else {
        api.create(&dry, &object).await
    };
    match outcome {
        Ok(stored) => Ok(Ok(serde_json::to_value(stored)?)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error).context("the dry run failed"),
    }
}

async fn groups(cluster: &Cluster, namespace: &str, set: Lws) -> Result<Running> {
    let client = || cluster.client.clone();
    let selector = format!("{}={}", label::NAME, set.key().name);
    let selected = ListParams::default().labels(&selector);
    let pods: Api<Pod> = Api::namespaced(client(), namespace);
    let stateful_sets: Api<StatefulSet> = Api::namespaced(client(), namespace);
    let revisions: Api<ControllerRevision> = Api::namespaced(client(), namespace);
    let mut cache = Cache::default();
    let key = set.key().clone();
    cache.apply_sets(Change::Applied(set));
    let found = pods.list(&selected).await?.items;
    cache.apply_pods(Change::Relisted(
        found.into_iter().map(Into::into).collect(),
    ));
    let found = stateful_sets.list(&selected).await?.items;
    cache.apply_stateful_sets(Change::Relisted(
        found.into_iter().map(Into::into).collect(),
    ));
    let found = revisions.list(&selected).await?.items;
    cache.apply_revisions(Change::Relisted(
        found.into_iter().map(Into::into).collect(),
    ));
    let snapshot = observe(&key, &cache).context("the set is gone")?;
    Ok(Running::Groups(Box::new(snapshot)))
}

async fn slices(cluster: &Cluster, namespace: &str, old: &Value) -> Result<Running> {
    let text = |pointer: &str| {
        old.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let selector = format!("{}={}", ds_label::NAME, text("/metadata/name"));
    let selected = ListParams::default().labels(&selector);
    let sets: Api<LeaderWorkerSet> = Api::namespaced(cluster.client.clone(), namespace);
    let found = sets.list(&selected).await?.items;
    let found: Vec<Arc<Lws>> = found.into_iter().map(|set| Arc::new(set.into())).collect();
    let children = Children::of(&Uid::from(text("/metadata/uid")), found.iter());
    let scalers: Api<DisaggregatedSetRoleScaler> =
        Api::namespaced(cluster.client.clone(), namespace);
    let found = scalers.list(&selected).await?.items;
    let scalers = found.into_iter().map(|scaler| {
        let scaler = RoleScaler::from(scaler);
        let (role, sub_role) = scaler.drives();
        let sub_role = (!sub_role.is_empty()).then(|| sub_role.into());
        let role = role.into();
        (LeafKey { role, sub_role }, scaler.replicas)
    });
    Ok(Running::Slices {
        children,
        scalers: scalers.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    #[test]
    fn kc_manifest_is_laid_over_the_live_object() {
        let text = "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: a, labels: {team: blue}}, spec: {startupPolicy: LeaderReady}}";
        let manifest = parse(text).unwrap().remove(0);
        let old = json!({"metadata": {"name": "a", "uid": "u", "labels": {"team": "x", "other": "z"}}, "spec": {"replicas": 7, "groupIdentity": "Hash"}});
        let merged = wanted(&manifest, Some(&old));
        assert_eq!(
            merged["spec"],
            json!({"replicas": 7, "startupPolicy": "LeaderReady"})
        );
        assert_eq!(
            merged["metadata"],
            json!({"name": "a", "uid": "u", "labels": {"team": "blue", "other": "z"}, "annotations": {}})
        );
        assert_eq!(wanted(&manifest, None), manifest.object);
    }
}
