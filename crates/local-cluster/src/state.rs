//! What is recorded of a running cluster, so that any later command can find and stop it.
//!
//! The record is written before the first process starts and after each one, so that a start that was cut short
//! can be told from a cluster and cleaned up.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control_plane::{Component, Ports};
use crate::process::ProcessId;
use crate::{Error, Result, cache};

/// The record of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Binaries and options the cluster was started with; one with another text is not reused.
    pub(crate) fingerprint: String,
    /// Whether the start went through.
    pub(crate) complete: bool,
    /// The process whose end ends the cluster, for clusters of tests.
    pub(crate) owner: Option<ProcessId>,
    pub(crate) ports: Ports,
    /// The processes in the order of their start.
    pub(crate) processes: Vec<Process>,
}

/// One process of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) component: Component,
    pub(crate) id: ProcessId,
    /// How it was started, to start it again.
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Process {
    /// Ends it with SIGTERM, or SIGKILL after a while. A node is no process that could end by itself: what is on it ends with it.
    pub(crate) fn stop(&self, grace: Duration) -> Result<()> {
        match self.component {
            Component::Node => self.id.kill(self.component.name()),
            component => self.id.stop(component.name(), grace),
        }
    }
}

impl State {
    /// Reads a record; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = cache::read(path)?;
        let state = serde_json::from_str(&text).map_err(|source| Error::State {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Some(state))
    }

    /// Replaces the record in one step.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|source| Error::State {
            path: path.to_path_buf(),
            source,
        })?;
        let temporary = path.with_extension("partial");
        cache::write(&temporary, &text)?;
        fs::rename(&temporary, path).map_err(Error::file("rename", &temporary))
    }

    /// The process of a component.
    pub(crate) fn process(&self, component: Component) -> Option<&Process> {
        self.processes
            .iter()
            .find(|process| process.component == component)
    }

    /// Components whose process does not run.
    pub(crate) fn stopped(&self) -> Vec<Component> {
        let stopped = self
            .processes
            .iter()
            .filter(|process| !process.id.is_running());
        stopped.map(|process| process.component).collect()
    }

    /// Whether another process, which still runs, started the cluster for itself.
    pub(crate) fn is_in_use(&self) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| owner.is_running() && Some(owner) != ProcessId::this().as_ref())
    }

    /// Whether the process that the cluster was started for has ended.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| !owner.is_running())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(owner: Option<ProcessId>) -> State {
        let id = ProcessId::this().unwrap();
        State {
            fingerprint: "f".to_owned(),
            complete: true,
            owner,
            ports: Ports::of([1, 2, 3, 4, 5]),
            processes: vec![Process {
                component: Component::Etcd,
                id,
                argv: vec!["etcd".to_owned()],
                env: Vec::new(),
            }],
        }
    }

    fn ended() -> ProcessId {
        let folder = tempfile::tempdir().unwrap();
        let argv = ["sleep".to_owned(), "600".to_owned()];
        let id = crate::process::spawn(&argv, &[], &folder.path().join("log")).unwrap();
        id.kill("sleep").unwrap();
        id
    }

    #[test]
    fn record_survives_writing_and_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(State::read(&path).unwrap(), None);
        let state = state(None);
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap(), Some(state));
    }

    #[test]
    fn damaged_record_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, "{\"complete\": tr").unwrap();
        let error = State::read(&path).unwrap_err();
        assert!(error.to_string().contains("state.json"), "{error}");
    }

    #[test]
    fn ended_process_is_listed_as_stopped() {
        let mut state = state(None);
        assert_eq!(state.stopped(), Vec::new());
        state.processes[0].id = ended();
        assert_eq!(state.stopped(), vec![Component::Etcd]);
    }

    #[test]
    fn cluster_is_orphaned_when_its_owner_ended() {
        assert!(!state(None).is_orphaned());
        assert!(!state(ProcessId::this()).is_orphaned());
        assert!(state(Some(ended())).is_orphaned());
    }

    #[test]
    fn cluster_is_in_use_while_another_process_owns_it() {
        let folder = tempfile::tempdir().unwrap();
        let argv = ["sleep".to_owned(), "600".to_owned()];
        let other = crate::process::spawn(&argv, &[], &folder.path().join("log")).unwrap();
        assert!(state(Some(other.clone())).is_in_use());
        other.kill("sleep").unwrap();
        assert!(!state(Some(other)).is_in_use());
        assert!(!state(ProcessId::this()).is_in_use());
        assert!(!state(None).is_in_use());
    }
}
