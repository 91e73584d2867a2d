//! Sub-roles (reconcile-disaggregatedset section 12): how the groups of one child set are divided among the sub-roles of its role.
//!
//! Decides from the counts that the child's annotations hold and from the labels of its groups. Only children with Ordinal identity are divided
//! (API V-15).

mod counts;
mod routing;
mod sync;

pub use counts::{Counts, CountsError, fit, stick};
pub use routing::{RoutedGroup, Routing};
pub use sync::{Ask, Move, Synced, Write, sync};
