//! The controller of LeaderWorkerSets with Ordinal identity (reconcile-ordinal sections 3 to 7, 10 and 11).
//!
//! [`observe`] takes a set from the cache, [`plan`] says what to write, [`report`] what follows from how that went. Sets with Hash identity or with
//! gang scheduling are refused with an event: admission lets none through as long as they are not served.

mod events;
mod groups;
mod meaning;
mod observe;
mod plan;
mod report;
pub mod revision;
pub mod rollout;
mod status;

pub use observe::{Snapshot, observe};
pub use plan::{SetPlan, plan};
pub use report::{Report, report};

#[cfg(test)]
mod tests;
