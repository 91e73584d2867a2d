//! The controller of DisaggregatedSets (reconcile-disaggregatedset).
//!
//! [`observe`] takes a set from the cache, [`plan`] says what to write, [`report`] what follows from how that went.

pub mod children;
mod events;
pub mod executor;
pub mod foresight;
mod observe;
mod plan;
pub mod planner;
pub mod readiness;
mod report;
pub mod revision;
pub mod scalers;
mod status;
pub mod sub_roles;
pub mod targets;

pub use observe::{Snapshot, observe};
pub use plan::{SetPlan, plan};
pub use report::report;

#[cfg(test)]
pub(crate) mod tests;
