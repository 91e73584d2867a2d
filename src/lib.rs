//! The shell around the pure decisions of `lws-core`: configuration, connections, watches, writes, leader election, probes.
//!
//! Nothing here decides what a set or a group needs. This library is for the binary `lws-manager` and its tests.

pub mod certificates;
pub mod client;
pub mod config;
pub mod controller;
pub mod events;
pub mod fence;
pub mod flags;
pub mod gateway;
pub mod identity;
pub mod informer;
pub mod lease;
pub mod limiter;
pub mod listen;
pub mod logging;
pub mod metrics;
pub mod probes;
pub mod scheduling;
pub mod signals;
pub mod start;
pub mod store;
pub mod tls;
pub mod version;
pub mod watches;
pub mod webhooks;
