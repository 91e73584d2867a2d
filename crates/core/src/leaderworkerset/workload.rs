//! What runs the leaders of a set: a StatefulSet, or with Hash identity a Deployment. Both are judged, adopted and written alike.

use std::collections::BTreeMap;

use crate::cache::Applied;
use crate::intent::Kind;
use crate::model::{Deployment, Lws, Meta, Pairs, StatefulSet};
use crate::ownership::{Expected, Ownership, is_orphan, judge};

/// The leader workload under the name of a set, as far as its kind does not matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload<'a> {
    pub meta: &'a Meta,
    pub template_annotations: &'a Pairs,
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
            selector: deployment.selector.as_ref(),
            metadata_hash: deployment.metadata_hash,
            is_unclaimed: deployment.is_unclaimed,
        }
    }
}

impl Workload<'_> {
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
pub(super) fn controller(lws: &Lws) -> Expected {
    Expected {
        kind: Kind::LeaderWorkerSet.name(),
        name: lws.key().name.to_string(),
        uid: lws.meta.uid.clone(),
    }
}
