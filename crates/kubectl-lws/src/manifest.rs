//! Reads manifests: one file, with one or several documents in YAML or JSON.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lws_api::names::{DS_GROUP, GROUP};
use serde_json::Value;

use crate::cluster::Kind;

/// An object of ours in a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its kind.
    pub kind: Kind,
    /// The object as it is written.
    pub object: Value,
}

impl Manifest {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`, if it is written.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.text("/metadata/namespace")).filter(|name| !name.is_empty())
    }

    fn text(&self, pointer: &str) -> &str {
        let value = self.object.pointer(pointer);
        value.and_then(Value::as_str).unwrap_or_default()
    }
}

/// All objects of ours in a file; `-` is stdin. Other kinds are passed over.
pub fn read(path: &Path) -> Result<Vec<Manifest>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        text
    } else {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let manifests = parse(&text).with_context(|| format!("cannot read {}", path.display()))?;
    if manifests.is_empty() {
        bail!(
            "{} holds no LeaderWorkerSet and no DisaggregatedSet",
            path.display()
        );
    }
    Ok(manifests)
}

/// The objects of ours in a text.
pub fn parse(text: &str) -> Result<Vec<Manifest>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    documents
        .into_iter()
        .map(ours)
        .filter_map(Result::transpose)
        .collect()
}

fn ours(object: Value) -> Result<Option<Manifest>> {
    let text = |member: &str| {
        object
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let kind = match (group, text("kind")) {
        (GROUP, "LeaderWorkerSet") => Kind::LeaderWorkerSet,
        (DS_GROUP, "DisaggregatedSet") => Kind::DisaggregatedSet,
        _ => return Ok(None),
    };
    if version != "v1" {
        bail!("{kind} of {}: only v1 is known", text("apiVersion"));
    }
    Ok(Some(Manifest { kind, object }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kc_documents_of_ours_are_taken_and_others_passed_over() {
        let text = "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: b}
---
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: c, namespace: prod}
";
        let found = parse(text).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|m| (m.kind, m.name(), m.namespace()))
            .collect();
        assert_eq!(
            names,
            [
                (Kind::LeaderWorkerSet, "a", None),
                (Kind::DisaggregatedSet, "c", Some("prod"))
            ]
        );
    }

    #[test]
    fn kc_other_versions_are_refused() {
        let text = "{apiVersion: leaderworkerset.x-k8s.io/v2, kind: LeaderWorkerSet}";
        assert!(parse(text).is_err());
    }
}
