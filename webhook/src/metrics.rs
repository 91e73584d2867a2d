//! What is counted of admission (MET-4, MET-7).

use std::time::Instant;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
};

use crate::review::Verdict;

/// Admission's part of the metrics, shared by all paths of the server.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    in_flight: IntGaugeVec,
    latency: HistogramVec,
    panics: IntCounter,
    conversion_panics: IntCounter,
    denied: IntCounterVec,
}

impl Metrics {
    /// Metrics that `registry` shows.
    ///
    /// # Errors
    /// Something is registered under one of these names already.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let name = "controller_runtime_webhook";
        let metrics = Self {
            requests: IntCounterVec::new(
                Opts::new(
                    format!("{name}_requests_total"),
                    "Admission requests by path and HTTP status code",
                ),
                &["webhook", "code"],
            )?,
            in_flight: IntGaugeVec::new(
                Opts::new(
                    format!("{name}_requests_in_flight"),
                    "Admission requests that are being answered",
                ),
                &["webhook"],
            )?,
            latency: HistogramVec::new(
                HistogramOpts::new(
                    format!("{name}_latency_seconds"),
                    "Time it took to answer admission requests",
                )
                .buckets(powers_of_ten()),
                &["webhook"],
            )?,
            panics: IntCounter::new(
                format!("{name}_panics_total"),
                "Panics while answering admission requests",
            )?,
            conversion_panics: IntCounter::new(
                "controller_runtime_conversion_webhook_panics_total",
                "Panics while converting objects",
            )?,
            denied: IntCounterVec::new(
                Opts::new(
                    "lws_admission_denied_total",
                    "Refused admission requests by kind and the member that was found wrong first",
                ),
                &["kind", "field"],
            )?,
        };
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.in_flight.clone()))?;
        registry.register(Box::new(metrics.latency.clone()))?;
        registry.register(Box::new(metrics.panics.clone()))?;
        registry.register(Box::new(metrics.conversion_panics.clone()))?;
        registry.register(Box::new(metrics.denied.clone()))?;
        Ok(metrics)
    }

    /// Makes the series of a path, so that they are there before the first request.
    pub(crate) fn announce(&self, path: &str) {
        for code in ["200", "500"] {
            self.requests.with_label_values(&[path, code]);
        }
        self.in_flight.with_label_values(&[path]);
        self.latency.with_label_values(&[path]);
    }

    /// A request begins.
    pub(crate) fn begin(&self, path: &'static str) -> Running<'_> {
        self.in_flight.with_label_values(&[path]).inc();
        Running {
            metrics: self,
            path,
            began: Instant::now(),
            code: "500",
        }
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    /// What was answered for an object of `kind`.
    pub(crate) fn judged(&self, kind: &str, verdict: &Verdict) {
        if let Verdict::Denied { field, .. } = verdict {
            self.denied.with_label_values(&[kind, field.as_str()]).inc();
        }
    }
}

/// A request that is being answered. One whose client went away counts as failed.
pub(crate) struct Running<'a> {
    metrics: &'a Metrics,
    path: &'static str,
    began: Instant,
    code: &'static str,
}

impl Running<'_> {
    /// The answer is there; a refusal is one, too.
    pub(crate) fn answered(mut self) {
        self.code = "200";
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Metrics {
            requests,
            in_flight,
            latency,
            ..
        } = self.metrics;
        in_flight.with_label_values(&[self.path]).dec();
        requests.with_label_values(&[self.path, self.code]).inc();
        latency
            .with_label_values(&[self.path])
            .observe(self.began.elapsed().as_secs_f64());
    }
}

/// MET-4: from 1e-8 to 1e3.
fn powers_of_ten() -> Vec<f64> {
    (-8..=3).map(|exponent| 10_f64.powi(exponent)).collect()
}

/// Certificates that were read, and that could not be used.
#[derive(Clone, Debug)]
pub struct Reads {
    read: IntCounter,
    failed: IntCounter,
}

impl Reads {
    /// Counters that `registry` shows.
    ///
    /// # Errors
    /// Something is registered under one of these names already.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let reads = Self {
            read: IntCounter::new(
                "certwatcher_read_certificate_total",
                "Certificates that were read",
            )?,
            failed: IntCounter::new(
                "certwatcher_read_certificate_errors_total",
                "Certificates that could not be used",
            )?,
        };
        registry.register(Box::new(reads.read.clone()))?;
        registry.register(Box::new(reads.failed.clone()))?;
        Ok(reads)
    }

    pub(crate) fn count(&self, is_usable: bool) {
        self.read.inc();
        if !is_usable {
            self.failed.inc();
        }
    }
}
