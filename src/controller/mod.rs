//! Drives a controller: takes keys from its queue, lets each be reconciled in a task of its own, and tells the queue how it ended.
//!
//! The three steps of a reconcile (observe, plan, perform) are in [`sets`], [`groups`] and [`disaggregated_sets`]. A panic in one is an error of that key alone (KRS-51).

mod disaggregated_sets;
mod groups;
mod sets;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use lws_core::intent::{Plan, PlanError};
use lws_core::model::{Meta, ObjectKey};
use lws_core::queue::{Retry, Verdict};
use lws_core::run::{Class, Outcome};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::events::Notices;
use crate::gateway::Gateway;
use crate::identity;
use crate::metrics::Metrics;
use crate::signals::Stop;
use crate::store::{Controller, Next, Store};

/// KRS-49: every key is looked at again after this time, a fifth more or less. Nothing relies on it.
const RESYNC: Duration = Duration::from_secs(600);

/// What reconciles work with.
pub struct Context {
    /// What is known of the cluster.
    pub store: Arc<Store>,
    /// Where writes go.
    pub gateway: Gateway,
    /// Where events go.
    pub notices: Notices,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// Works on keys of `controller` until a stop is asked for, then lets the ones that are under way end (SHD-1).
pub async fn run(controller: Controller, cx: Arc<Context>, mut stop: Stop) {
    let mut running = JoinSet::new();
    loop {
        let turn = tokio::select! {
            biased;
            () = stop.asked() => break,
            Some(_) = running.join_next() => continue,
            turn = cx.store.take(controller) => turn,
        };
        let cx = cx.clone();
        cx.metrics.taken(controller, turn.waited);
        running.spawn(async move {
            let began = Instant::now();
            let next = attempt(controller, &turn.key, &cx).await;
            cx.metrics.reconciled(controller, &next, began.elapsed());
            cx.store
                .done(controller, &turn.key, next, identity::random_unit());
        });
    }
    while running.join_next().await.is_some() {}
}

async fn attempt(controller: Controller, key: &ObjectKey, cx: &Context) -> Next {
    let span = tracing::info_span!(
        target: "lws::reconcile", "reconcile",
        controller = controller.name(), namespace = %key.namespace, name = %key.name, uid = Empty, generation = Empty,
        reconcileID = identity::new_uuid(),
    );
    let reconciled = async {
        match controller {
            Controller::Sets => sets::reconcile(key, cx).await,
            Controller::Groups => groups::reconcile(key, cx).await,
            Controller::DisaggregatedSets => disaggregated_sets::reconcile(key, cx).await,
        }
    };
    let caught = AssertUnwindSafe(reconciled)
        .catch_unwind()
        .instrument(span.clone())
        .await;
    caught.unwrap_or_else(|_| {
        span.in_scope(|| tracing::error!("reconcile panicked"));
        cx.metrics.panicked(controller);
        let retry = Retry::Failed {
            class: Class::Unknown,
            after: None,
        };
        Next::Done {
            written: Vec::new(),
            verdict: Verdict {
                wake_after: None,
                retry: Some(retry),
            },
            busy: Duration::ZERO,
        }
    })
}

fn now() -> Timestamp {
    Timestamp::now()
}

/// Tells the log which incarnation the reconcile is about.
fn record(meta: &Meta) {
    Span::current()
        .record("uid", meta.uid.as_str())
        .record("generation", meta.generation);
}

/// What follows from a plan and from what became of its passes.
fn next(plan: &Plan, passes: &[Outcome]) -> Next {
    let retry = retry(&plan.errors, passes);
    for remark in &plan.remarks {
        tracing::error!(remark, "passed over");
    }
    if let Some(error) = message(&plan.errors, passes) {
        tracing::warn!(error, "Reconciler error");
    }
    let resync = RESYNC.mul_f64(0.8 + 0.4 * identity::random_unit());
    let wake_after = plan.wake_after.map_or(resync, |wake| wake.min(resync));
    let written = passes
        .iter()
        .flat_map(|pass| &pass.written)
        .cloned()
        .collect();
    Next::Done {
        written,
        verdict: Verdict {
            wake_after: Some(wake_after),
            retry,
        },
        busy: Duration::ZERO,
    }
}

/// ORD-23: what counts as the error of the passes.
fn retry(errors: &[PlanError], passes: &[Outcome]) -> Option<Retry> {
    Verdict::of(None, errors, &passes.iter().collect::<Vec<_>>()).retry
}

fn message<'a>(errors: &'a [PlanError], passes: &'a [Outcome]) -> Option<&'a str> {
    let failed = passes.iter().find_map(|pass| pass.failure.as_ref());
    failed
        .map(|failure| failure.message.as_str())
        .or_else(|| errors.first().map(|error| error.message.as_str()))
}

#[cfg(test)]
mod tests {
    use lws_core::run::Failure;

    use super::*;

    fn found(message: &str, seconds: Option<u64>) -> PlanError {
        PlanError {
            message: message.into(),
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    fn failed(class: Class) -> Outcome {
        let failure = Failure {
            class,
            message: "refused".into(),
            retry_after: None,
        };
        Outcome {
            failure: Some(failure),
            ..Outcome::default()
        }
    }

    fn conflict() -> Outcome {
        Outcome {
            conflict: true,
            stopped: true,
            ..Outcome::default()
        }
    }

    #[test]
    fn ord_23_what_counts_as_the_error_of_a_pass() {
        let unknown = Retry::Failed {
            class: Class::Unknown,
            after: None,
        };
        let rejected = Retry::Failed {
            class: Class::Rejected,
            after: None,
        };
        let good = Outcome::default;
        for (errors, passes, wanted) in [
            (vec![], vec![good(), good()], None),
            (vec![found("a", None)], vec![good()], Some(unknown)),
            (
                vec![found("a", Some(30)), found("b", None)],
                vec![good()],
                Some(Retry::After(Duration::from_secs(30))),
            ),
            (
                vec![found("a", Some(30))],
                vec![conflict()],
                Some(Retry::Conflict),
            ),
            (
                vec![found("a", Some(30))],
                vec![good(), failed(Class::Rejected)],
                Some(rejected.clone()),
            ),
            (
                vec![],
                vec![conflict(), failed(Class::Rejected)],
                Some(rejected),
            ),
        ] {
            assert_eq!(retry(&errors, &passes), wanted);
        }
    }

    #[test]
    fn krs_49_every_key_is_looked_at_again() {
        let wake = |after: Option<u64>| {
            let plan = Plan {
                wake_after: after.map(Duration::from_secs),
                ..Plan::default()
            };
            let Next::Done { verdict, .. } = next(&plan, &[Outcome::default()]) else {
                panic!("not forgotten")
            };
            verdict.wake_after.expect("a time").as_secs()
        };
        assert!((0..100).all(|_| (480..=720).contains(&wake(None))));
        assert_eq!(wake(Some(5)), 5);
        assert!(wake(Some(10_000)) <= 720);
    }
}
