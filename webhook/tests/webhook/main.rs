//! The server over real TLS on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy sees test code only in functions that are tests themselves"
)]

mod client;
mod reviews;
mod serving;
