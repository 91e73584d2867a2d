//! AdmissionReview v1: what is read of a request, and how an answer is written (ADM-2 … ADM-4, KRS-71).

use json_patch::Patch;
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The request of a review. Objects stay raw JSON.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) uid: String,
    pub(crate) operation: Operation,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) object: Value,
    #[serde(default)]
    pub(crate) old_object: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Allowed {
        patch: Option<Patch>,
        warnings: Vec<String>,
    },
    /// The request breaks a rule.
    Denied {
        message: String,
        warnings: Vec<String>,
        /// The member of spec or metadata that was found wrong first, for the metrics.
        field: String,
    },
    /// The request was not judged.
    Failed(Failure),
}

/// Why a request was not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    BadRequest(String),
    TooLarge,
    Internal(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Request,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: &'a str,
}

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The request in the body of a POST.
pub(crate) fn decode(body: &[u8]) -> Result<Request, Failure> {
    if body.is_empty() {
        return Err(Failure::BadRequest("the request has no body".to_owned()));
    }
    let undecodable = |error: serde_json::Error| {
        Failure::BadRequest(format!("failed to decode the review: {error}"))
    };
    let review: Review = serde_json::from_slice(body).map_err(undecodable)?;
    if review.api_version != VERSION || review.kind != KIND {
        let Review {
            api_version, kind, ..
        } = review;
        return Err(Failure::BadRequest(format!(
            "{kind} of {api_version} is not {KIND} of {VERSION}"
        )));
    }
    Ok(review.request)
}

/// The body of the answer. A request that could not be decoded has no UID to answer to.
pub(crate) fn encode(uid: &str, verdict: &Verdict) -> Result<Vec<u8>, serde_json::Error> {
    let (patch, warnings) = match verdict {
        Verdict::Allowed { patch, warnings } => (patch.as_ref(), warnings.as_slice()),
        Verdict::Denied { warnings, .. } => (None, warnings.as_slice()),
        Verdict::Failed(_) => (None, [].as_slice()),
    };
    let patch = patch.map(serde_json::to_vec).transpose()?.map(ByteString);
    let patch_type = patch.as_ref().map(|_| "JSONPatch");
    let status = status(verdict);
    let response = Response {
        uid,
        allowed: status.is_none(),
        status,
        patch,
        patch_type,
        warnings,
    };
    serde_json::to_vec(&Answer {
        api_version: VERSION,
        kind: KIND,
        response,
    })
}

/// ADM-3, WHK-1. Without a code of its own the API server would call every rejection a bad request.
fn status(verdict: &Verdict) -> Option<Status<'_>> {
    let failure = |code, reason, message| {
        Some(Status {
            status: "Failure",
            code,
            reason,
            message,
        })
    };
    match verdict {
        Verdict::Allowed { .. } => None,
        Verdict::Denied { message, .. } => failure(403, "Forbidden", message),
        Verdict::Failed(Failure::BadRequest(message)) => failure(400, "BadRequest", message),
        Verdict::Failed(Failure::TooLarge) => failure(
            413,
            "RequestEntityTooLarge",
            "the review is larger than admission reads",
        ),
        Verdict::Failed(Failure::Internal(message)) => failure(500, "InternalError", message),
    }
}
