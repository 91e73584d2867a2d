//! Objects as the API server has them, and the questions that tests ask about one of them.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use kube::api::ApiResource;
use lws_api::names::label;
use serde_json::Value;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// LeaderWorkerSet.
    Set,
    /// StatefulSet.
    StatefulSet,
    /// Deployment.
    Deployment,
    /// Pod.
    Pod,
    /// Service.
    Service,
    /// ControllerRevision.
    Revision,
    /// Event.
    Event,
    /// DisaggregatedSet.
    DisaggregatedSet,
    /// DisaggregatedSetRoleScaler.
    Scaler,
    /// Workload.
    Workload,
    /// PodGroup.
    PodGroup,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Set,
        Self::StatefulSet,
        Self::Deployment,
        Self::Pod,
        Self::Service,
        Self::Revision,
        Self::Event,
        Self::DisaggregatedSet,
        Self::Scaler,
        Self::Workload,
        Self::PodGroup,
    ];

    /// Group, version, kind and plural.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Set => (
                "leaderworkerset.x-k8s.io",
                "v1",
                "LeaderWorkerSet",
                "leaderworkersets",
            ),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::Revision => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            Self::Event => ("events.k8s.io", "v1", "Event", "events"),
            Self::DisaggregatedSet => (
                "disaggregatedset.x-k8s.io",
                "v1",
                "DisaggregatedSet",
                "disaggregatedsets",
            ),
            Self::Scaler => (
                "disaggregatedset.x-k8s.io",
                "v1",
                "DisaggregatedSetRoleScaler",
                "disaggregatedsetrolescalers",
            ),
            Self::Workload => ("scheduling.k8s.io", "v1beta1", "Workload", "workloads"),
            Self::PodGroup => ("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups"),
        };
        resource(group, version, kind, plural)
    }
}

/// A kind of the API by its names.
pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        },
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// One state of an object.
#[derive(Clone)]
pub struct Object(Arc<Value>);

impl Object {
    pub(crate) fn new(value: Value) -> Self {
        Self(Arc::new(value))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// Its resource version as a number.
    pub(crate) fn version(&self) -> u64 {
        self.text("/metadata/resourceVersion").parse().unwrap_or(0)
    }

    /// What stands at a JSON pointer; null if nothing does.
    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text at a JSON pointer; empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// The number at a JSON pointer; 0 if there is none, as the API leaves zeros out.
    pub fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    /// Value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at("/metadata/labels").get(key)?.as_str()
    }

    /// Value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at("/metadata/annotations").get(key)?.as_str()
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        !self.at("/metadata/deletionTimestamp").is_null()
    }

    /// Its controller owner reference.
    pub fn controller(&self) -> Option<&Value> {
        let owners = self.at("/metadata/ownerReferences").as_array()?;
        owners.iter().find(|owner| owner["controller"] == true)
    }

    /// Whether its controller is that object.
    pub fn is_controlled_by(&self, owner: &Object) -> bool {
        self.controller()
            .is_some_and(|reference| reference["uid"] == owner.uid())
    }

    /// Status of a condition: `True`, `False` or `Unknown`.
    pub fn condition(&self, name: &str) -> Option<&str> {
        self.condition_entry(name)?.get("status")?.as_str()
    }

    /// A condition.
    pub fn condition_entry(&self, name: &str) -> Option<&Value> {
        let conditions = self.at("/status/conditions").as_array()?;
        conditions
            .iter()
            .find(|condition| condition["type"] == name)
    }

    /// Whether a condition is True.
    pub fn is(&self, condition: &str) -> bool {
        self.condition(condition) == Some("True")
    }

    /// Names of the conditions that are True, of a set without those that are about failures, sorted.
    pub fn true_conditions(&self) -> Vec<&str> {
        let conditions = self.at("/status/conditions").as_array();
        let mut names: Vec<&str> = conditions
            .into_iter()
            .flatten()
            .filter(|condition| condition["status"] == "True")
            .filter_map(|condition| condition["type"].as_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether this pod is Ready.
    pub fn is_ready(&self) -> bool {
        self.is("Ready")
    }

    /// Whether this pod is a leader.
    pub fn is_leader(&self) -> bool {
        self.label(label::WORKER_INDEX) == Some("0")
    }

    /// A container or init container of this pod.
    pub fn container(&self, name: &str) -> &Value {
        container(self.at("/spec"), name)
    }

    /// A container or init container of the pod template of this workload object.
    pub fn template_container(&self, name: &str) -> &Value {
        container(self.at("/spec/template/spec"), name)
    }

    /// The variables of a container of this pod as `NAME=value`, in order.
    pub fn variables(&self, container: &str) -> Vec<String> {
        let variables = self.container(container)["env"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        variables
            .into_iter()
            .flatten()
            .map(|variable| format!("{}={}", text(&variable["name"]), text(&variable["value"])))
            .collect()
    }

    /// The whole object.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    ["containers", "initContainers"]
        .iter()
        .filter_map(|list| pod[*list].as_array())
        .flatten()
        .find(|container| container["name"] == name)
        .unwrap_or(&Value::Null)
}

impl Index<&str> for Object {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        &self.0[key]
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
