//! CRT-3: which certificates are to be made anew.

use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use super::parsed::{certificate, der, is_for, is_key_of, is_signed_by, lasts};
use super::{Lifetimes, Material};

/// What must be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// All is well.
    Nothing,
    /// A server certificate of the authority that is there.
    Server,
    /// A new authority and a server certificate of it.
    Both,
}

/// CRT-3 for a server of this DNS name.
pub fn due(material: &Material, name: &str, now: Timestamp, lifetimes: &Lifetimes) -> Due {
    if !authority_is_good(material, now, lifetimes) {
        Due::Both
    } else if server_is_good(material, name, now, lifetimes) {
        Due::Nothing
    } else if can_sign(material) {
        Due::Server
    } else {
        Due::Both
    }
}

fn authority_is_good(material: &Material, now: Timestamp, lifetimes: &Lifetimes) -> bool {
    let Some(der) = der(&material.authority) else {
        return false;
    };
    certificate(&der).is_some_and(|authority| {
        authority.is_ca()
            && lasts(&authority, now, lifetimes.renew_before)
            && is_key_of(&material.authority_key, &authority)
    })
}

fn server_is_good(material: &Material, name: &str, now: Timestamp, lifetimes: &Lifetimes) -> bool {
    let (Some(server), Some(authority)) = (der(&material.server), der(&material.authority)) else {
        return false;
    };
    let (Some(server), Some(authority)) = (certificate(&server), certificate(&authority)) else {
        return false;
    };
    is_signed_by(&server, &authority)
        && is_for(&server, name)
        && lasts(&server, now, lifetimes.renew_before)
        && is_key_of(&material.server_key, &server)
}

/// CRT-2: nothing is signed with a key that we would not have made.
fn can_sign(material: &Material) -> bool {
    let key = std::str::from_utf8(&material.authority_key).unwrap_or_default();
    KeyPair::from_pem(key).is_ok_and(|key| key.is_compatible(&PKCS_ECDSA_P256_SHA256))
}
