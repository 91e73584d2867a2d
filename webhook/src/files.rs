//! The certificate from mounted files (CRT-7, WHK-5).

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use crate::certificates::{CertStore, CertificateError};

/// How often the files are looked at once they were there.
const POLL: Duration = Duration::from_secs(10);
/// Attempts before giving up on the files at start.
const ATTEMPTS: u32 = 10;

/// The files `tls.crt` and `tls.key` of a folder, and the store that they fill.
#[derive(Debug)]
pub struct CertFiles {
    folder: PathBuf,
    store: Arc<CertStore>,
    served: Option<Pair>,
}

#[derive(Debug, PartialEq, Eq)]
struct Pair {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl CertFiles {
    /// Nothing is read yet.
    pub fn new(folder: PathBuf, store: Arc<CertStore>) -> Self {
        Self {
            folder,
            store,
            served: None,
        }
    }

    /// CRT-7: waits until the files are there and usable; a new pod may start minutes before its Secret is filled.
    ///
    /// # Errors
    /// They were not in time.
    pub async fn wait(&mut self) -> Result<(), CertificateError> {
        let mut attempt = 0;
        loop {
            match self.reload().await {
                Ok(_) => return Ok(()),
                Err(error) if attempt + 1 >= ATTEMPTS => {
                    return Err(CertificateError::NotMounted(Box::new(error)));
                }
                Err(error) => {
                    warn!(%error, folder = %self.folder.display(), "certificate files are not there yet")
                }
            }
            tokio::time::sleep(self.delay(attempt)).await;
            attempt += 1;
        }
    }

    /// WHK-5: serves what the files hold, for ever. An unusable pair is reported and looked at again.
    pub async fn follow(mut self) -> Infallible {
        loop {
            tokio::time::sleep(POLL).await;
            match self.reload().await {
                Ok(true) => info!("serving a new certificate"),
                Ok(false) => {}
                Err(error) => warn!(%error, "keeping the current certificate"),
            }
        }
    }

    /// Reads the files; true if they hold another pair than the one served, which is served from now on.
    ///
    /// # Errors
    /// A file cannot be read, or the pair cannot be used. The current certificate stays.
    pub async fn reload(&mut self) -> Result<bool, CertificateError> {
        let pair = Pair {
            chain: self.read("tls.crt").await?,
            key: self.read("tls.key").await?,
        };
        if self.served.as_ref() == Some(&pair) {
            return Ok(false);
        }
        self.store.set_pem(&pair.chain, &pair.key)?;
        self.served = Some(pair);
        Ok(true)
    }

    async fn read(&self, name: &str) -> Result<Vec<u8>, CertificateError> {
        let path = self.folder.join(name);
        tokio::fs::read(&path)
            .await
            .map_err(|source| CertificateError::Read { path, source })
    }

    /// 1 s, doubled with every attempt, and up to as much again so that replicas do not move in step.
    fn delay(&self, attempt: u32) -> Duration {
        let base = Duration::from_secs(1_u64 << attempt.min(ATTEMPTS));
        let mut byte = [0_u8];
        let drawn = self.store.provider().secure_random.fill(&mut byte);
        let [jitter] = drawn.map_or([0], |()| byte);
        base.mul_f64(1.0 + f64::from(jitter) / 256.0)
    }
}
