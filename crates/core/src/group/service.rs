//! The headless Service of one group, for sets where each group has its own (ORD-71 … ORD-74).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use lws_api::leaderworkerset::SubdomainPolicy;

use super::workers::no_address;
use super::{Group, foreign, steps, wake};
use crate::build::service::{repair, replica_selector, replica_service};
use crate::intent::{Accept, Intent, Kind, Plan, Step, Target, Why};
use crate::model::Service;
use crate::notice::Notice;
use crate::ownership::{Ownership, judge};

/// ORD-80 step 12: a group whose Service is not good gets nothing else.
pub(super) fn ensure(group: &Group<'_>, plan: &mut Plan) -> ControlFlow<()> {
    match group.spec.subdomain_policy() {
        SubdomainPolicy::Shared => return ControlFlow::Continue(()),
        SubdomainPolicy::UniquePerReplica => {}
    }
    if group.leader.subdomain.is_empty() {
        plan.errors.push(no_address(group.leader));
        return ControlFlow::Break(());
    }
    let Some(service) = &group.snapshot.service else {
        plan.steps.push(create(group));
        return ControlFlow::Continue(());
    };
    match judge(&service.meta, &group.controller()) {
        Ownership::Ours if !service.meta.is_terminating() => {
            plan.steps.extend(restored(group, service));
            ControlFlow::Continue(())
        }
        Ownership::Ours | Ownership::Leftover => {
            wake(plan, Duration::from_secs(1));
            ControlFlow::Break(())
        }
        Ownership::Foreign => {
            let message = foreign_text(group);
            plan.notices.push(failure(group).because(&message));
            plan.errors.push(foreign(message));
            ControlFlow::Break(())
        }
    }
}

fn create(group: &Group<'_>) -> Step {
    let intent = Intent::Create {
        target: Target {
            kind: Kind::Service,
            key: group.leader.key().sibling(&group.leader.subdomain),
        },
        body: Arc::new(replica_service(group.lws, group.leader)),
        accept: Accept::Controlled {
            by: group.controller(),
            foreign: foreign_text(group),
        },
        claim: false,
    };
    Step::new(Why::ServiceMissing, intent).or_else(failure(group))
}

/// ORD-73: exactly what peers rely on.
fn restored(group: &Group<'_>, service: &Service) -> Option<Step> {
    let body = repair(service, &replica_selector(group.lws, group.leader))?;
    Some(steps::patch(
        Kind::Service,
        &service.meta,
        body,
        Why::ServiceDiffers,
        true,
    ))
}

fn failure(group: &Group<'_>) -> Notice {
    group.failed_create("Failed to create headless service for error")
}

fn foreign_text(group: &Group<'_>) -> String {
    let key = group.leader.key();
    format!(
        "service {} is not controlled by Pod {}",
        key.sibling(&group.leader.subdomain),
        key.name
    )
}
