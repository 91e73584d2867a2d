//! What follows a plan: the status of the scalers, then that of the set (REC-8, REC-9).
//!
//! Written from the snapshot of the plan, also after a slice failed, and only if it changed.

use jiff::Timestamp;

use super::observe::Snapshot;
use super::plan::{Basis, SetPlan};
use super::status;
use crate::intent::{IfFailed, Intent, Kind, Step, Subresource, Target, Why};
use crate::run::Outcome;

/// The statuses to write after the steps of `plan` came to `outcome`.
pub fn report(snapshot: &Snapshot, plan: &SetPlan, outcome: &Outcome, now: Timestamp) -> Vec<Step> {
    let Some(basis) = &plan.basis else {
        return Vec::new();
    };
    let mut steps: Vec<Step> = write_scalers(snapshot, basis, now).collect();
    steps.extend(write_set(snapshot, basis, outcome, now));
    steps
}

/// SCL-10.
fn write_scalers<'a>(
    snapshot: &'a Snapshot,
    basis: &'a Basis,
    now: Timestamp,
) -> impl Iterator<Item = Step> + 'a {
    basis.scalers.usable().filter_map(move |(leaf, scaler)| {
        let status = status::of_scaler(snapshot, leaf, scaler, now);
        if status == scaler.status {
            return None;
        }
        let intent = Intent::Patch {
            target: Target {
                kind: Kind::RoleScaler,
                key: scaler.key().clone(),
            },
            uid: scaler.meta.uid.clone(),
            // Whoever scales meanwhile must not keep the autoscaler from its numbers.
            resource_version: None,
            subresource: Subresource::Status,
            body: status::scaler_patch(&status),
        };
        Some(Step::new(Why::StatusDiffers, intent).if_failed(IfFailed::Continue))
    })
}

/// STA-6.
fn write_set(
    snapshot: &Snapshot,
    basis: &Basis,
    outcome: &Outcome,
    now: Timestamp,
) -> Option<Step> {
    let set = &*snapshot.set;
    let status = status::decide(snapshot, &basis.wanted, now);
    if status == set.status {
        return None;
    }
    let marked = basis
        .set_step
        .and_then(|step| outcome.answers.get(step)?.as_ref());
    let version = marked.and_then(|set| set.pointer("/metadata/resourceVersion")?.as_str());
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::DisaggregatedSet,
            key: set.key().clone(),
        },
        uid: set.meta.uid.clone(),
        resource_version: Some(
            version.map_or_else(|| set.meta.resource_version.clone(), Into::into),
        ),
        subresource: Subresource::Status,
        body: status::patch(&status),
    };
    Some(Step::new(Why::StatusDiffers, intent))
}
