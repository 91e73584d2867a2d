//! What runs the leaders of a set: a StatefulSet, or with Hash identity a Deployment. Both are judged, adopted and written alike.

use std::collections::BTreeMap;

use lws_api::names::annotation;
use serde_json::{Value, json};

use super::meaning::meaning;
use crate::cache::Applied;
use crate::intent::Kind;
use crate::model::{Deployment, Lws, Meta, Pairs, StatefulSet};
use crate::ownership::{Expected, Ownership, is_orphan, judge};

/// The leader workload under the name of a set, as far as its kind does not matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload<'a> {
    pub meta: &'a Meta,
    pub template_annotations: &'a Pairs,
    template: Option<&'a Value>,
    selector: Option<&'a BTreeMap<String, String>>,
    metadata_hash: u64,
    /// Fields that our POST wrote are not yet part of our apply (KRS-54).
    pub is_unclaimed: bool,
}

impl<'a> From<&'a StatefulSet> for Workload<'a> {
    fn from(set: &'a StatefulSet) -> Self {
        Self {
            meta: &set.meta,
            template_annotations: &set.template_annotations,
            template: set.leader_template.as_deref(),
            selector: set.selector.as_ref(),
            metadata_hash: set.metadata_hash,
            is_unclaimed: set.is_unclaimed,
        }
    }
}

impl<'a> From<&'a Deployment> for Workload<'a> {
    fn from(deployment: &'a Deployment) -> Self {
        Self {
            meta: &deployment.meta,
            template_annotations: &deployment.template_annotations,
            template: deployment.leader_template.as_deref(),
            selector: deployment.selector.as_ref(),
            metadata_hash: deployment.metadata_hash,
            is_unclaimed: deployment.is_unclaimed,
        }
    }
}

impl Workload<'_> {
    /// ORD-33: making this workload of `template` would leave its leaders as they are, as far as that shows. What is not known is taken to be so.
    pub fn is_made_of(&self, template: &Value) -> bool {
        let meaning = |template| meaning(&json!({"leaderTemplate": template}));
        self.template
            .is_none_or(|stored| covers(&meaning(stored), &meaning(template)))
    }

    /// FAIL-94: leaders carry the hint that groups end in parallel.
    pub fn has_parallel_hint(&self) -> bool {
        self.template_annotations
            .text(annotation::POD_TERMINATION_POLICY)
            == "Parallel"
    }

    /// KRS-57: neither what is wanted nor what is there has changed since the last apply.
    pub fn is_as_applied(&self, applied: Option<&Applied>, desired_hash: u64) -> bool {
        !self.is_unclaimed && applied.is_some_and(|last| *last == self.applied(desired_hash))
    }

    /// KRS-57: what is remembered of an apply that gave this.
    pub fn applied(&self, desired_hash: u64) -> Applied {
        Applied {
            desired_hash,
            uid: self.meta.uid.clone(),
            generation: self.meta.generation,
            metadata_hash: self.metadata_hash,
        }
    }
}

/// The API server adds what was left out to what was written, so `stored` may have more members.
fn covers(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => written
            .iter()
            .all(|(name, member)| stored.get(name).is_some_and(|found| covers(found, member))),
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len()
                && stored
                    .iter()
                    .zip(written)
                    .all(|(found, item)| covers(found, item))
        }
        (stored, written) => stored == written,
    }
}

/// ORD-135: what stands under the name of the set, when it is nothing that will be collected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'a> {
    Nothing,
    /// Ours, or an orphan to adopt.
    Ours(Workload<'a>),
    Foreign,
}

impl<'a> Found<'a> {
    /// ORD-20 steps 4 and 5; `None` for a leftover.
    pub fn judge(lws: &Lws, workload: Option<Workload<'a>>) -> Option<Self> {
        let Some(workload) = workload else {
            return Some(Self::Nothing);
        };
        match judge(workload.meta, &controller(lws)) {
            Ownership::Ours => (!workload.meta.is_terminating()).then_some(Self::Ours(workload)),
            Ownership::Leftover => None,
            Ownership::Foreign if is_orphan(workload.meta, workload.selector, lws.key()) => {
                Some(Self::Ours(workload))
            }
            Ownership::Foreign => Some(Self::Foreign),
        }
    }

    pub fn ours(self) -> Option<Workload<'a>> {
        match self {
            Self::Ours(workload) => Some(workload),
            Self::Nothing | Self::Foreign => None,
        }
    }
}

/// The controller that objects of this set have.
pub(crate) fn controller(lws: &Lws) -> Expected {
    Expected {
        kind: Kind::LeaderWorkerSet.name(),
        name: lws.key().name.to_string(),
        uid: lws.meta.uid.clone(),
    }
}
