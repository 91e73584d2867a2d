//! One PodGroup: created, and kept up to date in what may change (NAT-40, NAT-41, NAT-43, NAT-45).

use std::sync::Arc;

use serde_json::{Value, json};

use super::drift::{Difference, compare, drifted};
use super::{Fault, Reason};
use crate::build::gang::{PodGroupBody, pod_group, workload_reference};
use crate::intent::{Accept, Intent, Kind, Step, Subresource, Target, Why};
use crate::leaderworkerset::controller;
use crate::model::{Lws, Meta, ObjectKey, PodGroup, Policy, Terms};

/// A PodGroup as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedGroup<'a> {
    /// The set.
    pub lws: &'a Lws,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(&'static str, String)>,
    /// The set's own Workload; `None` if it is an ancestor's (NAT-56).
    pub workload: Option<&'a Meta>,
    /// Names of Workload and template.
    pub made_from: (String, String),
    /// The terms.
    pub terms: Terms,
}

impl WantedGroup<'_> {
    fn key(&self) -> ObjectKey {
        self.lws.key().sibling(&self.name)
    }

    fn told(&self) -> String {
        format!("PodGroup {}", self.name)
    }

    fn foreign(&self) -> String {
        format!(
            "{} exists and is not controlled by LeaderWorkerSet {}",
            self.told(),
            self.lws.key().name
        )
    }
}

/// The write that makes the PodGroup as wanted, if one is needed.
pub(crate) fn ensure(
    wanted: &WantedGroup<'_>,
    stored: Option<&Arc<PodGroup>>,
) -> Result<Option<Step>, Fault> {
    let Some(stored) = stored else {
        return Ok(Some(create(wanted)));
    };
    let count_differs = judge(wanted, stored)?;
    let body = changes(wanted, stored, count_differs);
    let is_same = body == json!({});
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::PodGroup,
            key: stored.key().clone(),
        },
        uid: stored.meta.uid.clone(),
        resource_version: Some(stored.meta.resource_version.clone()),
        subresource: Subresource::None,
        body,
    };
    Ok((!is_same).then(|| Step::new(Why::PodGroupDiffers, intent)))
}

fn create(wanted: &WantedGroup<'_>) -> Step {
    let (workload, template) = &wanted.made_from;
    let body = pod_group(&PodGroupBody {
        lws: wanted.lws,
        name: &wanted.name,
        labels: &wanted.labels,
        workload: wanted.workload,
        made_from: (workload, template),
        terms: &wanted.terms,
    });
    let intent = Intent::Create {
        target: Target {
            kind: Kind::PodGroup,
            key: wanted.key(),
        },
        body: Arc::new(body),
        accept: Accept::Controlled {
            by: controller(wanted.lws),
            foreign: wanted.foreign(),
        },
        claim: false,
    };
    Step::new(Why::PodGroupMissing, intent)
}

/// What keeps a stored PodGroup from being used; else whether its count is another.
pub(crate) fn judge(wanted: &WantedGroup<'_>, stored: &PodGroup) -> Result<bool, Fault> {
    if !stored.meta.is_controlled_by(&wanted.lws.meta.uid) {
        return Err(Fault::new(Reason::PodGroupCreateFailed, wanted.foreign()));
    }
    if stored.meta.is_terminating() {
        return Err(Fault::new(
            Reason::CleanupBlocked,
            format!("{} is being deleted", wanted.told()),
        ));
    }
    let (workload, template) = &wanted.made_from;
    let is_from = stored
        .made_from
        .as_ref()
        .is_some_and(|(from, of)| **from == **workload && **of == **template);
    if !is_from {
        return Err(drifted(&wanted.told()));
    }
    compare(&stored.terms, &wanted.terms, &wanted.told())
        .map(|difference| difference == Difference::Count)
}

fn changes(wanted: &WantedGroup<'_>, stored: &PodGroup, count_differs: bool) -> Value {
    let mut body = json!({});
    for (key, value) in &wanted.labels {
        if stored.meta.label(key) != value {
            let label = json!({"metadata": {"labels": {*key: value}}});
            json_patch::merge(&mut body, &label);
        }
    }
    if let Some(workload) = wanted.workload {
        let mut owners = stored.owners.iter();
        if !owners.any(|owner| owner.uid == workload.uid.as_str()) {
            let mut owners = stored.owners.clone();
            owners.push(workload_reference(workload));
            let owners = json!({"metadata": {"ownerReferences": owners}});
            json_patch::merge(&mut body, &owners);
        }
    }
    if let (true, Policy::Gang { min_count }) = (count_differs, wanted.terms.policy) {
        let count = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}});
        json_patch::merge(&mut body, &count);
    }
    body
}
