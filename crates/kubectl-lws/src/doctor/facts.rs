//! What the doctor looks at. Everything is read by itself, so that one thing that may not be read hides no other.

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::{env, label};
use serde_json::json;

use super::checks::{CRDS, NEEDED, Permission};
use crate::cluster::Cluster;

/// Name of the Lease (LE-1).
const LEASE: &str = "b8b2488c.x-k8s.io";
/// Name of both webhook configurations, after their kind.
pub const MUTATING: &str = "lws-mutating-webhook-configuration";
/// As [`MUTATING`].
pub const VALIDATING: &str = "lws-validating-webhook-configuration";
/// Name of the objects that are created as dry runs.
const TRIAL: &str = "kubectl-lws-doctor";

/// Something that was looked for: there, not there, or not to be read.
pub type Looked<T> = Result<Option<T>, String>;

/// How a dry run of a create ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The webhook has completed the object.
    Completed,
    /// The object came through as it was.
    Untouched,
    /// It was refused.
    Refused(String),
}

/// Everything that was found.
pub struct Facts {
    /// Version of the API server.
    pub version: Result<String, String>,
    /// The CRDs, in the order of [`CRDS`].
    pub crds: Vec<Looked<CustomResourceDefinition>>,
    /// Webhooks that complete objects.
    pub mutating: Looked<MutatingWebhookConfiguration>,
    /// Webhooks that judge objects.
    pub validating: Looked<ValidatingWebhookConfiguration>,
    /// What became of a LeaderWorkerSet.
    pub set_trial: Trial,
    /// What became of a pod of a LeaderWorkerSet.
    pub pod_trial: Trial,
    /// Where the manager keeps its certificate.
    pub secret: Looked<Secret>,
    /// The Lease of the managers.
    pub lease: Looked<Lease>,
    /// The Leases of that name in all namespaces.
    pub leases: Result<Vec<Lease>, String>,
    /// Configuration of the manager.
    pub configuration: Looked<ConfigMap>,
    /// The manager.
    pub manager: Looked<Deployment>,
    /// Kinds of `scheduling.k8s.io/v1beta1` that are served.
    pub scheduling: Vec<String>,
    /// What the manager's account may do, in the order of [`NEEDED`]; empty without a manager.
    pub access: Vec<Result<bool, String>>,
    /// The namespace of the manager.
    pub namespace: String,
    /// The time.
    pub now: Timestamp,
}

/// Looks at everything.
pub async fn gather(cluster: &Cluster, namespace: &str) -> Facts {
    let client = &cluster.client;
    let mut crds = Vec::new();
    for name in CRDS {
        crds.push(look(&Api::all(client.clone()), name).await);
    }
    let manager: Looked<Deployment> = look(
        &Api::namespaced(client.clone(), namespace),
        "lws-controller-manager",
    )
    .await;
    let access = match &manager {
        Ok(Some(manager)) => access(cluster, namespace, manager).await,
        Ok(None) | Err(_) => Vec::new(),
    };
    Facts {
        version: client
            .apiserver_version()
            .await
            .map(|info| info.git_version)
            .map_err(told),
        crds,
        mutating: look(&Api::all(client.clone()), MUTATING).await,
        validating: look(&Api::all(client.clone()), VALIDATING).await,
        set_trial: try_set(cluster).await,
        pod_trial: try_pod(cluster).await,
        secret: look(
            &Api::namespaced(client.clone(), namespace),
            "lws-webhook-server-cert",
        )
        .await,
        lease: look(&Api::namespaced(client.clone(), namespace), LEASE).await,
        leases: leases(client).await,
        configuration: look(
            &Api::namespaced(client.clone(), namespace),
            "lws-manager-config",
        )
        .await,
        scheduling: scheduling(cluster).await,
        access,
        manager,
        namespace: namespace.to_owned(),
        now: Timestamp::now(),
    }
}

async fn look<K>(api: &Api<K>, name: &str) -> Looked<K>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.get_opt(name).await.map_err(told)
}

async fn leases(client: &Client) -> Result<Vec<Lease>, String> {
    let named = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let leases = Api::all(client.clone()).list(&named).await;
    leases.map(|found| found.items).map_err(told)
}

fn told(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

async fn try_set(cluster: &Cluster) -> Trial {
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": TRIAL},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": template}},
    });
    let api: Api<LeaderWorkerSet> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let created = match serde_json::from_value(set) {
        Ok(set) => api.create(&dry_run(), &set).await.map_err(told),
        Err(error) => Err(error.to_string()),
    };
    match created {
        Ok(set) if set.spec.rollout_strategy.is_some() => Trial::Completed,
        Ok(_) => Trial::Untouched,
        Err(words) => Trial::Refused(words),
    }
}

async fn try_pod(cluster: &Cluster) -> Trial {
    let labels = json!({label::NAME: TRIAL, label::WORKER_INDEX: "0"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{TRIAL}-0"), "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let created = match serde_json::from_value(pod) {
        Ok(pod) => api.create(&dry_run(), &pod).await.map_err(told),
        Err(error) => Err(error.to_string()),
    };
    match created {
        Ok(pod) if has_address(&pod) => Trial::Completed,
        Ok(_) => Trial::Untouched,
        Err(words) => Trial::Refused(words),
    }
}

fn has_address(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == env::LEADER_ADDRESS)
}

async fn scheduling(cluster: &Cluster) -> Vec<String> {
    let served = cluster
        .client
        .list_api_group_resources("scheduling.k8s.io/v1beta1")
        .await;
    served
        .map(|list| list.resources.into_iter().map(|kind| kind.kind).collect())
        .unwrap_or_default()
}

async fn access(
    cluster: &Cluster,
    namespace: &str,
    manager: &Deployment,
) -> Vec<Result<bool, String>> {
    let account = manager
        .spec
        .template
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .unwrap_or("default");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client.clone());
    let mut answers = Vec::new();
    for permission in NEEDED {
        let asked = review(&user, permission);
        let answer = match serde_json::from_value(asked) {
            Ok(review) => reviews
                .create(&PostParams::default(), &review)
                .await
                .map_err(told),
            Err(error) => Err(error.to_string()),
        };
        answers.push(answer.map(|review| review.status.is_some_and(|status| status.allowed)));
    }
    answers
}

fn review(user: &str, permission: &Permission) -> serde_json::Value {
    let Permission {
        group,
        resource,
        subresource,
        verb,
    } = permission;
    let attributes =
        json!({"group": group, "resource": resource, "subresource": subresource, "verb": verb});
    json!({"metadata": {}, "spec": {"user": user, "resourceAttributes": attributes}})
}
