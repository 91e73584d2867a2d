//! Passes over a set: what is written for a snapshot, and what follows from how that went.

pub(crate) mod fixture;
mod hostile;
mod obstacles;
mod passes;
mod service;
mod unseen;
