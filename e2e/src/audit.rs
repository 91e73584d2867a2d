//! The API server's audit log: what was asked, by whom.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

/// The authorizer's decision, as it stands in a line. A denial by admission has the same status code.
const FORBIDDEN: &str = r#""authorization.k8s.io/decision":"forbid""#;

/// The audit log of a cluster.
pub struct AuditLog {
    path: PathBuf,
}

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// User agent of the client.
    pub agent: String,
    /// Verb of the API: get, list, watch, create, patch, …
    pub verb: String,
    /// Resource and subresource.
    pub resource: String,
    /// Namespace; empty if none.
    pub namespace: String,
    /// Name; empty if none.
    pub name: String,
    /// Status code of the answer.
    pub code: i64,
}

impl Request {
    /// Whether both need the same right; who may list may watch here.
    fn asks_the_same_as(&self, other: &Self) -> bool {
        let is_read = |verb: &str| matches!(verb, "list" | "watch");
        let is_same = self.verb == other.verb || (is_read(&self.verb) && is_read(&other.verb));
        is_same && self.resource == other.resource && self.namespace == other.namespace
    }

    /// Whether a manager of ours sent it.
    pub fn is_ours(&self) -> bool {
        self.agent.starts_with("lws/")
    }

    /// Whether it asks for a change.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    fn parse(line: &str) -> Option<Self> {
        let entry: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| {
            let value = entry.pointer(pointer).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let resource = match text("/objectRef/subresource").as_str() {
            "" => text("/objectRef/resource"),
            subresource => format!("{}/{subresource}", text("/objectRef/resource")),
        };
        Some(Self {
            agent: text("/userAgent"),
            verb: text("/verb"),
            resource,
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: entry
                .pointer("/responseStatus/code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        })
    }
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where the log ends now.
    pub fn position(&self) -> Result<u64> {
        Ok(self.path.metadata()?.len())
    }

    /// Requests answered since a position.
    pub fn since(&self, position: u64) -> Result<Vec<Request>> {
        let text = self.text_since(position)?;
        Ok(text.lines().filter_map(Request::parse).collect())
    }

    /// Requests of a manager since a position that its roles do not allow. A server that has just started may refuse what it allows before
    /// and a moment later.
    pub fn forbidden_since(&self, position: u64) -> Result<Vec<Request>> {
        let text = self.text_since(position)?;
        let parsed = |line: &str| Some((line.contains(FORBIDDEN), Request::parse(line)?));
        let mut requests: Vec<_> = text.lines().filter_map(parsed).collect();
        requests.retain(|(_, request)| request.is_ours());
        let (forbidden, allowed): (Vec<_>, Vec<_>) = requests.into_iter().partition(|(is, _)| *is);
        let always = forbidden.into_iter().map(|(_, request)| request);
        let always = always.filter(|request| {
            let mut allowed = allowed.iter();
            !allowed.any(|(_, other)| other.asks_the_same_as(request))
        });
        Ok(always.collect())
    }

    fn text_since(&self, position: u64) -> Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(position))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_becomes_a_request() {
        let line = r#"{"userAgent":"lws/0.1.0","verb":"patch","objectRef":{"resource":"pods",
            "subresource":"status","namespace":"n","name":"p"},"responseStatus":{"code":200}}"#;
        let request = Request::parse(line).unwrap();
        assert!(request.is_ours() && request.is_write());
        assert_eq!(request.resource, "pods/status");
        assert_eq!((request.namespace.as_str(), request.code), ("n", 200));
    }

    #[test]
    fn only_what_roles_forbid_to_a_manager_is_listed() {
        let line = |agent: &str, resource: &str, decision: &str| {
            format!(
                r#"{{"userAgent":"{agent}","verb":"get","objectRef":{{"resource":"{resource}"}},"responseStatus":{{"code":403}},"annotations":{{"authorization.k8s.io/decision":"{decision}"}}}}"#
            )
        };
        let lines = [
            line("lws/0.1.0", "nodes", "allow"),
            line("lws/0.1.0", "nodes", "forbid"),
            line("kubectl", "secrets", "forbid"),
            line("lws/0.1.0", "secrets", "forbid"),
        ];
        let file = std::env::temp_dir().join(format!("audit-{}", std::process::id()));
        std::fs::write(&file, lines.join("\n")).unwrap();
        let forbidden = AuditLog::new(file.clone()).forbidden_since(0).unwrap();
        std::fs::remove_file(file).unwrap();
        let resources: Vec<_> = forbidden.iter().map(|request| &request.resource).collect();
        assert_eq!(resources, ["secrets"]);
    }

    #[test]
    fn half_a_line_is_left_out() {
        assert_eq!(Request::parse(r#"{"userAgent":"#), None);
    }
}
