//! What operators see of this process (MET): every family of MET-4 and MET-7, under the names that dashboards already use.
//!
//! Counters and histograms are filled where things happen; what can be read off the cache and the queues is read when somebody asks
//! ([`objects`]), so that series of deleted objects are gone at once. [`server`] answers scrapes.

mod access;
mod buckets;
mod client;
mod objects;
mod progress;
mod server;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

pub use access::{Access, Refusal};
pub use client::CountRequests;
pub use progress::Progress;
pub use server::{MetricsError, MetricsServer};

use crate::config::{FeatureGates, GATES};
use crate::store::{Controller, Next, Store};
use crate::version;

/// Name of the certificate keeper among the controllers (MET-5).
pub const CERT_ROTATOR: &str = "cert-rotator";
const RESULTS: [&str; 4] = ["success", "error", "requeue", "requeue_after"];

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    panics: IntCounterVec,
    durations: HistogramVec,
    active: IntGaugeVec,
    waits: HistogramVec,
    work: HistogramVec,
    requests: IntCounterVec,
    leads: IntGaugeVec,
    slow_renewals: IntCounterVec,
    expiries: GaugeVec,
    dropped_events: IntCounterVec,
    /// Of admission.
    pub admission: lws_webhook::Metrics,
    /// Of the certificates that are read.
    pub certificates: lws_webhook::Reads,
    /// Of sets and groups.
    pub progress: Progress,
}

/// Registers what is made here.
struct Maker<'a>(&'a Registry);

impl Maker<'_> {
    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        let made = IntCounterVec::new(Opts::new(name, help), labels)?;
        self.0.register(Box::new(made.clone()))?;
        Ok(made)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        let made = IntGaugeVec::new(Opts::new(name, help), labels)?;
        self.0.register(Box::new(made.clone()))?;
        Ok(made)
    }

    fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> prometheus::Result<HistogramVec> {
        let made = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels)?;
        self.0.register(Box::new(made.clone()))?;
        Ok(made)
    }
}

impl Metrics {
    /// All metrics, at zero.
    ///
    /// # Errors
    /// A name is taken twice, which a test would show.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let make = Maker(&registry);
        let runtime = |name: &str| format!("controller_runtime_{name}");
        let controller = ["controller"];
        let queue = ["name", "controller"];
        let expiries = GaugeVec::new(
            Opts::new(
                "lws_certificate_expiry_timestamp_seconds",
                "When certificates of the admission server end",
            ),
            &["kind"],
        )?;
        registry.register(Box::new(expiries.clone()))?;
        let metrics = Self {
            reconciles: make.counters(
                &runtime("reconcile_total"),
                "Reconciles by controller and result",
                &["controller", "result"],
            )?,
            errors: make.counters(
                &runtime("reconcile_errors_total"),
                "Reconciles that ended with an error",
                &controller,
            )?,
            panics: make.counters(
                &runtime("reconcile_panics_total"),
                "Reconciles that panicked",
                &controller,
            )?,
            durations: make.histograms(
                &runtime("reconcile_time_seconds"),
                "Time that reconciles took",
                &controller,
                buckets::reconcile(),
            )?,
            active: make.gauges(
                &runtime("active_workers"),
                "Reconciles that are under way",
                &controller,
            )?,
            waits: make.histograms(
                "workqueue_queue_duration_seconds",
                "Time that items stood ready in the queue",
                &queue,
                buckets::powers_of_ten(),
            )?,
            work: make.histograms(
                "workqueue_work_duration_seconds",
                "Time that items were worked on",
                &queue,
                buckets::powers_of_ten(),
            )?,
            requests: make.counters(
                "rest_client_requests_total",
                "Requests to the API server by status code, method and host",
                &["code", "method", "host"],
            )?,
            leads: make.gauges(
                "leader_election_master_status",
                "Whether this process holds the lease",
                &["name"],
            )?,
            slow_renewals: make.counters(
                "leader_election_slowpath_total",
                "Requests for the lease that had to read it first",
                &["name"],
            )?,
            dropped_events: make.counters(
                "lws_events_dropped_total",
                "Events that were not posted because too many waited",
                &controller,
            )?,
            expiries,
            admission: lws_webhook::Metrics::register(&registry)?,
            certificates: lws_webhook::Reads::register(&registry)?,
            progress: Progress::register(&registry)?,
            registry,
        };
        metrics.never()?;
        metrics.build_info()?;
        metrics.announce();
        #[cfg(target_os = "linux")]
        metrics.registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        Ok(metrics)
    }

    /// Families of what does not happen here: every error is tried again, and no reconcile has a time limit as a whole.
    fn never(&self) -> prometheus::Result<()> {
        let make = Maker(&self.registry);
        for (name, help) in [
            (
                "terminal_reconcile_errors_total",
                "Errors that are not tried again",
            ),
            ("reconcile_timeouts_total", "Reconciles that took too long"),
        ] {
            let counters =
                make.counters(&format!("controller_runtime_{name}"), help, &["controller"])?;
            for controller in Controller::ALL {
                counters.with_label_values(&[controller.name()]);
            }
        }
        Ok(())
    }

    fn build_info(&self) -> prometheus::Result<()> {
        let labels = ["version", "git_commit", "build_date", "platform"];
        let gauges = Maker(&self.registry).gauges("lws_build_info", "What was built", &labels)?;
        let platform = version::platform();
        let values = [
            version::GIT_VERSION,
            version::GIT_COMMIT,
            version::BUILD_DATE,
            platform.as_str(),
        ];
        gauges.with_label_values(&values).set(1);
        Ok(())
    }

    /// MET-4: series that are there before the first reconcile.
    fn announce(&self) {
        for controller in Controller::ALL {
            let name = controller.name();
            for result in RESULTS {
                self.reconciles.with_label_values(&[name, result]);
            }
            for counters in [&self.errors, &self.panics, &self.dropped_events] {
                counters.with_label_values(&[name]);
            }
            self.durations.with_label_values(&[name]);
            self.active.with_label_values(&[name]);
            self.waits.with_label_values(&[name, name]);
            self.work.with_label_values(&[name, name]);
        }
        for result in RESULTS {
            self.reconciles.with_label_values(&[CERT_ROTATOR, result]);
        }
        self.errors.with_label_values(&[CERT_ROTATOR]);
    }

    /// FG-5.
    ///
    /// # Errors
    /// This was done before.
    pub fn features(&self, gates: &FeatureGates) -> prometheus::Result<()> {
        let gauges = Maker(&self.registry).gauges(
            "lws_feature_enabled",
            "Whether a feature gate is on",
            &["name", "stage"],
        )?;
        for (name, _) in GATES {
            gauges
                .with_label_values(&[*name, "ALPHA"])
                .set(i64::from(gates.is_on(name)));
        }
        Ok(())
    }

    /// Shows what is in a store from now on.
    ///
    /// # Errors
    /// This was done before.
    pub fn show(self: &Arc<Self>, store: &Arc<Store>) -> prometheus::Result<()> {
        let collector = objects::Objects::new(store.clone(), self.clone())?;
        self.registry.register(Box::new(collector))
    }

    /// The text of a scrape.
    ///
    /// # Errors
    /// A family cannot be written down.
    pub fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// A key is taken out of a queue after it was ready for a while.
    pub fn taken(&self, controller: Controller, waited: Duration) {
        let name = controller.name();
        self.active.with_label_values(&[name]).inc();
        self.waits
            .with_label_values(&[name, name])
            .observe(waited.as_secs_f64());
    }

    /// A reconcile of a key has ended.
    pub fn reconciled(&self, controller: Controller, next: &Next, took: Duration) {
        let name = controller.name();
        self.active.with_label_values(&[name]).dec();
        let seconds = took.as_secs_f64();
        self.durations.with_label_values(&[name]).observe(seconds);
        self.work.with_label_values(&[name, name]).observe(seconds);
        self.count(name, next.result());
    }

    /// The keeper of certificates looked at everything once.
    pub fn certificates_kept(&self, is_well: bool) {
        self.count(CERT_ROTATOR, if is_well { "success" } else { "error" });
    }

    fn count(&self, controller: &str, result: &'static str) {
        self.reconciles
            .with_label_values(&[controller, result])
            .inc();
        if result == "error" {
            self.errors.with_label_values(&[controller]).inc();
        }
    }

    /// A reconcile panicked.
    pub fn panicked(&self, controller: Controller) {
        self.panics.with_label_values(&[controller.name()]).inc();
    }

    /// Counters of requests to the API server, for a client.
    pub fn requests(&self, host: &str) -> CountRequests {
        CountRequests::new(self.requests.clone(), host)
    }

    /// Whether this process holds the lease of this name.
    pub fn leads(&self, lease: &str) -> IntGauge {
        self.leads.with_label_values(&[lease])
    }

    /// Requests for the lease of this name that had to read it first.
    pub fn slow_renewals(&self, lease: &str) -> IntCounter {
        self.slow_renewals.with_label_values(&[lease])
    }

    /// When the certificate of this kind (`ca` or `serving`) ends.
    pub fn set_expiry(&self, kind: &str, end: Timestamp) {
        let since_1970 = end.duration_since(Timestamp::UNIX_EPOCH);
        self.expiries
            .with_label_values(&[kind])
            .set(since_1970.as_secs_f64());
    }

    /// Events of a controller that were not posted because too many waited.
    pub fn dropped_events(&self, controller: &str) -> IntCounter {
        self.dropped_events.with_label_values(&[controller])
    }
}

#[cfg(test)]
mod tests;
