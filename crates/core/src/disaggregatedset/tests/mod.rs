//! Tests of the controller as a whole, and the objects that tests of its parts share.

mod divisions;
pub(crate) mod fixture;
mod passes;
