//! What operators install, rendered by the tools that they use: kustomize (of kubectl) and Helm.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy sees test code only in functions that are tests themselves"
)]

mod chart;
mod documents;
mod image;
mod kustomize;
mod monitoring;
mod same;
