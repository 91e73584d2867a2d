use jiff::SignedDuration;
use kube::api::DynamicObject;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::configuration::{other_server, with_bundle};
use super::parsed::{certificate, der, expiry, is_signed_by, lasts};
use super::*;

const NAME: &str = "lws-webhook-service.lws-system.svc";

fn now() -> jiff::Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

fn after_days(days: i64) -> jiff::Timestamp {
    now() + SignedDuration::from_hours(24 * days)
}

fn made(due: Due, from: &Material, at: jiff::Timestamp) -> Material {
    issue(due, from, NAME, at, &Lifetimes::default()).expect("certificates")
}

fn fresh() -> Material {
    made(Due::Both, &Material::default(), now())
}

/// As upstream's rotation writes it; ends in 2125.
fn upstream() -> Material {
    Material {
        authority: include_bytes!("tests/upstream/ca.crt").to_vec(),
        authority_key: include_bytes!("tests/upstream/ca.key").to_vec(),
        server: include_bytes!("tests/upstream/tls.crt").to_vec(),
        server_key: include_bytes!("tests/upstream/tls.key").to_vec(),
    }
}

fn judged(material: &Material, name: &str, at: jiff::Timestamp) -> Due {
    due(material, name, at, &Lifetimes::default())
}

fn damaged(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    text.replacen("\nM", "\nN", 1).into_bytes()
}

#[test]
fn ops_crt_3_secret_state_and_action() {
    let good = fresh();
    let near_end = |pem: &[u8], days: i64| {
        expiry(pem).expect("an end") - SignedDuration::from_hours(24 * days)
    };
    // The server certificate of an authority that has ten years is renewed each year, so make one that is younger.
    let old_authority = near_end(&good.authority, 89);
    let late = made(Due::Server, &good, old_authority);
    let rsa = upstream();
    let other = fresh();
    let broken_key = Material {
        server_key: damaged(&good.server_key),
        ..good.clone()
    };
    let rows: [(&str, Material, &str, jiff::Timestamp, Due); 15] = [
        ("empty", Material::default(), NAME, now(), Due::Both),
        (
            "authority 89 days",
            late.clone(),
            NAME,
            old_authority,
            Due::Both,
        ),
        (
            "authority 91 days",
            made(Due::Server, &good, near_end(&good.authority, 91)),
            NAME,
            near_end(&good.authority, 91),
            Due::Nothing,
        ),
        (
            "server 89 days",
            good.clone(),
            NAME,
            near_end(&good.server, 89),
            Due::Server,
        ),
        (
            "server 91 days",
            good.clone(),
            NAME,
            near_end(&good.server, 91),
            Due::Nothing,
        ),
        ("upstream", rsa.clone(), NAME, now(), Due::Nothing),
        (
            "upstream, server 89 days",
            rsa.clone(),
            NAME,
            near_end(&rsa.server, 89),
            Due::Both,
        ),
        (
            "upstream, renamed",
            rsa,
            "x.lws-system.svc",
            now(),
            Due::Both,
        ),
        (
            "renamed",
            good.clone(),
            "x.lws-system.svc",
            now(),
            Due::Server,
        ),
        ("tls.key damaged", broken_key, NAME, now(), Due::Server),
        (
            "tls.key of another",
            Material {
                server_key: other.server_key.clone(),
                ..good.clone()
            },
            NAME,
            now(),
            Due::Server,
        ),
        (
            "server of another authority",
            Material {
                server: other.server.clone(),
                server_key: other.server_key,
                ..good.clone()
            },
            NAME,
            now(),
            Due::Server,
        ),
        (
            "ca.key damaged",
            Material {
                authority_key: damaged(&good.authority_key),
                ..good.clone()
            },
            NAME,
            now(),
            Due::Both,
        ),
        (
            "ca.crt is no authority",
            Material {
                authority: good.server.clone(),
                authority_key: good.server_key.clone(),
                ..good.clone()
            },
            NAME,
            now(),
            Due::Both,
        ),
        ("all fine", good, NAME, now(), Due::Nothing),
    ];
    for (state, material, name, at, action) in rows {
        assert_eq!(judged(&material, name, at), action, "{state}");
    }
}

#[test]
fn ops_crt_3_what_was_made_is_not_due() {
    let server_due = Material {
        server: Vec::new(),
        ..fresh()
    };
    let renewed = made(Due::Server, &server_due, after_days(200));
    assert_eq!(judged(&renewed, NAME, after_days(200)), Due::Nothing);
    assert_eq!(renewed.authority, server_due.authority);
    assert_eq!(renewed.authority_key, server_due.authority_key);
    assert_eq!(made(Due::Nothing, &renewed, now()), renewed);
}

#[test]
fn ops_crt_2_what_is_made() {
    let material = fresh();
    for key in [&material.authority_key, &material.server_key] {
        let text = std::str::from_utf8(key).expect("a text");
        assert!(text.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
        let key = KeyPair::from_pem(text).expect("a key");
        assert!(key.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256));
    }
    let (authority, server) = (der(&material.authority), der(&material.server));
    let (authority, server) = (authority.expect("DER"), server.expect("DER"));
    let authority = certificate(&authority).expect("an authority");
    let server = certificate(&server).expect("a certificate");
    assert_eq!(server.subject().to_string(), format!("CN={NAME}"));
    assert!(
        ["CN=lws-ca, O=lws", "O=lws, CN=lws-ca"]
            .contains(&authority.subject().to_string().as_str())
    );
    assert!(is_signed_by(&server, &authority) && is_signed_by(&authority, &authority));
    assert!(authority.is_ca() && !server.is_ca());
    for (made, name, days, signs) in [
        (&authority, "lws-ca", 3650, true),
        (&server, NAME, 365, false),
    ] {
        let begin = made.validity().not_before.timestamp();
        let end = made.validity().not_after.timestamp();
        assert_eq!(begin, now().as_second() - 3600);
        assert_eq!(end, after_days(days).as_second());
        assert!(lasts(
            made,
            now(),
            DAY * u32::try_from(days).expect("small") - Duration::from_secs(1)
        ));
        let names = made.subject_alternative_name().expect("one").expect("some");
        assert_eq!(names.value.general_names.len(), 1);
        assert!(format!("{:?}", names.value.general_names).contains(name));
        let usage = made.key_usage().expect("one").expect("some").value;
        assert!(usage.digital_signature());
        assert_eq!(usage.key_cert_sign(), signs);
        let extended = made.extended_key_usage().expect("one");
        assert_eq!(
            extended.is_some_and(|usage| usage.value.server_auth),
            !signs
        );
        assert_eq!(made.raw_serial().len(), 8);
    }
    assert_ne!(authority.raw_serial(), server.raw_serial());
    assert_ne!(
        material.authority,
        fresh().authority,
        "serial numbers and keys are random"
    );
}

#[test]
fn ops_crt_1_four_keys_beside_whatever_else_the_secret_has() {
    let secret = json!({"metadata": {"name": "s"}, "data": {"other": "eA==", "ca.crt": "eA=="}});
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    assert_eq!(Material::of(&secret).authority, b"x");
    let material = fresh();
    let filled = material.put_into(secret);
    assert_eq!(Material::of(&filled), material);
    let keys: Vec<_> = filled.data.expect("data").into_keys().collect();
    assert_eq!(keys, ["ca.crt", "ca.key", "other", "tls.crt", "tls.key"]);
    assert_eq!(Material::of(&Secret::default()), Material::default());
}

#[test]
fn ops_crt_5_bundle_overlaps_for_an_hour() {
    let lifetimes = Lifetimes::default();
    let (old, new) = (fresh().authority, fresh().authority);
    let minutes = |minutes| now() + SignedDuration::from_mins(minutes);
    let of = |announced: &[u8], served: Option<&[u8]>, at| {
        bundle(announced, &new, served, at, &lifetimes)
    };
    assert_eq!(of(b"", None, now()), new, "the first authority");
    assert_eq!(of(b"no certificate", None, now()), new);
    assert_eq!(
        of(&upstream().server, None, now()),
        new,
        "others are not kept"
    );

    let both = of(&old, None, minutes(1));
    assert!(both.starts_with(&new) && carries(&both, &old) && carries(&both, &new));
    assert_eq!(of(&both, None, minutes(59)), both, "nothing to write");
    assert_eq!(of(&both, Some(&new), minutes(59)), both);
    assert_eq!(
        of(&both, Some(&new), minutes(61)),
        new,
        "the old one is forgotten"
    );
    assert_eq!(
        of(&new, Some(&old), minutes(61)),
        both,
        "as long as it is served it stays"
    );
    assert_eq!(
        of(&upstream().authority, None, now()).len(),
        new.len() + upstream().authority.len()
    );
    assert!(!carries(&new, &old) && !carries(b"", &old) && !carries(&new, b""));
}

#[test]
fn ops_whk_2_webhooks_of_another_installation_are_told_and_left_alone() {
    let entry = |namespace: &str| json!({"clientConfig": {"service": {"name": "lws-webhook-service", "namespace": namespace}}});
    let of = |entries: Value| -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "c"}, "webhooks": entries}))
            .expect("a configuration")
    };
    let rows = [
        (
            json!([entry("lws-system"), entry("lws-system")]),
            None,
            true,
        ),
        (
            json!([{"clientConfig": {"url": "https://127.0.0.1/x"}}]),
            None,
            true,
        ),
        (
            json!([entry("elsewhere")]),
            Some("lws-webhook-service.elsewhere.svc"),
            false,
        ),
        (json!([]), None, false),
    ];
    for (entries, other, is_announced) in rows {
        let configuration = of(entries);
        assert_eq!(other_server(&configuration, NAME).as_deref(), other);
        let changed = with_bundle(&configuration, NAME, |_| b"ours".to_vec());
        assert_eq!(changed.is_some(), is_announced, "{configuration:?}");
    }
}
