//! The real side: requests to the API server, and waiting until everybody is at rest.

use std::time::Duration;

use anyhow::Result;
use kube::Error;
use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use lws_e2e::{Bench, Kind};
use lws_sim::conformance::{LONG_AGO, NOBODY, Named, Names, Operation, View};
use lws_sim::store::{self, Cascade};
use serde_json::Value;

/// Until objects are as they should be. The garbage collector may take a while.
const LIMIT: Duration = Duration::from_secs(60);
/// Nothing has changed for so long: nothing more is to come.
const QUIET: Duration = Duration::from_millis(800);
const OURS: &str = "lws";

/// A namespace of a real cluster that is given requests.
pub struct Real<'a> {
    bench: &'a Bench,
    names: Names,
}

/// Kinds that traces are about, here and in the simulated cluster, with their API version.
const KINDS: [(store::Kind, Kind, &str); 5] = [
    (
        store::Kind::LeaderWorkerSet,
        Kind::Set,
        "leaderworkerset.x-k8s.io/v1",
    ),
    (store::Kind::StatefulSet, Kind::StatefulSet, "apps/v1"),
    (store::Kind::ControllerRevision, Kind::Revision, "apps/v1"),
    (store::Kind::Service, Kind::Service, "v1"),
    (store::Kind::Pod, Kind::Pod, "v1"),
];

fn kind(of: store::Kind) -> (Kind, &'static str) {
    let known = KINDS.into_iter().find(|(simulated, ..)| *simulated == of);
    known.map_or_else(
        || panic!("no trace is about a {of:?}"),
        |(_, kind, version)| (kind, version),
    )
}

impl<'a> Real<'a> {
    pub fn new(bench: &'a Bench) -> Self {
        let names = Names::default();
        Self { bench, names }
    }

    /// Makes a request; the answer in the words of the simulated side.
    pub async fn make(&self, operation: &Operation) -> Result<String> {
        let target = operation.target();
        let live = self.get(target).await?;
        let owner = |named: &Named| {
            let world = self.bench.world();
            let owner = world.find(kind(named.kind).0, &named.name)?;
            Some(owner.uid().to_owned())
        };
        let body = operation.body(live.as_ref(), owner);
        match self.send(operation, live.as_ref(), body).await {
            Ok(()) => {
                let after = self.get(target).await?;
                let is_changed = operation.is_changed(live.as_ref(), after.as_ref());
                Ok(format!("OK{}", if is_changed { "" } else { ", unchanged" }))
            }
            // Some kinds call a UID that is not the object's an invalid field; for us it is a conflict.
            Err(Error::Api(status))
                if status.code == 422 && status.message.contains("metadata.uid") =>
            {
                Ok("409 Conflict".to_owned())
            }
            Err(Error::Api(status)) => Ok(format!("{} {}", status.code, status.reason)),
            Err(error) => Err(error.into()),
        }
    }

    async fn get(&self, named: &Named) -> Result<Option<Value>> {
        let object = self
            .bench
            .api(kind(named.kind).0)
            .get_opt(&named.name)
            .await?;
        Ok(object.map(serde_json::to_value).transpose()?)
    }

    async fn send(
        &self,
        operation: &Operation,
        live: Option<&Value>,
        body: Value,
    ) -> Result<(), Error> {
        let target = operation.target();
        let name = target.name.as_str();
        let api = self.bench.api(kind(target.kind).0);
        let (plain, ours) = (PatchParams::default(), PatchParams::apply(OURS).force());
        match operation {
            Operation::Create(..) | Operation::Generate(..) => {
                let member = match operation {
                    Operation::Generate(..) => "generateName",
                    _ => "name",
                };
                let object = Self::typed(target.kind, member, name, body)?;
                api.create(&PostParams::default(), &object).await.map(drop)
            }
            Operation::Apply(..) => {
                let object = Self::typed(target.kind, "name", name, body)?;
                api.patch(name, &ours, &Patch::Apply(object))
                    .await
                    .map(drop)
            }
            Operation::Patch(..) => api.patch(name, &plain, &Patch::Merge(body)).await.map(drop),
            Operation::PatchStatus(..) => {
                let patch = Patch::Merge(body);
                api.patch_status(name, &plain, &patch).await.map(drop)
            }
            Operation::Scale(..) => {
                let patch = Patch::Merge(body);
                api.patch_scale(name, &plain, &patch).await.map(drop)
            }
            Operation::Delete(_, by_uid, by_version, cascade, grace) => {
                let text = |pointer| live.and_then(|o| store::text(o, pointer));
                let parameters = DeleteParams {
                    grace_period_seconds: grace.and_then(|seconds| u32::try_from(seconds).ok()),
                    propagation_policy: cascade.map(policy),
                    preconditions: Some(Preconditions {
                        uid: by_uid.value(text("/metadata/uid"), NOBODY),
                        resource_version: by_version
                            .value(text("/metadata/resourceVersion"), LONG_AGO),
                    }),
                    ..DeleteParams::default()
                };
                api.delete(name, &parameters).await.map(drop)
            }
        }
    }

    fn typed(
        of: store::Kind,
        member: &str,
        name: &str,
        mut body: Value,
    ) -> Result<DynamicObject, Error> {
        body["metadata"][member] = name.into();
        body["apiVersion"] = kind(of).1.into();
        body["kind"] = of.name().into();
        serde_json::from_value(body).map_err(Error::SerdeError)
    }

    /// Waits until objects are as expected and stay so; if they never are, the view is what they are in the end.
    pub async fn rest(&mut self, expected: &View) -> Result<View> {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let names = &self.names;
            let is_equal = |world: &lws_e2e::World| look(world, &mut names.clone()) == *expected;
            let reached = self
                .bench
                .until_in(left, "objects are equal", is_equal)
                .await;
            if reached.is_ok() {
                self.bench.quiet_for(QUIET).await?;
            }
            let view = look(&self.bench.world(), &mut self.names);
            if view == *expected || reached.is_err() {
                return Ok(view);
            }
        }
    }
}

fn look(world: &lws_e2e::World, names: &mut Names) -> View {
    let mut objects = Vec::new();
    for (of, watched, _) in KINDS {
        for object in world.all(watched) {
            let name = object.name().to_owned();
            objects.push((Named { kind: of, name }, object.at("").clone()));
        }
    }
    View::of(&objects, names)
}

fn policy(cascade: Cascade) -> PropagationPolicy {
    match cascade {
        Cascade::Background => PropagationPolicy::Background,
        Cascade::Foreground => PropagationPolicy::Foreground,
        Cascade::Orphan => PropagationPolicy::Orphan,
    }
}
