//! Tests that stop managers, change webhook configurations or count requests. Each has a cluster of its own.

mod certificates;
mod crash;
mod gang_off;
mod idle;
mod large;
mod leader;
mod manifests;
mod metrics;
mod real_node;
mod restart;
mod rights;
mod takeover;
mod unlabelled;
mod without_webhooks;
