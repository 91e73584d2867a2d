//! Reconciles one DisaggregatedSet.

use lws_core::disaggregatedset::{observe, plan, report};
use lws_core::model::ObjectKey;

use super::{Context, next, now, record};
use crate::store::Next;

pub(super) async fn reconcile(key: &ObjectKey, cx: &Context) -> Next {
    let Some(snapshot) = cx.store.read(|cache| observe(key, cache)) else {
        cx.metrics.progress.set_gone("ds", key, now());
        return Next::Forget;
    };
    record(&snapshot.set.meta);
    let now = now();
    let conditions = &snapshot.set.status.conditions;
    let rolling = conditions
        .iter()
        .find(|condition| condition.type_ == "Progressing");
    cx.metrics.progress.set_seen("ds", key, rolling, now);
    let plan = plan(&snapshot, now);
    let slices = u32::try_from(snapshot.set.spec.slices()).unwrap_or_default();
    cx.metrics.progress.slices_seen(key, slices, &plan.blocked);
    let done = cx.gateway.perform(plan.plan.steps.clone()).await;
    let report = if done.stopped {
        Vec::new()
    } else {
        report(&snapshot, &plan, &done, now)
    };
    let passes = [done, cx.gateway.perform(report).await];
    cx.notices.post(&plan.plan, &passes);
    if let Some(children) = plan.left_alone {
        cx.store
            .remember_left_alone(snapshot.set.meta.uid.clone(), children);
    }
    next(&plan.plan, &passes)
}
