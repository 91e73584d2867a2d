//! Certificates that the managers make, serve and announce by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use lws::certificates::{Lifetimes, Material, Settings, carries};
use lws::metrics::Metrics;
use lws::probes::Health;
use lws::webhooks::{Source, Webhooks};
use lws_core::admission::Environment;
use lws_e2e::{Bench, Manifest, on_new_installation, served_certificate, until};
use lws_webhook::Tls;
use serde_json::{Value, json};

const NAMESPACE: &str = "lws-system";
const SECRET: &str = "lws-webhook-server-cert";
const SERVER: &str = "lws-webhook-service.lws-system.svc";
const STANDBY: &str = "standby";

async fn stored(bench: &Bench) -> Result<Material> {
    let secrets: Api<Secret> = Api::namespaced(bench.client(), NAMESPACE);
    Ok(Material::of(&secrets.get(SECRET).await?))
}

async fn store(bench: &Bench, data: Value) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(bench.client(), NAMESPACE);
    let patch = Patch::Merge(json!({"data": data}));
    secrets
        .patch(SECRET, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// What the entries of both configurations announce.
async fn bundles(bench: &Bench) -> Result<Vec<Vec<u8>>> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(bench.client());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(bench.client());
    let mutating = mutating.get("lws-mutating-webhook-configuration").await?;
    let validating = validating
        .get("lws-validating-webhook-configuration")
        .await?;
    let mutating = mutating.webhooks.into_iter().flatten();
    let validating = validating.webhooks.into_iter().flatten();
    let clients = mutating
        .map(|hook| hook.client_config)
        .chain(validating.map(|hook| hook.client_config));
    Ok(clients
        .map(|client| client.ca_bundle.unwrap_or_default().0)
        .collect())
}

/// Whether a server shows the certificate of the Secret, and all configurations announce its authority.
async fn is_current(bench: &Bench, port: u16) -> Result<bool> {
    let material = stored(bench).await?;
    let Ok(shown) = served_certificate(port, SERVER, &material.authority).await else {
        return Ok(false);
    };
    let announced = bundles(bench).await?;
    Ok(carries(&material.server, &pem_of(&shown)?)
        && announced
            .iter()
            .all(|bundle| carries(bundle, &material.authority)))
}

fn pem_of(der: &[u8]) -> Result<Vec<u8>> {
    let encoded = serde_json::to_value(ByteString(der.to_vec()))?;
    let encoded = encoded.as_str().context("a text")?;
    Ok(format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n").into_bytes())
}

#[tokio::test]
async fn ops_8_9_10_19_crt_4_to_6_crt_8_secret_is_filled_served_and_announced() -> Result<()> {
    on_new_installation("certificates", async |bench| {
        let plant = bench.plant();
        assert_eq!(stored(bench).await?, Material::default());
        let other_port = free_port()?;
        plant.start_manager()?;
        bench.try_create(Manifest::new("first", 1, 2)).await?;
        let standby = plant.start_manager_with(|options| {
            options.name = STANDBY.to_owned();
            options.webhook_port = Some(other_port);
        })?;
        let ports = [plant.installation().webhook_port(), other_port];
        let all_current = async |what: &str| {
            for port in ports {
                until(what, async || is_current(bench, port).await).await?;
            }
            bench
                .try_create(Manifest::new("next", 1, 2))
                .await
                .map(drop)
        };
        let first = stored(bench).await?;
        assert_eq!(bundles(bench).await?, vec![first.authority.clone(); 4]);
        all_current("both serve").await?;

        for (what, data, authority_stays) in [
            ("tls.key damaged", json!({"tls.key": "eA=="}), true),
            ("server certificate gone", json!({"tls.crt": null}), true),
            ("authority damaged", json!({"ca.crt": "eA=="}), false),
            (
                "key of the authority damaged",
                json!({"ca.key": "eA=="}),
                false,
            ),
        ] {
            let before = stored(bench).await?;
            store(bench, data).await?;
            until(what, async || {
                let after = stored(bench).await?;
                let is_new = after.server != before.server && !after.server.is_empty();
                Ok(is_new && (after.authority == before.authority) == authority_stays)
            })
            .await?;
            all_current(what).await?;
        }
        assert!(standby.is_running() && standby.is_ready());

        let before = stored(bench).await?;
        reset_bundles(bench).await?;
        until("drift is repaired", async || {
            let announced = bundles(bench).await?;
            Ok(announced
                .iter()
                .all(|bundle| carries(bundle, &before.authority)))
        })
        .await?;
        all_current("drift is repaired").await?;
        assert_eq!(stored(bench).await?, before);
        plant.terminate_manager()
    })
    .await
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}

async fn reset_bundles(bench: &Bench) -> Result<()> {
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(bench.client());
    mutating
        .patch(
            "lws-mutating-webhook-configuration",
            &PatchParams::default(),
            &patch,
        )
        .await?;
    Ok(())
}

#[tokio::test]
async fn ops_13_certificates_of_upstream_are_kept_and_missing_secret_ends_the_start() -> Result<()>
{
    on_new_installation("adoption", async |bench| {
        let plant = bench.plant();
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../src/certificates/tests/upstream"
        );
        let read = |name: &str| std::fs::read(format!("{folder}/{name}"));
        let upstream = Material {
            authority: read("ca.crt")?,
            authority_key: read("ca.key")?,
            server: read("tls.crt")?,
            server_key: read("tls.key")?,
        };
        let data = upstream.put_into(Secret::default()).data;
        store(bench, serde_json::to_value(data)?).await?;
        plant.start_manager()?;
        assert!(is_current(bench, plant.installation().webhook_port()).await?);
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench.until_available("demo").await?;
        assert_eq!(stored(bench).await?, upstream);
        plant.terminate_manager()?;

        let secrets: Api<Secret> = Api::namespaced(bench.client(), NAMESPACE);
        secrets.delete(SECRET, &Default::default()).await?;
        let manager = plant.spawn_manager()?;
        until("the manager ends", async || Ok(!manager.is_running())).await?;
        let log = plant.manager_log();
        ensure!(
            log.contains("acquiring secret to update certificates"),
            "{log}"
        );
        Ok(())
    })
    .await
}

fn metrics() -> Result<Arc<Metrics>> {
    Ok(Arc::new(Metrics::new()?))
}

/// A server in this process, which renews everything every few seconds.
fn fast(port: u16) -> Webhooks {
    let seconds = Duration::from_secs;
    let lifetimes = Lifetimes {
        authority: seconds(55),
        server: seconds(45),
        backdated: seconds(5),
        renew_before: seconds(35),
        check_every: seconds(1),
        overlap: seconds(15),
        settle: seconds(2),
    };
    Webhooks {
        listen: ("127.0.0.1".to_owned(), port),
        tls: Tls::default(),
        source: Source::Secret(Settings {
            namespace: NAMESPACE.to_owned(),
            secret: SECRET.to_owned(),
            server: SERVER.to_owned(),
            lifetimes,
        }),
        environment: tokio::sync::watch::channel(Environment::default()).1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_crt_5_crt_6_whk_5_rotation_under_load_fails_no_admission() -> Result<()> {
    on_new_installation("rotation", async |bench| {
        let (health, other) = (Health::default(), Health::default());
        let client = bench.client();
        let other_port = free_port()?;
        let serving = fast(bench.plant().installation().webhook_port());
        // A second replica, which no request reaches, takes part in renewing.
        let serve = async {
            tokio::try_join!(
                serving.serve(&client, &health, metrics()?, std::future::pending()),
                fast(other_port).serve(&client, &other, metrics()?, std::future::pending()),
            )?;
            anyhow::Ok(())
        };
        tokio::select! {
            served = serve => served,
            rotated = under_load(bench) => rotated,
        }
    })
    .await
}

async fn under_load(bench: &Bench) -> Result<()> {
    until("admission works", async || {
        Ok(bench.try_create(Manifest::new("load", 1, 2)).await.is_ok())
    })
    .await?;
    let (done, admitted) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let load = async {
        while !done.load(Ordering::Relaxed) {
            bench.try_create(Manifest::new("load", 1, 2)).await?;
            admitted.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    let rotations = async {
        let (mut authorities, mut servers) = (Vec::new(), Vec::new());
        while authorities.len() < 3 || servers.len() < 4 {
            let Material {
                authority, server, ..
            } = stored(bench).await?;
            if authorities.last() != Some(&authority) {
                authorities.push(authority);
            }
            if servers.last() != Some(&server) {
                servers.push(server);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        until("the last one is served", async || {
            is_current(bench, bench.plant().installation().webhook_port()).await
        })
        .await?;
        done.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    tokio::try_join!(load, rotations)?;
    assert!(admitted.load(Ordering::Relaxed) > 100);
    Ok(())
}
