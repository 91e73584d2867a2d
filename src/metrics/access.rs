//! MET-3: who may scrape. Tokens and permissions are reviewed by the API server, and its answers kept for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use crate::identity;

const TOKEN_KEPT: Duration = Duration::from_secs(60);
const ALLOWED_KEPT: Duration = Duration::from_secs(5 * 60);
const DENIED_KEPT: Duration = Duration::from_secs(30);
const REVIEW_LIMIT: Duration = Duration::from_secs(10);
/// Further tries after a review that failed, and the first wait before one, which grows.
const TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Why a scrape is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No token, or one that nobody has.
    Unauthorized,
    /// The token could not be reviewed.
    AuthenticationFailed,
    /// Whether this user may scrape could not be found out.
    AuthorizationFailed(String),
    /// This user may not.
    Denied(String),
}

impl Refusal {
    /// Status code and text of the answer.
    pub fn answer(&self) -> (u16, String) {
        match self {
            Self::Unauthorized => (401, "Unauthorized".to_owned()),
            Self::AuthenticationFailed => (500, "Authentication failed".to_owned()),
            Self::AuthorizationFailed(user) => {
                (500, format!("Authorization for user {user} failed"))
            }
            Self::Denied(user) => (403, format!("Authorization denied for user {user}")),
        }
    }
}

/// What a user may do, as far as it was asked.
type Verdicts = HashMap<(String, String, String), (bool, Instant)>;

/// Asks the API server, and remembers.
pub struct Access {
    tokens: Api<TokenReview>,
    permissions: Api<SubjectAccessReview>,
    /// Users by token; `None`: nobody's. With the time until which that is believed.
    users: Mutex<HashMap<String, (Option<UserInfo>, Instant)>>,
    /// By user name, verb and path.
    verdicts: Mutex<Verdicts>,
}

impl Access {
    /// Nothing is known yet.
    pub fn new(client: &Client) -> Self {
        Self {
            tokens: Api::all(client.clone()),
            permissions: Api::all(client.clone()),
            users: Mutex::default(),
            verdicts: Mutex::default(),
        }
    }

    /// Whether the holder of `token` may send a request of this method to `path`.
    ///
    /// # Errors
    /// The reason why not.
    pub async fn check(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
    ) -> Result<(), Refusal> {
        let token = token.filter(|token| !token.is_empty());
        let user = self.user(token.ok_or(Refusal::Unauthorized)?).await?;
        let name = user.username.clone().unwrap_or_default();
        let verb = method.to_lowercase();
        if self.is_allowed(user, &verb, path).await? {
            Ok(())
        } else {
            Err(Refusal::Denied(name))
        }
    }

    async fn user(&self, token: &str) -> Result<UserInfo, Refusal> {
        let known = known(&self.users, &token.to_owned());
        if let Some(user) = known {
            return user.ok_or(Refusal::Unauthorized);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let review = reviewed(&self.tokens, &review)
            .await
            .ok_or(Refusal::AuthenticationFailed)?;
        let status = review.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        keep(&self.users, token.to_owned(), user.clone(), TOKEN_KEPT);
        user.ok_or(Refusal::Unauthorized)
    }

    async fn is_allowed(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, Refusal> {
        let name = user.username.clone().unwrap_or_default();
        let question = (name.clone(), verb.to_owned(), path.to_owned());
        if let Some(verdict) = known(&self.verdicts, &question) {
            return Ok(verdict);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let review = reviewed(&self.permissions, &review)
            .await
            .ok_or(Refusal::AuthorizationFailed(name))?;
        let is_allowed = review.status.is_some_and(|status| status.allowed);
        let time = if is_allowed {
            ALLOWED_KEPT
        } else {
            DENIED_KEPT
        };
        keep(&self.verdicts, question, is_allowed, time);
        Ok(is_allowed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known<K: std::hash::Hash + Eq, V: Clone>(
    answers: &Mutex<HashMap<K, (V, Instant)>>,
    question: &K,
) -> Option<V> {
    let answers = lock(answers);
    let (answer, until) = answers.get(question)?;
    (*until > Instant::now()).then(|| answer.clone())
}

/// Keeps an answer for a time, and drops the ones whose time is over.
fn keep<K: std::hash::Hash + Eq, V>(
    answers: &Mutex<HashMap<K, (V, Instant)>>,
    question: K,
    answer: V,
    time: Duration,
) {
    let now = Instant::now();
    let mut answers = lock(answers);
    answers.retain(|_, (_, until)| *until > now);
    answers.insert(question, (answer, now + time));
}

/// A review with the API server's answer; `None` if there is none after all tries.
async fn reviewed<K>(api: &Api<K>, review: &K) -> Option<K>
where
    K: Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let mut wait = FIRST_WAIT;
    for attempt in 0..TRIES {
        if attempt > 0 {
            sleep(wait.mul_f64(1.0 + 0.2 * identity::random_unit())).await;
            wait = wait.mul_f64(1.5);
        }
        match timeout(REVIEW_LIMIT, api.create(&PostParams::default(), review)).await {
            Ok(Ok(review)) => return Some(review),
            Ok(Err(error)) => tracing::warn!(%error, "review for the metrics server failed"),
            Err(_) => tracing::warn!("review for the metrics server was not answered in time"),
        }
    }
    None
}
