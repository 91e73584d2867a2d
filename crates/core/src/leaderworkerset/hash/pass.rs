//! What is written for a Hash set (HASH-12), gates of leaders included.
//!
//! The gates are lifted here and not in the runs of the groups, so that the leaders of one set are decided on one at a time, and never before the
//! cache shows what the last pass did (HASH-44).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lws_api::leaderworkerset::SubdomainPolicy;
use lws_api::names::{annotation, label};

use super::counts::{hand_over, prune};
use super::replacement::{Question, Verdict, decide};
use crate::build::leader_deployment::{LeaderDeployment, leader_deployment};
use crate::gang::Membership;
use crate::gate;
use crate::intent::{IfFailed, Kind, Why};
use crate::leaderworkerset::observe::Snapshot;
use crate::leaderworkerset::pass::{Pass, write_counts};
use crate::leaderworkerset::plan::{self, Basis, Obstacle, SetPlan, Written};
use crate::leaderworkerset::rollout::Budget;
use crate::leaderworkerset::scheduling::Clearance;
use crate::leaderworkerset::workload::{Found, Workload};
use crate::model::Pod;

/// HASH-42: a net for missed events.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What the status goes by, apart from the snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::leaderworkerset) struct Counted {
    /// Wanted groups.
    pub replicas: u32,
    /// The Deployment of the snapshot is ours.
    pub is_deployment_ours: bool,
}

/// HASH-12 steps 1 to 6.
pub(in crate::leaderworkerset) fn plan(
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<SetPlan, Obstacle> {
    let deployment = snapshot.deployment.as_deref().map(Workload::from);
    let found = Found::judge(&snapshot.lws, deployment).ok_or(Obstacle::Leftover)?;
    let budget = Budget::of(&snapshot.lws.spec)?;
    let hash = Hash {
        pass: Pass::new(snapshot, Kind::Deployment, found),
        budget,
    };
    Ok(hash.plan(now))
}

struct Hash<'a> {
    pass: Pass<'a>,
    budget: Budget,
}

impl<'a> Hash<'a> {
    fn plan(mut self, now: Timestamp) -> SetPlan {
        let admitted = self.admitted();
        let set_step = self.write_counts(&admitted);
        for leader in &admitted {
            let step = gate::lift(self.pass.lws, leader);
            self.pass.push(step.if_failed(IfFailed::Continue));
        }
        self.pass.create_revision();
        let (clearance, prepared) = self.pass.prepare_gangs(now);
        let workload = match clearance {
            Clearance::Given(membership) => Some(self.write_leaders(membership.as_ref())),
            Clearance::Refused => None,
        };
        let counted = Counted {
            replicas: self.budget.desired_replicas,
            is_deployment_ours: self.pass.workload.ours().is_some(),
        };
        let Pass { revision, plan, .. } = self.pass;
        let basis = Basis {
            revision_key: revision.key,
            counted: plan::Counted::Hash(counted),
            set_step,
            workload,
            prepared,
        };
        SetPlan::new(plan, basis)
    }

    /// HASH-12 steps 5 and 6.
    fn write_leaders(&mut self, membership: Option<&Membership>) -> Written {
        let desired = leader_deployment(&LeaderDeployment {
            lws: self.pass.lws,
            revision_key: &self.pass.revision.key,
            replicas: self.budget.desired_replicas,
            parallel_hint: self.pass.parallel_hint(),
            membership,
        });
        let workload = self.pass.write_workload(desired, Vec::new());
        match self.pass.lws.spec.subdomain_policy() {
            SubdomainPolicy::Shared => self.pass.ensure_service(),
            SubdomainPolicy::UniquePerReplica => {}
        }
        workload
    }

    /// HASH-40, HASH-42: the leaders that may go; tells of those that wait for others to end.
    fn admitted(&mut self) -> Vec<&'a Arc<Pod>> {
        let (snapshot, lws) = (self.pass.snapshot, self.pass.lws);
        let deployment = self.pass.workload.ours();
        let verdicts = decide(&Question {
            pods: &snapshot.pods,
            revision: deployment.map_or("", |found| found.meta.label(label::REVISION)),
            replicas: usize::try_from(self.budget.desired_replicas).unwrap_or(usize::MAX),
            policy: lws.spec.group_replacement_policy(),
        });
        let mut admitted = Vec::new();
        for (leader, verdict) in verdicts {
            match verdict {
                Verdict::Admit if is_prepared(snapshot, leader) => admitted.push(leader),
                Verdict::Admit | Verdict::Hold => self.pass.wake(LOOK_AGAIN),
                Verdict::Defer { groups } => {
                    self.pass.wake(LOOK_AGAIN);
                    let notice = gate::deferred(lws, leader, groups);
                    self.pass.plan.notices.push(notice);
                }
            }
        }
        admitted
    }

    /// HASH-69, then HASH-41 (1): one write for both, before any leader goes.
    fn write_counts(&mut self, admitted: &[&Arc<Pod>]) -> Option<usize> {
        let (lws, leaders) = (self.pass.lws, &self.pass.snapshot.leaders);
        let mut counts = self.pass.counts()?;
        let strange = counts.keys_without_revision();
        self.pass
            .plan
            .remarks
            .extend(strange.map(|key| format!("invalid group restart count key {key:?}")));
        let template = &lws.spec.leader_worker_template;
        let pruned = prune(&mut counts, leaders, &self.pass.revision.key, self.budget);
        let mut handed_over = false;
        if template.max_group_restarts.is_some() || template.restart_backoff.is_some() {
            for leader in admitted {
                handed_over |= hand_over(&mut counts, leaders, leader);
            }
        }
        let why = match (handed_over, pruned) {
            (true, _) => Why::CountHandedOver,
            (false, true) => Why::CountsObsolete,
            (false, false) => return None,
        };
        let step = write_counts(lws, &counts, why).if_failed(IfFailed::Report);
        Some(self.pass.push(step))
    }
}

/// The leader is made by our Deployment, and has its own Service and its PodGroups if it needs them (GATE-4).
fn is_prepared(snapshot: &Snapshot, leader: &Pod) -> bool {
    let is_ours = leader
        .meta
        .owner
        .as_ref()
        .is_some_and(|owner| snapshot.replica_sets.contains(&owner.uid));
    let needs_service = leader.meta.annotation(annotation::SUBDOMAIN_POLICY) == "UniquePerReplica";
    is_ours
        && (!needs_service || snapshot.served.contains(&leader.meta.uid))
        && snapshot.gangs.has_groups_of(leader, &snapshot.lws)
}
