//! The API server's audit log: who asked for what, and when.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

/// User of the kubeconfig that the measured controller gets; it tells its requests from all others, whatever it calls itself.
pub const CONTROLLER: &str = lws_local_cluster::MANAGER_USER;
/// User of kubectl.
pub const ADMIN: &str = "admin";
/// The fake kubelets.
pub const KWOK: &str = "kwok";

/// One answered request.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who asked.
    pub user: String,
    /// Verb of the API: get, list, watch, create, patch, …
    pub verb: String,
    /// Resource and subresource.
    pub resource: String,
    /// Namespace; empty if none.
    pub namespace: String,
    /// Name; empty if none.
    pub name: String,
    /// Status code of the answer.
    pub code: u16,
    /// When it came in.
    pub received: Timestamp,
    /// When it was answered.
    pub answered: Timestamp,
}

impl Entry {
    /// What counts as a request of the controller: no watch, and nothing about the Lease.
    pub fn is_counted(&self) -> bool {
        self.user == CONTROLLER && self.verb != "watch" && self.resource != "leases"
    }

    /// Whether it asked for a change and got it.
    pub fn has_changed(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch") && self.code < 300
    }
}

/// A line of the log, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Answer,
    request_received_timestamp: String,
    stage_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    code: u16,
}

fn parse(line: &str) -> Option<Entry> {
    let line: Line = serde_json::from_str(line).ok()?;
    let object = line.object_ref;
    let resource = if object.subresource.is_empty() {
        object.resource
    } else {
        format!("{}/{}", object.resource, object.subresource)
    };
    Some(Entry {
        user: line.user.username,
        verb: line.verb,
        resource,
        namespace: object.namespace,
        name: object.name,
        code: line.response_status.code,
        received: line.request_received_timestamp.parse().ok()?,
        answered: line.stage_timestamp.parse().ok()?,
    })
}

/// The log of a cluster, read piece by piece.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    position: u64,
}

impl Audit {
    /// The log from its beginning.
    pub fn new(path: PathBuf) -> Self {
        Self { path, position: 0 }
    }

    /// Requests answered since the last call. A line that is not complete yet is left for the next one.
    pub fn read(&mut self) -> Result<Vec<Entry>> {
        let mut text = String::new();
        let mut file = File::open(&self.path).context("cannot open the audit log")?;
        file.seek(SeekFrom::Start(self.position))?;
        file.read_to_string(&mut text)?;
        let complete = text
            .rfind('\n')
            .map_or("", |end| text.get(..end).unwrap_or_default());
        if !complete.is_empty() {
            self.position += u64::try_from(complete.len())? + 1;
        }
        Ok(complete.lines().filter_map(parse).collect())
    }

    /// Leaves out what was answered so far.
    pub fn skip(&mut self) -> Result<()> {
        self.position = self.path.metadata().context("no audit log")?.len();
        Ok(())
    }
}

/// Requests of the controller by verb and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub BTreeMap<(String, String), u32>);

impl Tally {
    /// Counts those that count.
    pub fn of(entries: &[Entry]) -> Self {
        let mut counts = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_counted()) {
            *counts
                .entry((entry.verb.clone(), entry.resource.clone()))
                .or_default() += 1;
        }
        Self(counts)
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(user: &str, verb: &str, resource: &str, subresource: &str) -> String {
        json!({
            "verb": verb, "user": {"username": user, "groups": []},
            "objectRef": {"resource": resource, "subresource": subresource, "namespace": "bench", "name": "a"},
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": "2026-08-01T10:00:00.000001Z", "stageTimestamp": "2026-08-01T10:00:00.002001Z",
        })
        .to_string()
    }

    #[test]
    fn line_becomes_an_entry() {
        let entry = parse(&line(CONTROLLER, "patch", "pods", "status")).unwrap();
        assert_eq!(entry.resource, "pods/status");
        assert_eq!((entry.namespace.as_str(), entry.code), ("bench", 200));
        assert_eq!(entry.answered.duration_since(entry.received).as_millis(), 2);
        assert!(entry.has_changed());
    }

    #[test]
    fn watches_leases_and_others_do_not_count() {
        let count = |user, verb, resource| {
            Tally::of(&[parse(&line(user, verb, resource, "")).unwrap()]).total()
        };
        assert_eq!(count(CONTROLLER, "create", "statefulsets"), 1);
        assert_eq!(count(CONTROLLER, "list", "pods"), 1);
        assert_eq!(count(CONTROLLER, "watch", "pods"), 0);
        assert_eq!(count(CONTROLLER, "update", "leases"), 0);
        assert_eq!(count(KWOK, "patch", "pods"), 0);
    }

    #[test]
    fn half_a_line_waits_for_its_end() {
        let folder = std::env::temp_dir().join(format!("lws-bench-audit-{}", std::process::id()));
        let whole = line(ADMIN, "create", "pods", "");
        std::fs::write(&folder, format!("{whole}\n{{\"verb\"")).unwrap();
        let mut audit = Audit::new(folder.clone());
        assert_eq!(audit.read().unwrap().len(), 1);
        assert_eq!(audit.read().unwrap().len(), 0);
        std::fs::write(&folder, format!("{whole}\n{whole}\n")).unwrap();
        assert_eq!(audit.read().unwrap().len(), 1);
        std::fs::remove_file(folder).unwrap();
    }
}
