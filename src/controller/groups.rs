//! Reconciles one group.

use lws_core::group::{GroupPlan, observe, plan};
use lws_core::model::ObjectKey;

use super::{Context, next, now, record};
use crate::store::Next;

pub(super) async fn reconcile(key: &ObjectKey, cx: &Context) -> Next {
    let Some(snapshot) = cx.store.read(|cache| observe(key, cache)) else {
        cx.metrics.progress.group_gone(key);
        return Next::Forget;
    };
    cx.metrics.progress.group_seen(key, &snapshot, now());
    if let Some(leader) = &snapshot.leader {
        record(&leader.meta);
    }
    let GroupPlan { plan, judged } = plan(&snapshot, now());
    let passes = [cx.gateway.perform(plan.steps.clone()).await];
    if passes.iter().all(|pass| pass.is_complete()) {
        cx.store.handled(key, &judged);
    }
    if let (Some(lws), [pass]) = (&snapshot.lws, &passes) {
        cx.metrics.progress.group_done(lws.key(), &plan, pass);
    }
    cx.notices.post(&plan, &passes);
    next(&plan, &passes)
}
