//! Counts requests to the API server (`rest_client_requests_total`).

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use prometheus::IntCounterVec;
use tower::{Layer, Service};

/// A layer of a client that counts its requests.
#[derive(Clone, Debug)]
pub struct CountRequests {
    counters: IntCounterVec,
    host: String,
}

impl CountRequests {
    pub(super) fn new(counters: IntCounterVec, host: &str) -> Self {
        Self {
            counters,
            host: host.to_owned(),
        }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            count: self.clone(),
        }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    count: CountRequests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let CountRequests { counters, host } = self.count.clone();
        let method = request.method().clone();
        let answered = self.inner.call(request);
        Box::pin(async move {
            let answer = answered.await;
            let code = answer.as_ref().map_or_else(
                |_| "<error>".to_owned(),
                |answer| answer.status().as_u16().to_string(),
            );
            counters
                .with_label_values(&[code.as_str(), method.as_str(), host.as_str()])
                .inc();
            answer
        })
    }
}
