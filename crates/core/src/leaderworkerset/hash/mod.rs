//! The pass over a set with Hash identity, whose leaders a Deployment runs (reconcile-hash).
//!
//! Groups have no order here: the Deployment scales and rolls, and this decides which of the leaders that it made may be scheduled
//! ([`replacement`]), whose restart count they take over ([`counts`]), and what the status says ([`status`]). It never deletes a leader (HASH-14).

mod counts;
mod leaders;
mod pass;
mod replacement;
mod status;

pub(crate) use leaders::surplus;
pub(super) use pass::{Counted, plan};
pub(super) use status::state;

#[cfg(test)]
mod tests;
