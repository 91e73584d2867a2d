//! The metrics of a manager, read as Prometheus would.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lws_local_cluster::Target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::tls::connect_to_anyone;

/// A service account whose token may, or may not, read metrics.
#[derive(Clone, Debug)]
pub struct Scraper {
    token: String,
}

/// Status code and text of an answer.
pub type Scraped = (u16, String);

impl Scraper {
    /// A service account that may read metrics.
    pub fn bound(target: &Target) -> Result<Self> {
        let scraper = Self::unbound(target, "scraper")?;
        let role = "--verb=get --non-resource-url=/metrics";
        let words = ["create", "clusterrole", "e2e-metrics-reader"];
        target.kubectl(&[&words[..], &role.split(' ').collect::<Vec<_>>()].concat())?;
        target.kubectl(&[
            "create",
            "clusterrolebinding",
            "e2e-metrics-reader",
            "--clusterrole=e2e-metrics-reader",
            "--serviceaccount=default:scraper",
        ])?;
        Ok(scraper)
    }

    /// A service account that may do nothing.
    pub fn unbound(target: &Target, name: &str) -> Result<Self> {
        target.kubectl(&["-n", "default", "create", "serviceaccount", name])?;
        let token = target.kubectl(&["-n", "default", "create", "token", name])?;
        Ok(Self {
            token: token.trim().to_owned(),
        })
    }

    /// Samples by name and labels, as they are written.
    pub async fn samples(&self, port: u16) -> Result<BTreeMap<String, f64>> {
        let (code, text) = scrape(port, Some(self)).await?;
        ensure!(code == 200, "{code} {text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').context("a line without value")?;
                Ok((name.to_owned(), value.parse()?))
            })
            .collect()
    }
}

/// Asks the manager that serves metrics on a port of loopback.
pub async fn scrape(port: u16, as_who: Option<&Scraper>) -> Result<Scraped> {
    let mut stream = connect_to_anyone(port).await?;
    let authorization = as_who.map_or_else(String::new, |scraper| {
        format!("authorization: Bearer {}\r\n", scraper.token)
    });
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{authorization}\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    // The server may close without the last words of TLS.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("half an answer")?;
    let code = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((code, body.to_owned()))
}
