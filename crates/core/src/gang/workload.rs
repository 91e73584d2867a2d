//! The Workload of a set: found by its owner, created, and kept up to date in its counts (NAT-37 … NAT-39, NAT-43).

use std::sync::Arc;

use lws_api::names::{GROUP, label};
use serde_json::json;

use super::drift::{Difference, compare, drifted};
use super::{Fault, Reason, Template, workload_name};
use crate::build::gang as build;
use crate::intent::{Accept, Intent, Kind, Step, Subresource, Target, Why};
use crate::leaderworkerset::controller;
use crate::model::{Lws, Meta, ObjectKey, Workload};

/// Where the set's Workload is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    /// It is to be created under this name.
    Missing(ObjectKey),
    /// It is there, under whatever name.
    Existing(&'a Arc<Workload>),
}

impl<'a> Found<'a> {
    /// Its name, which that of the PodGroups begins with.
    pub fn name(&self) -> &str {
        match self {
            Self::Missing(key) => &key.name,
            Self::Existing(workload) => &workload.key().name,
        }
    }

    /// Metadata of the existing one.
    pub fn meta(&self) -> Option<&'a Meta> {
        match self {
            Self::Missing(_) => None,
            Self::Existing(workload) => Some(&workload.meta),
        }
    }
}

/// NAT-37: `controlled` are the Workloads that the set controls.
pub(crate) fn find<'a>(lws: &Lws, controlled: &'a [Arc<Workload>]) -> Result<Found<'a>, Fault> {
    match controlled {
        [] => Ok(Found::Missing(lws.key().sibling(&workload_name(lws)))),
        [one] if is_of(one, lws) => Ok(Found::Existing(one)),
        [one] => Err(drifted(&told(one.key()))),
        [_, _, ..] => {
            let names: Vec<&str> = controlled.iter().map(|one| &*one.key().name).collect();
            Err(Fault::new(
                Reason::Invalid,
                format!("several Workloads belong to the set: {}", names.join(", ")),
            ))
        }
    }
}

fn is_of(workload: &Workload, lws: &Lws) -> bool {
    workload.of.as_ref().is_some_and(|of| {
        *of.group == *GROUP
            && *of.kind == *Kind::LeaderWorkerSet.name()
            && *of.name == *lws.key().name
    })
}

fn told(key: &ObjectKey) -> String {
    format!("Workload {}", key.name)
}

/// The write that makes the Workload as wanted, if one is needed.
pub(crate) fn ensure(
    lws: &Lws,
    found: &Found<'_>,
    templates: &[Template],
) -> Result<Option<Step>, Fault> {
    match found {
        Found::Missing(key) => Ok(Some(create(lws, key, templates))),
        Found::Existing(workload) => update(lws, workload, templates),
    }
}

fn create(lws: &Lws, key: &ObjectKey, templates: &[Template]) -> Step {
    let foreign = format!(
        "{} exists and is not controlled by LeaderWorkerSet {}",
        told(key),
        lws.key().name
    );
    let intent = Intent::Create {
        target: Target {
            kind: Kind::Workload,
            key: key.clone(),
        },
        body: Arc::new(build::workload(lws, key, templates)),
        accept: Accept::Controlled {
            by: controller(lws),
            foreign,
        },
        claim: false,
    };
    Step::new(Why::WorkloadMissing, intent)
}

fn update(lws: &Lws, stored: &Workload, wanted: &[Template]) -> Result<Option<Step>, Fault> {
    let what = told(stored.key());
    if stored.meta.is_terminating() {
        return Err(Fault::new(
            Reason::WorkloadCreateFailed,
            format!("{what} is being deleted"),
        ));
    }
    if stored.is_composite || stored.templates.len() != wanted.len() {
        return Err(drifted(&what));
    }
    let mut counts_differ = false;
    for template in wanted {
        let found = stored
            .template(template.name)
            .ok_or_else(|| drifted(&what))?;
        counts_differ |= compare(&found.terms, &template.terms, &what)? == Difference::Count;
    }
    let mut body = json!({});
    if stored.meta.label(label::NAME) != &*lws.key().name {
        let label = json!({"metadata": {"labels": {label::NAME: &*lws.key().name}}});
        json_patch::merge(&mut body, &label);
    }
    if counts_differ {
        let templates = build::templates(stored, |template| {
            let named = wanted.iter().find(|of| *of.name == *template.name);
            named.map_or(template.terms.policy, |of| of.terms.policy)
        });
        json_patch::merge(
            &mut body,
            &json!({"spec": {"podGroupTemplates": templates}}),
        );
    }
    let is_same = body == json!({});
    let intent = Intent::Patch {
        target: Target {
            kind: Kind::Workload,
            key: stored.key().clone(),
        },
        uid: stored.meta.uid.clone(),
        resource_version: Some(stored.meta.resource_version.clone()),
        subresource: Subresource::None,
        body,
    };
    Ok((!is_same).then(|| Step::new(Why::WorkloadDiffers, intent)))
}
