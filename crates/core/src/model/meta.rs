//! Metadata that every trimmed object carries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lws_api::names::{annotation, ds_label, label};

/// Identity of one incarnation of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid(Arc<str>);

impl Uid {
    /// The UID as the API server writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Uid {
    fn from(uid: &str) -> Self {
        Self(uid.into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Namespace and name of an object of a known kind; also the work item of a controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Another object in the same namespace.
    pub fn sibling(&self, name: &str) -> Self {
        Self {
            namespace: self.namespace.clone(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The owner reference with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `apiVersion` of the controller.
    pub api_version: Cow<'static, str>,
    /// Kind of the controller.
    pub kind: Cow<'static, str>,
    /// Name of the controller.
    pub name: Arc<str>,
    /// UID of the controller: what ownership is judged by.
    pub uid: Uid,
}

impl Owner {
    fn of(references: Option<&Vec<OwnerReference>>) -> Option<Self> {
        let owner = references?.iter().find(|r| r.controller == Some(true))?;
        Some(Self {
            api_version: intern(&owner.api_version),
            kind: intern(&owner.kind),
            name: owner.name.as_str().into(),
            uid: owner.uid.as_str().into(),
        })
    }
}

/// Labels or annotations: few, sorted by key, known keys not copied.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pairs(Box<[(Cow<'static, str>, Box<str>)]>);

impl Pairs {
    /// All pairs.
    pub fn all(map: Option<&BTreeMap<String, String>>) -> Self {
        Self::keep(map, |_| true)
    }

    /// Only the keys of this project, which are all that is read of pods and workload objects.
    pub fn ours(map: Option<&BTreeMap<String, String>>) -> Self {
        Self::keep(map, is_ours)
    }

    fn keep(map: Option<&BTreeMap<String, String>>, wanted: impl Fn(&str) -> bool) -> Self {
        Self(
            map.into_iter()
                .flatten()
                .filter(|(key, _)| wanted(key))
                .map(|(key, value)| (intern(key), value.as_str().into()))
                .collect(),
        )
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value.as_ref())
    }

    /// The value of `key`; absent reads as empty.
    pub fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    /// All pairs by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }
}

/// Metadata of a trimmed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// UID.
    pub uid: Uid,
    /// Version of the object, opaque but for KRS-36.
    pub resource_version: Arc<str>,
    /// Counts spec changes.
    pub generation: i64,
    /// Creation time, from the API server's clock.
    pub created: Option<Timestamp>,
    /// When it will be, or was meant to be, gone; set means terminating.
    pub deleted: Option<Timestamp>,
    /// Labels.
    pub labels: Pairs,
    /// Annotations.
    pub annotations: Pairs,
    /// Finalizers, all of them: a patch of the list replaces it whole (FAIL-49).
    pub finalizers: Box<[Box<str>]>,
    /// Controller.
    pub owner: Option<Owner>,
}

impl Meta {
    /// Metadata with our own labels and annotations only.
    pub fn ours(meta: &ObjectMeta) -> Self {
        Self::with(
            meta,
            Pairs::ours(meta.labels.as_ref()),
            Pairs::ours(meta.annotations.as_ref()),
        )
    }

    /// Metadata with all labels and annotations, for objects whose metadata is copied to children.
    pub fn all(meta: &ObjectMeta) -> Self {
        Self::with(
            meta,
            Pairs::all(meta.labels.as_ref()),
            Pairs::all(meta.annotations.as_ref()),
        )
    }

    fn with(meta: &ObjectMeta, labels: Pairs, annotations: Pairs) -> Self {
        Self {
            key: ObjectKey::new(
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default(),
            ),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.as_deref().unwrap_or_default().into(),
            generation: meta.generation.unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            deleted: meta.deletion_timestamp.as_ref().map(|time| time.0),
            labels,
            annotations,
            finalizers: meta
                .finalizers
                .iter()
                .flatten()
                .map(|f| f.as_str().into())
                .collect(),
            owner: Owner::of(meta.owner_references.as_ref()),
        }
    }

    /// A label; absent reads as empty.
    pub fn label(&self, key: &str) -> &str {
        self.labels.text(key)
    }

    /// An annotation; absent reads as empty.
    pub fn annotation(&self, key: &str) -> &str {
        self.annotations.text(key)
    }

    /// A deletion timestamp is set.
    pub fn is_terminating(&self) -> bool {
        self.deleted.is_some()
    }

    /// The controller is the object with this UID.
    pub fn is_controlled_by(&self, uid: &Uid) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == *uid)
    }

    /// The set that the object says it belongs to (label `lws/name`), if any.
    pub fn set_key(&self) -> Option<ObjectKey> {
        let name = self.label(label::NAME);
        (!name.is_empty()).then(|| self.key.sibling(name))
    }

    /// The DisaggregatedSet that the object says it belongs to, if any.
    pub fn disaggregated_set_key(&self) -> Option<ObjectKey> {
        let name = self.label(ds_label::NAME);
        (!name.is_empty()).then(|| self.key.sibling(name))
    }

    /// Label `lws/group-index` as a number ≥ 0 (ORD-45, ORD-103).
    pub fn group_index(&self) -> Option<u32> {
        self.label(label::GROUP_INDEX).parse().ok()
    }

    /// Whether the object holds this finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| f.as_ref() == finalizer)
    }
}

fn is_ours(key: &str) -> bool {
    key.starts_with("leaderworkerset.sigs.k8s.io/")
        || key.starts_with("disaggregatedset.x-k8s.io/")
        || key == annotation::POD_DELETION_COST
        || key == label::POD_TEMPLATE_HASH
}

/// Keys and kinds that occur on every pod are kept once, not once per pod.
const KNOWN: &[&str] = &[
    label::NAME,
    label::WORKER_INDEX,
    label::GROUP_INDEX,
    label::GROUP_KEY,
    label::REVISION,
    label::ROLE,
    label::SUBGROUP_INDEX,
    label::SUBGROUP_KEY,
    ds_label::NAME,
    ds_label::ROLE,
    ds_label::SLICE,
    ds_label::REVISION,
    ds_label::SUBROLE,
    label::POD_TEMPLATE_HASH,
    annotation::SIZE,
    annotation::LEADER_NAME,
    annotation::LEADER_ADDRESS,
    annotation::SUBGROUP_SIZE,
    annotation::SUBGROUP_POLICY_TYPE,
    annotation::EXCLUSIVE_TOPOLOGY,
    annotation::REPLICAS,
    annotation::GROUP_IDENTITY,
    "apps/v1",
    "v1",
    "Pod",
    "StatefulSet",
    "ReplicaSet",
    "Deployment",
    "LeaderWorkerSet",
    "leaderworkerset.x-k8s.io/v1",
    "DisaggregatedSet",
    "disaggregatedset.x-k8s.io/v1",
];

fn intern(text: &str) -> Cow<'static, str> {
    KNOWN.iter().find(|known| **known == text).map_or_else(
        || Cow::Owned(text.to_owned()),
        |known| Cow::Borrowed(*known),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn krs_37_only_our_labels_are_kept() {
        let labels = map(&[
            ("app", "x"),
            (label::NAME, "demo"),
            (label::GROUP_INDEX, "3"),
        ]);
        let pairs = Pairs::ours(Some(&labels));
        assert_eq!(
            pairs.iter().collect::<Vec<_>>(),
            [(label::GROUP_INDEX, "3"), (label::NAME, "demo")]
        );
        assert_eq!(pairs.get("app"), None);
        assert_eq!(Pairs::all(Some(&labels)).text("app"), "x");
    }

    #[test]
    fn ord_45_group_index_must_be_a_number_from_zero() {
        for (text, index) in [
            ("0", Some(0)),
            ("17", Some(17)),
            ("-1", None),
            ("a", None),
            ("", None),
            ("4294967296", None),
        ] {
            let meta = ObjectMeta {
                labels: Some(map(&[(label::GROUP_INDEX, text)])),
                ..ObjectMeta::default()
            };
            assert_eq!(Meta::ours(&meta).group_index(), index, "{text}");
        }
    }

    #[test]
    fn only_the_controller_reference_counts_as_owner() {
        let reference = |uid: &str, controller| OwnerReference {
            uid: uid.into(),
            controller,
            ..OwnerReference::default()
        };
        let meta = ObjectMeta {
            owner_references: Some(vec![
                reference("a", None),
                reference("b", Some(false)),
                reference("c", Some(true)),
            ]),
            ..ObjectMeta::default()
        };
        assert!(Meta::ours(&meta).is_controlled_by(&"c".into()));
        assert!(!Meta::ours(&meta).is_controlled_by(&"a".into()));
    }
}
