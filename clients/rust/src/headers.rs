//! Header lines as the service tells them, put into a response.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::failure::HttpForm;

/// Those that come with every answer, so that no name has to be made anew.
static KNOWN: [(&[u8], HeaderName); 8] = [
    (b"X-RateLimit-Limit", HeaderName::from_static("x-ratelimit-limit")),
    (b"X-RateLimit-Remaining", HeaderName::from_static("x-ratelimit-remaining")),
    (b"X-RateLimit-Reset", HeaderName::from_static("x-ratelimit-reset")),
    (b"RateLimit-Policy", HeaderName::from_static("ratelimit-policy")),
    (b"RateLimit", HeaderName::from_static("ratelimit")),
    (b"Content-Type", CONTENT_TYPE),
    (b"Retry-After", RETRY_AFTER),
    (b"Cache-Control", CACHE_CONTROL),
];

/// Adds what is not there yet. `rate_limit`: whether to add those that say what is left.
pub(crate) fn add(into: &mut HeaderMap, lines: &Bytes, rate_limit: bool) {
    let mut at = 0;
    while let Some(length) = lines[at..].windows(2).position(|two| two == b"\r\n") {
        let line = lines.slice(at..at + length);
        at += length + 2;
        let Some(colon) = line.windows(2).position(|two| two == b": ") else { continue };
        let Some(name) = name_of(&line[..colon]) else { continue };
        if (!rate_limit && is_rate_limit(&name)) || into.contains_key(&name) {
            continue;
        }
        if let Ok(value) = HeaderValue::from_maybe_shared(line.slice(colon + 2..)) {
            into.insert(name, value);
        }
    }
}

fn name_of(text: &[u8]) -> Option<HeaderName> {
    let known = KNOWN.iter().find(|(name, _)| *name == text);
    known.map(|(_, name)| name.clone()).or_else(|| HeaderName::from_bytes(text).ok())
}

fn is_rate_limit(name: &HeaderName) -> bool {
    name.as_str().starts_with("ratelimit") || name.as_str().starts_with("x-ratelimit")
}

/// In which form those who sent these headers are told of a denial.
pub(crate) fn accepted_form(headers: &HeaderMap) -> HttpForm {
    const PROBLEM: &[u8] = b"application/problem+json";
    let accepts = |value: &HeaderValue| {
        let mut parts = value.as_bytes().windows(PROBLEM.len());
        parts.any(|part| part.eq_ignore_ascii_case(PROBLEM))
    };
    if headers.get_all(http::header::ACCEPT).iter().any(accepts) {
        return HttpForm::Problem;
    }
    HttpForm::Json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_unless_they_are_there() {
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit", HeaderValue::from_static("mine"));
        let lines =
            "X-RateLimit-Limit: 5\r\nRateLimit: \"a\";r=1\r\nX-New: a: b\r\njunk\r\nX-Cut: ";
        add(&mut headers, &Bytes::from_static(lines.as_bytes()), true);
        assert_eq!(headers["ratelimit"], "mine");
        assert_eq!(headers["x-ratelimit-limit"], "5");
        assert_eq!(headers["x-new"], "a: b");
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn what_is_left_can_be_left_out() {
        let mut headers = HeaderMap::new();
        let lines = "X-RateLimit-Limit: 5\r\nRateLimit-Policy: x\r\nRetry-After: 7\r\n";
        add(&mut headers, &Bytes::from_static(lines.as_bytes()), false);
        assert_eq!(headers["retry-after"], "7");
        assert_eq!(headers.len(), 1);
    }
}
