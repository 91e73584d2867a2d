//! Certificates and keys as far as decisions need to look into them.

use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// The first certificate of a PEM text, if that is one.
pub(super) fn der(pem: &[u8]) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem).ok()
}

/// The structure of a certificate.
pub(super) fn certificate<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

/// End of the validity of the first certificate of a PEM text.
pub(super) fn expiry(pem: &[u8]) -> Option<Timestamp> {
    end(&der(pem)?)
}

/// End of the validity of a certificate.
pub fn end(der: &CertificateDer<'_>) -> Option<Timestamp> {
    Timestamp::from_second(certificate(der)?.validity().not_after.timestamp()).ok()
}

/// Begin of the validity of the first certificate of a PEM text.
pub(super) fn begin(pem: &[u8]) -> Option<Timestamp> {
    let der = der(pem)?;
    Timestamp::from_second(certificate(&der)?.validity().not_before.timestamp()).ok()
}

/// Whether a certificate is valid now and for `rest` to come.
pub(super) fn lasts(certificate: &X509Certificate<'_>, now: Timestamp, rest: Duration) -> bool {
    let rest = i64::try_from(rest.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    validity.not_before.timestamp() <= now.as_second()
        && validity.not_after.timestamp() > now.as_second().saturating_add(rest)
}

/// Whether a private key is the one of a certificate. RSA keys of older installations count too (CRT-2).
pub(super) fn is_key_of(key: &[u8], certificate: &X509Certificate<'_>) -> bool {
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else {
        return false;
    };
    let Ok(key) = any_supported_type(&key) else {
        return false;
    };
    key.public_key()
        .is_some_and(|public| public.as_ref() == certificate.public_key().raw)
}

/// Whether a certificate may be used by a server of this DNS name.
pub(super) fn is_for(certificate: &X509Certificate<'_>, name: &str) -> bool {
    let names = certificate.subject_alternative_name().ok().flatten();
    let is_named = names.is_some_and(|names| {
        names
            .value
            .general_names
            .contains(&GeneralName::DNSName(name))
    });
    let usage = certificate.extended_key_usage().ok().flatten();
    is_named && usage.is_none_or(|usage| usage.value.server_auth || usage.value.any)
}

/// Whether an authority signed a certificate.
pub(super) fn is_signed_by(
    certificate: &X509Certificate<'_>,
    authority: &X509Certificate<'_>,
) -> bool {
    certificate.issuer().as_raw() == authority.subject().as_raw()
        && certificate
            .verify_signature(Some(authority.public_key()))
            .is_ok()
}
