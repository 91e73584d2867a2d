//! Known bugs in the controller of DisaggregatedSets, and what they do to plans and to what they are made from.

#[cfg(feature = "planted")]
use std::sync::Arc;

#[cfg(feature = "planted")]
use lws_api::names::ds_annotation::INITIAL_REPLICAS;
#[cfg(feature = "planted")]
use lws_core::disaggregatedset::Snapshot;
#[cfg(feature = "planted")]
use lws_core::intent::{Intent, Kind, Propagation, Step, Why};
#[cfg(feature = "planted")]
use lws_core::model::Owner;
#[cfg(feature = "planted")]
use serde_json::{Value, json};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// An old revision is drained in one step.
    DrainsAtOnce,
    /// The target gets all its groups in one step.
    GrowsAtOnce,
    /// Only the first role of an old revision is drained.
    DrainsFirstRole,
    /// New children do not say what they are meant to have.
    NoBaseline,
    /// What an old child was meant to have follows what it has.
    BaselineFollows,
    /// New children begin with all their groups in a rollout.
    StartsFull,
    /// Old revisions are deleted instead of drained.
    DeletesOld,
    /// Drained revisions stay.
    KeepsDrained,
    /// Removed slices stay.
    KeepsSlices,
    /// The status is not written.
    NoStatus,
    /// The set is said to be available.
    AvailableEarly,
    /// Every status write moves all transition times.
    TimesMove,
    /// Every group counts as Ready.
    AllReady,
    /// Children count as taken up, whatever is below them.
    AllTakenUp,
    /// What the caches show counts, however old it is.
    TrustsOldViews,
    /// Scalers count for nothing.
    SpecWins,
    /// Scalers that drive nothing stay.
    KeepsScalers,
    /// The number of a scaler is written over.
    WritesScalers,
    /// Scaler events wake nobody.
    DeafToScalers,
    /// Child events wake nobody.
    DeafToChildren,
    /// A set that ends counts as live.
    EndIgnored,
    /// Roles are made in the first slice only.
    OneSliceOnly,
    /// Templates of children are edited.
    EditsTemplates,
    /// A child of somebody else counts as a child.
    AdoptsAnything,
    /// Patches of children carry no version.
    NoFence,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::DrainsAtOnce,
        Self::GrowsAtOnce,
        Self::DrainsFirstRole,
        Self::NoBaseline,
        Self::BaselineFollows,
        Self::StartsFull,
        Self::DeletesOld,
        Self::KeepsDrained,
        Self::KeepsSlices,
        Self::NoStatus,
        Self::AvailableEarly,
        Self::TimesMove,
        Self::AllReady,
        Self::AllTakenUp,
        Self::TrustsOldViews,
        Self::SpecWins,
        Self::KeepsScalers,
        Self::WritesScalers,
        Self::DeafToScalers,
        Self::DeafToChildren,
        Self::EndIgnored,
        Self::OneSliceOnly,
        Self::EditsTemplates,
        Self::AdoptsAnything,
        Self::NoFence,
    ];
}

/// The steps of a plan or report as the bug has them.
#[cfg(feature = "planted")]
pub(super) fn spoil(flaw: Flaw, seen: &Snapshot, steps: &[Step]) -> Vec<Step> {
    let mut drained = false;
    let kept = steps.iter().filter(|step| {
        let falls = change(seen, step).is_some_and(|(has, gets)| gets < has);
        let is_left_out = match flaw {
            Flaw::KeepsDrained => step.why == Why::RevisionDrained,
            Flaw::KeepsSlices => step.why == Why::SliceRemoved,
            Flaw::KeepsScalers => step.why == Why::ScalerObsolete,
            Flaw::NoStatus => step.why == Why::StatusDiffers,
            Flaw::OneSliceOnly => step.why == Why::ChildMissing && step.part > 1,
            Flaw::DrainsFirstRole => step.why == Why::ChildRolled && falls && drained,
            _ => false,
        };
        drained |= falls;
        !is_left_out
    });
    kept.cloned()
        .map(|mut step| {
            spoil_step(flaw, seen, &mut step);
            step
        })
        .collect()
}

/// Groups that a child has, and those that it gets.
#[cfg(feature = "planted")]
fn change(seen: &Snapshot, step: &Step) -> Option<(i64, i64)> {
    let Intent::Patch { target, body, .. } = &step.intent else {
        return None;
    };
    let mut children = seen.children.list.iter();
    let child = children.find(|child| *child.name() == target.key.name)?;
    let gets = body.pointer("/spec/replicas")?.as_i64()?;
    Some((child.replicas().into(), gets))
}

#[cfg(feature = "planted")]
fn spoil_step(flaw: Flaw, seen: &Snapshot, step: &mut Step) {
    let changes = change(seen, step);
    let falls = step.why == Why::ChildRolled && changes.is_some_and(|(has, gets)| gets < has);
    let rises = step.why == Why::ChildRolled && changes.is_some_and(|(has, gets)| gets > has);
    match &mut step.intent {
        Intent::Patch {
            target,
            uid,
            body,
            subresource,
            resource_version,
        } => {
            match flaw {
                Flaw::DrainsAtOnce if falls => body["spec"]["replicas"] = json!(0),
                Flaw::GrowsAtOnce if rises => body["spec"]["replicas"] = json!(4),
                Flaw::BaselineFollows if falls => {
                    let groups = body["spec"]["replicas"].to_string();
                    body["metadata"]["annotations"][INITIAL_REPLICAS] = json!(groups);
                }
                Flaw::EditsTemplates if falls => {
                    body["spec"]["leaderWorkerTemplate"] = json!({"size": 2});
                }
                Flaw::NoFence if target.kind == Kind::LeaderWorkerSet => *resource_version = None,
                Flaw::WritesScalers if target.kind == Kind::RoleScaler => {
                    *body = json!({"spec": {"replicas": 1}});
                    *subresource = lws_core::intent::Subresource::None;
                }
                Flaw::AvailableEarly | Flaw::TimesMove => spoil_conditions(flaw, seen, body),
                _ => {}
            }
            if flaw == Flaw::DeletesOld && falls {
                step.why = Why::RevisionDrained;
                step.intent = Intent::Delete {
                    target: target.clone(),
                    uid: uid.clone(),
                    resource_version: None,
                    propagation: Propagation::Foreground,
                };
            }
        }
        Intent::Create { target, body, .. } if target.kind == Kind::LeaderWorkerSet => {
            let mut new = (**body).clone();
            let meant = new["metadata"]["annotations"][INITIAL_REPLICAS].clone();
            if flaw == Flaw::StartsFull {
                let groups = meant.as_str().and_then(|text| text.parse::<i64>().ok());
                new["spec"]["replicas"] = json!(groups);
            }
            if flaw == Flaw::NoBaseline {
                new["metadata"]["annotations"][INITIAL_REPLICAS] = json!("");
            }
            *body = Arc::new(new);
        }
        Intent::Create { .. }
        | Intent::Apply { .. }
        | Intent::SetCondition { .. }
        | Intent::Delete { .. } => {}
    }
}

#[cfg(feature = "planted")]
fn spoil_conditions(flaw: Flaw, seen: &Snapshot, body: &mut Value) {
    let version: u64 = seen.set.meta.resource_version.parse().unwrap_or(0);
    let conditions = body
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if flaw == Flaw::TimesMove {
            condition["lastTransitionTime"] =
                json!(format!("2030-01-01T00:00:{:02}Z", version % 60));
        } else {
            let is_available = condition["type"] == "Available";
            condition["status"] = json!(if is_available { "True" } else { "False" });
        }
    }
}

/// What a set is decided from, as the bug sees it.
#[cfg(feature = "planted")]
pub(super) fn blur(flaw: Flaw, seen: &mut Snapshot) {
    let observations = seen.observations.values_mut().flatten();
    match flaw {
        Flaw::AllReady => observations
            .flat_map(|seen| &mut seen.groups)
            .for_each(|group| group.is_ready = true),
        Flaw::AllTakenUp => observations.for_each(|seen| seen.is_acknowledged = true),
        Flaw::TrustsOldViews => observations.for_each(|seen| seen.is_behind = false),
        Flaw::SpecWins => {
            for scaler in &mut seen.scalers {
                Arc::make_mut(scaler).replicas = 2;
            }
        }
        Flaw::EndIgnored => Arc::make_mut(&mut seen.set).meta.deleted = None,
        Flaw::AdoptsAnything => {
            let owner = Owner {
                api_version: "disaggregatedset.x-k8s.io/v1".into(),
                kind: "DisaggregatedSet".into(),
                name: seen.set.key().name.clone(),
                uid: seen.set.meta.uid.clone(),
            };
            for mut lws in std::mem::take(&mut seen.occupied).into_values() {
                Arc::make_mut(&mut lws).meta.owner = Some(owner.clone());
                let child = lws_core::disaggregatedset::children::Child::of(&lws);
                seen.children.list.extend(child);
            }
        }
        _ => {}
    }
}
