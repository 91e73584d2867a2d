//! TLS-1 … TLS-3: what the `tls` section of the configuration means for the servers. Pure, but for warnings in the log.

use lws_webhook::Tls;
use rustls::SupportedCipherSuite;

use crate::config;

/// Why `tls` cannot be used; everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("unable to parse TLS options from configuration: {0}")]
pub struct TlsError(String);

/// Suites that Go takes for safe, as far as they are ours to choose from.
const SAFE: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];
/// Suites of TLS 1.3, which are always there.
const NEWER: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];
/// Suites that Go knows and our library does not have.
const MISSING: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// What was asked for, and what must be said about it.
#[derive(Debug, Default)]
struct Choice {
    tls: Tls,
    warnings: Vec<String>,
}

/// The options of both servers.
///
/// # Errors
/// Unknown values, or ones that leave nothing to offer.
pub fn options(tls: &config::Tls) -> Result<Tls, TlsError> {
    let Choice { tls, warnings } = choose(tls).map_err(TlsError)?;
    for warning in warnings {
        tracing::warn!(target: "setup", "{warning}");
    }
    Ok(tls)
}

fn choose(tls: &config::Tls) -> Result<Choice, String> {
    let is_1_3_only = min_version(&tls.min_version);
    let suites = suites(&tls.cipher_suites);
    let (is_1_3_only, (suites, mut warnings)) = match (is_1_3_only, suites) {
        (Ok(version), Ok(suites)) => (version, suites),
        (version, suites) => {
            let errors = [version.err(), suites.err()];
            return Err(errors.into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
    };
    if tls.cipher_suites.is_empty() {
        let tls = if is_1_3_only {
            Tls::only_1_3()
        } else {
            Tls::default()
        };
        return Ok(Choice { tls, warnings });
    }
    if is_1_3_only {
        return Err(
            "cipher suites may not be specified when minVersion is 'VersionTLS13'".to_owned(),
        );
    }
    if suites.is_empty() {
        return Err(
            "no cipher suite of TLS 1.2 is left, set minVersion to VersionTLS13".to_owned(),
        );
    }
    if !suites.iter().any(|suite| name(*suite).contains("_ECDSA_")) {
        warnings.push("certificates that are made here have ECDSA keys: without an ECDHE_ECDSA cipher suite they can be used with TLS 1.3 only".to_owned());
    }
    Ok(Choice {
        tls: Tls::from_1_2(suites),
        warnings,
    })
}

/// TLS-1: whether nothing below TLS 1.3 is offered.
fn min_version(text: &str) -> Result<bool, String> {
    match text {
        "" | "VersionTLS12" => Ok(false),
        "VersionTLS13" => Ok(true),
        other => Err(format!(
            "invalid minVersion {other:?}: use VersionTLS12 or VersionTLS13"
        )),
    }
}

/// TLS-2, TLS-3: the suites of TLS 1.2 by their names in Go, and what must be said about others.
fn suites(names: &[String]) -> Result<(Vec<SupportedCipherSuite>, Vec<String>), String> {
    let (mut suites, mut warnings, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for given in names {
        let known = alias(given);
        if let Some(suite) = Tls::known_suites().find(|suite| name(*suite) == known) {
            suites.push(suite);
        } else if MISSING.contains(&known) {
            warnings.push(format!(
                "cipher suite {given} is not available and is left out"
            ));
        } else if !NEWER.contains(&known) {
            unknown.push(given.as_str());
        }
    }
    if unknown.is_empty() {
        return Ok((suites, warnings));
    }
    let safe = [NEWER.as_slice(), SAFE.as_slice()].concat();
    Err(format!(
        "invalid cipher suites: {}, use some of {}",
        unknown.join(", "),
        safe.join(", ")
    ))
}

fn alias(name: &str) -> &str {
    match name {
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        other => other,
    }
}

fn name(suite: SupportedCipherSuite) -> &'static str {
    suite.suite().as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(min_version: &str, suites: &[&str]) -> Result<Choice, String> {
        choose(&config::Tls {
            min_version: min_version.to_owned(),
            cipher_suites: suites.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    fn refused(min_version: &str, suites: &[&str]) -> String {
        chosen(min_version, suites).expect_err("refused")
    }

    #[test]
    fn ops_tls_1_versions() {
        for version in ["", "VersionTLS12", "VersionTLS13"] {
            assert!(chosen(version, &[]).expect(version).warnings.is_empty());
        }
        for version in ["VersionTLS10", "VersionTLS11", "InvalidVersion", "TLS99"] {
            let error = refused(version, &[]);
            assert!(error.contains("invalid minVersion"), "{error}");
            assert!(error.contains("VersionTLS12 or VersionTLS13"), "{error}");
            let tls = config::Tls {
                min_version: version.to_owned(),
                cipher_suites: Vec::new(),
            };
            let whole = options(&tls).expect_err("refused").to_string();
            let start = "unable to parse TLS options from configuration: ";
            assert!(whole.starts_with(start), "{whole}");
        }
    }

    #[test]
    fn ops_tls_2_suites_by_their_names_in_go() {
        for name in SAFE {
            assert_eq!(suites(&[name.to_owned()]).expect(name).0.len(), 1, "{name}");
        }
        for name in ["RSA", "ECDSA"] {
            let alias = format!("TLS_ECDHE_{name}_WITH_CHACHA20_POLY1305");
            assert_eq!(suites(&[alias]).expect(name).0.len(), 1, "{name}");
        }
        let error = refused("", &["TLS_INVALID_CIPHER", SAFE[0]]);
        assert!(
            error.starts_with("invalid cipher suites: TLS_INVALID_CIPHER"),
            "{error}"
        );
        assert!(SAFE.iter().all(|name| error.contains(name)), "{error}");
        assert_eq!(
            refused("VersionTLS13", &[SAFE[0]]),
            "cipher suites may not be specified when minVersion is 'VersionTLS13'"
        );
        let both = refused("TLS99", &["TLS_INVALID_CIPHER"]);
        assert!(both.contains("invalid minVersion") && both.contains("invalid cipher suites"));
    }

    #[test]
    fn ops_tls_3_what_our_library_lacks_is_warned_about() {
        for name in MISSING {
            let choice = chosen("", &[name, SAFE[0]]).expect(name);
            assert_eq!(choice.warnings.len(), 1, "{name}");
            assert!(choice.warnings[0].contains(name));
        }
        let error = refused("VersionTLS12", &["TLS_RSA_WITH_AES_128_CBC_SHA", NEWER[0]]);
        assert!(error.contains("VersionTLS13"), "{error}");
        let rsa = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert!(chosen("", &[rsa]).expect(rsa).warnings[0].contains("ECDSA"));
        assert!(chosen("", &[rsa, SAFE[0]]).expect(rsa).warnings.is_empty());
    }
}
