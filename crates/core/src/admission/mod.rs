//! What the admission webhooks answer: defaults and validation of LeaderWorkerSets and DisaggregatedSets, and what is added to pods.
//!
//! Decided from the objects of one request as raw JSON (a typed decode would drop fields that are newer than our types)
//! and from the [`Environment`] of this process; no other object is ever read (ADM-6). The objects may be anything that
//! a client can send: nothing here panics on them.

pub mod disaggregatedset;
mod environment;
mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod formats;
mod json;
pub mod lws;
pub mod pod;
mod unavailable;

pub use environment::{Environment, SchedulerProvider, ServedKinds};
pub use findings::{Fault, Finding, Findings};
