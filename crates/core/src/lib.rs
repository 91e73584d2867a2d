//! Pure decisions of the lws controllers.
//!
//! Everything here is a function of its arguments: no client, no clock, no randomness, no tasks. The shell (`lws`) feeds watch events into a
//! [`cache`], takes keys from the [`queue`], calls `observe` and `plan` of a controller, and performs the plan with a [`run::Run`]; the simulator
//! does the same without a cluster.

#![deny(missing_docs)]

pub mod admission;
pub mod build;
pub mod cache;
pub mod disaggregatedset;
pub mod gang;
mod gate;
pub mod group;
pub mod guard;
pub mod identity;
pub mod intent;
pub mod leaderworkerset;
pub mod lease;
pub mod model;
pub mod notice;
pub mod ownership;
pub mod queue;
pub mod restart_counts;
pub mod run;
mod version;
