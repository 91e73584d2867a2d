//! Workloads and PodGroups of `scheduling.k8s.io/v1beta1`, and the terms that both carry.

use k8s_openapi::api::scheduling::v1beta1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{Meta, ObjectKey};

/// How the pods of one PodGroup are scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// One by one, or together.
    pub policy: Policy,
    /// Node labels of which all the pods share a value.
    pub topology: Vec<String>,
    /// What is disrupted together; absent means [`Disruption::Single`].
    pub disruption: Option<Disruption>,
    /// Resource claims that the pods share.
    pub claims: Vec<Claim>,
    /// Priority class, or empty.
    pub priority_class: String,
}

/// Whether pods are scheduled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One by one.
    Basic,
    /// At least so many, or none.
    Gang {
        /// How many.
        min_count: u32,
    },
}

/// What is disrupted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// Each pod by itself.
    Single,
    /// All pods at once.
    All,
}

/// A resource claim that pods share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Name in the pod template.
    pub name: String,
    /// An existing claim.
    pub claim: Option<String>,
    /// A template to make it from.
    pub template: Option<String>,
}

/// What the controllers read of a Workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Metadata; labels of ours only.
    pub meta: Meta,
    /// `spec.controllerRef`.
    pub of: Option<WorkloadOf>,
    /// `spec.podGroupTemplates`.
    pub templates: Vec<StoredTemplate>,
    /// It has composite templates, which are never ours (NAT-33).
    pub is_composite: bool,
}

/// What a Workload is said to belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadOf {
    /// API group.
    pub group: Box<str>,
    /// Kind.
    pub kind: Box<str>,
    /// Name.
    pub name: Box<str>,
}

/// A template of PodGroups as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTemplate {
    /// Name in the Workload.
    pub name: Box<str>,
    /// The terms.
    pub terms: Terms,
    /// `priority`, never ours.
    pub priority: Option<i32>,
    /// `preemptionPolicy`, never ours.
    pub preemption_policy: Option<Box<str>>,
}

/// What the controllers read of a PodGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct PodGroup {
    /// Metadata; labels of ours only.
    pub meta: Meta,
    /// All owners: a new one is added to them.
    pub owners: Vec<OwnerReference>,
    /// `spec.workloadRef`: Workload and template.
    pub made_from: Option<(Box<str>, Box<str>)>,
    /// The terms.
    pub terms: Terms,
}

impl Workload {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// The template of this name.
    pub fn template(&self, name: &str) -> Option<&StoredTemplate> {
        self.templates
            .iter()
            .find(|template| *template.name == *name)
    }
}

impl PodGroup {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }
}

impl Policy {
    fn of(policy: &api::PodGroupSchedulingPolicy) -> Self {
        match &policy.gang {
            Some(gang) => Self::Gang {
                min_count: u32::try_from(gang.min_count).unwrap_or_default(),
            },
            None => Self::Basic,
        }
    }
}

fn topology(constraints: Option<api::PodGroupSchedulingConstraints>) -> Vec<String> {
    let listed = constraints.and_then(|constraints| constraints.topology);
    let listed = listed.unwrap_or_default().into_iter();
    listed.map(|constraint| constraint.key).collect()
}

fn disruption(mode: Option<&api::DisruptionMode>) -> Option<Disruption> {
    let mode = mode?;
    Some(if mode.all.is_some() {
        Disruption::All
    } else {
        Disruption::Single
    })
}

fn claims(claims: Option<Vec<api::PodGroupResourceClaim>>) -> Vec<Claim> {
    let claims = claims.unwrap_or_default().into_iter();
    claims
        .map(|claim| Claim {
            name: claim.name,
            claim: claim.resource_claim_name,
            template: claim.resource_claim_template_name,
        })
        .collect()
}

impl From<api::PodGroupTemplate> for StoredTemplate {
    fn from(template: api::PodGroupTemplate) -> Self {
        Self {
            terms: Terms {
                policy: Policy::of(&template.scheduling_policy),
                topology: topology(template.scheduling_constraints),
                disruption: disruption(template.disruption_mode.as_ref()),
                claims: claims(template.resource_claims),
                priority_class: template.priority_class_name.unwrap_or_default(),
            },
            name: template.name.into(),
            priority: template.priority,
            preemption_policy: template.preemption_policy.map(Into::into),
        }
    }
}

impl From<api::Workload> for Workload {
    fn from(workload: api::Workload) -> Self {
        let spec = workload.spec;
        let of = spec.controller_ref.map(|of| WorkloadOf {
            group: of.api_group.unwrap_or_default().into(),
            kind: of.kind.into(),
            name: of.name.into(),
        });
        let templates = spec.pod_group_templates.unwrap_or_default().into_iter();
        let composite = spec.composite_pod_group_templates.unwrap_or_default();
        Self {
            meta: Meta::ours(&workload.metadata),
            of,
            templates: templates.map(Into::into).collect(),
            is_composite: !composite.is_empty(),
        }
    }
}

impl From<api::PodGroup> for PodGroup {
    fn from(group: api::PodGroup) -> Self {
        let spec = group.spec;
        let made_from = spec
            .workload_ref
            .map(|of| (of.workload_name.into(), of.template_name.into()));
        Self {
            meta: Meta::ours(&group.metadata),
            owners: group.metadata.owner_references.unwrap_or_default(),
            made_from,
            terms: Terms {
                policy: Policy::of(&spec.scheduling_policy),
                topology: topology(spec.scheduling_constraints),
                disruption: disruption(spec.disruption_mode.as_ref()),
                claims: claims(spec.resource_claims),
                priority_class: spec.priority_class_name.unwrap_or_default(),
            },
        }
    }
}
