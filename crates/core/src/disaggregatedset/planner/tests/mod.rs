//! The step tables of section 10, and properties over random rollouts.

mod changes;
mod fixture;
mod observations;
mod properties;
mod tables;
