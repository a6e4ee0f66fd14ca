//! What is read without asking anybody: addresses, limits, and what responses say about pace.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{json, Value};
use weir_limiter::{ForwardedHeader, Kind, Limit, Proxies};

use crate::{option_error, Answer};

pub(crate) fn client_ip(thing: &Value) -> Answer {
    let peer = thing["peer"].as_str().and_then(weir_limiter::parse_ip);
    let headers = headers(&thing["headers"]);
    let client = match peer {
        Some(peer) => Some(proxies(thing)?.client(peer, &headers)),
        None => None,
    };
    let prefix = thing["ipv6_prefix"].as_u64().and_then(|prefix| prefix.try_into().ok());
    let key = client.map_or("unknown".into(), |ip| weir_limiter::ip_key(ip, prefix.unwrap_or(64)));
    Ok(json!({"ip": client.map(|ip| ip.to_string()), "key": key}))
}

/// As the members `trusted_proxies`, `hops` and `header` say.
pub(crate) fn proxies(thing: &Value) -> Result<Proxies, Value> {
    let mut proxies = Proxies::none();
    if let Some(trusted) = thing["trusted_proxies"].as_array() {
        let trusted = trusted.iter().map(|text| text.as_str().expect("text"));
        proxies = Proxies::behind(trusted).map_err(|error| option_error(&error))?;
    } else if let Some(hops) = thing["hops"].as_u64() {
        proxies = Proxies::hops(usize::try_from(hops).expect("a small number"));
    }
    if thing["header"] == "forwarded" {
        proxies = proxies.header(ForwardedHeader::Forwarded);
    }
    Ok(proxies)
}

fn headers(pairs: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for pair in pairs.as_array().into_iter().flatten() {
        let name = HeaderName::from_bytes(pair[0].as_str().expect("text").as_bytes());
        let value = HeaderValue::from_str(pair[1].as_str().expect("text"));
        headers.append(name.expect("a name"), value.expect("a value"));
    }
    headers
}

pub(crate) fn parse_limit(thing: &Value) -> Answer {
    let limit = Limit::parse(thing["limit"].as_str().expect("limit"));
    let milliseconds = |length: Duration| u64::try_from(length.as_millis()).expect("in range");
    Ok(match limit.map_err(|error| option_error(&error))?.kind() {
        Kind::Rate { count, period, burst } => {
            let period_ms = milliseconds(period);
            json!({"count": count, "period_ms": period_ms, "burst": burst.unwrap_or(count)})
        }
        Kind::Concurrent { count, lease } => {
            json!({"concurrent": count, "lease_ms": milliseconds(lease)})
        }
        Kind::Unlimited => json!({"word": "unlimited"}),
        _ => json!({"word": "deny"}),
    })
}

pub(crate) fn pacing(thing: &Value) -> Value {
    let status = u16::try_from(thing["status"].as_u64().expect("status")).expect("small");
    let now = UNIX_EPOCH + Duration::from_secs(thing["now"].as_u64().expect("now"));
    let status = StatusCode::from_u16(status).expect("a status");
    let reading = weir_limiter::read_pace(status, &headers(&thing["headers"]), now);
    let wait_ms = reading.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    json!({"wait_ms": wait_ms, "remaining": reading.remaining})
}
