//! Children whose groups are divided among sub-roles: their counts as annotations, and the labels of their pods (section 12).

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::leaderworkerset::GroupIdentity;
use lws_api::names::{ds_annotation, ds_label};
use serde_json::{Map, Value, json};

use super::{Pass, target_of};
use crate::disaggregatedset::children::Child;
use crate::disaggregatedset::executor::Scale;
use crate::disaggregatedset::plan::slices::SlicePlan;
use crate::disaggregatedset::readiness::{Group, Observation};
use crate::disaggregatedset::sub_roles::{Counts, CountsError, Move, Routing, Write};
use crate::intent::{Intent, Kind, Step, Subresource, Why};
use crate::model::Pod;

impl<'a> Pass<'a> {
    /// SRL-5: how a child with Ordinal identity is divided; `None` where there is nothing to divide.
    pub(super) fn routing(&self, child: &Child) -> Option<Result<Routing, CountsError>> {
        match child.lws.spec.group_identity() {
            GroupIdentity::Ordinal => {}
            GroupIdentity::Hash => return None,
        }
        let mut roles = self.set().spec.roles.iter();
        let role = roles.find(|role| role.name == child.role());
        if !role.is_some_and(|role| role.is_partitioned()) && !child.is_divided() {
            return None;
        }
        let unseen = Observation::default();
        let seen = self.snapshot.observation(child).unwrap_or(&unseen);
        Some(Routing::of(child, seen))
    }

    /// SRL-3, SRL-13, SRL-14: the labels that change, or the one patch of all counts.
    pub(super) fn divide(
        &self,
        child: &'a Child,
        step: &Move,
        is_told: bool,
        slice: &mut SlicePlan<'a, '_>,
    ) {
        if let Some(seen) = self.snapshot.observation(child) {
            slice.others.extend(labels(seen, &step.relabelled));
        }
        let Some(write) = &step.write else { return };
        let counts = json!({"metadata": {"annotations": annotations(child, write)}});
        slice.patches.merge(child, &counts, Why::ChildDiffers);
        let from = child.replicas().into();
        if write.replicas != from {
            let scale = Scale {
                from,
                to: write.replicas,
                is_told,
            };
            self.scale(child, scale, slice);
        }
    }
}

/// SRL-14: workers in the order of their ordinals, the leader last; pods that have the label already are left alone.
fn labels(seen: &Observation, relabelled: &BTreeMap<u64, Option<Arc<str>>>) -> Vec<Step> {
    let wanted = |group: &Group| relabelled.get(&u64::from(group.ordinal?)).cloned();
    let groups = seen.groups.iter();
    let groups = groups.filter_map(|group| Some((group, wanted(group)?)));
    let pods = groups.flat_map(|(group, to)| {
        let pods = group.workers.iter().chain([&group.leader]);
        pods.map(move |pod| (pod, to.clone()))
    });
    let differing = pods
        .filter(|(pod, to)| pod.meta.label(ds_label::SUBROLE) != to.as_deref().unwrap_or_default());
    differing
        .map(|(pod, to)| Step::new(Why::GroupReassigned, label(pod, to.as_deref())))
        .collect()
}

fn label(pod: &Pod, to: Option<&str>) -> Intent {
    Intent::Patch {
        target: target_of(Kind::Pod, &pod.meta),
        uid: pod.meta.uid.clone(),
        resource_version: Some(pod.meta.resource_version.clone()),
        subresource: Subresource::None,
        body: json!({"metadata": {"labels": {ds_label::SUBROLE: to}}}),
    }
}

/// Section 12.2: the annotations that change, with null for those that go.
fn annotations(child: &Child, write: &Write) -> Map<String, Value> {
    let Write {
        replicas: _,
        initial,
        issued,
        baseline,
        plan,
    } = write;
    let text = |counts: &Option<_>| counts.as_ref().map(Counts::to_json);
    let wanted = [
        (
            ds_annotation::INITIAL_REPLICAS,
            initial.map(|number| number.to_string()),
        ),
        (ds_annotation::SUBROLE_REPLICAS, text(issued)),
        (ds_annotation::INITIAL_SUBROLE_REPLICAS, text(baseline)),
        (ds_annotation::SUBROLE_PLAN, text(plan)),
        (ds_annotation::SUBROLE_SCALE_PLAN, None),
    ];
    let found = &child.lws.meta.annotations;
    wanted
        .into_iter()
        .filter(|(key, text)| found.get(key) != text.as_deref())
        .map(|(key, text)| (key.to_owned(), json!(text)))
        .collect()
}
