//! `/healthz` and `/readyz` (HLT-2 … HLT-4), in the form that Kubernetes' own servers answer in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::config;

/// HLT-4: the heartbeat must not be older.
const BEAT_LIMIT: Duration = Duration::from_secs(30);
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// What the probes report; the parts of the process that know set it.
#[derive(Debug)]
pub struct Health {
    started: Instant,
    /// Milliseconds after `started`.
    beat: AtomicU64,
    caches: AtomicBool,
    webhooks: AtomicBool,
    announced: AtomicBool,
    stopping: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            beat: AtomicU64::new(0),
            caches: AtomicBool::new(false),
            webhooks: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// Every informer has completed its first list.
    pub fn caches_are_synced(&self) {
        self.caches.store(true, Ordering::Relaxed);
    }

    /// The admission server serves, or is switched off.
    pub fn webhooks_are_served(&self, served: bool) {
        self.webhooks.store(served, Ordering::Relaxed);
    }

    /// The webhook configurations have the authority of the certificate that is served, or that is not our business.
    pub fn authority_is_announced(&self, announced: bool) {
        self.announced.store(announced, Ordering::Relaxed);
    }

    /// SHD-1: not ready any more.
    pub fn is_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Proves from time to time that tasks still run.
    pub async fn beat(&self) {
        let mut every = tokio::time::interval(BEAT_EVERY);
        loop {
            every.tick().await;
            self.beat
                .store(millis(self.started.elapsed()), Ordering::Relaxed);
        }
    }

    fn live(&self) -> Vec<Check> {
        let last = Duration::from_millis(self.beat.load(Ordering::Relaxed));
        let is_beating = self.started.elapsed().saturating_sub(last) < BEAT_LIMIT;
        vec![("healthz", true), ("eventloop", is_beating)]
    }

    fn ready(&self) -> Vec<Check> {
        vec![
            ("readyz", true),
            (
                "webhooks",
                self.webhooks.load(Ordering::Relaxed) && self.announced.load(Ordering::Relaxed),
            ),
            ("caches", self.caches.load(Ordering::Relaxed)),
            ("shutdown", !self.stopping.load(Ordering::Relaxed)),
        ]
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Name of a check, and whether it holds.
type Check = (&'static str, bool);

/// Answers probes on `listener` until the process ends.
///
/// # Errors
/// The operating system's.
pub async fn serve(
    listener: TcpListener,
    health: Arc<Health>,
    names: &config::Health,
) -> std::io::Result<()> {
    let probes = Arc::new(Probes {
        health,
        liveness: with_slash(&names.liveness_endpoint_name),
        readiness: with_slash(&names.readiness_endpoint_name),
    });
    axum::serve(listener, Router::new().fallback(answer).with_state(probes)).await
}

/// CFG 1.3: a name without its slash is served all the same.
fn with_slash(name: &str) -> String {
    format!("/{}", name.trim_start_matches('/'))
}

struct Probes {
    health: Arc<Health>,
    liveness: String,
    readiness: String,
}

async fn answer(
    State(probes): State<Arc<Probes>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> (StatusCode, String) {
    let path = request.uri().path();
    let query = query.unwrap_or_default();
    if let Some(name) = check_name(path, &probes.liveness) {
        respond(&probes.health.live(), name, &query)
    } else if let Some(name) = check_name(path, &probes.readiness) {
        respond(&probes.health.ready(), name, &query)
    } else {
        not_found()
    }
}

fn not_found() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
}

/// The name of the single check that `path` asks for; empty for all.
fn check_name<'a>(path: &'a str, endpoint: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(endpoint)?;
    if rest.is_empty() {
        Some("")
    } else {
        rest.strip_prefix('/')
    }
}

/// HLT-2: the answer for all of `checks`, or for the one called `name`. The last line is the same for both endpoints.
fn respond(checks: &[Check], name: &str, query: &str) -> (StatusCode, String) {
    if !name.is_empty() {
        return match checks.iter().find(|(known, _)| *known == name) {
            Some((_, true)) => (StatusCode::OK, "ok".to_owned()),
            Some((_, false)) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: reason withheld\n".to_owned(),
            ),
            None => not_found(),
        };
    }
    let parameters: Vec<(&str, &str)> = query
        .split('&')
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .collect();
    let is_excluded = |check: &str| parameters.contains(&("exclude", check));
    let lines: String = checks
        .iter()
        .map(|(check, holds)| match (is_excluded(check), holds) {
            (true, _) => format!("[+]{check} excluded: ok\n"),
            (false, true) => format!("[+]{check} ok\n"),
            (false, false) => format!("[-]{check} failed: reason withheld\n"),
        })
        .collect();
    if checks
        .iter()
        .any(|(check, holds)| !holds && !is_excluded(check))
    {
        return (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{lines}healthz check failed\n"),
        );
    }
    let is_verbose = parameters.iter().any(|(name, _)| *name == "verbose");
    (
        StatusCode::OK,
        if is_verbose {
            format!("{lines}healthz check passed\n")
        } else {
            "ok".to_owned()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [Check; 2] = [("readyz", true), ("caches", true)];
    const BAD: [Check; 2] = [("readyz", true), ("caches", false)];

    #[test]
    fn ops_hlt_2_answers() {
        for (checks, name, query, code, body) in [
            (GOOD, "", "", 200, "ok"),
            (
                GOOD,
                "",
                "verbose=1",
                200,
                "[+]readyz ok\n[+]caches ok\nhealthz check passed\n",
            ),
            (
                GOOD,
                "",
                "verbose",
                200,
                "[+]readyz ok\n[+]caches ok\nhealthz check passed\n",
            ),
            (GOOD, "readyz", "", 200, "ok"),
            (GOOD, "other", "", 404, "404 page not found\n"),
            (
                BAD,
                "",
                "",
                500,
                "[+]readyz ok\n[-]caches failed: reason withheld\nhealthz check failed\n",
            ),
            (BAD, "", "exclude=caches", 200, "ok"),
            (
                BAD,
                "",
                "exclude=caches&verbose=1",
                200,
                "[+]readyz ok\n[+]caches excluded: ok\nhealthz check passed\n",
            ),
            (BAD, "readyz", "", 200, "ok"),
            (
                BAD,
                "caches",
                "",
                500,
                "internal server error: reason withheld\n",
            ),
        ] {
            assert_eq!(
                respond(&checks, name, query),
                (StatusCode::from_u16(code).expect("a code"), body.to_owned()),
                "{name}?{query}"
            );
        }
    }

    #[test]
    fn ops_hlt_2_paths() {
        assert_eq!(check_name("/readyz", "/readyz"), Some(""));
        assert_eq!(check_name("/readyz/caches", "/readyz"), Some("caches"));
        assert_eq!(check_name("/readyzz", "/readyz"), None);
        assert_eq!(check_name("/", "/readyz"), None);
        assert_eq!(with_slash("test"), "/test");
    }

    #[test]
    fn ops_hlt_4_ready_needs_caches_and_trusted_webhooks_and_no_stop() {
        let health = Health::default();
        let is_ready = |health: &Health| health.ready().iter().all(|(_, holds)| *holds);
        assert!(!is_ready(&health));
        health.caches_are_synced();
        assert!(!is_ready(&health));
        health.webhooks_are_served(true);
        assert!(!is_ready(&health));
        health.authority_is_announced(true);
        assert!(is_ready(&health));
        health.is_stopping();
        assert!(!is_ready(&health));
    }

    #[tokio::test(start_paused = true)]
    async fn ops_hlt_4_alive_while_the_heart_beats() {
        let health = Arc::new(Health::default());
        let is_live = |health: &Health| health.live().iter().all(|(_, holds)| *holds);
        let beating = tokio::spawn({
            let health = health.clone();
            async move { health.beat().await }
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(is_live(&health));
        beating.abort();
        tokio::time::sleep(Duration::from_secs(36)).await;
        assert!(!is_live(&health));
    }

    fn get(address: std::net::SocketAddr, path: &str) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[tokio::test]
    async fn ops_hlt_2_over_http() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let names = config::Health {
            readiness_endpoint_name: "test".into(),
            ..config::Health::default()
        };
        let health = Arc::new(Health::default());
        let server = tokio::spawn(async move { serve(listener, health, &names).await });
        for (path, code) in [
            ("/healthz", "200"),
            ("/test", "500"),
            ("/test/readyz", "200"),
            ("/readyz", "404"),
        ] {
            let answer = tokio::task::spawn_blocking(move || get(address, path))
                .await
                .expect("a request");
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {code}")),
                "{path}: {answer}"
            );
        }
        server.abort();
    }
}
