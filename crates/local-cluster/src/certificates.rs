//! Keys and certificates of one cluster (ECDSA P-256).

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::{Result, cache};

/// A certificate and its key, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pair {
    /// Writes both to `<folder>/<name>.crt` and `<folder>/<name>.key`.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<()> {
        cache::make_folder(folder)?;
        cache::write(&folder.join(format!("{name}.crt")), &self.certificate)?;
        cache::write_secret(&folder.join(format!("{name}.key")), &self.key)
    }
}

/// A certificate authority that lives as long as this value; only its certificate is kept.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
        ];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// The certificate of the authority, as PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server that is reached under `names` (DNS names or addresses).
    pub(crate) fn server(&self, name: &str, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject(name, None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client: the API server takes `user` and `group` from its subject.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        let key = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair {
            certificate,
            key: key.serialize_pem(),
        })
    }
}

/// Writes the key pair that signs service account tokens: `sa.key` and `sa.pub`.
pub(crate) fn write_service_account_keys(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    cache::make_folder(folder)?;
    cache::write_secret(&folder.join("sa.key"), &key.serialize_pem())?;
    cache::write(&folder.join("sa.pub"), &key.public_key_pem())
}

fn subject(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn pairs_are_pem_and_keys_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("test-ca").unwrap();
        let pair = authority
            .server("server", &["127.0.0.1", "localhost"])
            .unwrap();
        pair.write(folder.path(), "server").unwrap();
        assert!(
            authority
                .certificate()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
        assert!(pair.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        let mode = folder
            .path()
            .join("server.key")
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn service_account_keys_come_in_two_files() {
        let folder = tempfile::tempdir().unwrap();
        write_service_account_keys(folder.path()).unwrap();
        let public = cache::read(&folder.path().join("sa.pub")).unwrap();
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"), "{public}");
    }
}
