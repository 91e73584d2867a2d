//! Leader election over the Lease (LE): does what [`Elector`] decides, and moves the write fence with every renewal.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource as _};
use lws_core::lease::{Decision, Elector, Failed, Record, TimingError, Timings};
use prometheus::{IntCounter, IntGauge};
use tokio::time::Instant;

use crate::config::LeaderElection;
use crate::events::Poster;
use crate::fence::Fence;
use crate::{identity, informer};

/// Why the election cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// LE-4.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// LE-5: a kind of lock that no longer exists.
    #[error("resource lock {0:?} was removed, migrate to leases")]
    Removed(String),
    /// LE-5.
    #[error("invalid lock type {0:?}, only leases is supported")]
    Lock(String),
    /// LE-7: the process must end.
    #[error("leader election lost")]
    Lost,
}

/// What the election shows of itself (MET-4).
#[derive(Clone, Debug)]
pub struct Gauges {
    /// Whether the Lease is ours.
    pub leads: IntGauge,
    /// How often it had to be read before it could be written.
    pub slow: IntCounter,
}

/// One replica's part in the election.
pub struct Election {
    api: Api<Lease>,
    poster: Poster,
    name: String,
    namespace: String,
    me: String,
    limit: Duration,
    elector: Elector,
    fence: Fence,
    gauges: Gauges,
    started: Instant,
    /// The object as last read or written; what it has besides our fields is kept.
    last: Lease,
}

impl Election {
    /// A candidate with a new identity.
    ///
    /// # Errors
    /// When the settings do not hold together.
    pub fn new(
        client: Client,
        settings: &LeaderElection,
        fence: Fence,
        gauges: Gauges,
    ) -> Result<Self, LeaseError> {
        check_lock(&settings.resource_lock)?;
        let timings = Timings::new(
            settings.lease_duration.0,
            settings.renew_deadline.0,
            settings.retry_period.0,
        )?;
        let (namespace, me) = (identity::operator_namespace(), identity::new_identity());
        Ok(Self {
            api: Api::namespaced(client.clone(), &namespace),
            poster: Poster::new(client),
            name: settings.resource_name.clone(),
            namespace,
            limit: timings.request_limit(),
            elector: Elector::new(&me, timings),
            me,
            fence,
            gauges,
            started: Instant::now(),
            last: Lease::default(),
        })
    }

    /// Takes part until `release` is over, then gives the Lease back if it is ours. `lead` is called once, when it becomes ours.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] when it was ours and is not any more.
    pub async fn run(
        mut self,
        lead: impl FnOnce(),
        release: impl Future<Output = ()>,
    ) -> Result<(), LeaseError> {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut events = pin!(informer::events(self.api.clone(), config));
        let mut release = pin!(release);
        let mut lead = Some(lead);
        loop {
            let decision = self.elector.decide(self.now());
            tokio::select! {
                biased;
                () = &mut release => break,
                carried = self.carry_out(decision, &mut events) => carried?,
            }
            self.gauges.leads.set(self.elector.is_leader().into());
            if let Some(lead) = lead.take_if(|_| self.elector.is_leader()) {
                tracing::info!(target: "setup", identity = self.me, "became leader");
                lead();
                tokio::spawn(self.tell("became leader"));
            }
        }
        self.release().await;
        Ok(())
    }

    async fn carry_out(
        &mut self,
        decision: Decision,
        events: &mut (impl Stream<Item = watcher::Result<Event<Lease>>> + Unpin),
    ) -> Result<(), LeaseError> {
        match decision {
            Decision::Lost => {
                self.fence.close();
                tracing::error!(target: "setup", identity = self.me, "stopped leading");
                return Err(LeaseError::Lost);
            }
            Decision::Read => {
                self.gauges.slow.inc();
                self.read().await;
            }
            Decision::Acquire | Decision::Renew => {
                self.write(self.elector.claim(Timestamp::now())).await
            }
            Decision::Wait(until) => tokio::select! {
                () = tokio::time::sleep_until(self.started + until) => {}
                Some(event) = events.next() => self.seen(event),
            },
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn observe(&mut self, lease: Option<Lease>) {
        let record = lease.as_ref().map(record);
        self.last = lease.unwrap_or_default();
        self.elector
            .observe(record, self.now(), identity::random_unit());
    }

    fn seen(&mut self, event: watcher::Result<Event<Lease>>) {
        let is_watched = match event {
            Ok(Event::Init) => return,
            Ok(Event::InitApply(lease) | Event::Apply(lease)) => {
                self.observe(Some(lease));
                true
            }
            Ok(Event::Delete(_)) => {
                self.observe(None);
                true
            }
            Ok(Event::InitDone) => true,
            Err(error) => {
                tracing::warn!(%error, "watch of the Lease failed, trying again");
                false
            }
        };
        self.elector
            .watching(is_watched, self.now(), identity::random_unit());
    }

    async fn read(&mut self) {
        let sent = self.now();
        match tokio::time::timeout(self.limit, self.api.get_opt(&self.name)).await {
            Ok(Ok(lease)) => self.observe(lease),
            Ok(Err(error)) => self.failed(&error.to_string(), Failed::Otherwise, sent),
            Err(_) => self.failed("no answer in time", Failed::Otherwise, sent),
        }
    }

    /// Compare-and-swap: creates the Lease, or replaces the version that was seen.
    async fn write(&mut self, record: Record) {
        let sent = self.now();
        let lease = self.lease(&record);
        let parameters = PostParams::default();
        let request = async {
            if record.version.is_empty() {
                self.api.create(&parameters, &lease).await
            } else {
                self.api.replace(&self.name, &parameters, &lease).await
            }
        };
        match tokio::time::timeout(self.limit, request).await {
            Ok(Ok(lease)) => {
                self.elector.succeeded(crate::lease::record(&lease), sent);
                self.last = lease;
                if let Some(fence) = self.elector.fence() {
                    self.fence
                        .hold(self.started + fence.until, self.started + fence.hard);
                }
            }
            Ok(Err(error)) => {
                let is_other_version =
                    matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409));
                let kind = if is_other_version {
                    Failed::Conflict
                } else {
                    Failed::Otherwise
                };
                self.failed(&error.to_string(), kind, sent);
            }
            Err(_) => self.failed("no answer in time", Failed::Otherwise, sent),
        }
    }

    fn failed(&mut self, error: &str, kind: Failed, sent: Duration) {
        tracing::warn!(target: "setup", error, ?kind, "a request of the leader election failed");
        self.elector.failed(kind, sent);
    }

    /// LE-8. A renewal may have been cut off, so the version is read first.
    async fn release(mut self) {
        if !self.elector.is_leader() {
            return;
        }
        self.fence.close();
        self.gauges.leads.set(0);
        self.read().await;
        if let Some(record) = self.elector.release(Timestamp::now()) {
            self.write(record).await;
            tracing::info!(target: "setup", "the Lease was given back");
            self.tell("stopped leading").await;
        }
    }

    /// LE-3.
    fn tell(&self, what: &str) -> impl Future<Output = ()> + Send + use<> {
        let note = format!("{} {what}", self.me);
        let lease = self.last.object_ref(&());
        let poster = self.poster.clone();
        async move { poster.tell_of_lease(&lease, &note).await }
    }

    fn lease(&self, record: &Record) -> Lease {
        let mut lease = self.last.clone();
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.namespace = Some(self.namespace.clone());
        lease.metadata.managed_fields = None;
        lease.metadata.resource_version =
            Some(record.version.to_string()).filter(|version| !version.is_empty());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(record.holder.to_string());
        spec.lease_duration_seconds = record.duration_seconds;
        spec.acquire_time = record.acquired.map(MicroTime);
        spec.renew_time = record.renewed.map(MicroTime);
        spec.lease_transitions = Some(record.transitions);
        lease
    }
}

fn record(lease: &Lease) -> Record {
    let absent = LeaseSpec::default();
    let spec = lease.spec.as_ref().unwrap_or(&absent);
    let text = |text: &Option<String>| -> Arc<str> { text.as_deref().unwrap_or_default().into() };
    Record {
        version: text(&lease.metadata.resource_version),
        holder: text(&spec.holder_identity),
        duration_seconds: spec.lease_duration_seconds,
        acquired: spec.acquire_time.as_ref().map(|time| time.0),
        renewed: spec.renew_time.as_ref().map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

fn check_lock(kind: &str) -> Result<(), LeaseError> {
    match kind {
        "leases" => Ok(()),
        "endpoints" | "configmaps" | "endpointsleases" | "configmapsleases" => {
            Err(LeaseError::Removed(kind.to_owned()))
        }
        other => Err(LeaseError::Lock(other.to_owned())),
    }
}

#[cfg(test)]
mod tests;
