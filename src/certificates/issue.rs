//! CRT-2: makes an authority and server certificates.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::crypto::ring;
use time::OffsetDateTime;

use super::{Due, Lifetimes, Material};

/// Common name and DNS name of the authority, the same as upstream's.
pub(super) const AUTHORITY: &str = "lws-ca";
const ORGANIZATION: &str = "lws";

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Keys, names or signatures.
    #[error("could not make a certificate")]
    Make(#[from] rcgen::Error),
    /// What the authority's key was read from is no text.
    #[error("the certificate of the authority is no text")]
    Text(#[from] std::str::Utf8Error),
    /// A date out of range.
    #[error("the clock of this machine is wrong")]
    Clock(#[from] time::error::ComponentRange),
    /// The operating system's randomness.
    #[error("no random numbers are available")]
    Random,
}

/// `material` with what is `due` made anew, for a server of this DNS name.
///
/// # Errors
/// When the operating system has no randomness, or the authority cannot be used.
pub fn issue(
    due: Due,
    material: &Material,
    name: &str,
    now: Timestamp,
    lifetimes: &Lifetimes,
) -> Result<Material, IssueError> {
    let mut material = material.clone();
    if due == Due::Nothing {
        return Ok(material);
    }
    let issuer = if due == Due::Both {
        let key = KeyPair::generate()?;
        let params = authority(now, lifetimes)?;
        material.authority = params.self_signed(&key)?.pem().into_bytes();
        material.authority_key = key.serialize_pem().into_bytes();
        Issuer::new(params, key)
    } else {
        let key = KeyPair::from_pem(std::str::from_utf8(&material.authority_key)?)?;
        Issuer::from_ca_cert_pem(std::str::from_utf8(&material.authority)?, key)?
    };
    let key = KeyPair::generate()?;
    let params = server(name, now, lifetimes)?;
    material.server = params.signed_by(&key, &issuer)?.pem().into_bytes();
    material.server_key = key.serialize_pem().into_bytes();
    Ok(material)
}

fn authority(now: Timestamp, lifetimes: &Lifetimes) -> Result<CertificateParams, IssueError> {
    let mut params = common(AUTHORITY, now, lifetimes.backdated, lifetimes.authority)?;
    params
        .distinguished_name
        .push(DnType::OrganizationName, ORGANIZATION);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    Ok(params)
}

fn server(
    name: &str,
    now: Timestamp,
    lifetimes: &Lifetimes,
) -> Result<CertificateParams, IssueError> {
    let mut params = common(name, now, lifetimes.backdated, lifetimes.server)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn common(
    name: &str,
    now: Timestamp,
    backdated: Duration,
    valid: Duration,
) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.serial_number = Some(serial()?);
    let now = OffsetDateTime::from_unix_timestamp(now.as_second())?;
    params.not_before = now - backdated;
    params.not_after = now + valid;
    Ok(params)
}

/// Random, 64 bit, positive and never zero.
fn serial() -> Result<SerialNumber, IssueError> {
    let mut bytes = [0; 8];
    let random = ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| IssueError::Random)?;
    let number = u64::from_be_bytes(bytes) & (u64::MAX >> 1) | (1 << 62);
    Ok(SerialNumber::from_slice(&number.to_be_bytes()))
}
