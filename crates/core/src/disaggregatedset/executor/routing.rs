//! Children whose groups are divided among sub-roles (SRL-16 … SRL-19).

use super::{Act, Child, Fault};
use crate::disaggregatedset::sub_roles::{Ask, Synced, sync};

/// How a child stands to what is asked of its division.
pub(super) enum Routed {
    /// Its groups are not divided, and shall not be.
    Undivided,
    /// Nothing is to be done.
    Settled,
    /// Something is done or waited for.
    Waits(Option<Act>),
    /// Nothing can be planned for it.
    Faulty(Fault),
}

/// SRL-8: a child without routing is not divided.
pub(super) fn route(child: &Child, ask: &Ask, is_told: bool) -> Routed {
    let synced = match &child.routing {
        None => return Routed::Undivided,
        // RDY-2: how the groups are labelled is not known.
        Some(_) if child.ready.is_none() => return Routed::Waits(None),
        Some(Ok(routing)) => sync(routing, ask),
        Some(Err(error)) => Err(*error),
    };
    match synced {
        Ok(Synced::Undivided) => Routed::Undivided,
        Ok(Synced::Settled) => Routed::Settled,
        Ok(Synced::Waits(step)) => {
            let is_empty = step.relabelled.is_empty() && step.write.is_none();
            Routed::Waits((!is_empty).then(|| Act::Route {
                child: child.name.clone(),
                step,
                is_told,
            }))
        }
        Err(error) => Routed::Faulty(Fault::Counts {
            child: child.name.clone(),
            error,
        }),
    }
}
