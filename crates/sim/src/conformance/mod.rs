//! Whether the simulated cluster is like a real one: random requests are made to both, and answers and objects must be equal.
//!
//! A [`Trace`] is a list of requests, made from a seed. [`Simulated`] makes them here; the tests of the real control plane make the same there. After
//! each request everybody comes to rest, and the [`View`]s of both, in which what cannot be equal is masked, are compared.

mod families;
mod mask;
mod simulated;
mod trace;
mod view;

pub use simulated::{Break, Simulated};
pub use trace::{Fence, LONG_AGO, NOBODY, Named, Operation, Trace};
pub use view::{Names, View, differences};
