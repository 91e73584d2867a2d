//! The pod under admission: what was sent, and over it what has been decided so far.

use lws_api::names::{annotation, label};

use super::{Denial, Request};
use crate::admission::json::Json;

/// Position of a pod in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Leader,
    Worker,
}

/// What is placed exclusively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Group,
    Subgroup,
}

/// A pair of affinity terms: together with the pods whose label `key` is `value`, apart from those with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement<'a> {
    pub(super) topology: &'a str,
    pub(super) key: &'static str,
    pub(super) value: String,
}

/// A member of a map of the pod, to be set.
pub(super) type Entry = (&'static str, String);

/// The pod as sent, and the changes decided so far. Readers see the changes.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pod: Json<'a>,
    namespace: &'a str,
    role: Role,
    hash: bool,
    labels: Vec<Entry>,
    annotations: Vec<Entry>,
    hostname: Option<String>,
    subdomain: Option<String>,
    pod_group: Option<String>,
    gated: bool,
    placements: Vec<Placement<'a>>,
}

impl<'a> Draft<'a> {
    /// PA-1: `None` for a pod that belongs to no LeaderWorkerSet.
    pub(super) fn of(request: &Request<'a>) -> Option<Self> {
        let pod = Json::of(request.pod);
        let metadata = pod.at("metadata");
        metadata.at("labels").at(label::NAME).string()?;
        let leads = metadata.at("labels").at(label::WORKER_INDEX).text() == "0";
        let own_namespace = metadata.at("namespace").text();
        Some(Self {
            pod,
            namespace: if own_namespace.is_empty() {
                request.namespace
            } else {
                own_namespace
            },
            role: if leads { Role::Leader } else { Role::Worker },
            hash: metadata
                .at("annotations")
                .at(annotation::GROUP_IDENTITY)
                .text()
                == "Hash",
            labels: Vec::new(),
            annotations: Vec::new(),
            hostname: None,
            subdomain: None,
            pod_group: None,
            gated: false,
            placements: Vec::new(),
        })
    }

    pub(super) fn has_spec(&self) -> bool {
        self.spec().is_object()
    }

    pub(super) fn pod(&self) -> Json<'a> {
        self.pod
    }

    pub(super) fn metadata(&self) -> Json<'a> {
        self.pod.at("metadata")
    }

    pub(super) fn spec(&self) -> Json<'a> {
        self.pod.at("spec")
    }

    pub(super) fn name(&self) -> &'a str {
        self.metadata().at("name").text()
    }

    pub(super) fn namespace(&self) -> &'a str {
        self.namespace
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    pub(super) fn is_hash(&self) -> bool {
        self.hash
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        newest(&self.labels, key).or_else(|| self.metadata().at("labels").at(key).string())
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        newest(&self.annotations, key)
            .or_else(|| self.metadata().at("annotations").at(key).string())
    }

    pub(super) fn hostname(&self) -> &str {
        self.hostname
            .as_deref()
            .unwrap_or_else(|| self.spec().at("hostname").text())
    }

    pub(super) fn subdomain(&self) -> &str {
        self.subdomain
            .as_deref()
            .unwrap_or_else(|| self.spec().at("subdomain").text())
    }

    /// SG-3: a pod that already has a subgroup keeps it.
    pub(super) fn wants_subgroup(&self) -> bool {
        let has_one = self
            .label(label::SUBGROUP_INDEX)
            .is_some_and(|index| !index.is_empty());
        self.annotation(annotation::SUBGROUP_SIZE).is_some() && !has_one
    }

    pub(super) fn annotation_number(&self, key: &'static str) -> Result<i64, Denial> {
        self.number("annotation", key, self.annotation(key))
    }

    pub(super) fn label_number(&self, key: &'static str) -> Result<i64, Denial> {
        self.number("label", key, self.label(key))
    }

    pub(super) fn not_a_number(&self, kind: &'static str, key: &'static str) -> Denial {
        let value = if kind == "label" {
            self.label(key)
        } else {
            self.annotation(key)
        };
        Denial::NotANumber {
            kind,
            key,
            pod: self.name().to_owned(),
            value: value.unwrap_or_default().to_owned(),
        }
    }

    fn number(
        &self,
        kind: &'static str,
        key: &'static str,
        text: Option<&str>,
    ) -> Result<i64, Denial> {
        let missing = || Denial::Missing {
            kind,
            key,
            pod: self.name().to_owned(),
        };
        text.ok_or_else(missing)?
            .parse()
            .map_err(|_| self.not_a_number(kind, key))
    }

    pub(super) fn set_label(&mut self, key: &'static str, value: String) {
        self.labels.push((key, value));
    }

    pub(super) fn set_annotation(&mut self, key: &'static str, value: String) {
        self.annotations.push((key, value));
    }

    pub(super) fn set_hostname(&mut self, value: String) {
        self.hostname = Some(value);
    }

    pub(super) fn set_subdomain(&mut self, value: String) {
        self.subdomain = Some(value);
    }

    pub(super) fn set_pod_group(&mut self, name: String) {
        self.pod_group = Some(name);
    }

    /// Holds the pod back from scheduling until the group controller lets it go (GATE-1, GATE-2).
    pub(super) fn gate(&mut self) {
        self.gated = true;
    }

    /// EX-1: asks for exclusive placement if the annotation of that level names a topology. An empty one counts as absent
    /// (EX-6). A topology that already has terms of both kinds, whoever wrote them, gets no further ones.
    pub(super) fn place(&mut self, level: Level, value: &str) {
        let (from, key) = match level {
            Level::Group => (annotation::EXCLUSIVE_TOPOLOGY, label::GROUP_KEY),
            Level::Subgroup => (annotation::SUBGROUP_EXCLUSIVE_TOPOLOGY, label::SUBGROUP_KEY),
        };
        let topology = self.metadata().at("annotations").at(from).text();
        let decided = self
            .placements
            .iter()
            .any(|placement| placement.topology == topology);
        if !topology.is_empty() && !decided && !super::place::is_settled(self.spec(), topology) {
            self.placements.push(Placement {
                topology,
                key,
                value: value.to_owned(),
            });
        }
    }

    pub(super) fn labels(&self) -> &[Entry] {
        &self.labels
    }

    pub(super) fn annotations(&self) -> &[Entry] {
        &self.annotations
    }

    pub(super) fn placements(&self) -> &[Placement<'a>] {
        &self.placements
    }

    pub(super) fn pod_group(&self) -> Option<&str> {
        self.pod_group.as_deref()
    }

    pub(super) fn is_gated(&self) -> bool {
        self.gated
    }

    pub(super) fn new_hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }

    pub(super) fn new_subdomain(&self) -> Option<&str> {
        self.subdomain.as_deref()
    }
}

fn newest<'e>(entries: &'e [Entry], key: &str) -> Option<&'e str> {
    entries
        .iter()
        .rev()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value.as_str())
}
