//! What `spec.scheduling` means: the templates of the set's Workload with the defaults of C.3.

use lws_api::leaderworkerset::LeaderWorkerSetSpec;
use lws_api::scheduling::{
    CompositePolicy, DisruptionMode, LeafPolicy, RoleScheduling, Scheduling, SchedulingConstraints,
    SharedResourceClaim,
};

use super::{Fault, Level, least_of_set};
use crate::build::group_size;
use crate::model::{Claim, Disruption, Policy, Terms};

/// A template of PodGroups as it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Name in the Workload.
    pub name: &'static str,
    /// The terms.
    pub terms: Terms,
}

/// How many pods the gangs of a set have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// NAT-42: of the whole set.
    pub set: u32,
    /// Of a group.
    pub group: u32,
}

impl Sizes {
    /// Those of a group of this size; the whole set plays no part.
    pub fn of_group(group: u32) -> Self {
        Self { set: 0, group }
    }
}

/// NAT-33: the level and the templates of the Workload.
pub(crate) fn templates(
    spec: &LeaderWorkerSetSpec,
    scheduling: &Scheduling,
    sizes: Sizes,
) -> Result<(Level, Vec<Template>), Fault> {
    let level = Level::of(scheduling).ok_or_else(Fault::no_level)?;
    let replica = scheduling.replica.clone().unwrap_or_default();
    let class = spec
        .leader_worker_template
        .leader_template()
        .priority_class_name()
        .unwrap_or_default();
    let template = |name, policy, constraints: &Option<_>, mode: &Option<_>| Template {
        name,
        terms: Terms {
            policy,
            topology: topology(constraints.as_ref()),
            disruption: mode.as_ref().map(disruption),
            claims: Vec::new(),
            priority_class: class.to_owned(),
        },
    };
    let role = |name, of: Option<RoleScheduling>, count| {
        let of = of.unwrap_or_default();
        let mut template = template(
            name,
            leaf(of.scheduling_policy.as_ref(), count),
            &of.scheduling_constraints,
            &of.disruption_mode,
        );
        template.terms.claims = of.resource_claims.iter().flatten().map(claim).collect();
        template
    };
    let templates = match level {
        Level::Set => vec![template(
            "lws",
            composite(scheduling.scheduling_policy.as_ref(), false, sizes.set),
            &scheduling.scheduling_constraints,
            &scheduling.disruption_mode,
        )],
        Level::Replica => vec![template(
            "replica",
            composite(replica.scheduling_policy.as_ref(), true, sizes.group),
            &replica.scheduling_constraints,
            &replica.disruption_mode,
        )],
        Level::Role => vec![
            role("leader", replica.leader, 1),
            role("worker", replica.worker, sizes.group.saturating_sub(1)),
        ],
    };
    Ok((level, templates))
}

/// The size of the groups of a spec, and that of the set as it is now.
pub(crate) fn sizes(spec: &LeaderWorkerSetSpec, existing: &[u32]) -> Sizes {
    let replicas = u32::try_from(spec.replicas()).unwrap_or_default();
    let group = group_size(spec);
    Sizes {
        set: least_of_set(replicas, group, existing),
        group,
    }
}

fn gang(is_gang: bool, min_count: u32) -> Policy {
    if is_gang {
        Policy::Gang {
            min_count: min_count.max(1),
        }
    } else {
        Policy::Basic
    }
}

fn composite(policy: Option<&CompositePolicy>, by_default: bool, count: u32) -> Policy {
    gang(policy.map_or(by_default, |of| of.gang.is_some()), count)
}

/// NAT-9: a count of the user's can only be that of all the pods.
fn leaf(policy: Option<&LeafPolicy>, count: u32) -> Policy {
    gang(policy.is_some_and(|of| of.gang.is_some()), count)
}

fn topology(constraints: Option<&SchedulingConstraints>) -> Vec<String> {
    let listed = constraints.and_then(|of| of.topology.as_ref());
    listed
        .into_iter()
        .flatten()
        .map(|constraint| constraint.key.clone())
        .collect()
}

fn disruption(mode: &DisruptionMode) -> Disruption {
    if mode.all.is_some() {
        Disruption::All
    } else {
        Disruption::Single
    }
}

fn claim(claim: &SharedResourceClaim) -> Claim {
    Claim {
        name: claim.name.clone(),
        claim: claim.resource_claim_name.clone(),
        template: claim.resource_claim_template_name.clone(),
    }
}
