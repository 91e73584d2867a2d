//! The slices: what the executor asks for, as requests (REC-7, CUR-4, OWS-3 … OWS-5).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lws_api::disaggregatedset::Role;
use lws_api::leaderworkerset::{GroupIdentity, LeaderWorkerSetSpec, RestartBackoff};
use lws_api::names::ds_annotation;
use serde_json::{Map, Value, json};

use super::patches::Patches;
use super::{Pass, UNFINISHED_WAIT, controller, delete};
use crate::build::child_set::{self, ChildSet, rollout_budget};
use crate::disaggregatedset::children::Child;
use crate::disaggregatedset::events;
use crate::disaggregatedset::executor::{self, Act, Event, Ready, Rest, Scale, Slice};
use crate::disaggregatedset::targets::{Budget, RoleTarget};
use crate::intent::{Accept, IfFailed, Intent, Kind, PlanError, Step, Target, Why};
use crate::notice::Notice;

/// ROL-13: how long a pod must have found no place.
const UNSCHEDULABLE: SignedDuration = SignedDuration::from_secs(60);

impl<'a> Pass<'a> {
    /// REC-7: slices are independent of each other.
    pub(super) fn plan_slices(&mut self, targets: &[RoleTarget], now: Timestamp) {
        for slice in 0..self.snapshot.slices() {
            let children: Vec<&Child> = self.snapshot.children.in_slice(slice).collect();
            let asked = executor::pass(&Slice {
                policy: self.set().spec.during_rollout(),
                revision: self.snapshot.target.revision.as_str().into(),
                roles: targets.to_vec(),
                children: children.iter().map(|child| self.seen(child, now)).collect(),
            });
            if asked.is_unfinished {
                self.plan.wake_after = Some(UNFINISHED_WAIT);
            }
            let faults = asked.faults.iter().map(|fault| PlanError {
                message: format!("slice {slice}: {fault}"),
                retry_after: None,
            });
            self.plan.errors.extend(faults);
            let told: Vec<Notice> = asked
                .events
                .iter()
                .map(|event| self.notice(slice, event))
                .collect();
            self.plan.notices.extend(told);
            if asked
                .events
                .iter()
                .any(|event| matches!(event, Event::DrainBlocked { .. }))
            {
                self.blocked.push(slice);
            }
            let first = self.plan.steps.len();
            let mut slice = SlicePlan {
                slice,
                targets,
                by_name: children
                    .into_iter()
                    .map(|child| (child.name().clone(), child))
                    .collect(),
                patches: Patches::default(),
                others: Vec::new(),
            };
            for act in asked.acts {
                self.take(act, &mut slice);
            }
            self.keep_live(&mut slice);
            self.plan.steps.extend(slice.patches.into_steps());
            self.plan.steps.extend(slice.others);
            let part = slice.slice + 1;
            for step in self.plan.steps.iter_mut().skip(first) {
                step.part = part;
                step.if_failed = match asked.on_failure {
                    Rest::GoesOn => IfFailed::Continue,
                    Rest::IsLeft => IfFailed::LeavePart,
                };
            }
        }
    }

    fn seen(&self, child: &Child, now: Timestamp) -> executor::Child {
        let observation = self.snapshot.observation(child);
        let waits = observation.and_then(|seen| seen.unschedulable_since);
        let known = observation.filter(|seen| !seen.is_behind);
        let ready = known.map(|seen| Ready {
            raw: seen.raw().into(),
            committed: seen.committed().into(),
        });
        executor::Child {
            has_unschedulable_pod: waits
                .is_some_and(|since| now.duration_since(since) >= UNSCHEDULABLE),
            routing: self.routing(child),
            ..child.for_executor(ready)
        }
    }

    fn notice(&self, slice: u32, event: &Event) -> Notice {
        let set = self.set();
        let revision = &self.snapshot.target.revision;
        let child = |name: &Arc<str>| {
            self.snapshot
                .children
                .in_slice(slice)
                .find(|child| child.name() == name)
        };
        match event {
            Event::Started => events::rollout_started(set, slice, revision),
            Event::Completed => events::rollout_completed(set, slice, revision),
            Event::InitialReplicasMissing {
                child: name,
                replicas,
            } => {
                let annotation = child(name).and_then(|child| {
                    child
                        .lws
                        .meta
                        .annotations
                        .get(ds_annotation::INITIAL_REPLICAS)
                });
                events::initial_replicas_missing(set, name, annotation, *replicas)
            }
            Event::BootstrapSurge { roles } => events::bootstrap_surge(set, slice, roles),
            Event::AvailabilityFallback { revision, roles } => {
                events::availability_fallback(set, slice, revision, roles)
            }
            Event::DrainBlocked { reason } => events::drain_blocked(set, slice, reason),
        }
    }

    fn take(&mut self, act: Act, slice: &mut SlicePlan<'a, '_>) {
        match act {
            Act::Create {
                role,
                starting,
                intended,
            } => self.create(&role, starting, intended, slice),
            Act::Update {
                child,
                initial,
                replicas,
            } => {
                if let Some(child) = slice.by_name.get(&child).copied() {
                    self.update(child, initial, replicas, slice);
                }
            }
            Act::Route {
                child,
                step,
                is_told,
            } => {
                if let Some(child) = slice.by_name.get(&child).copied() {
                    self.divide(child, &step, is_told, slice);
                }
            }
            Act::Delete { child } => {
                if let Some(child) = slice
                    .by_name
                    .get(&child)
                    .filter(|child| !child.is_terminating())
                {
                    let notice = events::deleted_drained(self.set(), child);
                    slice
                        .others
                        .push(delete(child, Why::RevisionDrained, notice));
                }
            }
        }
    }

    /// CHL-1 … CHL-4, OWS-3.
    fn create(&mut self, name: &str, starting: u64, intended: u64, slice: &mut SlicePlan<'a, '_>) {
        let (set, target) = (self.set(), &self.snapshot.target);
        let Some((role, wanted)) = slice.role(self, name) else {
            return;
        };
        let child = child_set::name(&set.key().name, slice.slice, &target.revision, &role.name);
        if self.snapshot.occupied.contains_key(child.as_str()) {
            return self.is_blocked_by(&child);
        }
        let body = child_set::child_set(&ChildSet {
            set,
            role,
            slice: slice.slice,
            revision: &target.revision,
            content_hash: &target.hash,
            replicas: groups(starting),
            initial_replicas: groups(intended),
            budget: budget(role, wanted),
        });
        let intent = Intent::Create {
            target: Target {
                kind: Kind::LeaderWorkerSet,
                key: set.key().sibling(&child),
            },
            body: Arc::new(body),
            accept: Accept::Controlled {
                by: controller(set),
                foreign: events::foreign_child(set, &child),
            },
            claim: false,
        };
        let failed = events::child_not_created(set, &child);
        slice
            .others
            .push(Step::new(Why::ChildMissing, intent).or_else(failed));
    }

    fn update(
        &self,
        child: &'a Child,
        initial: Option<u64>,
        replicas: Option<Scale>,
        slice: &mut SlicePlan<'a, '_>,
    ) {
        let why = why(replicas);
        if let Some(initial) = initial {
            slice.patches.annotate(
                child,
                ds_annotation::INITIAL_REPLICAS,
                &initial.to_string(),
                why,
            );
        }
        if let Some(scale) = replicas {
            self.scale(child, scale, slice);
        }
    }

    /// OWS-4, EVT-1.
    pub(super) fn scale(&self, child: &'a Child, scale: Scale, slice: &mut SlicePlan<'a, '_>) {
        let why = why(Some(scale));
        slice
            .patches
            .merge(child, &json!({"spec": {"replicas": scale.to}}), why);
        if scale.is_told {
            slice
                .patches
                .tell(child, events::scaling(self.set(), child, scale.to));
        }
        if has_percentages(&child.lws.spec)
            && let Some((role, wanted)) = slice.role(self, child.role())
        {
            let configuration = rollout_budget(budget(role, wanted));
            let body =
                json!({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": configuration}}});
            slice.patches.merge(child, &body, why);
        }
    }

    /// CUR-4: what LeaderWorkerSets read live follows the role, in children of all revisions.
    fn keep_live(&self, slice: &mut SlicePlan<'a, '_>) {
        let children: Vec<&Child> = slice
            .by_name
            .values()
            .copied()
            .filter(|child| !child.is_terminating())
            .collect();
        for child in children {
            let role = self
                .set()
                .spec
                .roles
                .iter()
                .find(|role| role.name == child.role());
            if let Some(spec) = role.and_then(|role| role.spec.as_ref())
                && let Some(body) = live_difference(spec, &child.lws.spec)
            {
                slice.patches.merge(child, &body, Why::ChildDiffers);
            }
        }
    }
}

/// What is planned for one slice.
pub(super) struct SlicePlan<'a, 'b> {
    slice: u32,
    targets: &'b [RoleTarget],
    by_name: BTreeMap<Arc<str>, &'a Child>,
    pub patches: Patches<'a>,
    /// Creations, deletions and labels of pods.
    pub others: Vec<Step>,
}

impl SlicePlan<'_, '_> {
    /// A current role, and the groups that it is to have.
    fn role<'a>(&self, pass: &Pass<'a>, name: &str) -> Option<(&'a Role, u64)> {
        let role = pass
            .set()
            .spec
            .roles
            .iter()
            .find(|role| role.name == name)?;
        let target = self.targets.iter().find(|target| *target.role == *name)?;
        Some((role, target.replicas))
    }
}

fn why(replicas: Option<Scale>) -> Why {
    if replicas.is_some_and(|scale| scale.is_told) {
        Why::ChildRolled
    } else {
        Why::ChildDiffers
    }
}

/// API-4 as the child gets it (SCP-2).
fn budget(role: &Role, wanted: u64) -> (u32, u32) {
    let Budget { surge, unavailable } = Budget::of(role.spec.as_ref(), wanted);
    (groups(surge), groups(unavailable))
}

/// OWS-4: a budget is written as a percentage, which would change with the size of the child.
fn has_percentages(spec: &LeaderWorkerSetSpec) -> bool {
    [spec.max_surge(), spec.max_unavailable()]
        .iter()
        .any(|limit| matches!(limit, IntOrString::String(_)))
}

fn groups(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// CUR-4: the patch that gives `child` the live members of `role`, if they differ.
fn live_difference(role: &LeaderWorkerSetSpec, child: &LeaderWorkerSetSpec) -> Option<Value> {
    let (wanted, found) = (&role.leader_worker_template, &child.leader_worker_template);
    let mut template = Map::new();
    if wanted.max_group_restarts != found.max_group_restarts {
        template.insert(
            "maxGroupRestarts".to_owned(),
            json!(wanted.max_group_restarts),
        );
    }
    let backoff = |backoff: &Option<RestartBackoff>| {
        backoff
            .as_ref()
            .map(|of| (of.base_seconds(), of.cap_seconds()))
    };
    if backoff(&wanted.restart_backoff) != backoff(&found.restart_backoff) {
        let members = wanted
            .restart_backoff
            .as_ref()
            .map(|of| json!({"baseSeconds": of.base_seconds(), "capSeconds": of.cap_seconds()}));
        template.insert("restartBackoff".to_owned(), members.unwrap_or_default());
    }
    let mut spec = Map::new();
    if !template.is_empty() {
        spec.insert("leaderWorkerTemplate".to_owned(), template.into());
    }
    let is_hash = match child.group_identity() {
        GroupIdentity::Hash => true,
        GroupIdentity::Ordinal => false,
    };
    if is_hash && role.group_replacement_policy() != child.group_replacement_policy() {
        spec.insert(
            "groupReplacementPolicy".to_owned(),
            json!(role.group_replacement_policy),
        );
    }
    (!spec.is_empty()).then(|| json!({"spec": spec}))
}
