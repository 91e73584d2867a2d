//! The pass over a set with Ordinal identity, whose leaders a StatefulSet runs (ORD-20).

use jiff::Timestamp;
use lws_api::leaderworkerset::SubdomainPolicy;
use lws_api::names::annotation;

use super::events;
use super::groups::{self, Group};
use super::observe::Snapshot;
use super::pass::{Pass, write_counts};
use super::plan::{self, Basis, Obstacle, SetPlan, Written};
use super::rollout::{self, Budget, Parameters};
use super::scheduling::Clearance;
use super::workload::{Found, Workload};
use crate::build::leader_set::{LeaderSet, leader_set};
use crate::gang::Membership;
use crate::intent::{IfFailed, Kind, Why};
use crate::model::StatefulSet;
use crate::notice::Notice;

/// What the status counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    /// The groups as of the current revision.
    pub groups: Vec<Group>,
    /// The budget.
    pub budget: Budget,
    /// ORD-100: pods of the leader set as of the snapshot.
    pub replicas: i32,
}

/// ORD-20 steps 4 to 13.
pub(super) fn plan(snapshot: &Snapshot, now: Timestamp) -> Result<SetPlan, Obstacle> {
    let set = snapshot.leader_set.as_deref();
    let found = Found::judge(&snapshot.lws, set.map(Workload::from)).ok_or(Obstacle::Leftover)?;
    let budget = Budget::of(&snapshot.lws.spec)?;
    let set = set.filter(|_| found.ours().is_some());
    let pass = Pass::new(snapshot, Kind::StatefulSet, found);
    Ok(Ordinal::new(pass, set, budget).plan(now))
}

struct Ordinal<'a> {
    pass: Pass<'a>,
    set: Option<&'a StatefulSet>,
    budget: Budget,
    groups: Vec<Group>,
    have: Option<rollout::Current>,
    want: Parameters,
}

impl<'a> Ordinal<'a> {
    /// ORD-20 step 8: everything that is decided before something is written.
    fn new(pass: Pass<'a>, set: Option<&'a StatefulSet>, budget: Budget) -> Self {
        let groups = groups::groups(pass.snapshot, &pass.revision.key);
        let have = set.map(|set| have(set, budget));
        let states = groups::states(&groups, have.map_or(0, |have| have.replicas));
        let want = rollout::parameters(budget, have, pass.revision.template_changed, &states);
        Self {
            pass,
            set,
            budget,
            groups,
            have,
            want,
        }
    }

    fn plan(mut self, now: Timestamp) -> SetPlan {
        self.pass
            .plan
            .remarks
            .extend(groups::misfits(self.pass.snapshot));
        self.pass.create_revision();
        let set_step = self.forget_counts();
        let (clearance, prepared) = self.pass.prepare_gangs(now);
        let workload = match clearance {
            Clearance::Given(membership) => Some(self.write_leaders(membership.as_ref())),
            Clearance::Refused => None,
        };
        let counted = Counted {
            groups: self.groups,
            budget: self.budget,
            replicas: self.set.map_or(0, |set| set.status.replicas),
        };
        let Pass { revision, plan, .. } = self.pass;
        let basis = Basis {
            revision_key: revision.key,
            counted: plan::Counted::Ordinal(counted),
            set_step,
            workload,
            prepared,
        };
        SetPlan::new(plan, basis)
    }

    /// ORD-20 steps 11 to 13.
    fn write_leaders(&mut self, membership: Option<&Membership>) -> Written {
        let desired = leader_set(&self.desired(membership));
        let told = self.told();
        let workload = self.pass.write_workload(desired, told);
        match self.pass.lws.spec.subdomain_policy() {
            SubdomainPolicy::Shared => self.pass.ensure_service(),
            SubdomainPolicy::UniquePerReplica => {}
        }
        workload
    }

    /// FAIL-76: restart counts of groups that are scaled away.
    fn forget_counts(&mut self) -> Option<usize> {
        let mut counts = self.pass.counts()?;
        self.pass.plan.remarks.extend(
            counts
                .invalid_keys()
                .map(|key| format!("invalid group restart count key {key:?}")),
        );
        let active = self.want.replicas.max(self.budget.desired_replicas);
        if !counts.keep_groups_below(active) {
            return None;
        }
        let step = write_counts(self.pass.lws, &counts, Why::CountsObsolete);
        Some(self.pass.push(step.if_failed(IfFailed::Report)))
    }

    fn desired<'s>(&'s self, membership: Option<&'s Membership>) -> LeaderSet<'s> {
        LeaderSet {
            lws: self.pass.lws,
            revision_key: &self.pass.revision.key,
            desired_replicas: self.budget.desired_replicas,
            replicas: self.want.replicas,
            partition: self.want.partition,
            max_unavailable: self.budget.replaced_at_once(),
            parallel_hint: self.pass.parallel_hint(),
            membership,
        }
    }

    /// What is told of an update.
    fn told(&self) -> Vec<Notice> {
        let (lws, want) = (self.pass.lws, self.want);
        let Some(have) = self.have else {
            return Vec::new();
        };
        let mut told: Vec<_> = events::reclaiming(lws, have, want).into_iter().collect();
        if !self.pass.revision.template_changed {
            told.extend(events::updating(
                lws,
                have,
                want,
                self.pass.revision_reference(),
            ));
        }
        told
    }
}

/// ORD-54: an annotation that is no number reads as the wanted replicas.
pub(super) fn have(set: &StatefulSet, budget: Budget) -> rollout::Current {
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
