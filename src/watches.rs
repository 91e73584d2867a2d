//! Which kinds are watched, how (CLI-5, CLI-6, KRS-37), and where their objects go.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, scheduling::v1beta1 as scheduling};
use kube::api::PartialObjectMeta;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::label;
use lws_api::rolescaler::DisaggregatedSetRoleScaler;
use lws_core::cache::{Cache, Change, Wakes};
use lws_core::intent::{Kind, Target};
use lws_core::model::{
    Deployment, Ds, Lws, Node, ObjectKey, Pod, PodGroup, ReplicaSet, Revision, RoleScaler, Service,
    StatefulSet, Workload,
};
use lws_core::notice::{Action, Notice, Reference};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::events::Notices;
use crate::informer::{self, Told, Unreadable};
use crate::store::Store;

/// Kinds that have a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// One of the kinds that are written too.
    Written(Kind),
    /// ReplicaSets between leader Deployments and leaders, which nobody of us writes.
    ReplicaSet,
    /// Nodes, of which only metadata is read.
    Node,
}

impl Watched {
    /// Those of every installation; the caches are complete when each has been listed.
    pub const ALL: [Self; 10] = [
        Self::Written(Kind::LeaderWorkerSet),
        Self::Written(Kind::StatefulSet),
        Self::Written(Kind::Deployment),
        Self::ReplicaSet,
        Self::Written(Kind::ControllerRevision),
        Self::Written(Kind::Service),
        Self::Written(Kind::Pod),
        Self::Written(Kind::DisaggregatedSet),
        Self::Written(Kind::RoleScaler),
        Self::Node,
    ];

    /// Name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written(kind) => kind.name(),
            Self::ReplicaSet => "ReplicaSet",
            Self::Node => "Node",
        }
    }
}

impl From<Kind> for Watched {
    fn from(kind: Kind) -> Self {
        Self::Written(kind)
    }
}

/// Those of native gang scheduling, which not every API server serves (E.3).
pub const GANGS: [Watched; 2] = [
    Watched::Written(Kind::Workload),
    Watched::Written(Kind::PodGroup),
];

/// For each kind, whether it is to be listed anew.
#[derive(Debug, Default)]
pub struct Relists {
    sets: Notify,
    stateful_sets: Notify,
    deployments: Notify,
    replica_sets: Notify,
    revisions: Notify,
    services: Notify,
    pods: Notify,
    disaggregated_sets: Notify,
    scalers: Notify,
    nodes: Notify,
    workloads: Notify,
    pod_groups: Notify,
}

impl Relists {
    /// That of one kind.
    pub fn of(&self, kind: Watched) -> &Notify {
        match kind {
            Watched::Written(Kind::LeaderWorkerSet) => &self.sets,
            Watched::Written(Kind::StatefulSet) => &self.stateful_sets,
            Watched::Written(Kind::Deployment) => &self.deployments,
            Watched::ReplicaSet => &self.replica_sets,
            Watched::Written(Kind::ControllerRevision) => &self.revisions,
            Watched::Written(Kind::Service) => &self.services,
            Watched::Written(Kind::Pod) => &self.pods,
            Watched::Written(Kind::DisaggregatedSet) => &self.disaggregated_sets,
            Watched::Written(Kind::RoleScaler) => &self.scalers,
            Watched::Node => &self.nodes,
            Watched::Written(Kind::Workload) => &self.workloads,
            Watched::Written(Kind::PodGroup) => &self.pod_groups,
        }
    }
}

/// Starts the watches of [`GANGS`]; they run until the set of tasks is dropped.
pub fn start_gangs(client: &Client, store: &Arc<Store>, notices: &Notices) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let mut watches = Watches {
        client,
        store,
        notices,
        tasks: &mut tasks,
    };
    let ours = || watcher::Config::default().labels(label::NAME);
    watches.add(
        Kind::Workload,
        ours(),
        kept::<scheduling::Workload, _>,
        Workload::key,
        Cache::apply_workloads,
    );
    watches.add(
        Kind::PodGroup,
        ours(),
        kept::<scheduling::PodGroup, _>,
        PodGroup::key,
        Cache::apply_pod_groups,
    );
    tasks
}

/// Starts all watches but those of [`GANGS`]; they run until the set of tasks is dropped.
pub fn start(client: &Client, store: &Arc<Store>, notices: &Notices) -> JoinSet<()> {
    let all = watcher::Config::default;
    let ours = || all().labels(label::NAME);
    let mut tasks = JoinSet::new();
    let mut watches = Watches {
        client,
        store,
        notices,
        tasks: &mut tasks,
    };
    watches.add(
        Kind::LeaderWorkerSet,
        all(),
        readable::<LeaderWorkerSet, _>,
        Lws::key,
        Cache::apply_sets,
    );
    watches.add(
        Kind::DisaggregatedSet,
        all(),
        readable::<DisaggregatedSet, _>,
        Ds::key,
        Cache::apply_disaggregated_sets,
    );
    watches.add(
        Kind::RoleScaler,
        all(),
        readable::<DisaggregatedSetRoleScaler, _>,
        RoleScaler::key,
        Cache::apply_scalers,
    );
    watches.add(
        Kind::StatefulSet,
        ours(),
        kept::<apps::StatefulSet, _>,
        StatefulSet::key,
        Cache::apply_stateful_sets,
    );
    watches.add(
        Kind::Deployment,
        ours(),
        kept::<apps::Deployment, _>,
        Deployment::key,
        Cache::apply_deployments,
    );
    watches.add(
        Watched::ReplicaSet,
        ours(),
        kept::<apps::ReplicaSet, _>,
        ReplicaSet::key,
        Cache::apply_replica_sets,
    );
    watches.add(
        Kind::ControllerRevision,
        ours(),
        kept::<apps::ControllerRevision, _>,
        |kept: &Revision| &kept.meta.key,
        Cache::apply_revisions,
    );
    watches.add(
        Kind::Service,
        ours(),
        kept::<core::Service, _>,
        |kept: &Service| &kept.meta.key,
        Cache::apply_services,
    );
    watches.add(
        Kind::Pod,
        ours(),
        kept::<core::Pod, _>,
        Pod::key,
        Cache::apply_pods,
    );
    watches.add(
        Watched::Node,
        all(),
        node,
        |kept: &Node| &kept.meta.key,
        Cache::apply_nodes,
    );
    tasks
}

fn kept<K, T: From<K>>(object: K) -> Result<T, Unreadable> {
    Ok(object.into())
}

fn node(node: PartialObjectMeta<core::Node>) -> Result<Node, Unreadable> {
    Ok(Node::new(&node.metadata))
}

struct Watches<'a> {
    client: &'a Client,
    store: &'a Arc<Store>,
    notices: &'a Notices,
    tasks: &'a mut JoinSet<()>,
}

impl Watches<'_> {
    fn add<K, T>(
        &mut self,
        kind: impl Into<Watched>,
        config: watcher::Config,
        project: fn(K) -> Result<T, Unreadable>,
        key: fn(&T) -> &ObjectKey,
        apply: fn(&mut Cache, Change<T>) -> Wakes,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
        T: Send + 'static,
    {
        let kind = kind.into();
        let api = Api::<K>::all(self.client.clone());
        let (store, notices) = (self.store.clone(), self.notices.clone());
        self.tasks.spawn(async move {
            let open = || informer::events(api.clone(), config.clone());
            let tell = |told| match told {
                Told::Listing => store.listing(kind),
                Told::Change(change) => store.apply(kind, change, key, apply),
                Told::Unreadable(object) => give_up(kind, &object, &store, &notices),
            };
            informer::run(kind.name(), open, project, tell, store.relist(kind)).await;
        });
    }
}

/// KRS-22: an object that cannot be read is told about and left alone until it changes.
fn give_up(kind: Watched, object: &Unreadable, store: &Store, notices: &Notices) {
    tracing::error!(kind = kind.name(), object = %object.key, error = object.error, "object cannot be read");
    let Watched::Written(kind) = kind else {
        return;
    };
    let target = Target {
        kind,
        key: object.key.clone(),
    };
    let regarding = Reference {
        target,
        uid: object.uid.clone(),
    };
    let note = format!(
        "Failed to read {} {}: {}",
        kind.name().to_lowercase(),
        object.key.name,
        object.error
    );
    notices.send(Notice::warning(
        regarding,
        "FailedUpdate",
        Action::Update,
        note,
    ));
    store.drop_object(kind, &object.key);
}

/// KRS-22: the API server's schema lets numbers through that the types cannot hold.
fn readable<K, T: From<K>>(object: DeserializeGuard<K>) -> Result<T, Unreadable> {
    object.0.map(T::from).map_err(|invalid| Unreadable {
        key: ObjectKey::new(
            invalid.metadata.namespace.as_deref().unwrap_or_default(),
            invalid.metadata.name.as_deref().unwrap_or_default(),
        ),
        uid: invalid.metadata.uid.as_deref().unwrap_or_default().into(),
        error: invalid.error,
    })
}
