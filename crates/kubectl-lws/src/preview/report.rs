//! What a manifest leads to. Decides from objects alone; steps come from the planners of the controller.

use anyhow::{Context, Result};
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::{GroupIdentity, LeaderWorkerSet};
use lws_core::disaggregatedset::foresight::{self, Course, Fate};
use lws_core::disaggregatedset::planner;
use lws_core::leaderworkerset::rehearsal::{self, Rehearsal, Start};
use lws_core::leaderworkerset::rollout::Budget;
use lws_core::model::{Ds, Lws};
use serde::Serialize;
use serde_json::Value;

use super::fetch::{Running, Seen};
use crate::cluster::Kind;
use crate::manifest::Manifest;
use crate::validate::{self, Assumed};

/// What a scaler that does not exist yet will say (SCL-5).
const FRESH_SCALER: i32 = 1;

/// What applying one object would do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What it was compared with.
    pub against: Against,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// What the webhook says beside that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Members of the spec that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// What happens to the groups of a LeaderWorkerSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// What happens to the slices of a DisaggregatedSet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// What cannot be foretold, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclear: Option<String>,
}

/// What an object was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Against {
    /// Nothing: it is new.
    Nothing,
    /// The object in the cluster.
    LiveObject,
    /// An object of another file.
    OtherFile,
}

/// What happens to the groups of a LeaderWorkerSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Groups {
    /// Wanted groups.
    pub desired: u32,
    /// Another template: groups are made anew.
    pub template_changed: bool,
    /// Groups that are made anew, the first one first.
    pub rolls: Vec<u32>,
    /// Ready groups now.
    pub ready: u32,
    /// The fewest ready groups at any time.
    pub lowest_ready: u32,
    /// The writes to the leader StatefulSet.
    pub steps: Vec<Step>,
}

/// A write to the leader StatefulSet, and what follows until the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its replicas.
    pub replicas: u32,
    /// Its partition.
    pub partition: u32,
    /// Groups that are made anew.
    pub replaced: Vec<u32>,
    /// Groups that are added.
    pub created: Vec<u32>,
    /// Groups that are removed.
    pub removed: Vec<u32>,
    /// The fewest ready groups meanwhile.
    pub lowest_ready: u32,
}

/// What happens to a slice of a DisaggregatedSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    /// Its index.
    pub slice: u32,
    /// `created`, `removed`, `scaled`, `rolled` or `unchanged`.
    pub course: &'static str,
    /// The roles that the counts are of.
    pub roles: Vec<String>,
    /// Groups now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<u64>,
    /// Groups in the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<u64>,
    /// The fewest serving groups at any time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lowest_serving: Vec<u64>,
    /// The steps of a rollout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RoleStep>,
}

/// A step of a coordinated rollout. Counts are per role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleStep {
    /// `ordinary`, `bootstrap`, `fallback` or `growOnly`.
    pub kind: &'static str,
    /// Groups of all old revisions.
    pub old: Vec<u64>,
    /// Groups of the new revision.
    pub new: Vec<u64>,
    /// Groups that serve right after the step.
    pub serving: Vec<u64>,
}

/// Compares with another manifest, or with nothing.
pub fn offline(new: &Manifest, old: Option<&Manifest>, assumed: Assumed) -> Result<Report> {
    let before = old.map(validate::complete);
    let judgement = validate::judge(new, before.as_ref(), assumed);
    let against = match old {
        Some(_) => Against::OtherFile,
        None => Against::Nothing,
    };
    let after = validate::complete(new);
    let mut report = Report::new(new, against);
    report.warnings = judgement.warnings;
    report.denial = judgement.denial;
    if report.denial.is_some() {
        return Ok(report);
    }
    report.changes = changes(before.as_ref(), &after);
    match new.kind {
        Kind::LeaderWorkerSet => {
            let after = lws(after)?;
            let before = before.map(lws).transpose()?;
            let start = before.map_or_else(Start::nothing, |before| {
                Start::at_rest(&before.spec, &after.spec)
            });
            report.foretell_groups(&after, Ok(start));
        }
        Kind::DisaggregatedSet => {
            let after = ds(after)?;
            let fresh = |_: &_| Some(FRESH_SCALER);
            report.foretell_slices(match before.map(ds).transpose()? {
                Some(before) => foresight::foresee_from_rest(&before, &after, fresh),
                None => foresight::foresee(&after, &Default::default(), fresh),
            });
        }
    }
    Ok(report)
}

/// Compares with what runs.
pub fn live(new: &Manifest, seen: &Seen) -> Result<Report> {
    let against = match &seen.old {
        Some(_) => Against::LiveObject,
        None => Against::Nothing,
    };
    let mut report = Report::new(new, against);
    let after = match &seen.new {
        Ok(after) => after,
        Err(denial) => {
            report.denial = Some(denial.clone());
            return Ok(report);
        }
    };
    report.changes = changes(seen.old.as_ref(), after);
    match &seen.running {
        Running::Nothing if new.kind == Kind::LeaderWorkerSet => {
            report.foretell_groups(&lws(after.clone())?, Ok(Start::nothing()));
        }
        Running::Nothing => {
            let fresh = |_: &_| Some(FRESH_SCALER);
            let fates = foresight::foresee(&ds(after.clone())?, &Default::default(), fresh);
            report.foretell_slices(fates);
        }
        Running::Groups(snapshot) => {
            report.foretell_groups(&lws(after.clone())?, Start::of(snapshot));
        }
        Running::Slices { children, scalers } => {
            let scaler = |leaf: &_| scalers.get(leaf).copied().or(Some(FRESH_SCALER));
            let fates = foresight::foresee(&ds(after.clone())?, children, scaler);
            report.foretell_slices(fates);
        }
    }
    Ok(report)
}

impl Report {
    fn new(manifest: &Manifest, against: Against) -> Self {
        Self {
            kind: manifest.kind,
            name: manifest.name().to_owned(),
            against,
            denial: None,
            warnings: Vec::new(),
            changes: Vec::new(),
            groups: None,
            slices: Vec::new(),
            unclear: None,
        }
    }

    fn foretell_groups(&mut self, set: &Lws, start: Result<Start, rehearsal::Unclear>) {
        let budget = Budget::of(&set.spec).map_err(rehearsal::Unclear::from);
        match (set.spec.group_identity(), budget, start) {
            (GroupIdentity::Ordinal, Ok(budget), Ok(start)) => {
                self.groups = Some(Groups::of(budget, start));
            }
            (GroupIdentity::Hash, Ok(budget), Ok(_)) => self.unclear = Some(of_hash(budget)),
            (_, Err(unclear), _) | (_, _, Err(unclear)) => self.unclear = Some(unclear.to_string()),
        }
    }

    fn foretell_slices(&mut self, fates: Result<Vec<Fate>, foresight::Unclear>) {
        match fates {
            Ok(fates) => self.slices = fates.into_iter().map(Slice::of).collect(),
            Err(unclear) => self.unclear = Some(unclear.to_string()),
        }
    }
}

/// The leaders of Hash sets are rolled by a Deployment, whose order is its own.
fn of_hash(budget: Budget) -> String {
    let lowest = budget
        .desired_replicas
        .saturating_sub(budget.max_unavailable);
    let highest = budget.burst_replicas();
    format!(
        "with groupIdentity Hash a Deployment exchanges the groups in an order of its own: at least {lowest} are ready and at most {highest} exist at a time"
    )
}

impl Groups {
    fn of(budget: Budget, start: Start) -> Self {
        let template_changed = start.template_changed;
        let Rehearsal {
            scenes,
            ready,
            lowest,
        } = rehearsal::rehearse(budget, start);
        let steps: Vec<Step> = scenes
            .into_iter()
            .map(|scene| Step {
                replicas: scene.parameters.replicas,
                partition: scene.parameters.partition,
                replaced: scene.replaced,
                created: scene.created,
                removed: scene.removed,
                lowest_ready: scene.ready,
            })
            .collect();
        Self {
            desired: budget.desired_replicas,
            template_changed,
            rolls: steps
                .iter()
                .flat_map(|step| step.replaced.clone())
                .collect(),
            ready,
            lowest_ready: lowest,
            steps,
        }
    }
}

impl Slice {
    fn of(fate: Fate) -> Self {
        let Fate {
            slice,
            roles,
            course,
        } = fate;
        let roles = roles.iter().map(|role| role.to_string()).collect();
        let plain = |course, from, to| Self {
            slice,
            course,
            roles,
            from,
            to,
            lowest_serving: Vec::new(),
            steps: Vec::new(),
        };
        match course {
            Course::Created(to) => plain("created", Vec::new(), to),
            Course::Removed => plain("removed", Vec::new(), Vec::new()),
            Course::Scaled { from, to } => plain("scaled", from, to),
            Course::Unchanged => plain("unchanged", Vec::new(), Vec::new()),
            Course::Rolled { from, rehearsal } => {
                let last = rehearsal.scenes.last();
                let to = last.map(|scene| scene.target.clone()).unwrap_or_default();
                Self {
                    lowest_serving: rehearsal.lowest,
                    steps: rehearsal.scenes.into_iter().map(RoleStep::of).collect(),
                    ..plain("rolled", from, to)
                }
            }
        }
    }
}

impl RoleStep {
    fn of(scene: planner::Scene) -> Self {
        let planner::Scene {
            kind,
            old,
            target,
            serving,
        } = scene;
        let sum = |at: usize| old.iter().filter_map(|counts| counts.get(at)).sum();
        Self {
            kind: match kind {
                planner::Kind::Ordinary => "ordinary",
                planner::Kind::Bootstrap => "bootstrap",
                planner::Kind::Fallback => "fallback",
                planner::Kind::GrowOnly => "growOnly",
            },
            old: (0..target.len()).map(sum).collect(),
            new: target,
            serving,
        }
    }
}

/// Members of the spec that differ, those of `leaderWorkerTemplate` one by one.
fn changes(old: Option<&Value>, new: &Value) -> Vec<String> {
    let Some(old) = old else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for path in ["spec", "spec.leaderWorkerTemplate"] {
        let pointer = format!("/{}", path.replace('.', "/"));
        let members = |object: &Value| object.pointer(&pointer).and_then(Value::as_object).cloned();
        let (old, new) = (
            members(old).unwrap_or_default(),
            members(new).unwrap_or_default(),
        );
        let names = old
            .keys()
            .chain(new.keys().filter(|name| !old.contains_key(*name)));
        let differing = names.filter(|name| old.get(*name) != new.get(*name));
        paths.extend(differing.map(|name| format!("{path}.{name}")));
    }
    if paths
        .iter()
        .any(|path| path.starts_with("spec.leaderWorkerTemplate."))
    {
        paths.retain(|path| path != "spec.leaderWorkerTemplate");
    }
    paths
}

/// The set as the controller sees it.
pub fn lws(object: Value) -> Result<Lws> {
    let set: LeaderWorkerSet = serde_json::from_value(object).context("not a LeaderWorkerSet")?;
    Ok(set.into())
}

/// The set as the controller sees it.
pub fn ds(object: Value) -> Result<Ds> {
    let set: DisaggregatedSet = serde_json::from_value(object).context("not a DisaggregatedSet")?;
    Ok(set.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    fn set(image: &str, spec: &str) -> Manifest {
        let template = format!("{{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}");
        let text = format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {{name: llm}}, spec: {{leaderWorkerTemplate: {{size: 2, workerTemplate: {template}}}, {spec}}}}}"
        );
        parse(&text).unwrap().remove(0)
    }

    fn report(new: &Manifest, old: Option<&Manifest>) -> Report {
        offline(new, old, Assumed::default()).unwrap()
    }

    const BUDGET: &str = "replicas: 4, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 2, maxUnavailable: 2}}";

    #[test]
    fn ord_50_preview_of_an_update_lists_every_step() {
        let report = report(&set("b", BUDGET), Some(&set("a", BUDGET)));
        assert_eq!(report.changes, ["spec.leaderWorkerTemplate.workerTemplate"]);
        let groups = report.groups.unwrap();
        let pairs: Vec<_> = groups
            .steps
            .iter()
            .map(|step| (step.replicas, step.partition))
            .collect();
        assert_eq!(pairs, [(6, 4), (6, 2), (6, 1), (6, 0), (4, 0)]);
        assert_eq!(
            (groups.ready, groups.lowest_ready, groups.rolls),
            (4, 2, vec![3, 2, 1, 0])
        );
    }

    #[test]
    fn ord_50_preview_of_what_rolls_nothing() {
        let new = set("a", "replicas: 5, startupPolicy: LeaderReady");
        let report = report(&new, Some(&set("a", "replicas: 4")));
        assert_eq!(report.changes, ["spec.replicas", "spec.startupPolicy"]);
        let groups = report.groups.unwrap();
        assert!(!groups.template_changed && groups.rolls.is_empty());
        assert_eq!(groups.steps[0].created, [4]);
    }

    #[test]
    fn adm_preview_of_what_is_refused_foretells_nothing() {
        let report = report(&set("a", "replicas: -1"), None);
        assert!(report.denial.is_some() && report.groups.is_none());
        let hash = set("a", "groupIdentity: Hash");
        let report = offline(&hash, Some(&set("a", "replicas: 1")), Assumed::default()).unwrap();
        assert!(
            report.denial.unwrap().contains("groupIdentity"),
            "immutable"
        );
    }

    #[test]
    fn hash_55_preview_of_a_hash_set_gives_the_bounds() {
        let spec = "replicas: 4, groupIdentity: Hash";
        let report = report(&set("b", spec), Some(&set("a", spec)));
        assert!(
            report
                .unclear
                .unwrap()
                .contains("at least 3 are ready and at most 4 exist")
        );
    }

    #[test]
    fn dsr_preview_of_a_rollout_in_step() {
        let pair = |image: &str| {
            let role = |name: &str, replicas: i32| {
                format!(
                    "{{name: {name}, spec: {{replicas: {replicas}, leaderWorkerTemplate: {{workerTemplate: {{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}}}}}}}"
                )
            };
            let text = format!(
                "{{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSet, metadata: {{name: pd}}, spec: {{roles: [{}, {}]}}}}",
                role("prefill", 1),
                role("decode", 2)
            );
            parse(&text).unwrap().remove(0)
        };
        let report = report(&pair("b"), Some(&pair("a")));
        let [slice] = report.slices.as_slice() else {
            panic!("{report:?}");
        };
        assert_eq!(
            (slice.course, slice.roles.as_slice()),
            (
                "rolled",
                ["prefill".to_owned(), "decode".to_owned()].as_slice()
            )
        );
        assert_eq!(
            (
                slice.from.as_slice(),
                slice.to.as_slice(),
                slice.lowest_serving.as_slice()
            ),
            ([1, 2].as_slice(), [1, 2].as_slice(), [1, 1].as_slice())
        );
        assert_eq!(slice.steps.len(), 5);
    }
}
