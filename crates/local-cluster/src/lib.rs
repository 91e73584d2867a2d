//! A real control plane with fake nodes on one machine, and a real node where containers can be run.
//!
//! [`Cluster::up`] starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK as
//! local processes, from binaries that are built once from the Go modules below `xtask/tools`. Each cluster has a
//! name and a state folder of its own below a per-user cache folder, so that several can run at once.
//! [`Installation`] puts this project's CRDs and webhooks into a cluster, [`Manager`] runs the manager there as
//! a local process.
//!
//! Everything listens on loopback only. Processes are stopped by the id and start time recorded when they were
//! started, never by name. A kubeconfig of the environment is never read.
#![deny(missing_docs)]

mod cache;
mod certificates;
mod checkout;
mod cluster;
mod control_plane;
mod error;
mod http;
mod installation;
mod interrupt;
mod json;
mod kubeconfig;
mod manager;
mod node;
mod nodes;
mod ports;
mod process;
mod progress;
mod rights;
mod state;
mod target;
mod tools;
mod webhooks;

pub use cache::Cache;
pub use checkout::name_in_checkout;
pub use cluster::{Cluster, Health, Options, TemporaryCluster};
pub use control_plane::Component;
pub use error::Error;
pub use installation::{Certificates, Installation, InstallationOptions};
pub use interrupt::Interrupt;
pub use manager::{Manager, ManagerOptions};
pub use node::{Image, Packages, REAL_NODE, can_run_containers, prepare_real_node};
pub use nodes::{DELETE_AFTER, HOLD_DELETION, MANUAL_STATUS};
pub use progress::Progress;
pub use rights::MANAGER_USER;
pub use target::Target;
pub use tools::{Tool, Tools};

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;
