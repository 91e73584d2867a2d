//! The writes of a group run, each with the preconditions that its rule asks for.

use lws_api::names::BUDGET_FINALIZER;
use serde_json::Value;

use crate::intent::{Intent, Kind, Propagation, Step, Subresource, Target, Why};
use crate::model::{Lws, Meta, Pod, StatefulSet};

/// FAIL-45, FAIL-49: foreground, of exactly this pod.
pub(super) fn delete_pod(pod: &Pod, why: Why) -> Step {
    delete(Kind::Pod, &pod.meta, why)
}

/// FAIL-91: foreground, of exactly this StatefulSet.
pub(super) fn delete_stateful_set(set: &StatefulSet, why: Why) -> Step {
    delete(Kind::StatefulSet, &set.meta, why)
}

fn delete(kind: Kind, meta: &Meta, why: Why) -> Step {
    Step::new(
        why,
        Intent::Delete {
            target: target(kind, meta),
            uid: meta.uid.clone(),
            resource_version: None,
            propagation: Propagation::Foreground,
        },
    )
}

/// FAIL-64: a change that depends on nothing but the pod's incarnation.
pub(super) fn annotate_pod(pod: &Pod, body: Value, why: Why) -> Step {
    patch(Kind::Pod, &pod.meta, body, why, false)
}

/// FAIL-49: a change of a list, which a merge patch replaces whole, or one that depends on what was read.
pub(super) fn patch_pod(pod: &Pod, body: Value, why: Why) -> Step {
    patch(Kind::Pod, &pod.meta, body, why, true)
}

/// FAIL-52: the set as it was read.
pub(super) fn patch_set(lws: &Lws, body: Value, why: Why) -> Step {
    patch(Kind::LeaderWorkerSet, &lws.meta, body, why, true)
}

/// A patch of an object of ours in the version that was read.
pub(super) fn patch(kind: Kind, meta: &Meta, body: Value, why: Why, fenced: bool) -> Step {
    Step::new(
        why,
        Intent::Patch {
            target: target(kind, meta),
            uid: meta.uid.clone(),
            resource_version: fenced.then(|| meta.resource_version.clone()),
            subresource: Subresource::None,
            body,
        },
    )
}

/// The pod, as the target of a write.
pub(super) fn pod(pod: &Pod) -> Target {
    target(Kind::Pod, &pod.meta)
}

fn target(kind: Kind, meta: &Meta) -> Target {
    Target {
        kind,
        key: meta.key.clone(),
    }
}

/// The pod's finalizers with the budget finalizer on them.
pub(super) fn with_budget_finalizer(pod: &Pod) -> Vec<&str> {
    let mut finalizers = without_budget_finalizer(pod);
    finalizers.push(BUDGET_FINALIZER);
    finalizers
}

/// The pod's finalizers, but not the budget finalizer.
pub(super) fn without_budget_finalizer(pod: &Pod) -> Vec<&str> {
    pod.meta
        .finalizers
        .iter()
        .map(AsRef::as_ref)
        .filter(|finalizer| *finalizer != BUDGET_FINALIZER)
        .collect()
}
