//! The API server of the simulated cluster: versioned objects, a watch log, optimistic concurrency, preconditions, finalizers, grace periods.
//!
//! Objects are JSON as on the wire. Every write bumps one version counter and appends to the log; a reader at version `v` sees what the log up to `v`
//! says. Nothing here knows of controllers; who writes is a word in the log for reports.

mod apply;
mod defaults;
mod kind;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lws_core::run::{Class, Failure};
use serde_json::{Map, Value, json};

pub use kind::{Key, Kind};

/// Finalizer of an object that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object whose dependents are to lose it as their owner.
pub const ORPHAN: &str = "orphan";

/// Answer to a request: the object as it is stored now, or why not.
pub type Answer = Result<Arc<Value>, Failure>;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It is gone; the event carries its last state.
    Deleted,
}

/// An entry of the watch log.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Version that the write made.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// Who wrote.
    pub by: &'static str,
    /// What happened.
    pub change: Change,
    /// The object's name.
    pub key: Key,
    /// The object after the write.
    pub object: Arc<Value>,
    /// The object before it.
    pub before: Option<Arc<Value>>,
}

/// How dependents of a deleted object end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cascade {
    /// Collected after it is gone.
    Background,
    /// It waits for its blocking dependents.
    Foreground,
    /// They lose their owner reference.
    Orphan,
}

/// A delete request.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// Precondition.
    pub uid: Option<String>,
    /// Precondition.
    pub version: Option<String>,
    /// What follows for dependents.
    pub cascade: Cascade,
    /// Seconds until a pod is removed; `None`: its own grace period.
    pub grace: Option<i64>,
}

/// The store.
#[derive(Clone, Debug)]
pub struct Store {
    version: u64,
    /// Versions are counted by kind and UIDs by name, so that writes which do not touch each other lead to the same state in any order.
    versions: BTreeMap<Kind, u64>,
    instances: BTreeMap<Key, u32>,
    generated: u64,
    now: Timestamp,
    objects: BTreeMap<Key, Arc<Value>>,
    log: Vec<Commit>,
}

impl Store {
    /// An empty store at a time.
    pub fn new(now: Timestamp) -> Self {
        Self {
            version: 1,
            versions: BTreeMap::new(),
            instances: BTreeMap::new(),
            generated: 0,
            now,
            objects: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Version of the newest write.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How often objects of a kind were written.
    pub fn writes(&self, kind: Kind) -> u64 {
        self.versions.get(&kind).copied().unwrap_or_default()
    }

    /// The clock that creation and deletion times are taken from.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The log after a version, oldest first.
    pub fn since(&self, version: u64) -> impl Iterator<Item = &Commit> {
        let start = self.log.partition_point(|commit| commit.version <= version);
        self.log.iter().skip(start)
    }

    /// The whole log, oldest first.
    pub fn log(&self) -> &[Commit] {
        &self.log
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All objects of a kind, by name.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// The objects of a kind as a reader at `version` sees them.
    pub fn list_at(&self, kind: Kind, version: u64) -> BTreeMap<Key, Arc<Value>> {
        let mut objects = BTreeMap::new();
        for commit in self
            .log
            .iter()
            .filter(|c| c.key.kind == kind && c.version <= version)
        {
            match commit.change {
                Change::Added | Change::Modified => {
                    objects.insert(commit.key.clone(), commit.object.clone());
                }
                Change::Deleted => {
                    objects.remove(&commit.key);
                }
            }
        }
        objects
    }

    /// POST.
    pub fn create(&mut self, by: &'static str, key: Key, mut object: Value) -> Answer {
        if self.objects.contains_key(&key) {
            let being_deleted = self.objects.get(&key).is_some_and(|o| is_terminating(o));
            let words = if being_deleted {
                "object is being deleted: "
            } else {
                ""
            };
            return Err(fail(Class::Exists, format!("{words}{key} already exists")));
        }
        let namespace = Key::new(Kind::Namespace, "", &key.namespace);
        if self
            .objects
            .get(&namespace)
            .is_some_and(|o| is_terminating(o))
        {
            let why = format!(
                "{key}: unable to create new content in namespace {} because it is being terminated",
                key.namespace
            );
            return Err(fail(Class::Terminating, why));
        }
        defaults::fill(key.kind, &mut object);
        validate::check(key.kind, None, &object)?;
        let posted = object.clone();
        let instance = self.instances.entry(key.clone()).or_default();
        *instance += 1;
        let uid = format!("uid-{}-{}-{instance}", key.kind.name(), key.name);
        let meta = metadata(&mut object);
        meta.insert("namespace".into(), json!(key.namespace));
        meta.insert("name".into(), json!(key.name));
        meta.insert("uid".into(), json!(uid));
        if key.kind.has_generation() {
            meta.insert("generation".into(), json!(1));
        }
        meta.insert("creationTimestamp".into(), json!(self.now.to_string()));
        meta.remove("resourceVersion");
        validate::check_name(key.kind, &object)?;
        drop_empty(metadata(&mut object));
        begin(key.kind, &mut object);
        apply::posted(by, &posted, &mut object);
        Ok(self.commit(by, key, object, Change::Added))
    }

    /// POST with `generateName`: the name is made here.
    pub fn generate(
        &mut self,
        by: &'static str,
        kind: Kind,
        namespace: &str,
        object: Value,
    ) -> Answer {
        let prefix = text(&object, "/metadata/generateName").unwrap_or_default();
        self.generated += 1;
        let name = format!("{prefix}{:05x}", self.generated);
        self.create(by, Key::new(kind, namespace, &name), object)
    }

    /// Server-side apply, forced; the body carries the UID.
    pub fn apply(&mut self, by: &'static str, key: &Key, body: &Value) -> Answer {
        let uid = body
            .pointer("/metadata/uid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(live) = self.objects.get(key).cloned() else {
            return Err(fail(
                Class::Conflict,
                format!(
                    "{key}: uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                ),
            ));
        };
        check_identity(key, &live, body)?;
        let mut object = (*live).clone();
        apply::apply(by, body, &mut object);
        defaults::fill(key.kind, &mut object);
        self.update(by, key, &live, object)
    }

    /// Merge patch of the object or of its status.
    pub fn patch(&mut self, by: &'static str, key: &Key, status: bool, body: &Value) -> Answer {
        self.admit_patch(by, key, status, body, |_, _| Ok(()))
    }

    /// A patch whose outcome is changed or refused by admission, which sees the object before it, too.
    pub fn admit_patch(
        &mut self,
        by: &'static str,
        key: &Key,
        status: bool,
        body: &Value,
        admission: impl FnOnce(&mut Value, &Arc<Value>) -> Result<(), Failure>,
    ) -> Answer {
        let Some(live) = self.objects.get(key).cloned() else {
            return Err(fail(Class::Gone, format!("{key} not found")));
        };
        check_identity(key, &live, body)?;
        let mut object = (*live).clone();
        if status {
            let patch = body.get("status").cloned().unwrap_or_else(|| json!({}));
            let mut part = object.get("status").cloned().unwrap_or_else(|| json!({}));
            json_patch::merge(&mut part, &patch);
            set(&mut object, "status", part);
        } else {
            let mut patch = body.clone();
            if let Some(fields) = patch.as_object_mut() {
                fields.remove("status");
            }
            json_patch::merge(&mut object, &patch);
            keep_system_metadata(&live, &mut object);
            defaults::fill(key.kind, &mut object);
            admission(&mut object, &live)?;
        }
        self.update(by, key, &live, object)
    }

    /// DELETE.
    pub fn delete(&mut self, by: &'static str, key: &Key, deletion: &Deletion) -> Answer {
        let Some(live) = self.objects.get(key).cloned() else {
            return Err(fail(Class::Gone, format!("{key} not found")));
        };
        let wanted =
            json!({"metadata": {"uid": deletion.uid, "resourceVersion": deletion.version}});
        check_identity(key, &live, &wanted)?;
        let grace = deletion.grace.unwrap_or_else(|| own_grace(key.kind, &live));
        let finalizer = match deletion.cascade {
            Cascade::Background => None,
            Cascade::Foreground => Some(FOREGROUND),
            Cascade::Orphan => Some(ORPHAN),
        };
        let mut object = (*live).clone();
        mark_deleted(&mut object, self.now, grace, finalizer);
        if grace_left(&object) == 0 && finalizers(&object).is_empty() {
            return Ok(self.remove(by, key, object));
        }
        if object == *live {
            Ok(live)
        } else {
            Ok(self.commit(by, key.clone(), object, Change::Modified))
        }
    }

    /// What a kubelet does when the containers of a terminating pod have ended.
    pub fn end(&mut self, by: &'static str, key: &Key) {
        let Some(live) = self.objects.get(key).cloned() else {
            return;
        };
        let mut object = (*live).clone();
        metadata(&mut object).insert("deletionGracePeriodSeconds".into(), json!(0));
        if finalizers(&object).is_empty() {
            self.remove(by, key, object);
        } else if object != *live {
            self.commit(by, key.clone(), object, Change::Modified);
        }
    }

    fn update(
        &mut self,
        by: &'static str,
        key: &Key,
        live: &Arc<Value>,
        mut object: Value,
    ) -> Answer {
        drop_empty(metadata(&mut object));
        if object == **live {
            return Ok(live.clone());
        }
        validate::check(key.kind, Some(live), &object)?;
        let is_bound = object.pointer("/spec/nodeName") != live.pointer("/spec/nodeName");
        let is_changed = object.get("spec") != live.get("spec") && !is_bound;
        if key.kind.has_generation() && is_changed {
            let generation = live
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or(0)
                + 1;
            metadata(&mut object).insert("generation".into(), json!(generation));
        }
        let is_over =
            is_terminating(&object) && finalizers(&object).is_empty() && grace_left(&object) == 0;
        if is_over {
            return Ok(self.remove(by, key, object));
        }
        Ok(self.commit(by, key.clone(), object, Change::Modified))
    }

    fn remove(&mut self, by: &'static str, key: &Key, object: Value) -> Arc<Value> {
        self.commit(by, key.clone(), object, Change::Deleted)
    }

    fn commit(
        &mut self,
        by: &'static str,
        key: Key,
        mut object: Value,
        change: Change,
    ) -> Arc<Value> {
        self.version += 1;
        let version = self.versions.entry(key.kind).or_default();
        *version += 1;
        metadata(&mut object).insert("resourceVersion".into(), json!(version.to_string()));
        let object = Arc::new(object);
        let before = match change {
            Change::Added | Change::Modified => self.objects.insert(key.clone(), object.clone()),
            Change::Deleted => self.objects.remove(&key),
        };
        self.log.push(Commit {
            version: self.version,
            at: self.now,
            by,
            change,
            key,
            object: object.clone(),
            before,
        });
        object
    }
}

/// Empty lists and maps are not stored.
fn drop_empty(members: &mut Map<String, Value>) {
    members.retain(|_, member| match member {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
}

/// A new object has no status but the one that it begins with.
fn begin(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => set(object, "status", json!({"phase": "Pending"})),
        Kind::StatefulSet
        | Kind::LeaderWorkerSet
        | Kind::DisaggregatedSet
        | Kind::RoleScaler
        | Kind::Deployment => {
            if let Some(members) = object.as_object_mut() {
                members.remove("status");
            }
        }
        Kind::ControllerRevision
        | Kind::Service
        | Kind::Node
        | Kind::Namespace
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::Workload
        | Kind::PodGroup => {}
    }
}

fn fail(class: Class, message: String) -> Failure {
    Failure {
        class,
        message,
        retry_after: None,
    }
}

fn check_identity(key: &Key, live: &Value, body: &Value) -> Result<(), Failure> {
    for (path, what) in [
        ("/metadata/uid", "UID"),
        ("/metadata/resourceVersion", "resourceVersion"),
    ] {
        let wanted = text(body, path);
        if wanted.is_some() && wanted != text(live, path) {
            return Err(fail(
                Class::Conflict,
                format!("{key}: precondition failed: {what}"),
            ));
        }
    }
    Ok(())
}

fn keep_system_metadata(live: &Value, object: &mut Value) {
    let kept = [
        "uid",
        "name",
        "namespace",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let old = live.get("metadata").cloned().unwrap_or_default();
    let meta = metadata(object);
    for name in kept {
        match old.get(name) {
            Some(value) => meta.insert(name.into(), value.clone()),
            None => meta.remove(name),
        };
    }
}

fn mark_deleted(object: &mut Value, now: Timestamp, grace: i64, finalizer: Option<&str>) {
    let meta = metadata(object);
    let shorter = meta
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_none_or(|old| grace < old);
    if !meta.contains_key("deletionTimestamp") {
        if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
            meta.insert("generation".into(), json!(generation + 1));
        }
        meta.insert(
            "deletionTimestamp".into(),
            json!((now + jiff::SignedDuration::from_secs(grace)).to_string()),
        );
    }
    if shorter {
        meta.insert("deletionGracePeriodSeconds".into(), json!(grace));
    }
    // The policy of this request takes the place of an earlier one's.
    let mut list = meta
        .get("finalizers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    list.retain(|known| {
        known != ORPHAN && known != FOREGROUND || finalizer.is_some_and(|f| known == f)
    });
    if let Some(finalizer) = finalizer.filter(|f| !list.iter().any(|known| known == f)) {
        list.push(json!(finalizer));
    }
    if list.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), json!(list));
    }
}

fn own_grace(kind: Kind, object: &Value) -> i64 {
    let is_over = matches!(text(object, "/status/phase"), Some("Failed" | "Succeeded"));
    let is_bound = text(object, "/spec/nodeName").is_some_and(|node| !node.is_empty());
    if kind != Kind::Pod || !is_bound || is_over {
        return 0;
    }
    part(object, "/spec/terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(30)
}

fn grace_left(object: &Value) -> i64 {
    part(object, "/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// A deletion timestamp is set.
pub fn is_terminating(object: &Value) -> bool {
    part(object, "/metadata/deletionTimestamp").is_some_and(|t| !t.is_null())
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    part(object, "/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// A text member by JSON pointer.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    part(object, pointer).and_then(Value::as_str)
}

/// A member by JSON pointer whose names need no escapes; what does need them costs a search in every name.
pub fn part<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut names = pointer.split('/').skip(1);
    names.try_fold(object, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// The metadata, made if it is missing.
pub fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        set(object, "metadata", json!({}));
    }
    object["metadata"]
        .as_object_mut()
        .expect("metadata was just made an object")
}

/// Sets a top-level member.
pub fn set(object: &mut Value, name: &str, value: Value) {
    if !object.is_object() {
        *object = json!({});
    }
    object[name] = value;
}
