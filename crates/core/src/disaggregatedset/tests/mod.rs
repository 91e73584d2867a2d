//! Tests of the controller as a whole, and the objects that tests of its parts share.

pub(crate) mod fixture;
mod passes;
