//! `kubectl lws rollout`: follow, restart, pause and resume.
//!
//! A rollout is paused by the user's own partition, so that any tool can see it and undo it. Sets with Hash identity have no partition, and a
//! DisaggregatedSet rolls its roles itself: neither can be paused. There is no history and no undo, since old revisions are not kept.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::watch_object;
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::{GroupIdentity, LeaderWorkerSet};
use serde_json::{Value, json};

use crate::cli::Found;
use crate::cluster::{Cluster, Connection, Kind, Named};
use crate::output;

/// Field manager of what users change through this plugin.
pub const FIELD_MANAGER: &str = "kubectl-lws";
/// Annotation that `kubectl rollout restart` uses for other kinds.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Commands of `kubectl lws rollout`.
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  kubectl lws rollout status llm --timeout 10m
  kubectl lws rollout restart ds/llm
  kubectl lws rollout pause llm
  kubectl lws rollout resume llm")]
pub enum Command {
    /// Follow a rollout until it is complete.
    Status {
        /// NAME, lws/NAME or ds/NAME.
        name: Named,
        /// Say how it stands and end.
        #[arg(long)]
        no_watch: bool,
        /// Give up after this time, e.g. 90s or 10m; without it never.
        #[arg(long, value_parser = duration)]
        timeout: Option<Duration>,
    },
    /// Make all groups anew, under the rollout strategy.
    Restart {
        /// NAME, lws/NAME or ds/NAME.
        name: Named,
    },
    /// Let no further group be updated, by spec.rolloutStrategy.rollingUpdateConfiguration.partition.
    Pause {
        /// NAME or lws/NAME.
        name: Named,
    },
    /// Let a paused rollout go on.
    Resume {
        /// NAME or lws/NAME.
        name: Named,
        /// Lowest group index that is updated.
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
        partition: i32,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(span).map_err(|_| format!("{text:?} is negative"))
}

/// How a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is complete.
    Done(String),
    /// It is on the way, or waits.
    Going(String),
}

impl Progress {
    fn text(&self) -> &str {
        match self {
            Self::Done(text) | Self::Going(text) => text,
        }
    }
}

/// How the rollout of a LeaderWorkerSet stands.
pub fn progress(set: &LeaderWorkerSet) -> Progress {
    let name = set.name_any();
    let status = set.status.clone().unwrap_or_default();
    if status.observed_generation < set.metadata.generation.unwrap_or_default() {
        return Progress::Going(format!(
            "Waiting for the controller to see the change of {name}"
        ));
    }
    let wanted = set.spec.replicas();
    let partition = match set.spec.group_identity() {
        GroupIdentity::Ordinal => set.spec.partition(),
        GroupIdentity::Hash => 0,
    };
    let to_update = wanted.saturating_sub(partition).max(0);
    let (updated, ready) = (status.updated_replicas, status.ready_replicas);
    if updated < to_update {
        let text = format!(
            "{updated} of {to_update} groups of {name} are updated, {ready} of {wanted} are ready"
        );
        return Progress::Going(text);
    }
    if status.replicas > wanted {
        let text = format!(
            "{} groups of {name} are still to be removed",
            status.replicas - wanted
        );
        return Progress::Going(text);
    }
    if ready < wanted || !is_true(&status.conditions, "Available") {
        return Progress::Going(format!("{ready} of {wanted} groups of {name} are ready"));
    }
    if partition > 0 && is_true(&status.conditions, "UpdateInProgress") {
        return Progress::Going(format!("{name} waits at partition {partition}"));
    }
    let held = match partition {
        0 => String::new(),
        held => format!(" down to partition {held}"),
    };
    Progress::Done(format!(
        "{name} is rolled out{held}: {ready} groups are ready"
    ))
}

/// How the rollout of a DisaggregatedSet stands.
pub fn progress_of_roles(set: &DisaggregatedSet) -> Progress {
    let name = set.name_any();
    let status = set.status.clone().unwrap_or_default();
    if status.observed_generation < set.metadata.generation.unwrap_or_default() {
        return Progress::Going(format!(
            "Waiting for the controller to see the change of {name}"
        ));
    }
    let roles: Vec<String> = status
        .role_statuses
        .iter()
        .map(|role| {
            let (updated, ready, wanted) = (
                role.updated_replicas,
                role.ready_replicas,
                role.desired_replicas,
            );
            format!(
                "{}: {updated} updated and {ready} ready of {wanted}",
                role.name
            )
        })
        .collect();
    let is_settled = status.role_statuses.iter().all(|role| {
        role.updated_replicas == role.desired_replicas
            && role.ready_replicas == role.desired_replicas
            && role.replicas == role.desired_replicas
    });
    let roles = roles.join("; ");
    if is_settled && is_true(&status.conditions, "Available") {
        Progress::Done(format!("{name} is rolled out: {roles}"))
    } else {
        Progress::Going(format!("{name}: {roles}"))
    }
}

fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == kind && condition.status == "True")
}

/// What pausing takes: the partition to set, or why there is nothing to set.
pub fn pause(set: &LeaderWorkerSet, leaders: Option<&StatefulSet>) -> Result<i32, String> {
    let name = set.name_any();
    if set.spec.group_identity() == GroupIdentity::Hash {
        return Err(format!(
            "{name} cannot be paused: with groupIdentity Hash there is no partition"
        ));
    }
    let status = set.status.clone().unwrap_or_default();
    let own = set.spec.partition();
    let reached = leaders
        .and_then(|set| {
            set.spec
                .update_strategy
                .as_ref()?
                .rolling_update
                .as_ref()?
                .partition
        })
        .unwrap_or_default();
    if !is_true(&status.conditions, "UpdateInProgress") {
        let all = set.spec.replicas();
        return if own >= all && all > 0 {
            Err(format!("{name} is paused already: its partition is {own}"))
        } else {
            Ok(all)
        };
    }
    match reached {
        0 => Err(format!(
            "{name} cannot be paused any more: its last groups are being updated"
        )),
        reached if reached <= own => {
            Err(format!("{name} is paused already: its partition is {own}"))
        }
        reached => Ok(reached),
    }
}

/// Whether resuming changes anything, or why not.
pub fn resume(set: &LeaderWorkerSet, partition: i32) -> Result<i32, String> {
    let name = set.name_any();
    if set.spec.group_identity() == GroupIdentity::Hash {
        return Err(format!(
            "{name} cannot be paused: with groupIdentity Hash there is no partition"
        ));
    }
    match set.spec.partition() {
        0 => Err(format!("{name} is not paused")),
        own if partition >= own => Err(format!("the partition of {name} is {own} already")),
        _ => Ok(partition),
    }
}

fn partition_patch(set: &LeaderWorkerSet, partition: i32) -> Value {
    json!({
        "metadata": {"uid": set.metadata.uid, "resourceVersion": set.metadata.resource_version},
        "spec": {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": partition}}},
    })
}

/// The merge patch that changes every template.
pub fn restart(set: &LeaderWorkerSet, now: Timestamp) -> Value {
    let template = template_patch(now);
    let group = match set.spec.leader_worker_template.leader_template {
        Some(_) => json!({"workerTemplate": template, "leaderTemplate": template}),
        None => json!({"workerTemplate": template}),
    };
    json!({"spec": {"leaderWorkerTemplate": group}})
}

fn template_patch(now: Timestamp) -> Value {
    json!({"metadata": {"annotations": {RESTARTED_AT: at(now)}}})
}

/// The set with every template of every role changed. A list is patched as a whole, so the version that was read goes with it.
pub fn restart_roles(mut set: Value, now: Timestamp) -> Value {
    let roles = set.pointer_mut("/spec/roles").and_then(Value::as_array_mut);
    for role in roles.into_iter().flatten() {
        for name in ["workerTemplate", "leaderTemplate"] {
            let path = format!("/spec/leaderWorkerTemplate/{name}");
            if let Some(template) = role.pointer_mut(&path).filter(|found| found.is_object()) {
                stamp(template, now);
            }
        }
    }
    let of = |pointer: &str| set.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "metadata": {"uid": of("/metadata/uid"), "resourceVersion": of("/metadata/resourceVersion")},
        "spec": {"roles": of("/spec/roles")},
    })
}

fn stamp(template: &mut Value, now: Timestamp) {
    let mut member = template.as_object_mut();
    for name in ["metadata", "annotations"] {
        let below = member.map(|found| found.entry(name).or_insert_with(|| json!({})));
        member = below.and_then(Value::as_object_mut);
    }
    if let Some(annotations) = member {
        annotations.insert(RESTARTED_AT.to_owned(), at(now).into());
    }
}

fn at(now: Timestamp) -> String {
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    seconds.to_string()
}

/// Runs a command.
pub async fn run(connection: &Connection, command: &Command) -> Result<Found> {
    let cluster = connection.connect().await?;
    match command {
        Command::Status {
            name,
            no_watch,
            timeout,
        } => follow(&cluster, name, !no_watch, *timeout).await,
        Command::Restart { name } => restart_now(&cluster, name).await,
        Command::Pause { name } => {
            let set = only_sets(&cluster, name).await?;
            let leaders: Api<StatefulSet> =
                Api::namespaced(cluster.client.clone(), &cluster.namespace);
            let leaders = leaders.get_opt(&name.name).await?;
            write_partition(&cluster, &set, pause(&set, leaders.as_ref()), "paused").await
        }
        Command::Resume { name, partition } => {
            let set = only_sets(&cluster, name).await?;
            write_partition(&cluster, &set, resume(&set, *partition), "resumed").await
        }
    }
}

async fn only_sets(cluster: &Cluster, name: &Named) -> Result<LeaderWorkerSet> {
    if name.kind == Kind::DisaggregatedSet {
        bail!("{name} cannot be paused: it rolls its roles out itself, and has no partition");
    }
    sets(cluster)
        .get(&name.name)
        .await
        .with_context(|| format!("cannot read {name}"))
}

fn sets(cluster: &Cluster) -> Api<LeaderWorkerSet> {
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

fn role_sets(cluster: &Cluster) -> Api<DisaggregatedSet> {
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

async fn write_partition(
    cluster: &Cluster,
    set: &LeaderWorkerSet,
    partition: Result<i32, String>,
    done: &str,
) -> Result<Found> {
    let partition = partition.map_err(anyhow::Error::msg)?;
    let name = set.name_any();
    let own = set.spec.partition();
    let patch = Patch::Merge(partition_patch(set, partition));
    sets(cluster)
        .patch(&name, &parameters(), &patch)
        .await
        .context("cannot write the partition")?;
    output::print(&format!(
        "leaderworkerset/{name} {done}: partition {own} -> {partition}\n"
    ))?;
    Ok(Found::Good)
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

async fn restart_now(cluster: &Cluster, name: &Named) -> Result<Found> {
    let now = Timestamp::now();
    let failed = || format!("cannot restart {name}");
    let kind = match name.kind {
        Kind::LeaderWorkerSet => {
            let sets = sets(cluster);
            let set = sets.get(&name.name).await.with_context(failed)?;
            let patch = Patch::Merge(restart(&set, now));
            sets.patch(&name.name, &parameters(), &patch)
                .await
                .with_context(failed)?;
            "leaderworkerset"
        }
        Kind::DisaggregatedSet => {
            let sets = role_sets(cluster);
            let set = sets.get(&name.name).await.with_context(failed)?;
            let patch = Patch::Merge(restart_roles(serde_json::to_value(set)?, now));
            sets.patch(&name.name, &parameters(), &patch)
                .await
                .with_context(failed)?;
            "disaggregatedset"
        }
    };
    output::print(&format!("{kind}/{} restarted\n", name.name))?;
    Ok(Found::Good)
}

async fn follow(
    cluster: &Cluster,
    name: &Named,
    watch: bool,
    timeout: Option<Duration>,
) -> Result<Found> {
    let told = async {
        match name.kind {
            Kind::LeaderWorkerSet => follow_in(sets(cluster), name, watch, progress).await,
            Kind::DisaggregatedSet => {
                follow_in(role_sets(cluster), name, watch, progress_of_roles).await
            }
        }
    };
    match timeout {
        None => told.await,
        Some(limit) => tokio::time::timeout(limit, told)
            .await
            .with_context(|| format!("{name} is not rolled out within {limit:?}"))?,
    }
}

/// Prints every change of the progress until it is done.
async fn follow_in<K>(
    api: Api<K>,
    name: &Named,
    watch: bool,
    progress: fn(&K) -> Progress,
) -> Result<Found>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let first = api
        .get(&name.name)
        .await
        .with_context(|| format!("cannot read {name}"))?;
    let mut last = progress(&first);
    output::print(&format!("{}\n", last.text()))?;
    if !watch {
        return Ok(Found::Good);
    }
    let changes = watch_object(api, &name.name);
    pin_mut!(changes);
    while let Progress::Going(_) = last {
        let change = changes.next().await.context("the watch ended")?;
        let set = change
            .with_context(|| format!("cannot watch {name}"))?
            .with_context(|| format!("{name} is gone"))?;
        let next = progress(&set);
        if next != last {
            output::print(&format!("{}\n", next.text()))?;
        }
        last = next;
    }
    Ok(Found::Good)
}

#[cfg(test)]
mod tests;
