//! A simulated cluster for tests: one thread, one seeded random source, a virtual clock.
//!
//! [`store`] is the API server, [`actors`] are Kubernetes and people, [`replica`] is one process of ours around the real decisions of `lws-core`, and
//! [`world`] steps through them all. [`properties`] judges, [`seeds`] runs
//! one world, shrinks and reports what fails; [`runner`] runs many of them, [`scenarios`] has those with a story, and [`exhaustive`] takes every order
//! of what can happen. [`candidate`] stands for election, and [`disaggregated`] has all that is about DisaggregatedSets.

pub mod actors;
pub mod api;
pub mod candidate;
pub mod conformance;
pub mod disaggregated;
pub mod exhaustive;
pub mod faults;
pub mod planted;
pub mod properties;
pub mod random;
pub mod replica;
pub mod runner;
pub mod scenarios;
pub mod seeds;
pub mod store;
pub mod world;
