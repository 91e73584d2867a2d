//! KRS-20: what a refusal of the API server means for the pass.

use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use lws_core::run::{Class, Failure, Request};

/// KRS-18: when the server does not say.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The failure that the answer `code`, `body` to `request` is.
pub(super) fn failure(
    request: &Request,
    code: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Failure {
    let status = serde_json::from_slice::<Status>(body).unwrap_or_default();
    let class = class(request, code, &status);
    let message = if status.message.is_empty() {
        code.to_string()
    } else {
        status.message
    };
    let retry_after = match class {
        Class::Throttled => Some(retry_after.unwrap_or(DEFAULT_RETRY_AFTER)),
        Class::Gone
        | Class::Conflict
        | Class::Exists
        | Class::Rejected
        | Class::Unknown
        | Class::Terminating => retry_after,
    };
    Failure {
        class,
        message,
        retry_after,
    }
}

fn class(request: &Request, code: StatusCode, status: &Status) -> Class {
    let is_create = matches!(request, Request::Create { .. });
    match code {
        // A create finds no namespace; nothing else of a create's URL can be missing in a cluster that we are installed in.
        StatusCode::NOT_FOUND if is_create && is_about(status, "namespaces") => Class::Terminating,
        StatusCode::NOT_FOUND if is_create => Class::Rejected,
        StatusCode::NOT_FOUND => Class::Gone,
        StatusCode::CONFLICT if status.is_already_exists() => Class::Exists,
        StatusCode::CONFLICT => Class::Conflict,
        // A body that carries another UID than the live object's.
        StatusCode::UNPROCESSABLE_ENTITY
            if has_cause(status, |cause| cause.field == "metadata.uid") =>
        {
            Class::Conflict
        }
        StatusCode::FORBIDDEN
            if has_cause(status, |cause| cause.reason == "NamespaceTerminating") =>
        {
            Class::Terminating
        }
        StatusCode::TOO_MANY_REQUESTS => Class::Throttled,
        // Answered with 500 though it is the body's fault: a list with two items of one key (KRS-56).
        StatusCode::INTERNAL_SERVER_ERROR
            if status
                .message
                .contains("failed to create typed patch object") =>
        {
            Class::Rejected
        }
        // A token that has just expired is read anew for the next request.
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT => Class::Unknown,
        code if code.is_client_error() => Class::Rejected,
        _ => Class::Unknown,
    }
}

fn is_about(status: &Status, plural: &str) -> bool {
    status
        .details
        .as_ref()
        .is_some_and(|details| details.kind == plural)
}

fn has_cause(
    status: &Status,
    matches: impl Fn(&kube::core::response::StatusCause) -> bool,
) -> bool {
    status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .any(matches)
}
