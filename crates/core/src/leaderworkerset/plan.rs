//! What is to be written for a set, in the order of ORD-20.
//!
//! Decides from one snapshot; the status follows in `report`, from the same snapshot and what became of these steps. Nothing that the set does not
//! control is written to, but for an orphaned leader set, which is adopted (ORD-132).

mod service;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lws_api::leaderworkerset::{GroupIdentity, PodTerminationPolicy, SubdomainPolicy};
use lws_api::names::{annotation, label, role};
use serde_json::Value;

use super::events;
use super::groups::{self, Group};
use super::observe::Snapshot;
use super::revision::{self, NewRevision, Stored};
use super::rollout::{self, Budget, Parameters};
use crate::build;
use crate::build::leader_set::LeaderSet;
use crate::intent::{
    Accept, IfFailed, Intent, Kind, Plan, PlanError, Propagation, Step, Subresource, Target, Why,
};
use crate::model::{Lws, StatefulSet, Uid};
use crate::notice::{Notice, Reference};
use crate::ownership::{Expected, Ownership, is_orphan, judge};
use crate::restart_counts::RestartCounts;

/// ORD-20 step 5, ORD-135: when something of a predecessor stands in the way.
const LEFTOVER_WAIT: Duration = Duration::from_secs(5);
/// ORD-135: when something foreign stands in the way.
const FOREIGN_WAIT: Duration = Duration::from_secs(30);

/// A plan, and what the status is made from afterwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetPlan {
    /// What is to be done.
    pub plan: Plan,
    /// What `report` goes by; `None` if the pass ends without a status.
    pub(super) basis: Option<Basis>,
}

/// What `report` goes by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    /// Key of the current revision.
    pub revision_key: String,
    /// The groups as of that revision.
    pub groups: Vec<Group>,
    /// The budget.
    pub budget: Budget,
    /// ORD-100: pods of the leader set as of the snapshot.
    pub replicas: i32,
    /// Position of the step that writes the set itself, after which its version is another one.
    pub set_step: Option<usize>,
    /// Position of the step that writes the leader set.
    pub leader_set_step: Option<usize>,
    /// Hash of the leader set as it is wanted.
    pub desired_hash: u64,
}

impl From<Plan> for SetPlan {
    fn from(plan: Plan) -> Self {
        Self { plan, basis: None }
    }
}

/// ORD-135: the StatefulSet under the name of the set, when none stands there that will be collected.
#[derive(Clone, Copy)]
enum Found<'a> {
    Nothing,
    /// Ours, or an orphan to adopt.
    Ours(&'a StatefulSet),
    Foreign,
}

impl<'a> Found<'a> {
    fn ours(self) -> Option<&'a StatefulSet> {
        match self {
            Self::Ours(set) => Some(set),
            Self::Nothing | Self::Foreign => None,
        }
    }
}

/// ORD-20 steps 2 to 13.
pub fn plan(snapshot: &Snapshot) -> SetPlan {
    let lws = &*snapshot.lws;
    if lws.meta.is_terminating() {
        return Plan {
            steps: end_in_parallel(snapshot),
            ..Plan::default()
        }
        .into();
    }
    if let Some(what) = not_served(lws) {
        return refuse(lws, what).into();
    }
    let Some(leader_set) = found(snapshot) else {
        return Plan {
            wake_after: Some(LEFTOVER_WAIT),
            ..Plan::default()
        }
        .into();
    };
    match Budget::of(&lws.spec) {
        Ok(budget) => Pass::new(snapshot, leader_set, budget).plan(),
        // ORD-58: no write.
        Err(error) => Plan {
            errors: vec![PlanError {
                message: error.to_string(),
                retry_after: None,
            }],
            ..Plan::default()
        }
        .into(),
    }
}

/// FAIL-92: worker sets of a set that is being deleted end at once.
fn end_in_parallel(snapshot: &Snapshot) -> Vec<Step> {
    match snapshot.lws.spec.pod_termination_policy() {
        PodTerminationPolicy::Default => Vec::new(),
        PodTerminationPolicy::Parallel => {
            let ends = |set: &&Arc<StatefulSet>| {
                let is_of_a_leader = set
                    .meta
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.kind == Kind::Pod.name());
                set.meta.label(label::ROLE) == role::WORKER
                    && is_of_a_leader
                    && !set.meta.is_terminating()
            };
            snapshot
                .stateful_sets
                .values()
                .filter(ends)
                .map(|set| end(set))
                .collect()
        }
    }
}

fn end(set: &StatefulSet) -> Step {
    let target = Target {
        kind: Kind::StatefulSet,
        key: set.key().clone(),
    };
    let intent = Intent::Delete {
        target,
        uid: set.meta.uid.clone(),
        propagation: Propagation::Foreground,
    };
    Step::new(Why::ParallelTermination, intent).if_failed(IfFailed::Continue)
}

/// Sets that only a bypassed webhook lets through. Writing a leader StatefulSet for them would be wrong, so nothing is written.
fn not_served(lws: &Lws) -> Option<&'static str> {
    match lws.spec.group_identity() {
        GroupIdentity::Hash => Some("groupIdentity Hash is not available"),
        GroupIdentity::Ordinal => lws
            .spec
            .scheduling
            .as_ref()
            .map(|_| "spec.scheduling needs a scheduler provider, and none is configured"),
    }
}

fn refuse(lws: &Lws, what: &str) -> Plan {
    Plan {
        notices: vec![events::leader_set_not_created(lws).because(what)],
        errors: vec![PlanError {
            message: what.to_owned(),
            retry_after: Some(FOREIGN_WAIT),
        }],
        ..Plan::default()
    }
}

/// ORD-20 steps 4 and 5; `None` for a leftover.
fn found(snapshot: &Snapshot) -> Option<Found<'_>> {
    let lws = &snapshot.lws;
    let Some(set) = &snapshot.leader_set else {
        return Some(Found::Nothing);
    };
    match judge(&set.meta, &controller(lws)) {
        Ownership::Ours => (!set.meta.is_terminating()).then_some(Found::Ours(set)),
        Ownership::Leftover => None,
        Ownership::Foreign if is_orphan(set, lws.key()) => Some(Found::Ours(set)),
        Ownership::Foreign => Some(Found::Foreign),
    }
}

fn controller(lws: &Lws) -> Expected {
    Expected {
        kind: Kind::LeaderWorkerSet.name(),
        name: lws.key().name.to_string(),
        uid: lws.meta.uid.clone(),
    }
}

/// One pass over a set whose leader set is no leftover.
struct Pass<'a> {
    snapshot: &'a Snapshot,
    lws: &'a Lws,
    leader_set: Found<'a>,
    budget: Budget,
    revision: revision::Current,
    groups: Vec<Group>,
    have: Option<rollout::Current>,
    want: Parameters,
    plan: Plan,
}

impl<'a> Pass<'a> {
    /// ORD-20 steps 6 to 8: everything that is decided before something is written.
    fn new(snapshot: &'a Snapshot, leader_set: Found<'a>, budget: Budget) -> Self {
        let lws = &*snapshot.lws;
        let ours = leader_set.ours();
        let revision = revision::current(
            lws,
            &snapshot.revisions,
            ours.map(|set| set.meta.label(label::REVISION)),
        );
        let groups = groups::groups(snapshot, &revision.key);
        let have = ours.map(|set| have(set, budget));
        let states = groups::states(&groups, have.map_or(0, |have| have.replicas));
        let want = rollout::parameters(budget, have, revision.template_changed, &states);
        Self {
            snapshot,
            lws,
            leader_set,
            budget,
            revision,
            groups,
            have,
            want,
            plan: Plan::default(),
        }
    }

    fn plan(mut self) -> SetPlan {
        self.plan.remarks.extend(groups::misfits(self.snapshot));
        let ambiguous = revision::ambiguous_keys(&self.snapshot.revisions, &self.lws.meta.uid);
        self.plan.remarks.extend(ambiguous);
        self.create_revision();
        let set_step = self.forget_counts();
        let desired = Arc::new(build::leader_set::leader_set(&self.desired()));
        let desired_hash = hash(&desired);
        let leader_set_step = self.write_leader_set(desired, desired_hash);
        match self.lws.spec.subdomain_policy() {
            SubdomainPolicy::Shared => self.ensure_service(),
            SubdomainPolicy::UniquePerReplica => {}
        }
        let replicas = self.leader_set.ours().map_or(0, |set| set.status.replicas);
        let Self {
            revision,
            groups,
            budget,
            plan,
            ..
        } = self;
        let basis = Basis {
            revision_key: revision.key,
            groups,
            budget,
            replicas,
            set_step,
            leader_set_step,
            desired_hash,
        };
        SetPlan {
            plan,
            basis: Some(basis),
        }
    }

    /// ORD-33, ORD-36.
    fn create_revision(&mut self) {
        let Stored::New(new) = &self.revision.object else {
            return;
        };
        let NewRevision {
            name,
            number,
            data,
            occasion,
        } = new;
        let key = &self.revision.key;
        let target = Target {
            kind: Kind::ControllerRevision,
            key: self.lws.key().sibling(name),
        };
        let body = Arc::new(build::revision::revision(
            self.lws, name, key, *number, data,
        ));
        let notice = events::creating_revision(self.lws, *occasion, key, self.revision_reference());
        let intent = Intent::Create {
            target,
            body,
            accept: Accept::SameData {
                by: controller(self.lws),
            },
            claim: false,
        };
        self.plan
            .steps
            .push(Step::new(Why::RevisionMissing, intent).then(notice));
    }

    fn revision_reference(&self) -> Reference {
        match &self.revision.object {
            Stored::Existing(revision) => {
                Reference::revision(revision.meta.key.clone(), revision.meta.uid.clone())
            }
            Stored::New(new) => {
                Reference::revision(self.lws.key().sibling(&new.name), Uid::default())
            }
        }
    }

    /// FAIL-76: restart counts of groups that are scaled away. An annotation that cannot be read keeps no rollout from going on.
    fn forget_counts(&mut self) -> Option<usize> {
        let mut counts = match RestartCounts::of(self.lws) {
            Ok(counts) => counts,
            Err(error) => {
                self.plan.remarks.push(error.to_string());
                return None;
            }
        };
        self.plan.remarks.extend(
            counts
                .invalid_keys()
                .map(|key| format!("invalid group restart count key {key:?}")),
        );
        let active = self.want.replicas.max(self.budget.desired_replicas);
        if !counts.keep_groups_below(active) {
            return None;
        }
        let step = forget(self.lws, counts.patch()).if_failed(IfFailed::Report);
        Some(self.push(step))
    }

    fn desired(&self) -> LeaderSet<'_> {
        LeaderSet {
            lws: self.lws,
            revision_key: &self.revision.key,
            desired_replicas: self.budget.desired_replicas,
            replicas: self.want.replicas,
            partition: self.want.partition,
            max_unavailable: self.budget.replaced_at_once(),
            parallel_hint: self.parallel_hint(),
        }
    }

    /// FAIL-94: the hint follows the spec when leaders are made anew anyway, so that it alone never replaces one.
    fn parallel_hint(&self) -> bool {
        let is_same_revision =
            |set: &&StatefulSet| set.meta.label(label::REVISION) == self.revision.key;
        match self.leader_set.ours().filter(is_same_revision) {
            Some(set) => {
                set.template_annotations
                    .text(annotation::POD_TERMINATION_POLICY)
                    == "Parallel"
            }
            None => self.lws.spec.pod_termination_policy() == PodTerminationPolicy::Parallel,
        }
    }

    /// ORD-20 steps 11 and 12.
    fn write_leader_set(&mut self, desired: Arc<Value>, desired_hash: u64) -> Option<usize> {
        match self.leader_set {
            Found::Ours(set) if self.is_applied(set, desired_hash) => None,
            Found::Ours(set) => Some(self.apply(set, desired)),
            Found::Nothing => Some(self.create(desired)),
            Found::Foreign => {
                self.is_blocked(
                    events::leader_set_not_created(self.lws),
                    events::foreign_leader_set(self.lws),
                );
                None
            }
        }
    }

    /// KRS-57: neither what is wanted nor what is there has changed since the last apply.
    fn is_applied(&self, set: &StatefulSet, desired_hash: u64) -> bool {
        !set.is_unclaimed
            && self.snapshot.applied.as_ref().is_some_and(|applied| {
                applied.desired_hash == desired_hash
                    && applied.uid == set.meta.uid
                    && applied.generation == set.meta.generation
                    && applied.metadata_hash == set.metadata_hash
            })
    }

    fn create(&mut self, body: Arc<Value>) -> usize {
        let accept = Accept::Controlled {
            by: controller(self.lws),
            foreign: events::foreign_leader_set(self.lws),
        };
        let intent = Intent::Create {
            target: self.target(Kind::StatefulSet),
            body,
            accept,
            claim: true,
        };
        let step = Step::new(Why::LeaderSetMissing, intent)
            .then(events::created_leader_set(
                self.lws,
                self.revision_reference(),
            ))
            .or_else(events::leader_set_not_created(self.lws))
            .if_failed(IfFailed::Continue);
        self.push(step)
    }

    fn apply(&mut self, set: &StatefulSet, body: Arc<Value>) -> usize {
        let intent = Intent::Apply {
            target: self.target(Kind::StatefulSet),
            uid: set.meta.uid.clone(),
            body,
            claim: set.is_unclaimed,
        };
        let mut step = Step::new(Why::LeaderSetDiffers, intent)
            .or_else(events::leader_set_not_updated(self.lws))
            .if_failed(IfFailed::Continue);
        if let Some(have) = self.have {
            step.on_success
                .extend(events::reclaiming(self.lws, have, self.want));
            if !self.revision.template_changed {
                step.on_success.extend(events::updating(
                    self.lws,
                    have,
                    self.want,
                    self.revision_reference(),
                ));
            }
        }
        self.push(step)
    }

    /// ORD-135: something foreign stands in the way.
    fn is_blocked(&mut self, notice: Notice, why: String) {
        self.plan.notices.push(notice.because(&why));
        self.plan.errors.push(PlanError {
            message: why,
            retry_after: Some(FOREIGN_WAIT),
        });
    }

    fn target(&self, kind: Kind) -> Target {
        Target {
            kind,
            key: self.lws.key().clone(),
        }
    }

    /// Adds a step; gives its position.
    fn push(&mut self, step: Step) -> usize {
        self.plan.steps.push(step);
        self.plan.steps.len() - 1
    }
}

/// FAIL-52: one patch of the counts, on the version that they were read from.
pub(super) fn forget(lws: &Lws, body: Value) -> Step {
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::LeaderWorkerSet,
            key: lws.key().clone(),
        },
        uid: lws.meta.uid.clone(),
        resource_version: Some(lws.meta.resource_version.clone()),
        subresource: Subresource::None,
        body,
    };
    Step::new(Why::CountsObsolete, intent)
}

/// ORD-54: an annotation that is no number reads as the wanted replicas.
fn have(set: &StatefulSet, budget: Budget) -> rollout::Current {
    let number = |number: i32| u32::try_from(number).unwrap_or_default();
    rollout::Current {
        replicas: number(set.replicas),
        partition: number(set.partition),
        desired_replicas: set
            .meta
            .annotation(annotation::REPLICAS)
            .parse()
            .unwrap_or(budget.desired_replicas),
    }
}

fn hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
