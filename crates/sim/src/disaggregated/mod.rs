//! DisaggregatedSets in the simulated cluster: sets with roles and what people do to them, what runs below their children, and the judge of
//! section 8 of the test program.
//!
//! The children are LeaderWorkerSets. In most runs [`children`] stands for all that is below them, as it looks from outside; in some the whole stack
//! is there. [`budget`] says what a step of a rollout may do, from the rules alone and without the planner.

mod budget;
pub mod children;
mod commits;
mod decisions;
mod facts;
mod read;
pub mod rehearsed;
mod rest;
pub mod seeds;
pub mod stories;
pub mod tables;
pub mod wanted;

use std::time::Duration;

use crate::replica::{Controller, Duty};
use crate::store::Kind;

pub use commits::check_commit;
pub use decisions::check_decision;
pub use facts::{Dips, Facts};
pub use rest::check_rest;

/// What is below the children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Below {
    /// [`children`]: StatefulSet and leaders only, as they look from outside.
    #[default]
    Acted,
    /// Our own controllers of LeaderWorkerSets and groups.
    Real,
}

/// How a world with DisaggregatedSets is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ground {
    /// What is below the children.
    pub below: Below,
    /// So many pods find a place.
    pub room: Option<usize>,
    /// The controller of DisaggregatedSets looks only when everybody else is at rest, so that what it asked for is ready.
    pub patient: bool,
    /// Nobody takes a ready group away but us: what the budgets keep is there at any time.
    pub holds: bool,
}

impl Ground {
    /// Nothing was written for so long: all is quiet. A blocked rollout looks every second, so it must not be long.
    pub const QUIET: Duration = Duration::from_secs(150);

    const ACTED: Duty = Duty {
        controllers: &[Controller::DisaggregatedSets],
        watched: &[
            Kind::DisaggregatedSet,
            Kind::RoleScaler,
            Kind::LeaderWorkerSet,
            Kind::StatefulSet,
            Kind::Pod,
        ],
    };

    const REAL: Duty = Duty {
        controllers: &[
            Controller::DisaggregatedSets,
            Controller::Sets,
            Controller::Groups,
        ],
        watched: &[
            Kind::DisaggregatedSet,
            Kind::RoleScaler,
            Kind::LeaderWorkerSet,
            Kind::StatefulSet,
            Kind::ControllerRevision,
            Kind::Service,
            Kind::Pod,
            Kind::Node,
        ],
    };

    /// What processes of ours do there.
    pub fn duty(&self) -> Duty {
        match self.below {
            Below::Acted => Self::ACTED,
            Below::Real => Self::REAL,
        }
    }
}
