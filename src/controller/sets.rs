//! Reconciles one LeaderWorkerSet. What that takes grows with its groups, and each of them causes it: the time is told to the queue.

use std::time::Instant;

use lws_core::leaderworkerset::{Report, observe, plan, report};
use lws_core::model::ObjectKey;

use super::{Context, next, now, record};
use crate::store::Next;

pub(super) async fn reconcile(key: &ObjectKey, cx: &Context) -> Next {
    let began = Instant::now();
    let Some(snapshot) = cx.store.read(|cache| observe(key, cache)) else {
        cx.metrics.progress.set_gone("lws", key, now());
        return Next::Forget;
    };
    record(&snapshot.lws.meta);
    let now = now();
    let conditions = &snapshot.lws.status.conditions;
    let rolling = conditions
        .iter()
        .find(|condition| condition.type_ == "UpdateInProgress");
    cx.metrics.progress.set_seen("lws", key, rolling, now);
    let mut plan = plan(&snapshot, now);
    cx.store.note_unneeded(key, &plan.unneeded, now);
    let planned = began.elapsed();
    let done = cx.gateway.perform(plan.plan.steps.clone()).await;
    let began = Instant::now();
    let report = if done.stopped {
        Report::default()
    } else {
        report(&snapshot, &plan, &done, now)
    };
    let busy = planned + began.elapsed();
    let wakes = [plan.plan.wake_after, report.wake_after];
    plan.plan.wake_after = wakes.into_iter().flatten().min();
    cx.store
        .remember(&snapshot.lws.meta.uid, report.applied, report.reported);
    let passes = [done, cx.gateway.perform(report.steps).await];
    cx.notices.post(&plan.plan, &passes);
    next(&plan.plan, &passes).after(busy)
}
