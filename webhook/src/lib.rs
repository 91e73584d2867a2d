//! The HTTPS server that answers the API server's admission reviews (operations.md sections 7 and 8).
//!
//! What is answered is decided in `lws_core::admission`; this crate knows how to listen, to decode and encode reviews, and
//! to exchange its certificate while it runs; the listener serves metrics as well. It reads no objects of the cluster and holds no state between requests.

#![deny(missing_docs)]

mod certificates;
mod files;
mod metrics;
mod probe;
mod review;
mod routes;
mod server;
mod tls;

pub use certificates::{CertStore, CertificateError};
pub use files::CertFiles;
pub use metrics::{Metrics, Reads};
pub use probe::{AnyCertificate, NotReady, Probe};
pub use routes::Admission;
pub use server::{Server, ServerError};
pub use tls::Tls;
