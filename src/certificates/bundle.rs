//! CRT-5: the authorities that the webhook configurations tell the API server to trust.

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::Lifetimes;
use super::issue::AUTHORITY;
use super::parsed::{begin, certificate, der, lasts};

/// Whether a bundle has this authority in it.
pub fn carries(bundle: &[u8], authority: &[u8]) -> bool {
    let Some(authority) = der(authority) else {
        return false;
    };
    authorities(bundle).any(|found| found == authority)
}

/// What is to be announced in place of `announced`: the authority of the Secret, and beside it
/// - the authority of the certificate that this replica still serves, if that is another (CRT-6), and
/// - while the authority is new, the ones that were announced before it, since other replicas may still serve certificates of theirs.
pub fn bundle(
    announced: &[u8],
    authority: &[u8],
    served: Option<&[u8]>,
    now: Timestamp,
    lifetimes: &Lifetimes,
) -> Vec<u8> {
    let is_new = overlap_end(authority, lifetimes).is_some_and(|end| now < end);
    let announced = if is_new { announced } else { &[] };
    let current = der(authority);
    let mut others: Vec<CertificateDer<'_>> = Vec::new();
    for earlier in authorities(served.unwrap_or_default()).chain(authorities(announced)) {
        if Some(&earlier) != current.as_ref()
            && !others.contains(&earlier)
            && is_ours(&earlier, now)
        {
            others.push(earlier);
        }
    }
    let mut bundle = authority.to_vec();
    for other in others {
        if !bundle.ends_with(b"\n") {
            bundle.push(b'\n');
        }
        bundle.extend_from_slice(encoded(&other).as_bytes());
    }
    bundle
}

/// When the authorities before this one are forgotten. It was made when its validity began, or a little later.
pub(super) fn overlap_end(authority: &[u8], lifetimes: &Lifetimes) -> Option<Timestamp> {
    let made = begin(authority)? + SignedDuration::try_from(lifetimes.backdated).ok()?;
    Some(made + SignedDuration::try_from(lifetimes.overlap).ok()?)
}

fn authorities(bundle: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle).map_while(Result::ok)
}

/// What others put into a bundle is not kept.
fn is_ours(der: &CertificateDer<'_>, now: Timestamp) -> bool {
    certificate(der).is_some_and(|authority| {
        let mut names = authority.subject().iter_common_name();
        let is_named = names.any(|name| name.as_str() == Ok(AUTHORITY));
        is_named && lasts(&authority, now, std::time::Duration::ZERO)
    })
}

fn encoded(der: &CertificateDer<'_>) -> String {
    let pem = pem::Pem::new("CERTIFICATE", der.to_vec());
    pem::encode_config(
        &pem,
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}
