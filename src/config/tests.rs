use super::*;

const HEAD: &str = "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n";

fn read(body: &str) -> Result<Configuration, String> {
    parse(&format!("{HEAD}{body}"))
        .map(|loaded| loaded.configuration)
        .map_err(|error| error.to_string())
}

#[test]
fn ops_cfg_1_3_worked_examples() {
    let default = Configuration::default();
    assert_eq!(read("").expect("defaults"), default);

    let four = read(
        "health: {healthProbeBindAddress: \":38081\"}\nmetrics: {bindAddress: \":38080\"}\n\
         leaderElection: {leaderElect: true, resourceName: test-id}\nwebhook: {port: 9444}\n",
    )
    .expect("four changes");
    let mut wanted = default.clone();
    wanted.health.health_probe_bind_address = ":38081".into();
    wanted.metrics.bind_address = ":38080".into();
    wanted.leader_election.resource_name = "test-id".into();
    wanted.webhook.port = 9444;
    assert_eq!(four, wanted);

    let off = read("internalCertManagement: {enable: false}")
        .expect("off")
        .internal_cert_management;
    assert_eq!(
        off,
        InternalCertManagement {
            enable: false,
            webhook_service_name: None,
            webhook_secret_name: None
        }
    );

    let named = read(
        "internalCertManagement: {enable: true, webhookServiceName: a-b, webhookSecretName: c.d}",
    )
    .expect("names");
    assert_eq!(
        named
            .internal_cert_management
            .webhook_service_name
            .as_deref(),
        Some("a-b")
    );
    assert_eq!(
        named
            .internal_cert_management
            .webhook_secret_name
            .as_deref(),
        Some("c.d")
    );

    let election = read("leaderElection: {leaderElect: false}")
        .expect("no election")
        .leader_election;
    assert_eq!(
        election,
        LeaderElection {
            leader_elect: false,
            ..LeaderElection::default()
        }
    );

    let client = read("clientConnection: {qps: 50, burst: 100}")
        .expect("client")
        .client_connection;
    assert_eq!(
        client,
        ClientConnection {
            qps: 50.0,
            burst: 100
        }
    );

    let timing = read("leaderElection: {leaseDuration: 5m, renewDeadline: 5m, retryPeriod: 5m}")
        .expect("loads");
    assert_eq!(
        timing.leader_election.retry_period.0,
        Duration::from_secs(300)
    );
}

#[test]
fn ops_cfg_3_strict_decoding() {
    for (text, wanted) in [
        (
            format!("{HEAD}invalidField: 1"),
            "strict decoding error: unknown field \"invalidField\"",
        ),
        (
            format!("{HEAD}webhook: {{prot: 1}}"),
            "unknown field \"webhook.prot\"",
        ),
        (
            format!("{HEAD}groupKindConcurrency: {{}}"),
            "unknown field \"groupKindConcurrency\"",
        ),
        (format!("{HEAD}Webhook: {{}}"), "unknown field \"Webhook\""),
        (
            format!("{HEAD}webhook: {{port: 1}}\nwebhook: {{port: 2}}"),
            "webhook",
        ),
        (
            format!("{HEAD}webhook: {{port: 1}}\nwebhook: {{port: 2}}"),
            "already set",
        ),
        (
            "apiVersion: config.lws.x-k8s.io/v2\nkind: Configuration".into(),
            "no kind \"Configuration\" is registered for version",
        ),
        (
            "apiVersion: config.lws.x-k8s.io/v1\nkind: Other".into(),
            "no kind \"Other\" is registered for version",
        ),
        (
            "apiVersion: v1\nkind: Configuration".into(),
            "registered for version \"v1\"",
        ),
        (
            "apiVersion: config.lws.x-k8s.io/v1".into(),
            "Object 'Kind' is missing",
        ),
        ("kind: Configuration".into(), "apiVersion"),
        (String::new(), "Object 'Kind' is missing"),
        ("not: [valid".into(), "line"),
        (
            format!("{HEAD}webhook: {{port: \"abc\"}}"),
            "webhook.port: expected integer, got string",
        ),
        (
            format!("{HEAD}webhook: {{port: 1.5}}"),
            "webhook.port: expected integer, got number",
        ),
        (
            format!("{HEAD}webhook: [1]"),
            "webhook: expected object, got list",
        ),
        (
            format!("{HEAD}featureGates: {{A: 1}}"),
            "featureGates.A: expected bool, got integer",
        ),
        (
            format!("{HEAD}tls: {{cipherSuites: [1]}}"),
            "tls.cipherSuites[0]: expected string, got integer",
        ),
        (
            format!("{HEAD}leaderElection: {{retryPeriod: soon}}"),
            "invalid duration \"soon\"",
        ),
    ] {
        let error = parse(&text).expect_err(&text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn ops_cfg_3_files_that_cannot_be_read() {
    let missing = load("/nonexistent/lws.yaml")
        .expect_err("missing")
        .to_string();
    assert!(missing.contains("/nonexistent/lws.yaml"), "{missing}");
    let folder = load(&std::env::temp_dir().display().to_string())
        .expect_err("folder")
        .to_string();
    assert!(folder.contains("directory"), "{folder}");
}

#[test]
fn ops_cfg_2_alpha_version_has_the_same_fields() {
    let text =
        "apiVersion: config.lws.x-k8s.io/v1alpha1\nkind: Configuration\nwebhook: {port: 1234}";
    let loaded = parse(text).expect("alpha");
    assert!(loaded.is_deprecated_version);
    assert_eq!(
        loaded.configuration,
        read("webhook: {port: 1234}").expect("v1")
    );
}

#[test]
fn ops_cfg_1_1_empty_addresses_mean_the_default_and_null_means_absent() {
    let read = read(
        "metrics: {bindAddress: \"\"}\nhealth: {healthProbeBindAddress: \"\"}\nwebhook:\ntls: null",
    )
    .expect("defaults");
    assert_eq!(read, Configuration::default());
}

#[test]
fn ops_cfg_1_2_fg_4_validation() {
    let required = "schedulerProvider: Required value: must be set when gang scheduling is enabled";
    for (body, wanted) in [
        ("gangSchedulingManagement: {}", vec![required]),
        (
            "gangSchedulingManagement: {schedulerProvider: \"\"}",
            vec![required],
        ),
        (
            "gangSchedulingManagement: {schedulerProvider: other}",
            vec![
                "schedulerProvider: Unsupported value: \"other\": supported values: kubernetes, volcano",
            ],
        ),
        (
            "gangSchedulingManagement: {schedulerProvider: volcano}",
            vec![],
        ),
        (
            "gangSchedulingManagement: {schedulerProvider: kubernetes}",
            vec![],
        ),
        (
            "internalCertManagement: {webhookServiceName: 0-invalid}",
            vec!["internalCertManagement.webhookServiceName: Invalid value: \"0-invalid\""],
        ),
        (
            "internalCertManagement: {webhookSecretName: \":)\"}",
            vec!["internalCertManagement.webhookSecretName: Invalid value: \":)\""],
        ),
        (
            "internalCertManagement: {enable: false, webhookServiceName: 0-invalid, webhookSecretName: \":)\"}",
            vec![],
        ),
        (
            "webhook: {port: 0}",
            vec!["webhook.port: Invalid value: 0: must be between 1 and 65535"],
        ),
        (
            "webhook: {port: 65536}",
            vec!["webhook.port: Invalid value: 65536"],
        ),
        (
            "featureGates: {Nope: true}",
            vec![
                "featureGates[Nope]: Unsupported value: \"Nope\": supported values: AllAlpha, AllBeta, WorkloadAwareScheduling",
            ],
        ),
        (
            "featureGates: {AllAlpha: true, WorkloadAwareScheduling: false}",
            vec![],
        ),
        (
            "webhook: {port: 0}\nfeatureGates: {Nope: true}\ngangSchedulingManagement: {}",
            vec!["webhook.port", "featureGates[Nope]", required],
        ),
    ] {
        match read(body) {
            Ok(_) => assert!(wanted.is_empty(), "{body}: accepted"),
            Err(error) => {
                assert!(!wanted.is_empty(), "{body}: {error}");
                wanted
                    .iter()
                    .for_each(|part| assert!(error.contains(part), "{body}: {error}"));
            }
        }
    }
}

#[test]
fn ops_cfg_5_what_is_logged_loads_again() {
    let configuration =
        read("leaderElection: {leaseDuration: 5m}\nfeatureGates: {AllAlpha: true}").expect("loads");
    let yaml = configuration.to_yaml();
    assert!(yaml.contains("leaseDuration: 5m0s"), "{yaml}");
    assert_eq!(
        parse(&yaml).expect("loads again").configuration,
        configuration
    );
}

#[test]
fn ops_cfg_4_without_a_file_the_defaults() {
    let loaded = load("").expect("no file is no error");
    assert_eq!(loaded.configuration, Configuration::default());
    assert!(!loaded.is_deprecated_version);
}

#[test]
fn ops_cfg_7_there_are_no_such_settings() {
    for (body, path) in [
        ("groupKindConcurrency: {Pod: 1}", "groupKindConcurrency"),
        ("controller: {groupKindConcurrency: {}}", "controller"),
        ("namespaceSelector: {}", "namespaceSelector"),
        ("pprofBindAddress: \":1\"", "pprofBindAddress"),
        ("webhook: {timeoutSeconds: 5}", "webhook.timeoutSeconds"),
        ("logging: {level: 2}", "logging"),
    ] {
        let error = read(body).expect_err(body);
        let wanted = format!("unknown field \"{path}\"");
        assert!(error.contains(&wanted), "{body}: {error}");
    }
}

#[test]
fn ops_cfg_8_gang_scheduling_without_a_provider_is_no_way_to_switch_it_off() {
    let error = read("gangSchedulingManagement: {}").expect_err("refused");
    assert!(
        error.contains("schedulerProvider: Required value"),
        "{error}"
    );
}
