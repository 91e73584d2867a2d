//! Serves metrics over HTTPS (MET-1, MET-2) to whom [`Access`] lets.

use std::convert::Infallible;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use flate2::Compression;
use flate2::write::GzEncoder;
use lws_webhook::{CertFiles, CertStore, CertificateError, Server, ServerError, Tls};
use rcgen::{CertificateParams, KeyPair};

use super::{Access, Metrics};
use crate::listen;

/// MET-2.
const FOLDER: &str = "/tmp/k8s-metrics-server/serving-certs";
const PATH: &str = "/metrics";

/// Why metrics are not served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// `metrics.bindAddress`.
    #[error("could not serve metrics on {address}")]
    Listen {
        /// Where.
        address: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// TLS.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The files of the certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No certificate can be made.
    #[error("could not make a certificate for the metrics server")]
    Make(#[from] rcgen::Error),
    /// Two metrics of one name, which a test would show.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// The metrics server, listening.
pub struct MetricsServer {
    server: Server,
    /// Where the certificate is read anew from.
    files: Option<CertFiles>,
}

struct Answers {
    metrics: Arc<Metrics>,
    access: Access,
}

impl MetricsServer {
    /// Listens, with the certificate of the folder of MET-2 or one of its own.
    ///
    /// # Errors
    /// It cannot listen, or the files hold no usable certificate.
    pub async fn bind(
        address: &str,
        tls: &Tls,
        metrics: Arc<Metrics>,
        access: Access,
    ) -> Result<Self, MetricsError> {
        Self::bind_in(Path::new(FOLDER), address, tls, metrics, access).await
    }

    async fn bind_in(
        folder: &Path,
        address: &str,
        tls: &Tls,
        metrics: Arc<Metrics>,
        access: Access,
    ) -> Result<Self, MetricsError> {
        let certificates = Arc::new(CertStore::new(&metrics.certificates));
        let files = if has_pair(folder) {
            let mut files = CertFiles::new(PathBuf::from(folder), certificates.clone());
            files.reload().await?;
            Some(files)
        } else {
            set_own(&certificates)?;
            None
        };
        let listener = listen::bind(address)
            .await
            .map_err(|source| MetricsError::Listen {
                address: address.to_owned(),
                source,
            })?;
        let answers = Arc::new(Answers { metrics, access });
        let router = Router::new().route(PATH, any(answer)).with_state(answers);
        Ok(Self {
            server: Server::new(listener, certificates, tls, router)?,
            files,
        })
    }

    /// Serves until `shutdown` is over.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let follow = async {
            match self.files {
                Some(files) => files.follow().await,
                None => std::future::pending::<Infallible>().await,
            }
        };
        tokio::select! {
            () = self.server.serve(shutdown) => {}
            never = follow => match never {},
        }
    }
}

fn has_pair(folder: &Path) -> bool {
    ["tls.crt", "tls.key"]
        .iter()
        .all(|name| folder.join(name).is_file())
}

/// ECDSA P-256, for this machine, kept in memory only.
fn set_own(certificates: &CertStore) -> Result<(), MetricsError> {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    certificates.set_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())?;
    Ok(())
}

async fn answer(
    State(answers): State<Arc<Answers>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let token = bearer(&headers);
    if let Err(refusal) = answers.access.check(token, method.as_str(), PATH).await {
        let (code, text) = refusal.answer();
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return (code, format!("{text}\n")).into_response();
    }
    match answers.metrics.text() {
        Ok(text) => written(text, accepts_gzip(&headers)),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written down");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether gzip is among the encodings that a scraper takes.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| {
            let (name, quality) = part.split_once(';').unwrap_or((part, ""));
            name.trim() == "gzip" && !["q=0", "q=0.0"].contains(&quality.trim())
        })
}

fn written(text: String, gzip: bool) -> Response {
    let kind = (
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    match gzip.then(|| compressed(text.as_bytes())) {
        Some(Ok(bytes)) => {
            let encoding = (header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            ([kind, encoding], bytes).into_response()
        }
        // Written into memory, this does not fail; the plain text is right in any case.
        Some(Err(_)) | None => ([kind], text).into_response(),
    }
}

fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
