//! Pure decisions of the lws controllers and of their admission webhooks: functions of a snapshot, a request and a time.
//! No clock, no randomness, no client, no async.

#![deny(missing_docs)]

pub mod admission;
pub mod identity;
