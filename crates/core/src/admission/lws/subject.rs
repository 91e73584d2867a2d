//! A LeaderWorkerSet as the rules see it: members with their paths, and the values that count when they are absent.

use serde_json::Value;

use crate::admission::findings::{Fault, Finding};
use crate::admission::json::Json;

/// What the rules are applied to.
#[derive(Debug, Clone, Copy)]
pub(in crate::admission) struct Subject<'a> {
    pub(super) metadata: Json<'a>,
    pub(super) spec: Json<'a>,
}

/// A member and where it stands.
#[derive(Debug, Clone)]
pub(in crate::admission) struct Field<'a> {
    pub(in crate::admission) json: Json<'a>,
    pub(in crate::admission) path: String,
}

/// Which pods a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodRole {
    Leader,
    Worker,
}

impl<'a> Subject<'a> {
    pub(in crate::admission) fn of(object: &'a Value) -> Self {
        let object = Json::of(object);
        Self {
            metadata: object.at("metadata"),
            spec: object.at("spec"),
        }
    }

    /// A member of the spec by its dotted path.
    pub(in crate::admission) fn field(&self, path: &str) -> Field<'a> {
        let spec = Field {
            json: self.spec,
            path: "spec".to_owned(),
        };
        path.split('.').fold(spec, |field, name| field.member(name))
    }

    pub(in crate::admission) fn annotation(&self, key: &str) -> Json<'a> {
        self.metadata.at("annotations").at(key)
    }

    pub(super) fn name(&self) -> &'a str {
        self.metadata.at("name").text()
    }

    pub(super) fn replicas(&self) -> i64 {
        self.spec.at("replicas").int().unwrap_or(1)
    }

    pub(in crate::admission) fn size(&self) -> i64 {
        self.spec
            .at("leaderWorkerTemplate")
            .at("size")
            .int()
            .unwrap_or(1)
    }

    /// Empty reads as `Ordinal`.
    pub(in crate::admission) fn is_hash(&self) -> bool {
        self.spec.at("groupIdentity").text() == "Hash"
    }

    /// Leaders use the worker template when they have none of their own.
    pub(super) fn template(&self, role: PodRole) -> Json<'a> {
        let templates = self.spec.at("leaderWorkerTemplate");
        let leader = templates.at("leaderTemplate");
        if role == PodRole::Leader && leader.is_present() {
            leader
        } else {
            templates.at("workerTemplate")
        }
    }
}

impl<'a> Field<'a> {
    pub(in crate::admission) fn member(&self, name: &str) -> Self {
        Self {
            json: self.json.at(name),
            path: format!("{}.{name}", self.path),
        }
    }

    /// The elements of a list.
    pub(in crate::admission) fn elements(&self) -> impl Iterator<Item = Self> {
        self.json.items().enumerate().map(|(index, json)| Self {
            json,
            path: format!("{}[{index}]", self.path),
        })
    }

    pub(in crate::admission) fn invalid(self, detail: impl Into<String>) -> Finding {
        let value = self.json.value().clone();
        self.invalid_value(value, detail)
    }

    /// When what counts is not what stands there.
    pub(in crate::admission) fn invalid_value(
        self,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Finding {
        self.finding(Fault::Invalid(value.into()), detail)
    }

    pub(in crate::admission) fn required(self, detail: impl Into<String>) -> Finding {
        self.finding(Fault::Required, detail)
    }

    pub(in crate::admission) fn forbidden(self, detail: impl Into<String>) -> Finding {
        self.finding(Fault::Forbidden, detail)
    }

    pub(in crate::admission) fn unsupported(self, detail: impl Into<String>) -> Finding {
        let value = self.json.value().clone();
        self.finding(Fault::Unsupported(value), detail)
    }

    pub(super) fn finding(self, fault: Fault, detail: impl Into<String>) -> Finding {
        Finding {
            path: self.path,
            fault,
            detail: detail.into(),
        }
    }
}
