//! Tests that share one cluster and one manager. Each runs in a namespace of its own and leaves the rest alone.

mod admission;
mod autoscaling;
mod create;
mod deletion;
mod disaggregatedset;
mod disaggregatedset_refusal;
mod disaggregatedset_rollout;
mod disaggregatedset_scaling;
mod disaggregatedset_sub_roles;
mod drift;
mod foreign;
mod gang;
mod hash;
mod identity;
mod names;
mod placement;
mod recreate;
mod refusal;
mod resize;
mod revision;
mod rollout;
mod scale;
mod schema;
mod status;
