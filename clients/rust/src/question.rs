//! What a layer asks about a request.

use std::future::Future;

use http::request::Parts;

use crate::ask::{Ask, LimitAsk};
use crate::client_ip;
use crate::decision::Decision;
use crate::headers;
use crate::layer::{ByLimit, ByPolicy, Config};

/// What all count as who have no key.
const UNKNOWN: &str = "unknown";
/// The scope where no route is known.
const ANY: &str = "*";

pub(crate) trait Decides: Sized {
    fn decide(config: &Config<Self>, parts: &mut Parts) -> impl Future<Output = Decision> + Send;
}

impl Decides for ByPolicy {
    async fn decide(config: &Config<Self>, parts: &mut Parts) -> Decision {
        let ask = policy_ask(config, parts);
        config.weir.check(&ask).await
    }
}

fn policy_ask(config: &Config<ByPolicy>, parts: &Parts) -> Ask {
    let mut ask = Ask::new();
    let is_said = |name: &str| config.by.attributes.iter().any(|(other, _)| **other == *name);
    if !is_said("ip") {
        if let Some(ip) = config.client_ip(parts) {
            ask = ask.ip(ip);
        }
    }
    if !is_said("method") {
        ask.put("method", parts.method.as_str().as_bytes());
    }
    if !is_said("path") {
        ask.put("path", path_of(parts).as_bytes());
    }
    if let Some(host) = host_of(parts).filter(|_| !is_said("host")) {
        ask.put("host", host);
    }
    for (name, value) in &config.by.attributes {
        if let Some(value) = value(parts) {
            ask = ask.set(name, value);
        }
    }
    for (header, name) in &config.by.headers {
        if let Some(value) = parts.headers.get(header).filter(|_| !is_said(name)) {
            ask.put(name, value.as_bytes());
        }
    }
    if let Some(cost) = &config.cost {
        ask.set_cost(cost(parts));
    }
    ask.set_http(headers::accepted_form(&parts.headers));
    ask
}

impl Decides for ByLimit {
    async fn decide(config: &Config<Self>, parts: &mut Parts) -> Decision {
        let key = limit_key(config, parts);
        let mut ask = LimitAsk::new(&key, &config.by.limit)
            .algorithm(config.by.algorithm)
            .http(headers::accepted_form(&parts.headers));
        if let Some(cost) = &config.cost {
            ask.set_cost(cost(parts));
        }
        config.weir.limit(&ask).await
    }
}

/// How many limits without a scope of their own a request has met: the second on a route must not
/// count as the first does.
#[derive(Clone, Copy)]
struct Unscoped(u32);

/// `SCOPE|KEY`
fn limit_key(config: &Config<ByLimit>, parts: &mut Parts) -> String {
    let key = if let Some(extractor) = &config.by.key {
        let key = extractor.key(parts);
        if key.is_none() {
            config.weir.warn_once("requests come without a key, and all count as one, \"unknown\"");
        }
        key
    } else {
        let ip = config.client_ip(parts);
        ip.map(|ip| client_ip::key_of(ip, config.by.ipv6_prefix))
    };
    let key = key.as_deref().unwrap_or(UNKNOWN);
    if let Some(scope) = &config.by.scope {
        return format!("{scope}|{key}");
    }
    let met = parts.extensions.get::<Unscoped>().map_or(0, |unscoped| unscoped.0);
    parts.extensions.insert(Unscoped(met + 1));
    let route = route_of(parts);
    if met == 0 {
        format!("{route}|{key}")
    } else {
        format!("{route}#{}|{key}", met + 1)
    }
}

/// The pattern that matched. Never the path itself: clients choose that, and each would count anew.
#[cfg(feature = "axum")]
fn route_of(parts: &Parts) -> &str {
    parts.extensions.get().map_or(ANY, axum::extract::MatchedPath::as_str)
}

#[cfg(not(feature = "axum"))]
fn route_of(_: &Parts) -> &'static str {
    ANY
}

/// Nested routers see only a part of it.
fn path_of(parts: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(original) = parts.extensions.get::<axum::extract::OriginalUri>() {
        return original.0.path();
    }
    parts.uri.path()
}

fn host_of(parts: &Parts) -> Option<&[u8]> {
    match parts.uri.authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => parts.headers.get(http::header::HOST).map(http::HeaderValue::as_bytes),
    }
}
