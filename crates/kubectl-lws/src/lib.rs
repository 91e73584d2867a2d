//! `kubectl lws`: what users ask about their sets, and the few things they do to them.
//!
//! Every command is cut in two. What it says is decided from objects alone, in functions that are tested without a cluster; reading those objects and
//! writing the few patches is a thin shell around that. Rules, plans and messages are those of `lws-core`, so that what is foretold here is what the
//! controller does.

mod cli;
mod cluster;
mod doctor;
#[cfg(test)]
mod examples;
mod manifest;
mod output;
mod preview;
mod recover;
mod rollout;
mod status;
mod validate;

pub use cli::run;
