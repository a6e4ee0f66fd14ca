//! Options as the lists write them.

use std::time::Duration;

use serde_json::{json, Value};
use weir_limiter::{Limit, OnFailure, Tls, Weir};

use crate::option_error;

fn wrong(option: &str, message: &str) -> Value {
    json!({"code": "invalid_option", "option": option, "message": message})
}

pub(crate) fn client(options: &Value) -> Result<Weir, Value> {
    let mut builder = Weir::builder();
    if let Some(servers) = options["servers"].as_array() {
        builder = builder.servers(servers.iter().map(|server| server.as_str().expect("text")));
    }
    if let Some(token) = options["token"].as_str() {
        builder = builder.token(token);
    }
    if options["tls"].is_object() {
        builder = builder.tls(tls(&options["tls"]));
    }
    if let Some(ms) = options["deadline_ms"].as_f64() {
        // A length of time cannot be negative here: that is caught by its type.
        let length = Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default();
        builder = builder.deadline(length);
    }
    if let Some(mode) = options["on_failure"].as_str() {
        builder = builder.on_failure(match mode {
            "open" => OnFailure::Open,
            "closed" => OnFailure::Closed,
            "static" => OnFailure::Static,
            _ => return Err(wrong("on_failure", "write open, closed or static")),
        });
    }
    if let Some(text) = options["static_limit"].as_str() {
        let limit = Limit::parse(text).map_err(|error| wrong("static_limit", error.message()))?;
        builder = builder.static_limit(limit);
    }
    if let Some(share) = options["share"].as_u64() {
        builder = builder.share(share);
    }
    builder.build().map_err(|error| option_error(&error))
}

fn tls(options: &Value) -> Tls {
    let mut tls = Tls::default();
    if let Some(ca) = options["ca"].as_str() {
        tls = tls.ca(ca);
    }
    if let (Some(certificate), Some(key)) =
        (options["certificate"].as_str(), options["key"].as_str())
    {
        tls = tls.certificate(certificate, key);
    }
    tls
}
