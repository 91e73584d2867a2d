//! Trimmed objects: of what the API server sends, the caches hold what the controllers read (KRS-37), and nothing else.

mod deployment;
mod disaggregated;
mod gang;
mod meta;
mod node;
mod pod;
mod revision;
mod service;
mod set;
mod stateful_set;
mod stored;

pub use deployment::{Deployment, DeploymentStatus, ReplicaSet};
pub use disaggregated::{Ds, RoleScaler};
pub use gang::{Claim, Disruption, PodGroup, Policy, StoredTemplate, Terms, Workload, WorkloadOf};
pub use meta::{Meta, ObjectKey, Owner, Pairs, Uid};
pub use node::Node;
pub(crate) use pod::is_positive;
pub use pod::{Phase, Pod, Restart};
pub use revision::Revision;
pub use service::Service;
pub use set::Lws;
pub use stateful_set::{StatefulSet, StatefulSetStatus};
