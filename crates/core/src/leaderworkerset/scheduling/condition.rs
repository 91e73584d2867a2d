//! The condition `WorkloadSchedulingCreated` (NAT-53), from what was decided and what became of it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::gang::{Fault, Reason};
use crate::leaderworkerset::status;
use crate::model::{Lws, Uid};
use crate::notice::{Action, Notice};
use crate::run::Outcome;

const KIND: &str = "WorkloadSchedulingCreated";

/// What was decided about the objects that a gang scheduler needs.
#[derive(Clone, Debug, PartialEq, Default)]
pub(in crate::leaderworkerset) struct Prepared {
    /// Positions of the steps, and what their failure means.
    pub steps: Vec<(usize, Reason)>,
    /// What is wrong already.
    pub fault: Option<Fault>,
    /// Something comes in a later pass.
    pub is_unfinished: bool,
    /// PodGroups that nothing needs.
    pub unneeded: Vec<Uid>,
}

impl Prepared {
    /// Sets the condition, if this pass can tell; gives the event about one that became False.
    pub fn tell(
        &self,
        lws: &Lws,
        outcome: &Outcome,
        conditions: &mut Vec<Condition>,
        now: Timestamp,
    ) -> Option<Notice> {
        let verdict = self.verdict(outcome)?;
        let (status, reason, message) = match &verdict {
            Ok(()) => (
                "True",
                "SchedulingPrerequisitesCreated",
                "Scheduling prerequisites created".to_owned(),
            ),
            Err(fault) => ("False", fault.reason.as_str(), fault.message.clone()),
        };
        let condition = Condition {
            type_: KIND.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.clone(),
            observed_generation: Some(lws.meta.generation),
            last_transition_time: Time(now),
        };
        let stored = lws.status.conditions.iter().find(|of| of.type_ == KIND);
        status::put(conditions, condition);
        let is_news = conditions.iter().find(|of| of.type_ == KIND) != stored;
        (is_news && verdict.is_err()).then(|| Notice::warning(lws, reason, Action::Create, message))
    }

    /// `None` if an earlier failure kept the steps from being tried, or not all are known yet.
    fn verdict(&self, outcome: &Outcome) -> Option<Result<(), Fault>> {
        if let Some(fault) = &self.fault {
            return Some(Err(fault.clone()));
        }
        let failed = outcome.failed_at.zip(outcome.failure.as_ref());
        let Some((at, failure)) = failed else {
            return (!self.is_unfinished).then_some(Ok(()));
        };
        let of_ours = self.steps.iter().find(|(step, _)| *step == at);
        if let Some((_, reason)) = of_ours {
            return Some(Err(Fault::new(*reason, failure.message.clone())));
        }
        let is_reached = self.steps.iter().all(|(step, _)| {
            let answer = outcome.answers.get(*step);
            answer.is_some_and(Option::is_some)
        });
        (is_reached && !self.is_unfinished).then_some(Ok(()))
    }
}
