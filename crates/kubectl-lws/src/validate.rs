//! `kubectl lws validate`: what the webhooks would say about a manifest, without a cluster.
//!
//! Decides with the rules of admission itself, so the messages are the webhook's own. What the schema of the CRDs refuses is found as far as a member
//! has another type than our types give it.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_core::admission::{self, Environment, SchedulerProvider, ServedKinds};
use serde::Serialize;
use serde_json::Value;

use crate::cli::Found;
use crate::cluster::Kind;
use crate::manifest::{self, Manifest};
use crate::output::{self, Format};

const EXAMPLES: &str = "Examples:
  kubectl lws validate -f llm.yaml
  cat llm.yaml | kubectl lws validate -f -
  kubectl lws validate -f gang.yaml --scheduler-provider volcano";

/// Arguments of `kubectl lws validate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// File with manifests; - is stdin.
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
    #[command(flatten)]
    assumed: Assumed,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What is assumed of the manager in the cluster.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Assumed {
    /// Gang scheduler that the manager is configured for; its gate is taken to be on.
    #[arg(long, value_enum)]
    pub scheduler_provider: Option<Provider>,
}

/// Who schedules gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    Kubernetes,
    Volcano,
}

impl Assumed {
    fn environment(self) -> Environment {
        let provider = self.scheduler_provider.map(|provider| match provider {
            Provider::Kubernetes => SchedulerProvider::Kubernetes,
            Provider::Volcano => SchedulerProvider::Volcano,
        });
        let is_native = self.scheduler_provider == Some(Provider::Kubernetes);
        Environment {
            workload_aware_scheduling: is_native,
            scheduler_provider: provider,
            served: ServedKinds {
                workload: is_native,
                pod_group: is_native,
            },
        }
    }
}

/// What is said about one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// What is said beside that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Judges a manifest: a create, or with `old` an update.
pub fn judge(manifest: &Manifest, old: Option<&Value>, assumed: Assumed) -> Judgement {
    let environment = assumed.environment();
    let object = complete(manifest);
    let findings = match manifest.kind {
        Kind::LeaderWorkerSet => admission::lws::validate(&object, old, &environment),
        Kind::DisaggregatedSet => admission::disaggregatedset::validate(&object, old, &environment),
    };
    let denial = match misfit(manifest.kind, &object) {
        Some(misfit) => Some(misfit),
        None => (!findings.is_empty()).then(|| findings.to_string()),
    };
    Judgement {
        kind: manifest.kind,
        name: manifest.name().to_owned(),
        denial,
        warnings: findings.warnings().to_vec(),
    }
}

/// The object with the defaults of the webhook, in a namespace: kubectl gives it one before anybody sees it.
pub fn complete(manifest: &Manifest) -> Value {
    let mut object = manifest.object.clone();
    let metadata = object
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata
            .entry("namespace")
            .or_insert_with(|| "default".into());
    }
    match manifest.kind {
        Kind::LeaderWorkerSet => admission::lws::default(&mut object),
        Kind::DisaggregatedSet => {}
    }
    object
}

/// What the schema would refuse: a member of another type, or one that must be there.
fn misfit(kind: Kind, object: &Value) -> Option<String> {
    let required = match kind {
        Kind::LeaderWorkerSet => "/spec/leaderWorkerTemplate/workerTemplate",
        Kind::DisaggregatedSet => "/spec/roles",
    };
    if object.pointer(required).is_none_or(Value::is_null) {
        let path = required.trim_start_matches('/').replace('/', ".");
        return Some(format!("{path}: Required value"));
    }
    let outcome = match kind {
        Kind::LeaderWorkerSet => serde_json::from_value::<LeaderWorkerSet>(object.clone()).err(),
        Kind::DisaggregatedSet => serde_json::from_value::<DisaggregatedSet>(object.clone()).err(),
    };
    outcome.map(|error| error.to_string())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Found> {
    let manifests = manifest::read(&arguments.filename)?;
    let judgements: Vec<_> = manifests
        .iter()
        .map(|manifest| judge(manifest, None, arguments.assumed))
        .collect();
    let text = match output::structured(&judgements, arguments.output)? {
        Some(text) => text,
        None => judgements.iter().map(describe).collect(),
    };
    output::print(&text)?;
    let is_denied = judgements
        .iter()
        .any(|judgement| judgement.denial.is_some());
    Ok(if is_denied { Found::Bad } else { Found::Good })
}

/// Lines about one object.
pub fn describe(judgement: &Judgement) -> String {
    let Judgement {
        kind,
        name,
        denial,
        warnings,
    } = judgement;
    let mut text = match denial {
        Some(denial) => format!("{kind} {name}: denied: {denial}\n"),
        None => format!("{kind} {name}: valid\n"),
    };
    for warning in warnings {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Judgement {
        let manifests = manifest::parse(text).unwrap();
        judge(&manifests[0], None, Assumed::default())
    }

    fn set(spec: &str) -> String {
        format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {{name: llm}}, spec: {spec}}}"
        )
    }

    const TEMPLATE: &str = "workerTemplate: {spec: {containers: [{name: c, image: i}]}}";

    #[test]
    fn adm_adm_4_validate_says_what_the_webhook_says() {
        for (spec, denial) in [
            (format!("{{leaderWorkerTemplate: {{{TEMPLATE}}}}}"), None),
            (
                format!("{{replicas: -1, leaderWorkerTemplate: {{{TEMPLATE}}}}}"),
                Some("spec.replicas: Invalid value: -1"),
            ),
            (
                format!(
                    "{{leaderWorkerTemplate: {{size: 6, subGroupPolicy: {{subGroupSize: 4}}, {TEMPLATE}}}}}"
                ),
                Some("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Invalid value: 4"),
            ),
            (
                "{}".to_owned(),
                Some("spec.leaderWorkerTemplate.workerTemplate: Required value"),
            ),
            (
                format!("{{replicas: many, leaderWorkerTemplate: {{{TEMPLATE}}}}}"),
                Some("invalid type"),
            ),
        ] {
            let judgement = judged(&set(&spec));
            match denial {
                None => assert_eq!(judgement.denial, None, "{spec}"),
                Some(part) => {
                    let denial = judgement.denial.unwrap_or_default();
                    assert!(denial.contains(part), "{spec}: {denial}");
                }
            }
        }
    }

    #[test]
    fn adm_adm_8_validate_warns() {
        let name = "a-name-that-is-far-too-long-for-the-pods-of-a-set-of-this-kind";
        let text = set(&format!(
            "{{leaderWorkerTemplate: {{size: 2, {TEMPLATE}}}}}"
        ));
        let judgement = judged(&text.replace("llm", name));
        assert_eq!(judgement.denial, None);
        assert_eq!(judgement.warnings.len(), 1);
        assert!(describe(&judgement).contains("\n  warning: "));
    }

    #[test]
    fn ds_validate_says_what_the_webhook_says() {
        let text = "{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSet, metadata: {name: pd}, spec: {slices: 2, roles: [{name: a, scaling: {mode: External}, spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: c, image: i}]}}}}}]}}";
        let denial = judged(text).denial.unwrap_or_default();
        assert!(denial.starts_with("spec.slices: Forbidden"), "{denial}");
    }
}
