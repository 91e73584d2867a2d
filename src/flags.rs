//! Command line (FLG): Go's flag syntax, and what a given flag overrides in the configuration file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::{ArgAction, Parser, ValueEnum};

use crate::config::{Configuration, GoDuration, InvalidGates, gates_from_text};

/// Runs the controllers and the admission server for LeaderWorkerSets and DisaggregatedSets.
#[derive(Debug, Parser)]
#[command(name = "lws-manager", disable_version_flag = true)]
pub struct Flags {
    /// Path of the configuration file
    #[arg(long, value_name = "FILE", default_value = "")]
    pub config: String,
    /// Print version, build date and commit, and exit
    #[arg(long, value_parser = go_bool, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub version: bool,
    /// Path of a kubeconfig; only needed outside a cluster
    #[arg(long, value_name = "FILE", default_value = "")]
    pub kubeconfig: String,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub concurrency: Concurrency,
    #[command(flatten)]
    pub log: LogFlags,
}

/// Flags that stand above a field of the configuration file when they are given (FLG-2).
#[derive(Debug, Default, clap::Args)]
pub struct Overrides {
    /// Address of the metrics server (deprecated: metrics.bindAddress) [:8443]
    #[arg(long, value_name = "ADDRESS")]
    metrics_bind_address: Option<String>,
    /// Address of the probe server (deprecated: health.healthProbeBindAddress) [:8081]
    #[arg(long, value_name = "ADDRESS")]
    health_probe_bind_address: Option<String>,
    /// Requests per second to the API server [500]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    kube_api_qps: Option<f32>,
    /// Requests at once to the API server after a quiet time [500]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    kube_api_burst: Option<i32>,
    /// Elect a leader before the controllers start [true]
    #[arg(long, value_parser = go_bool, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// How long a lease that is not renewed keeps others out (deprecated) [15s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_lease_duration: Option<GoDuration>,
    /// How long the leader goes on without a renewal (deprecated) [10s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_renew_deadline: Option<GoDuration>,
    /// Time between tries to acquire or renew (deprecated) [2s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_retry_period: Option<GoDuration>,
    /// Kind of lock; only leases (deprecated) [leases]
    #[arg(long, value_name = "KIND")]
    leader_elect_resource_lock: Option<String>,
    /// Name of the Lease (deprecated) [b8b2488c.x-k8s.io]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Feature gates, e.g. A=true,B=false; they override those of the file
    #[arg(long, value_name = "GATES", value_parser = feature_gates)]
    feature_gates: Option<Gates>,
}

#[derive(Clone, Debug, Default)]
struct Gates(BTreeMap<String, bool>);

/// CON-2: workers of each controller.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Concurrency {
    /// LeaderWorkerSets reconciled at the same time
    #[arg(long = "lws-concurrency", value_name = "N", default_value = "4")]
    pub lws: NonZeroUsize,
    /// Groups reconciled at the same time
    #[arg(long = "pod-concurrency", value_name = "N", default_value = "16")]
    pub pod: NonZeroUsize,
    /// DisaggregatedSets reconciled at the same time
    #[arg(long = "ds-concurrency", value_name = "N", default_value = "4")]
    pub ds: NonZeroUsize,
}

/// LOG-1, LOG-5: form and amount of the log.
#[derive(Debug, clap::Args)]
pub struct LogFlags {
    /// Development mode: text, debug level
    #[arg(long, value_parser = go_bool, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub zap_devel: bool,
    /// Form of the log [by mode]
    #[arg(long, value_name = "FORM")]
    pub zap_encoder: Option<Encoder>,
    /// debug, info, error, panic, or a number above 0 for more [by mode]
    #[arg(long, value_name = "LEVEL", value_parser = log_level)]
    pub zap_log_level: Option<LogLevel>,
    /// Accepted for the sake of existing manifests: there are no stack traces
    #[arg(long, value_name = "LEVEL", value_parser = ["info", "error", "panic"])]
    pub zap_stacktrace_level: Option<String>,
    /// Form of times in the log
    #[arg(long, value_name = "FORM", default_value = "rfc3339")]
    pub zap_time_encoding: TimeEncoding,
    /// Form of the log; the same as --zap-encoder
    #[arg(long, value_name = "FORM")]
    pub log_format: Option<LogFormat>,
}

/// Value of `--zap-encoder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoder {
    Json,
    Console,
}

/// Value of `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Json,
    Text,
}

/// Value of `--zap-time-encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimeEncoding {
    Epoch,
    Millis,
    Nanos,
    Iso8601,
    Rfc3339,
    Rfc3339nano,
}

/// LOG-2: lines up to this level are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Info,
    Debug,
    /// A number: how verbose.
    Verbosity(u8),
}

impl Flags {
    /// Reads the command line; as Go's flags, long names may stand behind one dash.
    ///
    /// # Errors
    /// clap's, which know their exit code: 0 for help, 2 for anything else.
    pub fn parse_go(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(
            args.into_iter()
                .enumerate()
                .map(|(at, arg)| if at == 0 { arg } else { two_dashes(arg) }),
        )
    }
}

fn two_dashes(arg: OsString) -> OsString {
    let is_long = |text: &str| {
        let name = text.strip_prefix('-')?;
        let mut letters = name.chars();
        (letters.next()?.is_ascii_lowercase() && letters.next().is_some()).then_some(())
    };
    match arg.to_str() {
        Some(text) if is_long(text).is_some() => OsString::from(format!("-{text}")),
        Some(_) | None => arg,
    }
}

impl Overrides {
    /// FLG-2: lays the flags that were given over the file.
    pub fn apply(self, configuration: &mut Configuration) {
        let Self {
            metrics_bind_address,
            health_probe_bind_address,
            kube_api_qps,
            kube_api_burst,
            leader_elect,
            leader_elect_lease_duration,
            leader_elect_renew_deadline,
            leader_elect_retry_period,
            leader_elect_resource_lock,
            leader_elect_resource_name,
            feature_gates,
        } = self;
        let election = &mut configuration.leader_election;
        set(
            &mut configuration.metrics.bind_address,
            metrics_bind_address,
        );
        set(
            &mut configuration.health.health_probe_bind_address,
            health_probe_bind_address,
        );
        set(&mut configuration.client_connection.qps, kube_api_qps);
        set(&mut configuration.client_connection.burst, kube_api_burst);
        set(&mut election.leader_elect, leader_elect);
        set(&mut election.lease_duration, leader_elect_lease_duration);
        set(&mut election.renew_deadline, leader_elect_renew_deadline);
        set(&mut election.retry_period, leader_elect_retry_period);
        set(&mut election.resource_lock, leader_elect_resource_lock);
        set(&mut election.resource_name, leader_elect_resource_name);
        configuration
            .feature_gates
            .extend(feature_gates.unwrap_or_default().0);
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

fn log_level(text: &str) -> Result<LogLevel, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(LogLevel::Debug),
        "info" => Ok(LogLevel::Info),
        "error" | "panic" => Ok(LogLevel::Error),
        number => match number.parse::<u8>() {
            Ok(n) if n > 0 => Ok(LogLevel::Verbosity(n)),
            Ok(_) | Err(_) => Err(format!(
                "{text:?} is none of debug, info, error, panic, or a number from 1 to 255"
            )),
        },
    }
}

fn feature_gates(text: &str) -> Result<Gates, InvalidGates> {
    gates_from_text(text).map(Gates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Flags, clap::Error> {
        Flags::parse_go(
            std::iter::once("lws-manager")
                .chain(args.iter().copied())
                .map(OsString::from),
        )
    }

    fn over(file: &str, args: &[&str]) -> Configuration {
        let text = format!("apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n{file}");
        let mut configuration = crate::config::parse(&text).expect("a file").configuration;
        parse(args)
            .expect("flags")
            .overrides
            .apply(&mut configuration);
        configuration
    }

    #[test]
    fn ops_flg_1_go_syntax() {
        for args in [
            &["--leader-elect=false"][..],
            &["-leader-elect=false"],
            &["-leader-elect=F"],
        ] {
            assert_eq!(
                parse(args).expect("flags").overrides.leader_elect,
                Some(false)
            );
        }
        assert_eq!(
            parse(&["--leader-elect"])
                .expect("flags")
                .overrides
                .leader_elect,
            Some(true)
        );
        assert_eq!(
            parse(&["-config", "x.yaml"]).expect("flags").config,
            "x.yaml"
        );
        assert!(parse(&["--version"]).expect("flags").version);
        assert!(!parse(&[]).expect("flags").version);
        assert!(!parse(&["--zap-devel=false"]).expect("flags").log.zap_devel);
    }

    #[test]
    fn ops_flg_1_exit_codes() {
        assert_eq!(parse(&["--nope"]).expect_err("unknown").exit_code(), 2);
        assert_eq!(
            parse(&["--lws-concurrency=0"])
                .expect_err("zero")
                .exit_code(),
            2
        );
        assert_eq!(
            parse(&["--leader-elect=perhaps"])
                .expect_err("no bool")
                .exit_code(),
            2
        );
        assert_eq!(parse(&["--help"]).expect_err("help").exit_code(), 0);
        assert_eq!(parse(&["-h"]).expect_err("help").exit_code(), 0);
    }

    #[test]
    fn ops_flg_1_every_flag_is_known() {
        parse(&[
            "--config=c",
            "--metrics-bind-address=:1",
            "--health-probe-bind-address=:2",
            "--kube-api-qps=-1",
            "--kube-api-burst=3",
            "--leader-elect",
            "--leader-elect-lease-duration=15s",
            "--leader-elect-renew-deadline=10s",
            "--leader-elect-retry-period=2s",
            "--leader-elect-resource-lock=leases",
            "--leader-elect-resource-name=n",
            "--kubeconfig=k",
            "--zap-devel",
            "--zap-encoder=json",
            "--zap-log-level=2",
            "--zap-stacktrace-level=error",
            "--zap-time-encoding=rfc3339nano",
            "--feature-gates=A=true",
            "--lws-concurrency=1",
            "--pod-concurrency=1",
            "--ds-concurrency=1",
            "--log-format=text",
        ])
        .expect("all known");
    }

    #[test]
    fn ops_flg_2_given_flags_win_over_the_file() {
        let file = "leaderElection: {leaderElect: true, resourceName: test}\nhealth: {healthProbeBindAddress: \":8081\"}\n";
        let both = over(
            file,
            &["--leader-elect=false", "--health-probe-bind-address=:9443"],
        );
        assert!(!both.leader_election.leader_elect);
        assert_eq!(both.health.health_probe_bind_address, ":9443");
        assert_eq!(both.leader_election.resource_name, "test");

        let metrics = "metrics: {bindAddress: \":7777\"}";
        assert_eq!(over(metrics, &[]).metrics.bind_address, ":7777");
        assert_eq!(
            over(metrics, &["--metrics-bind-address=:9999"])
                .metrics
                .bind_address,
            ":9999"
        );

        let gates = over(
            "featureGates: {AllAlpha: false, AllBeta: true}",
            &["--feature-gates=AllAlpha=true"],
        )
        .feature_gates;
        assert_eq!(
            gates,
            [("AllAlpha".to_owned(), true), ("AllBeta".to_owned(), true)].into()
        );
    }

    #[test]
    fn ops_log_2_levels() {
        assert_eq!(log_level("2"), Ok(LogLevel::Verbosity(2)));
        assert_eq!(log_level("panic"), Ok(LogLevel::Error));
        assert!(log_level("0").is_err());
        assert!(log_level("loud").is_err());
    }
}
