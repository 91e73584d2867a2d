//! The controller of LeaderWorkerSets (reconcile-ordinal sections 3 to 7, 10 and 11; reconcile-hash).
//!
//! [`observe`] takes a set from the cache, [`plan`] says what to write, [`report`] what follows from how that went. What differs by identity is in
//! `ordinal` with `rollout` and `groups`, and in `hash`; what a gang scheduler needs before there are leaders is in `scheduling`.

mod events;
mod groups;
pub(crate) mod hash;
mod meaning;
mod observe;
mod ordinal;
mod pass;
mod plan;
pub mod rehearsal;
mod report;
pub mod revision;
pub mod rollout;
mod scheduling;
mod status;
mod workload;

pub use observe::{Snapshot, observe};
pub use plan::{SetPlan, plan};
pub use report::{Report, report};
pub(crate) use workload::controller;

#[cfg(test)]
pub(crate) mod tests;
