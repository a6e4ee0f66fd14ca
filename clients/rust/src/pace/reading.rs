//! What a response says about how many more requests there may be, and when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};

use super::field::{self, Item};

/// What a response says about pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reading {
    /// How long to send nothing.
    pub wait: Option<Duration>,
    /// How many more there may be.
    pub remaining: Option<u64>,
    /// Whether the request was refused for coming too early, and may be sent again.
    pub refused: bool,
}

/// Reads `Retry-After`, `RateLimit`, or the older `X-RateLimit-Remaining` and `-Reset`. What is
/// malformed is ignored.
#[must_use]
pub fn read(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Reading {
    let retry_after = retry_after(headers, now);
    let refused = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::SERVICE_UNAVAILABLE && retry_after.is_some());
    let (remaining, wait) = match rate_limit(headers) {
        Some(Item { left, seconds }) => (left, seconds.map(Duration::from_secs)),
        None => older(headers, now),
    };
    if refused {
        return Reading { wait: retry_after.or(wait), remaining: Some(0), refused };
    }
    Reading { wait: wait.filter(|_| remaining == Some(0)), remaining, refused }
}

/// The item that has least left.
fn rate_limit(headers: &HeaderMap) -> Option<Item> {
    let lines = headers.get_all("ratelimit");
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(line.to_str().ok()?);
    }
    let items = field::parse(&text)?;
    items.into_iter().filter(|item| item.left.is_some()).min_by_key(|item| item.left)
}

fn older(headers: &HeaderMap, now: SystemTime) -> (Option<u64>, Option<Duration>) {
    /// Above it is an instant, below it a length.
    const INSTANT: u64 = 1_000_000_000;
    let number = |name| headers.get(name).and_then(|value| digits(value.to_str().ok()?));
    let reset = number("x-ratelimit-reset").map(|reset| match reset {
        INSTANT.. => until(UNIX_EPOCH + Duration::from_secs(reset.min(u64::from(u32::MAX))), now),
        length => Duration::from_secs(length),
    });
    let remaining = number("x-ratelimit-remaining");
    (remaining, reset.filter(|_| remaining.is_some()))
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = digits(text) {
        // More than a century is as good as never.
        return Some(Duration::from_secs(seconds.min(u64::from(u32::MAX))));
    }
    httpdate::parse_http_date(text).ok().map(|date| until(date, now))
}

fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().unwrap_or(u64::MAX))
}

fn until(instant: SystemTime, now: SystemTime) -> Duration {
    instant.duration_since(now).unwrap_or_default()
}
