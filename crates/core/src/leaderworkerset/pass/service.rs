//! The headless Service that all groups of a set share (ORD-20 step 13, ORD-70 … ORD-74).

use std::sync::Arc;

use super::Pass;
use crate::build::service::{repair, shared_selector, shared_service};
use crate::intent::{Accept, IfFailed, Intent, Kind, Step, Subresource, Why};
use crate::leaderworkerset::events;
use crate::leaderworkerset::plan::LEFTOVER_WAIT;
use crate::leaderworkerset::workload::controller;
use crate::model::Service;
use crate::ownership::{Ownership, judge};

impl Pass<'_> {
    /// ORD-73, ORD-74: creates what is missing, repairs what is ours, and uses what serves as well.
    pub(in crate::leaderworkerset) fn ensure_service(&mut self) {
        let Some(service) = &self.snapshot.service else {
            return self.create_service();
        };
        match judge(&service.meta, &controller(self.lws)) {
            Ownership::Ours if !service.meta.is_terminating() => self.repair_service(service),
            Ownership::Ours | Ownership::Leftover => self.wake(LEFTOVER_WAIT),
            Ownership::Foreign if service.serves(&shared_selector(self.lws)) => {}
            Ownership::Foreign => self.is_blocked(
                events::service_not_created(self.lws),
                events::foreign_service(self.lws),
            ),
        }
    }

    fn create_service(&mut self) {
        let intent = Intent::Create {
            target: self.target(Kind::Service),
            body: Arc::new(shared_service(self.lws)),
            accept: Accept::Serving {
                by: controller(self.lws),
                selector: shared_selector(self.lws),
                foreign: events::foreign_service(self.lws),
            },
            claim: false,
        };
        self.write_service(Why::ServiceMissing, intent);
    }

    fn repair_service(&mut self, service: &Service) {
        let Some(body) = repair(service, &shared_selector(self.lws)) else {
            return;
        };
        let intent = Intent::Patch {
            target: self.target(Kind::Service),
            uid: service.meta.uid.clone(),
            resource_version: Some(service.meta.resource_version.clone()),
            subresource: Subresource::None,
            body,
        };
        self.write_service(Why::ServiceDiffers, intent);
    }

    fn write_service(&mut self, why: Why, intent: Intent) {
        let step = Step::new(why, intent).or_else(events::service_not_created(self.lws));
        self.push(step.if_failed(IfFailed::Continue));
    }
}
