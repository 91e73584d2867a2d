//! `kubectl lws recover`: brings groups back whose restart budget is used up (FAIL-74).
//!
//! The request is an annotation on the leader pod that was kept; the controller does the rest.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use lws_api::names::{annotation, label};
use serde_json::{Value, json};

use crate::cli::Found;
use crate::cluster::{Connection, Kind, Named};
use crate::output;
use crate::rollout::FIELD_MANAGER;

/// Arguments of `kubectl lws recover`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kubectl lws recover llm        all groups of llm whose restart budget is used up
  kubectl lws recover llm 1      only group 1

The group comes back with its full budget. Look at its pods first: they were kept for that.")]
pub struct Arguments {
    /// NAME or lws/NAME.
    name: Named,
    /// Index of the group, or the name of its leader pod.
    group: Option<String>,
}

/// The leaders to annotate.
///
/// # Errors
/// When a group is named that needs no recovery.
pub fn choose<'a>(leaders: &'a [Pod], group: Option<&str>) -> Result<Vec<&'a Pod>, String> {
    let is_exhausted = |leader: &&Pod| {
        leader
            .annotations()
            .get(annotation::RESTART_BUDGET_EXHAUSTED)
            .is_some_and(|value| value == "true")
    };
    let Some(group) = group else {
        return Ok(leaders.iter().filter(is_exhausted).collect());
    };
    let is_meant = |leader: &&Pod| leader.name_any() == group || index(leader) == group;
    let Some(leader) = leaders.iter().find(is_meant) else {
        return Err(format!("there is no group {group}"));
    };
    if !is_exhausted(&leader) {
        let name = leader.name_any();
        return Err(format!(
            "the restart budget of group {group} is not used up; to make the group anew, delete its leader pod {name}"
        ));
    }
    Ok(vec![leader])
}

fn index(leader: &Pod) -> &str {
    leader
        .labels()
        .get(label::GROUP_INDEX)
        .map_or("", String::as_str)
}

/// FAIL-74. The UID keeps a successor of that name from being annotated.
fn request(leader: &Pod) -> Value {
    json!({"metadata": {"uid": leader.metadata.uid, "annotations": {annotation::RECOVER: "true"}}})
}

/// Runs the command.
pub async fn run(connection: &Connection, arguments: &Arguments) -> Result<Found> {
    let Arguments { name, group } = arguments;
    if name.kind == Kind::DisaggregatedSet {
        bail!(
            "name the LeaderWorkerSet of the role: kubectl get lws -l disaggregatedset.x-k8s.io/name={}",
            name.name
        );
    }
    let cluster = connection.connect().await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let selector = format!("{}={},{}=0", label::NAME, name.name, label::WORKER_INDEX);
    let leaders = pods
        .list(&ListParams::default().labels(&selector))
        .await
        .context("cannot list leader pods")?;
    let chosen = choose(&leaders.items, group.as_deref()).map_err(anyhow::Error::msg)?;
    if chosen.is_empty() {
        output::print(&format!("no group of {} needs recovery\n", name.name))?;
    }
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for leader in chosen {
        let patch = Patch::Merge(request(leader));
        pods.patch(&leader.name_any(), &parameters, &patch)
            .await
            .context("cannot annotate the leader pod")?;
        output::print(&format!(
            "group {} of {} is recovered\n",
            index(leader),
            name.name
        ))?;
    }
    Ok(Found::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(index: &str, exhausted: bool) -> Pod {
        let annotations = if exhausted {
            json!({annotation::RESTART_BUDGET_EXHAUSTED: "true"})
        } else {
            json!({})
        };
        let labels = json!({label::GROUP_INDEX: index});
        serde_json::from_value(json!({"metadata": {"name": format!("llm-{index}"), "uid": "u", "labels": labels, "annotations": annotations}})).unwrap()
    }

    #[test]
    fn fail_74_groups_to_recover() {
        let leaders = [leader("0", false), leader("1", true), leader("2", true)];
        let names = |group| -> Result<Vec<String>, String> {
            Ok(choose(&leaders, group)?
                .into_iter()
                .map(ResourceExt::name_any)
                .collect())
        };
        assert_eq!(names(None).unwrap(), ["llm-1", "llm-2"]);
        assert_eq!(names(Some("1")).unwrap(), ["llm-1"]);
        assert_eq!(names(Some("llm-2")).unwrap(), ["llm-2"]);
        assert!(
            names(Some("0"))
                .unwrap_err()
                .contains("delete its leader pod llm-0")
        );
        assert_eq!(names(Some("7")).unwrap_err(), "there is no group 7");
    }

    #[test]
    fn fail_74_request_names_the_incarnation() {
        let expected =
            json!({"metadata": {"uid": "u", "annotations": {annotation::RECOVER: "true"}}});
        assert_eq!(request(&leader("1", true)), expected);
    }
}
