//! Why a group is recreated: the words and the log fields that name what failed (FAIL-100).
//!
//! Made from the failed pod as last seen, live or as a tombstone; a user must still find it here when the pod and its logs are gone.

use std::fmt;
use std::sync::Arc;

use super::failure::{Failed, How};
use crate::model::Restart;

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The failed pod.
    pub pod: Arc<str>,
    /// The node it was bound to, empty if none.
    pub node: Box<str>,
    /// What happened to it.
    pub event: CauseEvent,
    /// The container that had failed, if one had.
    pub container: Option<Restart>,
}

/// What happened to a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseEvent {
    /// A container restarted.
    Restarted,
    /// The pod was deleted, for a reason that its status gives.
    Disrupted(Box<str>),
    /// The pod was deleted.
    Deleted,
    /// It failed earlier; the wait for the recreation is over.
    BackoffEnded,
}

impl Cause {
    pub(super) fn of(failed: &Failed<'_>) -> Self {
        let pod = failed.pod;
        let event = match failed.how {
            How::Restarted => CauseEvent::Restarted,
            How::Deleted if pod.reason.is_empty() => CauseEvent::Deleted,
            How::Deleted => CauseEvent::Disrupted(pod.reason.clone()),
            How::RecreatePending => CauseEvent::BackoffEnded,
        };
        let container = match event {
            CauseEvent::Restarted | CauseEvent::Deleted => pod.restart.clone(),
            CauseEvent::Disrupted(_) | CauseEvent::BackoffEnded => None,
        };
        Self {
            pod: pod.key().name.clone(),
            node: pod.node.clone(),
            event,
            container,
        }
    }

    /// Log field `reason`: how the container ended, or else what happened to the pod.
    pub fn reason(&self) -> &str {
        match &self.event {
            CauseEvent::Restarted => self
                .container
                .as_ref()
                .map_or("", |container| &container.reason),
            CauseEvent::Disrupted(reason) => reason,
            CauseEvent::Deleted => "Deleted",
            CauseEvent::BackoffEnded => "BackoffEnded",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.event {
            CauseEvent::Restarted => f.write_str(&self.container_text()),
            CauseEvent::Disrupted(reason) => write!(f, "{reason}{}", self.node_text()),
            CauseEvent::Deleted if self.container.is_some() => {
                write!(f, "Deleted{}, {}", self.node_text(), self.container_text())
            }
            CauseEvent::Deleted => write!(f, "Deleted{}", self.node_text()),
            CauseEvent::BackoffEnded => f.write_str("restart backoff ended"),
        }
    }
}

impl Cause {
    fn node_text(&self) -> String {
        if self.node.is_empty() {
            String::new()
        } else {
            format!(" on node {}", self.node)
        }
    }

    fn container_text(&self) -> String {
        let Some(Restart {
            container,
            init,
            count,
            exit_code,
            reason,
            finished: _,
        }) = &self.container
        else {
            return String::new();
        };
        let kind = if *init { "init container" } else { "container" };
        let end = match exit_code {
            Some(code) if reason.is_empty() => format!("exited with code {code}"),
            Some(code) => format!("exited with code {code} ({reason})"),
            None => "restarted".to_owned(),
        };
        format!("{kind} {container} {end}, restart count {count}")
    }
}
