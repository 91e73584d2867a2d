//! Keeps the Secret filled, serves what it holds, and announces its authority in the webhook configurations. Every replica does this.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use lws_webhook::{CertStore, CertificateError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::bundle::overlap_end;
use super::configuration::{CONFIGURATIONS, is_announced, other_server, resource, with_bundle};
use super::parsed::expiry;
use super::{Due, IssueError, Lifetimes, Material, bundle, due, issue};
use crate::metrics::Metrics;
use crate::{identity, informer};

const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// CRT-4: first delay after a failure, and how often it is doubled.
const FIRST_DELAY: Duration = Duration::from_millis(10);
const DOUBLINGS: u32 = 10;
/// CRT-7: how long the first announcement may take: 1 s and nine times doubled.
const START_LIMIT: Duration = Duration::from_secs(1023);

/// Why the admission server cannot have a certificate.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// CRT-1: the manifests hold the Secret.
    #[error("acquiring secret to update certificates: there is no Secret {0}")]
    NoSecret(String),
    /// CRT-7.
    #[error("could not inject certs to webhooks")]
    NotInjected,
}

/// What keeps one step from ending well; it is tried again.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error(transparent)]
    Serve(#[from] CertificateError),
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("no answer from the API server in time")]
    Timeout,
    #[error("there is no Secret")]
    NoSecret,
}

/// Which Secret, and for which server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// DNS name of the server.
    pub server: String,
    /// How long things last.
    pub lifetimes: Lifetimes,
}

/// See the module.
pub struct Keeper {
    settings: Settings,
    secrets: Api<Secret>,
    configurations: [(Api<DynamicObject>, Seen<DynamicObject>); 2],
    secret: Seen<Secret>,
    store: Arc<CertStore>,
    metrics: Arc<Metrics>,
    served: Option<Material>,
    /// The authority that all configurations announce, and since when they were seen to.
    announced: Option<(Vec<u8>, Instant)>,
    is_announced: watch::Sender<bool>,
    /// The server of another installation that was told of last.
    other: Option<String>,
    failures: u32,
    started: Instant,
}

/// One object as the watch told of it last.
#[derive(Debug)]
struct Seen<K> {
    listing: Option<K>,
    object: Option<K>,
    is_listed: bool,
}

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Self {
            listing: None,
            object: None,
            is_listed: false,
        }
    }
}

impl<K> Seen<K> {
    fn tell(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listing = None,
            Event::InitApply(object) => self.listing = Some(object),
            Event::InitDone => {
                self.object = self.listing.take();
                self.is_listed = true;
            }
            Event::Apply(object) => self.object = Some(object),
            Event::Delete(_) => self.object = None,
        }
    }
}

/// A watch event, by what it is about.
enum Told {
    Secret(watcher::Result<Event<Secret>>),
    Configuration(usize, watcher::Result<Event<DynamicObject>>),
}

impl Keeper {
    /// Nothing is read yet. `is_announced` tells whether all configurations announce the authority of what is served.
    pub fn new(
        client: &Client,
        settings: Settings,
        metrics: Arc<Metrics>,
        store: Arc<CertStore>,
        is_announced: watch::Sender<bool>,
    ) -> Self {
        let configurations = CONFIGURATIONS.map(|(kind, _)| {
            (
                Api::all_with(client.clone(), &resource(kind)),
                Seen::default(),
            )
        });
        Self {
            secrets: Api::namespaced(client.clone(), &settings.namespace),
            settings,
            configurations,
            secret: Seen::default(),
            store,
            metrics,
            served: None,
            announced: None,
            is_announced,
            other: None,
            failures: 0,
            started: Instant::now(),
        }
    }

    /// Does it for ever.
    ///
    /// # Errors
    /// At start only: there is no Secret, or the authority cannot be announced in time.
    pub async fn run(mut self) -> Result<Infallible, KeeperError> {
        let named =
            |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let secrets = informer::events(self.secrets.clone(), named(&self.settings.secret));
        let mut streams = vec![secrets.map(Told::Secret).boxed()];
        for (index, ((api, _), (_, name))) in
            self.configurations.iter().zip(CONFIGURATIONS).enumerate()
        {
            let events = informer::events(api.clone(), named(name));
            streams.push(
                events
                    .map(move |event| Told::Configuration(index, event))
                    .boxed(),
            );
        }
        let mut told = pin!(select_all(streams));
        tracing::info!(target: "cert-rotation", secret = self.settings.secret, "waiting for the cert generation to complete");
        let limit = self.started + START_LIMIT;
        let mut wake = limit;
        let mut is_starting = true;
        loop {
            tokio::select! {
                Some(told) = told.next() => self.tell(told),
                () = sleep_until(wake) => {}
            }
            if self.is_listed() {
                wake = self.step().await?;
            }
            is_starting &= self.announced.is_none();
            if is_starting {
                if Instant::now() >= limit {
                    return Err(KeeperError::NotInjected);
                }
                wake = wake.min(limit);
            }
        }
    }

    fn tell(&mut self, told: Told) {
        let failed =
            |error| tracing::warn!(target: "cert-rotation", %error, "watch failed, trying again");
        match told {
            Told::Secret(Ok(event)) => self.secret.tell(event),
            Told::Configuration(index, Ok(event)) => {
                if let Some((_, seen)) = self.configurations.get_mut(index) {
                    seen.tell(event);
                }
            }
            Told::Secret(Err(error)) | Told::Configuration(_, Err(error)) => failed(error),
        }
    }

    fn is_listed(&self) -> bool {
        self.secret.is_listed && self.configurations.iter().all(|(_, seen)| seen.is_listed)
    }

    /// Looks at everything once; returns when to look again if nothing changes.
    async fn step(&mut self) -> Result<Instant, KeeperError> {
        let done = self.attempt(Timestamp::now()).await;
        self.report();
        self.metrics.certificates_kept(done.is_ok());
        match done {
            Ok(next) => {
                self.failures = 0;
                Ok(next)
            }
            Err(Failed::NoSecret) if self.served.is_none() => {
                Err(KeeperError::NoSecret(self.settings.secret.clone()))
            }
            Err(error) => {
                tracing::warn!(target: "cert-rotation", %error, "could not keep the certificates up to date, trying again");
                let delay = FIRST_DELAY * 2_u32.pow(self.failures.min(DOUBLINGS));
                self.failures = self.failures.saturating_add(1);
                Ok(Instant::now() + delay.mul_f64(1.0 + 0.1 * identity::random_unit()))
            }
        }
    }

    /// CRT-3, CRT-6, CRT-5, in this order.
    async fn attempt(&mut self, now: Timestamp) -> Result<Instant, Failed> {
        let material = self.renew(now).await?;
        self.serve(&material, now)?;
        self.tell_of_others();
        self.announce(&material, now).await?;
        self.note_announced(&material);
        let lifetimes = &self.settings.lifetimes;
        let next = Instant::now() + lifetimes.check_every;
        let settled = self.settled_at().filter(|at| *at > Instant::now());
        let overlap = overlap_end(&material.authority, lifetimes)
            .filter(|end| *end > now)
            .and_then(|end| Duration::try_from(end.duration_since(now)).ok())
            .map(|rest| Instant::now() + rest + Duration::from_secs(1));
        Ok([settled, overlap]
            .into_iter()
            .flatten()
            .fold(next, Instant::min))
    }

    /// CRT-3: what the Secret holds once nothing is due. A replica that lost the race finds out from what is stored then.
    async fn renew(&mut self, now: Timestamp) -> Result<Material, Failed> {
        let secret = self.secret.object.clone().ok_or(Failed::NoSecret)?;
        let Settings {
            server, lifetimes, ..
        } = &self.settings;
        let material = Material::of(&secret);
        let due = due(&material, server, now, lifetimes);
        if due == Due::Nothing {
            tracing::debug!(target: "cert-rotation", "no cert refresh needed");
            return Ok(material);
        }
        tracing::info!(target: "cert-rotation", ?due, "making certificates");
        let made = issue(due, &material, server, now, lifetimes)?;
        let name = &self.settings.secret;
        let parameters = PostParams::default();
        let written = made.put_into(secret);
        let request = self.secrets.replace(name, &parameters, &written);
        match limited(request).await {
            Ok(stored) => {
                let material = Material::of(&stored);
                self.secret.object = Some(stored);
                Ok(material)
            }
            Err(error) => {
                self.secret.object = limited(self.secrets.get_opt(name)).await?;
                Err(error)
            }
        }
    }

    /// CRT-8. A certificate of another authority waits until API servers trust it, as long as the one in use is valid.
    fn serve(&mut self, material: &Material, now: Timestamp) -> Result<(), Failed> {
        if let Some(served) = &self.served {
            let is_valid = expiry(&served.server).is_some_and(|end| end > now);
            let is_trusted = served.authority == material.authority || self.is_settled(material);
            if served == material || (is_valid && !is_trusted) {
                return Ok(());
            }
        }
        self.store.set_pem(&material.server, &material.server_key)?;
        tracing::info!(target: "cert-rotation", "serving a new certificate");
        for (kind, pem) in [("ca", &material.authority), ("serving", &material.server)] {
            if let Some(end) = expiry(pem) {
                self.metrics.set_expiry(kind, end);
            }
        }
        self.served = Some(material.clone());
        Ok(())
    }

    fn settled_at(&self) -> Option<Instant> {
        let (_, since) = self.announced.as_ref()?;
        Some(*since + self.settings.lifetimes.settle)
    }

    fn is_settled(&self, material: &Material) -> bool {
        let is_current =
            matches!(&self.announced, Some((authority, _)) if *authority == material.authority);
        is_current && self.settled_at().is_some_and(|at| at <= Instant::now())
    }

    /// CRT-5: one configuration that cannot be written does not keep the other from it.
    async fn announce(&mut self, material: &Material, now: Timestamp) -> Result<(), Failed> {
        let served = self.served.as_ref().map(|served| served.authority.clone());
        let lifetimes = &self.settings.lifetimes;
        let wanted = |announced: &[u8]| {
            bundle(
                announced,
                &material.authority,
                served.as_deref(),
                now,
                lifetimes,
            )
        };
        let server = &self.settings.server;
        let mut outcome = Ok(());
        for ((api, seen), (kind, name)) in self.configurations.iter_mut().zip(CONFIGURATIONS) {
            let Some(configuration) = &seen.object else {
                tracing::debug!(target: "cert-rotation", kind, "there is no such webhook configuration");
                continue;
            };
            let Some(changed) = with_bundle(configuration, server, wanted) else {
                continue;
            };
            match limited(api.replace(name, &PostParams::default(), &changed)).await {
                Ok(stored) => {
                    tracing::info!(target: "cert-rotation", kind, "the authority is announced");
                    seen.object = Some(stored);
                }
                Err(error) => {
                    outcome = Err(error);
                    if let Ok(stored) = limited(api.get_opt(name)).await {
                        seen.object = stored;
                    }
                }
            }
        }
        outcome
    }

    /// WHK-2: two installations would both reconcile every set. This one stays unready (HLT-4), as its webhooks are not asked.
    fn tell_of_others(&mut self) {
        let server = &self.settings.server;
        let other = self
            .configurations
            .iter()
            .filter_map(|(_, seen)| other_server(seen.object.as_ref()?, server))
            .next();
        if other == self.other {
            return;
        }
        if let Some(other) = &other {
            tracing::error!(
                target: "cert-rotation", server, other,
                "the webhook configurations send to another installation of lws; a cluster can have one: remove one of the two, \
                 and apply the manifests of the other again"
            );
        }
        self.other = other;
    }

    fn note_announced(&mut self, material: &Material) {
        if !self.all_announce(&material.authority) {
            self.announced = None;
        } else if !matches!(&self.announced, Some((authority, _)) if *authority == material.authority)
        {
            self.announced = Some((material.authority.clone(), Instant::now()));
        }
    }

    fn all_announce(&self, authority: &[u8]) -> bool {
        self.configurations.iter().all(|(_, seen)| {
            seen.object
                .as_ref()
                .is_none_or(|object| is_announced(object, authority))
        })
    }

    /// HLT-4.
    fn report(&self) {
        let is_announced = self
            .served
            .as_ref()
            .is_some_and(|served| self.all_announce(&served.authority));
        if self.is_announced.send_replace(is_announced) != is_announced && is_announced {
            tracing::info!(target: "setup", "certs ready");
        }
    }
}

async fn limited<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    timeout(REQUEST_LIMIT, request)
        .await
        .map_err(|_| Failed::Timeout)?
        .map_err(Failed::Request)
}
