//! What the tests on a real control plane are written with.
//!
//! A test runs in a namespace of its own ([`Bench`]), on the cluster that all share or on one of its own
//! ([`on_shared_cluster`], [`on_own_cluster`]). Everything in the namespace is watched into a [`World`], which keeps the whole
//! history, so that a test can wait for a state and can judge afterwards what happened on the way. The test plays
//! the kubelet where it matters ([`Bench::make_ready`], [`Bench::restart`], …); other pods are run by KWOK.
//!
//! When a test fails, the namespace, its history and the end of the manager's log are printed.

mod act;
mod audit;
mod bench;
mod cluster;
mod golden;
mod kubelet;
mod manifest;
mod object;
mod roles;
mod rollout;
mod scrape;
mod tls;
mod world;

pub use act::Denial;
pub use audit::{AuditLog, Request};
pub use bench::{
    Bench, RESERVED, on_new_installation, on_own_cluster, on_own_cluster_in, on_shared_cluster,
    until, with_own_turn,
};
pub use cluster::{Plant, build_manager};
pub use manifest::Manifest;
pub use object::{Kind, Object};
pub use roles::Roles;
pub use scrape::{Scraper, scrape};
pub use tls::served_certificate;
pub use world::{Change, Verb, World};
