//! What a pass over a set is made of with either identity: revision, leader workload, shared Service, and what is wrong.

mod service;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lws_api::leaderworkerset::PodTerminationPolicy;
use lws_api::names::label;
use serde_json::Value;

use super::events;
use super::observe::Snapshot;
use super::plan::Written;
use super::revision::{self, NewRevision, Stored};
use super::workload::{Found, Workload, controller};
use crate::build;
use crate::build::leader_template::LeaderTemplate;
use crate::intent::{
    Accept, IfFailed, Intent, Kind, Plan, PlanError, Step, Subresource, Target, Why,
};
use crate::model::{Lws, Uid};
use crate::notice::{Notice, Reference};
use crate::restart_counts::RestartCounts;

/// ORD-135: when something foreign stands in the way.
pub(super) const FOREIGN_WAIT: Duration = Duration::from_secs(30);

/// One pass over a set whose leader workload is no leftover.
pub(super) struct Pass<'a> {
    pub snapshot: &'a Snapshot,
    pub lws: &'a Lws,
    pub kind: Kind,
    pub workload: Found<'a>,
    pub revision: revision::Current,
    pub plan: Plan,
}

impl<'a> Pass<'a> {
    /// ORD-20 steps 6 and 7. `kind` is that of the leader workload.
    pub fn new(snapshot: &'a Snapshot, kind: Kind, workload: Found<'a>) -> Self {
        let lws = &*snapshot.lws;
        Self {
            snapshot,
            lws,
            kind,
            workload,
            revision: current_revision(snapshot, kind, workload.ours()),
            plan: Plan {
                remarks: revision::ambiguous_keys(&snapshot.revisions, &lws.meta.uid),
                ..Plan::default()
            },
        }
    }

    /// ORD-33, ORD-36.
    pub fn create_revision(&mut self) {
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

    pub fn revision_reference(&self) -> Reference {
        match &self.revision.object {
            Stored::Existing(revision) => {
                Reference::revision(revision.meta.key.clone(), revision.meta.uid.clone())
            }
            Stored::New(new) => {
                Reference::revision(self.lws.key().sibling(&new.name), Uid::default())
            }
        }
    }

    /// FAIL-51, FAIL-76: an annotation that cannot be read keeps no rollout from going on.
    pub fn counts(&mut self) -> Option<RestartCounts> {
        RestartCounts::of(self.lws)
            .inspect_err(|error| self.plan.remarks.push(error.to_string()))
            .ok()
    }

    /// FAIL-94: the hint follows the spec when leaders are made anew anyway, so that it alone never replaces one.
    pub fn parallel_hint(&self) -> bool {
        let is_same_revision =
            |workload: &Workload<'_>| workload.meta.label(label::REVISION) == self.revision.key;
        match self.workload.ours().filter(is_same_revision) {
            Some(workload) => workload.has_parallel_hint(),
            None => self.lws.spec.pod_termination_policy() == PodTerminationPolicy::Parallel,
        }
    }

    /// ORD-20 steps 11 and 12, HASH-12 step 5. `told` follows an update.
    pub fn write_workload(&mut self, desired: Value, told: Vec<Notice>) -> Written {
        let desired_hash = hash(&desired);
        let step = match self.workload {
            Found::Ours(workload)
                if workload.is_as_applied(self.snapshot.applied.as_ref(), desired_hash) =>
            {
                None
            }
            Found::Ours(workload) => Some(self.apply(workload, desired, told)),
            Found::Nothing => Some(self.create(desired)),
            Found::Foreign => {
                self.is_blocked(
                    events::leaders_not_created(self.lws, self.kind),
                    events::foreign_leaders(self.lws, self.kind),
                );
                None
            }
        };
        Written { step, desired_hash }
    }

    fn create(&mut self, body: Value) -> usize {
        let accept = Accept::Controlled {
            by: controller(self.lws),
            foreign: events::foreign_leaders(self.lws, self.kind),
        };
        let intent = Intent::Create {
            target: self.target(self.kind),
            body: Arc::new(body),
            accept,
            claim: true,
        };
        let step = Step::new(Why::LeaderSetMissing, intent)
            .then(events::created_leaders(
                self.lws,
                self.kind,
                self.revision_reference(),
            ))
            .or_else(events::leaders_not_created(self.lws, self.kind))
            .if_failed(IfFailed::Continue);
        self.push(step)
    }

    fn apply(&mut self, workload: Workload<'_>, body: Value, told: Vec<Notice>) -> usize {
        // After a restart the cache may begin with a list that is older than what this set was given before (KRS-36): its partition would rise
        // again. The claim of KRS-54 reads the object itself, and moves its version.
        let is_first = self.snapshot.applied.is_none() && !workload.is_unclaimed;
        let intent = Intent::Apply {
            target: self.target(self.kind),
            uid: workload.meta.uid.clone(),
            resource_version: is_first.then(|| workload.meta.resource_version.clone()),
            body: Arc::new(body),
            claim: workload.is_unclaimed,
        };
        let mut step = Step::new(Why::LeaderSetDiffers, intent)
            .or_else(events::leaders_not_updated(self.lws, self.kind))
            .if_failed(IfFailed::Continue);
        step.on_success = told;
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

    /// Looks again after `delay` at the latest.
    pub fn wake(&mut self, delay: Duration) {
        let earlier = self.plan.wake_after;
        self.plan.wake_after = Some(earlier.map_or(delay, |earlier| earlier.min(delay)));
    }

    /// The object of a kind under the name of the set.
    fn target(&self, kind: Kind) -> Target {
        Target {
            kind,
            key: self.lws.key().clone(),
        }
    }

    /// Adds a step; gives its position.
    pub fn push(&mut self, step: Step) -> usize {
        self.plan.steps.push(step);
        self.plan.steps.len() - 1
    }
}

/// ORD-20 steps 6 and 7, of a set whose leaders run in `workload`.
pub(super) fn current_revision(
    snapshot: &Snapshot,
    kind: Kind,
    workload: Option<Workload<'_>>,
) -> revision::Current {
    let lws = &*snapshot.lws;
    let key = workload.map(|workload| workload.meta.label(label::REVISION));
    revision::current(lws, &snapshot.revisions, key, || {
        workload.is_none_or(|workload| workload.is_made_of(&template(lws, kind, &workload)))
    })
}

/// What the live spec makes the leaders of under the revision that the workload names.
fn template(lws: &Lws, kind: Kind, workload: &Workload<'_>) -> Value {
    let leaders = LeaderTemplate {
        lws,
        revision_key: workload.meta.label(label::REVISION),
        parallel_hint: workload.has_parallel_hint(),
        // The annotations of gangs follow from the rest.
        membership: None,
    };
    match kind {
        Kind::Deployment => build::leader_deployment::template(&leaders),
        _ => build::leader_set::template(&leaders),
    }
}

/// FAIL-52: one patch of the counts, on the version that they were read from.
pub(super) fn write_counts(lws: &Lws, counts: &RestartCounts, why: Why) -> Step {
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::LeaderWorkerSet,
            key: lws.key().clone(),
        },
        uid: lws.meta.uid.clone(),
        resource_version: Some(lws.meta.resource_version.clone()),
        subresource: Subresource::None,
        body: counts.patch(),
    };
    Step::new(why, intent)
}

fn hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
