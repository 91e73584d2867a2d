//! What a test does to the cluster. Every write waits until the [`World`](crate::World) shows it.

use anyhow::{Context, Result, bail};
use kube::Error;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use kube::core::{GroupVersionKind, Status};
use serde_json::{Value, json};

use crate::{Bench, Kind, Manifest, Object};

const FIELD_MANAGER: &str = "e2e";

/// A refused request.
#[derive(Debug)]
pub struct Denial {
    /// Status code.
    pub code: u16,
    /// Reason, such as `Invalid` or `Forbidden`.
    pub reason: String,
    /// Text for a person.
    pub message: String,
}

impl From<Manifest> for Value {
    fn from(manifest: Manifest) -> Self {
        manifest.json()
    }
}

impl Bench {
    /// The API of a watched kind in the namespace.
    pub fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), self.namespace(), &kind.resource())
    }

    pub(crate) fn api_of(&self, object: &Value) -> Result<(Option<Kind>, Api<DynamicObject>)> {
        let text = |key: &str| object[key].as_str().context("an object without kind");
        let (version, name) = (text("apiVersion")?, text("kind")?);
        let watched = Kind::ALL.into_iter().find(|kind| {
            let resource = kind.resource();
            resource.api_version == version && resource.kind == name
        });
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let resource = match watched {
            Some(kind) => kind.resource(),
            None => ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, name)),
        };
        let api = Api::namespaced_with(self.client(), self.namespace(), &resource);
        Ok((watched, api))
    }

    /// Creates an object.
    pub async fn create(&self, object: impl Into<Value>) -> Result<Object> {
        let object = object.into();
        let (kind, api) = self.api_of(&object)?;
        let created = api
            .create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        self.shown(kind, created).await
    }

    /// Creates an object without storing it.
    pub async fn try_create(&self, object: impl Into<Value>) -> Result<Object> {
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = object.into();
        let (_, api) = self.api_of(&object)?;
        let created = api
            .create(&dry_run, &serde_json::from_value(object)?)
            .await?;
        Ok(Object::new(serde_json::to_value(created)?))
    }

    /// Asserts that an object would be refused, without storing it.
    pub async fn refused(&self, object: impl Into<Value>) -> Result<Denial> {
        denial(self.try_create(object).await)
    }

    /// Changes an object with a merge patch.
    pub async fn patch(&self, kind: Kind, name: &str, patch: Value) -> Result<Object> {
        let patched = self
            .api(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        self.shown(Some(kind), patched).await
    }

    /// Tries a merge patch without storing it.
    pub async fn try_patch(&self, kind: Kind, name: &str, patch: Value) -> Result<Object> {
        let dry_run = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let patched = self
            .api(kind)
            .patch(name, &dry_run, &Patch::Merge(patch))
            .await?;
        Ok(Object::new(serde_json::to_value(patched)?))
    }

    /// Asserts that a merge patch would be refused, without storing it.
    pub async fn patch_refused(&self, kind: Kind, name: &str, patch: Value) -> Result<Denial> {
        denial(self.try_patch(kind, name, patch).await)
    }

    /// Changes the status of an object with a merge patch.
    pub async fn patch_status(&self, kind: Kind, name: &str, patch: Value) -> Result<Object> {
        let patch = Patch::Merge(patch);
        let patched = self
            .api(kind)
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        self.shown(Some(kind), patched).await
    }

    /// Writes an object by server-side apply.
    pub async fn apply(&self, object: impl Into<Value>) -> Result<Object> {
        let object = object.into();
        let (kind, api) = self.api_of(&object)?;
        let name = object["metadata"]["name"]
            .as_str()
            .context("no name")?
            .to_owned();
        let parameters = PatchParams::apply(FIELD_MANAGER);
        let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await?;
        self.shown(kind, applied).await
    }

    /// Replaces the spec of a set.
    pub async fn replace_spec(&self, manifest: Manifest) -> Result<Object> {
        let name = manifest.name().to_owned();
        let spec = manifest.json()["spec"].clone();
        self.replace_spec_of(Kind::Set, &name, spec).await
    }

    /// Replaces the spec of an object.
    pub async fn replace_spec_of(&self, kind: Kind, name: &str, spec: Value) -> Result<Object> {
        // The controller writes the status meanwhile, which is not ours to lose a race to.
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
        let replaced = self
            .api(kind)
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        self.shown(Some(kind), replaced).await
    }

    /// Sets the image of container `c` of a set.
    pub async fn update_image(&self, set: &str, image: &str) -> Result<Object> {
        let containers = json!([{"name": "c", "image": image}]);
        let template = json!({"spec": {"containers": containers}});
        let group = json!({"workerTemplate": template});
        self.patch(
            Kind::Set,
            set,
            json!({"spec": {"leaderWorkerTemplate": group}}),
        )
        .await
    }

    /// Sets the number of groups through the scale subresource.
    pub async fn scale(&self, set: &str, replicas: i64) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api(Kind::Set)
            .patch_scale(set, &PatchParams::default(), &patch)
            .await?;
        let what = format!("{set} is scaled to {replicas}");
        self.until(&what, |world| {
            world
                .find(Kind::Set, set)
                .is_some_and(|set| set.number("/spec/replicas") == replicas)
        })
        .await
    }

    /// Adds or removes annotations of an object.
    pub async fn annotate(&self, kind: Kind, name: &str, annotations: Value) -> Result<Object> {
        self.patch(
            kind,
            name,
            json!({"metadata": {"annotations": annotations}}),
        )
        .await
    }

    /// Deletes an object in the background.
    pub async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        self.delete_with(kind, name, DeleteParams::background())
            .await
    }

    /// Deletes an object in the foreground.
    pub async fn delete_foreground(&self, kind: Kind, name: &str) -> Result<()> {
        self.delete_with(kind, name, DeleteParams::foreground())
            .await
    }

    /// Deletes a pod at once, as `kubectl delete pod --force --grace-period=0` does.
    pub async fn delete_now(&self, kind: Kind, name: &str) -> Result<()> {
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        self.delete_with(kind, name, parameters).await
    }

    async fn delete_with(&self, kind: Kind, name: &str, how: DeleteParams) -> Result<()> {
        let uid = self.world().get(kind, name).uid().to_owned();
        self.api(kind).delete(name, &how).await?;
        self.until(&format!("deletion of {kind:?} {name} is seen"), |world| {
            world
                .find(kind, name)
                .is_none_or(|object| object.uid() != uid || object.is_terminating())
        })
        .await
    }

    /// Waits until the namespace holds nothing of a set.
    pub async fn until_gone(&self, set: &str) -> Result<()> {
        self.until(&format!("nothing is left of {set}"), |world| {
            let is_left = |kind| {
                world.all(kind).any(|object| {
                    object.name() == set
                        || object.label("leaderworkerset.sigs.k8s.io/name") == Some(set)
                })
            };
            ![
                Kind::Set,
                Kind::StatefulSet,
                Kind::Deployment,
                Kind::Pod,
                Kind::Service,
                Kind::Revision,
                Kind::Workload,
                Kind::PodGroup,
            ]
            .into_iter()
            .any(is_left)
        })
        .await
    }

    async fn shown(&self, kind: Option<Kind>, object: DynamicObject) -> Result<Object> {
        let object = Object::new(serde_json::to_value(object)?);
        let Some(kind) = kind else {
            return Ok(object);
        };
        let what = format!("write of {kind:?} {} is seen", object.name());
        self.until(&what, |world| {
            world.history().iter().rev().any(|change| {
                change.kind == kind
                    && change.object.uid() == object.uid()
                    && change.object.version() >= object.version()
            })
        })
        .await?;
        Ok(object)
    }
}

fn denial(outcome: Result<Object>) -> Result<Denial> {
    let error = match outcome {
        Ok(object) => bail!("it was accepted: {object:?}"),
        Err(error) => error,
    };
    match error.downcast::<Error>()? {
        Error::Api(status) => {
            let Status {
                code,
                reason,
                message,
                ..
            } = *status;
            Ok(Denial {
                code,
                reason,
                message,
            })
        }
        error => bail!(error),
    }
}

impl Denial {
    /// Asserts that it names a field and says something.
    pub fn names(&self, field: &str, text: &str) {
        assert!(matches!(self.code, 403 | 422), "{self:?}");
        assert!(
            self.message.contains(field),
            "{self:?} does not name {field}"
        );
        assert!(self.message.contains(text), "{self:?} does not say {text}");
    }
}
