//! A simulated cluster for tests: one thread, one seeded random source, a virtual clock.

pub mod store;
