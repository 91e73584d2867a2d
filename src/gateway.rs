//! The one place that writes to the API server: performs the steps of a plan, one request at a time, and says what became of each.
//!
//! It decides nothing: [`Run`] says which request comes next. It never repeats a request, and gives every one a time limit (KRS-14), after which the
//! outcome counts as unknown.

mod classify;
mod encode;

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use lws_core::intent::Step;
use lws_core::run::{Class, Failure, Outcome, Request, Run};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::fence::Fence;
use crate::limiter::Limiter;

const READ_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// Performs plans.
pub struct Gateway {
    client: Client,
    limiter: Limiter,
    fence: Fence,
}

/// How a request is sent, as the log names it.
fn verb(request: &Request) -> &'static str {
    match request {
        Request::Create { .. } => "create",
        Request::Read { .. } => "get",
        Request::Apply { .. } => "apply",
        Request::Patch { .. } | Request::MergeStatus { .. } => "patch",
        Request::Delete { .. } => "delete",
    }
}

impl Gateway {
    /// A gateway that writes while `fence` lets it.
    pub fn new(client: Client, limiter: Limiter, fence: Fence) -> Self {
        Self {
            client,
            limiter,
            fence,
        }
    }

    /// Performs `steps` in order, and says what was done and what stopped it.
    pub async fn perform(&self, steps: Vec<Step>) -> Outcome {
        let mut run = Run::new(steps);
        while let Some(request) = run.next_request() {
            let answer = self.send(&request).await;
            log(&run, &request, &answer);
            run.answer(answer);
        }
        run.finish()
    }

    async fn send(&self, request: &Request) -> Result<Value, Failure> {
        self.limiter.take().await;
        let now = Instant::now();
        let deadline = if request.is_write() {
            let hard = self
                .fence
                .admit(now)
                .map_err(|_| unknown("no write is started without the lease"))?;
            hard.map_or(now + WRITE_LIMIT, |hard| hard.min(now + WRITE_LIMIT))
        } else {
            now + READ_LIMIT
        };
        let encoded = encode::encode(request).map_err(|error| Failure {
            class: Class::Rejected,
            ..unknown(error)
        })?;
        match timeout_at(deadline, self.exchange(request, encoded)).await {
            Ok(answer) => answer,
            Err(_) => Err(unknown("no answer from the API server in time")),
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        encoded: http::Request<Vec<u8>>,
    ) -> Result<Value, Failure> {
        let response = self
            .client
            .send(encoded.map(Body::from))
            .await
            .map_err(unknown)?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.map_err(unknown)?.to_bytes();
        if head.status.is_success() {
            return serde_json::from_slice(&bytes).map_err(unknown);
        }
        Err(classify::failure(
            request,
            head.status,
            retry_after(&head.headers),
            &bytes,
        ))
    }
}

/// KRS-18: seconds only; the API server sends no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()
        .map(Duration::from_secs)
}

fn unknown(error: impl std::fmt::Display) -> Failure {
    Failure {
        class: Class::Unknown,
        message: error.to_string(),
        retry_after: None,
    }
}

/// S-11: intents done at info, everything that stopped one at warn, but for what is part of the ordinary course.
fn log(run: &Run, request: &Request, answer: &Result<Value, Failure>) {
    let why = run.step().map_or("", |step| step.why.as_str());
    let target = request.target();
    let (verb, kind, object) = (verb(request), target.kind.name(), &target.key);
    match answer {
        Ok(_) if request.is_write() => tracing::info!(why, verb, kind, %object, "done"),
        Ok(_) => tracing::debug!(why, verb, kind, %object, "read"),
        Err(failure) => match failure.class {
            Class::Gone | Class::Conflict | Class::Exists | Class::Terminating => {
                tracing::debug!(why, verb, kind, %object, class = ?failure.class, error = failure.message, "not done");
            }
            Class::Rejected | Class::Throttled | Class::Unknown => {
                tracing::warn!(why, verb, kind, %object, class = ?failure.class, error = failure.message, "failed");
            }
        },
    }
}

#[cfg(test)]
mod tests;
