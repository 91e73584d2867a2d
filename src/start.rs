//! Puts the parts together, in the order of HLT-1, and takes them apart again (SHD).

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lws_core::admission::{Environment, SchedulerProvider};
use lws_webhook::Tls;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::client::{self, ClientError, Clients};
use crate::config::{self, ConfigError, Configuration, FeatureGates};
use crate::controller::{self, Context};
use crate::events::{self, Poster};
use crate::fence::Fence;
use crate::flags::{Concurrency, Flags};
use crate::gateway::Gateway;
use crate::lease::{Election, Gauges, LeaseError};
use crate::limiter::Limiter;
use crate::metrics::{Access, Metrics, MetricsError, MetricsServer};
use crate::probes::{self, Health};
use crate::scheduling::{self, Discovery};
use crate::signals::{self, Stop};
use crate::store::{Controller, Store};
use crate::tls::TlsError;
use crate::webhooks::{Source, WebhookError, Webhooks};
use crate::{listen, tls, version, watches};

/// CON-1.
const SYNC_LIMIT: Duration = Duration::from_secs(120);
/// FAIL-23.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
/// SHD-2: the parts of the 8 s that a stop may take.
const RECONCILES_LIMIT: Duration = Duration::from_secs(5);
const EVENTS_LIMIT: Duration = Duration::from_secs(1);
const RELEASE_LIMIT: Duration = Duration::from_millis(1500);
const LISTENERS_STAY: Duration = Duration::from_secs(3);
const STOP_LIMIT: Duration = Duration::from_millis(7800);

/// Why the process ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// CFG-3.
    #[error("unable to load the configuration")]
    Config(#[from] ConfigError),
    /// A setting whose feature is not built yet: it is refused, since it would have no effect.
    #[error("{0}")]
    NotAvailable(&'static str),
    /// No connection.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Signals cannot be waited for.
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
    /// The probe server.
    #[error("could not serve probes on {address}")]
    Probes {
        /// Where.
        address: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// `tls` of the file.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The metrics, or their server.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The admission server.
    #[error(transparent)]
    Webhooks(#[from] WebhookError),
    /// CON-1.
    #[error("the caches were not filled within {} s", SYNC_LIMIT.as_secs())]
    Sync,
    /// The election, or its end.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// Runs until the process is asked to stop.
///
/// # Errors
/// Whatever makes going on impossible.
pub fn run(flags: Flags) -> Result<(), Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(flags));
    // What is still running then is the crash case of SHD-4.
    runtime.shutdown_background();
    Ok(ended?)
}

/// An error with what caused it, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// REG-5: `ENABLE_WEBHOOKS=false` starts a manager without them.
fn has_webhooks(enabled: Option<&str>) -> bool {
    enabled != Some("false")
}

async fn serve(flags: Flags) -> Result<(), StartError> {
    let has_webhooks = has_webhooks(std::env::var("ENABLE_WEBHOOKS").ok().as_deref());
    let Flags {
        config,
        version: _,
        kubeconfig,
        overrides,
        concurrency,
        log: _,
    } = flags;
    let loaded = config::load(&config)?;
    if loaded.is_deprecated_version {
        tracing::warn!(target: "setup", "configuration API version config.lws.x-k8s.io/v1alpha1 is deprecated and will be removed in a future release; use config.lws.x-k8s.io/v1");
    }
    let mut configuration = loaded.configuration;
    tracing::info!(target: "setup", config = configuration.to_yaml(), "Successfully loaded configuration");
    overrides.apply(&mut configuration);
    check_available(&configuration)?;
    tracing::info!(
        target: "setup",
        gitVersion = version::GIT_VERSION, buildDate = version::BUILD_DATE, gitCommit = version::GIT_COMMIT, userAgent = version::user_agent(),
        featureGates = %FeatureGates::effective(&configuration.feature_gates),
        "Initializing"
    );
    let metrics = Arc::new(Metrics::new().map_err(MetricsError::from)?);
    let gates = FeatureGates::effective(&configuration.feature_gates);
    metrics.features(&gates).map_err(MetricsError::from)?;
    let clients = client::connect(&kubeconfig, &metrics).await?;
    let stop = signals::listen().map_err(StartError::Signals)?;
    Parts::start(
        &configuration,
        &clients,
        &metrics,
        concurrency,
        has_webhooks,
        stop.clone(),
    )
    .await?
    .until(stop)
    .await
}

/// Settings of later features are refused, since they would be ignored.
fn check_available(configuration: &Configuration) -> Result<(), StartError> {
    let refuse = |is_set: bool, why| {
        if is_set {
            Err(StartError::NotAvailable(why))
        } else {
            Ok(())
        }
    };
    refuse(
        scheduling::configured(configuration).scheduler_provider
            == Some(SchedulerProvider::Volcano),
        "the scheduler provider volcano is not available yet: set gangSchedulingManagement.schedulerProvider to kubernetes or leave it out",
    )
}

/// Everything that runs.
struct Parts {
    health: Arc<Health>,
    fence: Fence,
    /// Tells of parts that cannot go on.
    failures: mpsc::Receiver<StartError>,
    controllers: JoinHandle<()>,
    events: JoinHandle<()>,
    close_events: oneshot::Sender<()>,
    election: JoinHandle<()>,
    release: oneshot::Sender<()>,
    webhooks: JoinHandle<()>,
    close_webhooks: oneshot::Sender<()>,
    metrics_server: JoinHandle<()>,
    close_metrics: oneshot::Sender<()>,
}

impl Parts {
    async fn start(
        configuration: &Configuration,
        clients: &Clients,
        metrics: &Arc<Metrics>,
        concurrency: Concurrency,
        has_webhooks: bool,
        stop: Stop,
    ) -> Result<Self, StartError> {
        let (report, failures) = mpsc::channel(8);
        let health = Arc::new(Health::default());
        start_probes(configuration, &health, &report).await?;
        let (close_metrics, metrics_closed) = oneshot::channel();
        let tls = tls::options(&configuration.tls)?;
        let served = serve_metrics(configuration, &tls, clients, metrics, ended(metrics_closed));
        let metrics_server = served.await?;

        let fence = if configuration.leader_election.leader_elect {
            Fence::shut()
        } else {
            Fence::open()
        };
        let (notices, queued) = events::channel(metrics.clone());
        let (close_events, events_closed) = oneshot::channel();
        let events = tokio::spawn(events::run(
            queued,
            Poster::new(clients.requests.clone()),
            fence.clone(),
            ended(events_closed),
        ));

        let store = Arc::new(Store::new(
            concurrency.lws.get(),
            concurrency.pod.get(),
            concurrency.ds.get(),
        ));
        metrics.show(&store).map_err(MetricsError::from)?;
        let environment = scheduling::configured(configuration);
        scheduling::log(environment);
        let discovery = Discovery::begin(
            environment,
            clients.requests.clone(),
            clients.watches.clone(),
            store.clone(),
            notices.clone(),
        )
        .await;
        let watches = watches::start(&clients.watches, &store, &notices);
        tokio::spawn(watches.join_all());
        spawn(&report, keep_caches(store.clone(), health.clone()));

        let (close_webhooks, webhooks_closed) = oneshot::channel();
        let webhooks = has_webhooks.then(|| webhooks(configuration, tls, discovery.environment()));
        let webhooks = spawn(
            &report,
            serve_webhooks(
                webhooks,
                clients.watches.clone(),
                health.clone(),
                metrics.clone(),
                ended(webhooks_closed),
            ),
        );

        tokio::spawn(discovery.follow());

        let (lead, leading) = oneshot::channel();
        let (release, released) = oneshot::channel();
        let election = elect(
            configuration,
            clients,
            metrics,
            &fence,
            &report,
            lead,
            ended(released),
        )?;
        let limiter = Limiter::new(
            configuration.client_connection.qps,
            configuration.client_connection.burst,
        );
        let gateway = Gateway::new(clients.requests.clone(), limiter, fence.clone());
        let controllers = tokio::spawn(reconcile(
            Arc::new(Context {
                store,
                gateway,
                notices,
                metrics: metrics.clone(),
            }),
            leading,
            stop,
        ));
        tokio::spawn(log_server_version(clients.election.clone()));
        tracing::info!(target: "setup", "starting manager");
        Ok(Self {
            health,
            fence,
            failures,
            controllers,
            events,
            close_events,
            election,
            release,
            webhooks,
            close_webhooks,
            metrics_server,
            close_metrics,
        })
    }

    /// Waits for the end that comes first.
    async fn until(mut self, mut stop: Stop) -> Result<(), StartError> {
        tokio::select! {
            biased;
            Some(error) = self.failures.recv() => Err(error),
            () = stop.asked() => {
                self.stop().await;
                Ok(())
            }
        }
    }

    /// SHD-1, SHD-2. The controllers have seen the stop themselves.
    async fn stop(self) {
        let began = Instant::now();
        self.health.is_stopping();
        if timeout(RECONCILES_LIMIT, self.controllers).await.is_err() {
            tracing::warn!(target: "setup", "reconciles were cut off by the stop");
        }
        tell(self.close_events);
        let _ = timeout(EVENTS_LIMIT, self.events).await;
        self.fence.close();
        tell(self.release);
        let _ = timeout(RELEASE_LIMIT, self.election).await;
        sleep_until(began + LISTENERS_STAY).await;
        tell(self.close_webhooks);
        tell(self.close_metrics);
        let listeners = async { tokio::join!(self.webhooks, self.metrics_server) };
        let _ = timeout_at(began + STOP_LIMIT, listeners).await;
        tracing::info!(target: "setup", "stopped");
    }
}

/// Runs a part that ends the process if it fails.
fn spawn(
    report: &mpsc::Sender<StartError>,
    part: impl Future<Output = Result<(), StartError>> + Send + 'static,
) -> JoinHandle<()> {
    let report = report.clone();
    tokio::spawn(async move {
        if let Err(error) = part.await {
            // Nobody listens only if the process ends already.
            let _ = report.send(error).await;
        }
    })
}

fn tell(to: oneshot::Sender<()>) {
    // Nobody listens only if that part has ended.
    let _ = to.send(());
}

/// Waits to be told; whoever would tell lives as long as the process.
async fn ended(told: oneshot::Receiver<()>) {
    let _ = told.await;
}

async fn start_probes(
    configuration: &Configuration,
    health: &Arc<Health>,
    report: &mpsc::Sender<StartError>,
) -> Result<(), StartError> {
    let beating = health.clone();
    tokio::spawn(async move { beating.beat().await });
    let address = configuration.health.health_probe_bind_address.clone();
    if listen::is_disabled(&address) {
        return Ok(());
    }
    let failed = |address, source| StartError::Probes { address, source };
    let listener = listen::bind(&address)
        .await
        .map_err(|source| failed(address.clone(), source))?;
    let (health, names) = (health.clone(), configuration.health.clone());
    spawn(report, async move {
        probes::serve(listener, health, &names)
            .await
            .map_err(|source| failed(address, source))
    });
    Ok(())
}

async fn keep_caches(store: Arc<Store>, health: Arc<Health>) -> Result<(), StartError> {
    timeout(SYNC_LIMIT, store.is_synced())
        .await
        .map_err(|_| StartError::Sync)?;
    health.caches_are_synced();
    tracing::info!(target: "setup", "caches are filled");
    let mut every = tokio::time::interval(EXPIRE_EVERY);
    loop {
        every.tick().await;
        store.expire();
    }
}

/// MET-1: listens at once and serves in the background, unless metrics are switched off.
async fn serve_metrics(
    configuration: &Configuration,
    tls: &Tls,
    clients: &Clients,
    metrics: &Arc<Metrics>,
    closed: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<()>, MetricsError> {
    let address = &configuration.metrics.bind_address;
    if listen::is_disabled(address) {
        return Ok(tokio::spawn(closed));
    }
    let access = Access::new(&clients.watches);
    let server = MetricsServer::bind(address, tls, metrics.clone(), access).await?;
    Ok(tokio::spawn(server.serve(closed)))
}

fn webhooks(
    configuration: &Configuration,
    tls: Tls,
    environment: watch::Receiver<Environment>,
) -> Webhooks {
    let config::Webhook { host, port, .. } = &configuration.webhook;
    Webhooks {
        // Validated to be a port (CFG 1.2).
        listen: (host.clone(), u16::try_from(*port).unwrap_or_default()),
        tls,
        source: Source::of(configuration),
        environment,
    }
}

/// REG-5: without webhooks there are no certificates to keep either.
async fn serve_webhooks(
    webhooks: Option<Webhooks>,
    client: Client,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    closed: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let Some(webhooks) = webhooks else {
        health.webhooks_are_served(true);
        health.authority_is_announced(true);
        return Ok(());
    };
    Ok(webhooks.serve(&client, &health, metrics, closed).await?)
}

fn elect(
    configuration: &Configuration,
    clients: &Clients,
    metrics: &Metrics,
    fence: &Fence,
    report: &mpsc::Sender<StartError>,
    lead: oneshot::Sender<()>,
    released: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let settings = &configuration.leader_election;
    if !settings.leader_elect {
        tell(lead);
        return Ok(tokio::spawn(released));
    }
    let gauges = Gauges {
        leads: metrics.leads(&settings.resource_name),
        slow: metrics.slow_renewals(&settings.resource_name),
    };
    let election = Election::new(clients.election.clone(), settings, fence.clone(), gauges)?;
    Ok(spawn(report, async move {
        Ok(election.run(|| tell(lead), released).await?)
    }))
}

/// HLT-1: reconciles start once this replica leads and the caches are filled.
async fn reconcile(cx: Arc<Context>, leading: oneshot::Receiver<()>, mut stop: Stop) {
    let may_start = async {
        let leads = leading.await.is_ok();
        cx.store.is_synced().await;
        leads
    };
    tokio::select! {
        () = stop.asked() => return,
        leads = may_start => if !leads { return },
    }
    cx.store.lead();
    let run = |controller| controller::run(controller, cx.clone(), stop.clone());
    tokio::join!(
        run(Controller::Sets),
        run(Controller::Groups),
        run(Controller::DisaggregatedSets)
    );
}

/// UPG-1.
async fn log_server_version(client: Client) {
    match client.apiserver_version().await {
        Ok(info) => {
            let minor = info
                .minor
                .trim_end_matches(|c: char| !c.is_ascii_digit())
                .parse::<u32>()
                .unwrap_or_default();
            if info.major == "1" && (34..=37).contains(&minor) {
                tracing::info!(target: "setup", version = info.git_version, "API server");
            } else {
                tracing::warn!(target: "setup", version = info.git_version, "API server is outside the supported versions 1.34 to 1.37");
            }
        }
        Err(error) => {
            tracing::warn!(target: "setup", %error, "the version of the API server is not known")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(body: &str) -> Option<String> {
        let text = format!("apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n{body}");
        let configuration = config::parse(&text).expect("a file").configuration;
        check_available(&configuration)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn settings_without_effect_are_refused() {
        assert_eq!(checked(""), None);
        let volcano = checked("gangSchedulingManagement: {schedulerProvider: volcano}");
        assert!(volcano.expect("refused").contains("volcano"));
        assert_eq!(
            checked("featureGates: {WorkloadAwareScheduling: true}"),
            None
        );
    }

    #[test]
    fn an_error_is_told_with_its_causes_once() {
        let error = StartError::from(config::parse("kind: Other").expect_err("no file"));
        assert_eq!(
            chain(&error),
            "unable to load the configuration: Object 'apiVersion' is missing"
        );
    }
    #[test]
    fn adm_reg_5_only_false_switches_the_webhooks_off() {
        for (value, expected) in [
            (None, true),
            (Some("true"), true),
            (Some(""), true),
            (Some("false"), false),
        ] {
            assert_eq!(has_webhooks(value), expected, "{value:?}");
        }
    }
}
