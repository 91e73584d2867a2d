//! What is to be written for a DisaggregatedSet, in the order of REC-1 … REC-7.
//!
//! Decides from one snapshot; what each slice needs is the business of [`executor`], and the status follows in `report`. Nothing that the set does not
//! control is written to, and every child is patched at most once in a pass, since each patch names the version that was read.

mod divisions;
mod patches;
mod slices;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_api::disaggregatedset::Role;
use lws_api::leaderworkerset::GroupIdentity;
use serde_json::json;

use self::patches::Patches;
use super::children::Child;
use super::observe::Snapshot;
use super::scalers::{self, Scalers};
use super::targets::{self, LeafKey, Wanted};
use super::{events, revision};
use crate::build;
use crate::intent::{
    Accept, Intent, Kind, Plan, PlanError, Propagation, Step, Subresource, Target, Why,
};
use crate::model::{Ds, Meta, RoleScaler};
use crate::notice::Notice;
use crate::ownership::Expected;
use lws_api::names::ds_annotation;

/// WCH-3: when to look again while something is unfinished.
const UNFINISHED_WAIT: Duration = Duration::from_secs(1);
/// OWS-3: when something foreign stands in the way.
const FOREIGN_WAIT: Duration = Duration::from_secs(30);

/// A plan, and what the status is made from afterwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetPlan {
    /// What is to be done.
    pub plan: Plan,
    /// Slices in which a rollout can do nothing now (ROL-11).
    pub blocked: Vec<u32>,
    /// What `report` goes by; `None` if the pass ends without a status.
    pub(super) basis: Option<Basis>,
    /// SLC-5: the children without slice to remember as told of, where others were.
    pub left_alone: Option<Vec<Arc<str>>>,
}

/// What `report` goes by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    /// How many groups each role shall have.
    pub wanted: Vec<Wanted>,
    /// The scalers that drive roles.
    pub scalers: Scalers,
    /// Position of the step that writes the set itself, after which its version is another one.
    pub set_step: Option<usize>,
}

/// REC-1 … REC-7.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> SetPlan {
    if snapshot.set.meta.is_terminating() {
        return SetPlan::default();
    }
    let mut pass = Pass {
        snapshot,
        plan: Plan::default(),
        left_alone: None,
        blocked: Vec::new(),
    };
    if pass.is_refused() {
        return pass.without_status();
    }
    pass.tell_of_children_without_slice();
    pass.tell_of_groups_out_of_sight();
    if snapshot.target.is_adopted {
        pass.adopt();
        return pass.without_status();
    }
    pass.remove_slices();
    let set_step = pass.mark();
    let scalers = Scalers::of(&snapshot.set, &snapshot.scalers);
    if !pass.reconcile_scalers(&scalers) {
        return pass.without_status();
    }
    let wanted = targets::wanted(&snapshot.set.spec, |leaf| scalers.replicas(leaf));
    match targets::targets(&snapshot.set.spec, &wanted) {
        Some(targets) => pass.plan_slices(&targets, now),
        // REC-6.
        None => pass.plan.wake_after = Some(UNFINISHED_WAIT),
    }
    SetPlan {
        plan: pass.plan,
        blocked: pass.blocked,
        basis: Some(Basis {
            wanted,
            scalers,
            set_step,
        }),
        left_alone: pass.left_alone,
    }
}

struct Pass<'a> {
    snapshot: &'a Snapshot,
    plan: Plan,
    left_alone: Option<Vec<Arc<str>>>,
    blocked: Vec<u32>,
}

impl<'a> Pass<'a> {
    fn set(&self) -> &'a Ds {
        &self.snapshot.set
    }

    fn without_status(self) -> SetPlan {
        SetPlan {
            plan: self.plan,
            blocked: self.blocked,
            basis: None,
            left_alone: self.left_alone,
        }
    }

    fn push(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    /// API V-15: what only a bypassed webhook lets through. There is no telling which groups of such a role would stay, so nothing is written.
    fn is_refused(&mut self) -> bool {
        let is_hash = |role: &&Role| {
            let spec = role.spec.as_ref();
            spec.is_some_and(|spec| spec.group_identity() == GroupIdentity::Hash)
        };
        let roles = self.set().spec.roles.iter();
        let Some(role) = roles.filter(is_hash).find(|role| role.is_partitioned()) else {
            return false;
        };
        self.plan.errors.push(PlanError {
            message: format!(
                "role {}: groupIdentity Hash is not supported together with subRoles",
                role.name
            ),
            retry_after: Some(FOREIGN_WAIT),
        });
        true
    }

    /// SLC-5: once, and again when other children are meant.
    fn tell_of_children_without_slice(&mut self) {
        let names = &self.snapshot.children.without_slice;
        if *names == self.snapshot.told_of {
            return;
        }
        self.left_alone = Some(names.clone());
        if !names.is_empty() {
            self.plan
                .notices
                .push(events::children_ignored(self.set(), names));
        }
    }

    /// RDY-2: whatever depends on those groups waits.
    fn tell_of_groups_out_of_sight(&mut self) {
        let failed = self
            .snapshot
            .observations
            .values()
            .filter_map(|seen| seen.as_ref().err());
        self.plan.errors.extend(failed.map(|message| PlanError {
            message: message.clone(),
            retry_after: None,
        }));
    }

    /// REV-7 step 2: the children say what they stand for before anything else is done, so that the takeover outlives them.
    fn adopt(&mut self) {
        let target = &self.snapshot.target;
        let mut patches = Patches::default();
        for child in self.snapshot.children.list.iter().filter(|child| {
            child.revision() == target.revision && child.content_hash() != Some(&target.hash)
        }) {
            patches.annotate(
                child,
                ds_annotation::CONTENT_HASH,
                &target.hash,
                Why::ChildAdopted,
            );
        }
        self.plan.steps.extend(patches.into_steps());
    }

    /// SLC-3.
    fn remove_slices(&mut self) {
        let is_removed =
            |child: &&Child| child.slice >= self.snapshot.slices() && !child.is_terminating();
        let steps: Vec<Step> = self
            .snapshot
            .children
            .list
            .iter()
            .filter(is_removed)
            .map(|child| {
                delete(
                    child,
                    Why::SliceRemoved,
                    events::deleted_with_slice(self.set(), child),
                )
            })
            .collect();
        self.plan.steps.extend(steps);
    }

    /// REV-6.
    fn mark(&mut self) -> Option<usize> {
        let snapshot = self.snapshot;
        let set = self.set();
        if !revision::is_to_be_marked(set, &snapshot.children, &snapshot.target) {
            return None;
        }
        let body =
            json!({"metadata": {"annotations": {ds_annotation::REVISION_HASH_VERSION: "v2"}}});
        let intent = Intent::Patch {
            target: target_of(Kind::DisaggregatedSet, &set.meta),
            uid: set.meta.uid.clone(),
            resource_version: Some(set.meta.resource_version.clone()),
            subresource: Subresource::None,
            body,
        };
        self.push(Step::new(Why::SetUnmarked, intent));
        Some(self.plan.steps.len() - 1)
    }

    /// SCL-3 … SCL-6. Whether the targets may be read from the scalers: one that is only just made is looked at first.
    fn reconcile_scalers(&mut self, scalers: &Scalers) -> bool {
        for scaler in scalers.obsolete() {
            let step = self.remove_scaler(scaler);
            self.push(step);
        }
        let mut is_settled = true;
        for (leaf, name) in scalers.missing(self.set()) {
            match self.snapshot.named_scalers.get(name.as_str()) {
                None => {
                    let step = self.create_scaler(&leaf, &name);
                    self.push(step);
                    is_settled = false;
                }
                Some(found) if scalers.obsolete().contains(found) => is_settled = false,
                Some(_) => self
                    .plan
                    .notices
                    .push(events::scaler_conflict(self.set(), &name)),
            }
        }
        is_settled
    }

    fn remove_scaler(&self, scaler: &RoleScaler) -> Step {
        let (role, sub_role) = scaler.drives();
        let leaf = LeafKey {
            role: role.into(),
            sub_role: (!sub_role.is_empty()).then(|| sub_role.into()),
        };
        let intent = Intent::Delete {
            target: target_of(Kind::RoleScaler, &scaler.meta),
            uid: scaler.meta.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        let notice = events::scaler_deleted(self.set(), &scaler.key().name, &leaf);
        Step::new(Why::ScalerObsolete, intent).then(notice)
    }

    fn create_scaler(&self, leaf: &LeafKey, name: &str) -> Step {
        let (set, snapshot) = (self.set(), self.snapshot);
        let seed = scalers::seed(set, &snapshot.children, &snapshot.target.revision, leaf);
        let body = build::role_scaler::role_scaler(set, &leaf.role, leaf.sub_role.as_deref(), seed);
        let intent = Intent::Create {
            target: Target {
                kind: Kind::RoleScaler,
                key: set.key().sibling(name),
            },
            body: Arc::new(body),
            accept: Accept::Controlled {
                by: controller(set),
                foreign: events::foreign_scaler(set, name),
            },
            claim: false,
        };
        Step::new(Why::ScalerMissing, intent).then(events::scaler_created(set, name, leaf))
    }

    /// OWS-3.
    fn is_blocked_by(&mut self, name: &str) {
        let set = self.set();
        self.plan.notices.push(events::child_conflict(set, name));
        self.plan.errors.push(PlanError {
            message: events::foreign_child(set, name),
            retry_after: Some(FOREIGN_WAIT),
        });
    }
}

fn controller(set: &Ds) -> Expected {
    Expected {
        kind: Kind::DisaggregatedSet.name(),
        name: set.key().name.to_string(),
        uid: set.meta.uid.clone(),
    }
}

fn target_of(kind: Kind, meta: &Meta) -> Target {
    Target {
        kind,
        key: meta.key.clone(),
    }
}

/// OWS-5. A drained child goes only as it was seen: after a start the first list may be older than the groups that it was given since.
fn delete(child: &Child, why: Why, notice: Notice) -> Step {
    let is_drained = why == Why::RevisionDrained;
    let intent = Intent::Delete {
        target: target_of(Kind::LeaderWorkerSet, &child.lws.meta),
        uid: child.lws.meta.uid.clone(),
        resource_version: is_drained.then(|| child.lws.meta.resource_version.clone()),
        propagation: Propagation::Foreground,
    };
    Step::new(why, intent).then(notice)
}
