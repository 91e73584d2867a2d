//! lws.
