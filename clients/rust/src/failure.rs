//! What is decided here while no service answers, told as the service would.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::ask::shortened;
use crate::buckets::{Bucket, Buckets, Taken};
use crate::decision::{Decision, HttpAnswer, Reason, Source};
use crate::limit::{Kind, Limit};

/// What decides while no service answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Requests pass. The default.
    #[default]
    Open,
    /// Requests are refused, 429.
    Closed,
    /// A bucket in this process decides. A limit in code is its own; for a policy say
    /// [`static_limit`](crate::WeirBuilder::static_limit).
    Static,
}

impl OnFailure {
    /// `open`, `closed` or `static`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Static => "static",
        }
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Open => "requests pass uncounted",
            Self::Closed => "requests are refused",
            Self::Static => "buckets in this process decide",
        }
    }
}

/// How a denial is told to HTTP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpForm {
    /// `application/json`
    Json,
    /// `application/problem+json`, RFC 9457.
    Problem,
}

impl HttpForm {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Problem => "problem",
        }
    }
}

pub(crate) struct Fallback {
    pub(crate) mode: OnFailure,
    pub(crate) static_limit: Option<Limit>,
    pub(crate) share: u64,
    start: Instant,
    buckets: Mutex<Buckets>,
}

/// What the buckets need to know of a question.
pub(crate) struct Counted<'a> {
    /// The limit of the question itself; else it is the policy's.
    pub(crate) limit: Option<&'a Limit>,
    pub(crate) key: &'a str,
    pub(crate) cost: u64,
    /// A peek takes nothing.
    pub(crate) takes: bool,
    pub(crate) http: Option<HttpForm>,
}

impl Fallback {
    pub(crate) fn new(mode: OnFailure, static_limit: Option<Limit>, share: u64) -> Self {
        let buckets = Mutex::default();
        Self { mode, static_limit, share, start: Instant::now(), buckets }
    }

    /// Decides in the service's place.
    pub(crate) fn decide(&self, asked: &Counted<'_>) -> Decision {
        let mut decision = match self.mode {
            OnFailure::Open => open(asked.cost),
            OnFailure::Closed => closed(asked.cost),
            OnFailure::Static => self.decide_by_bucket(asked),
        };
        decision.http = asked.http.map(|form| answer(&decision, form));
        decision
    }

    /// Remembers what the service let through, so that it would take over warm.
    pub(crate) fn feed(&self, asked: &Counted<'_>, decision: &Decision) {
        if self.mode != OnFailure::Static || !decision.allowed || !asked.takes {
            return;
        }
        let Some(limit) = asked.limit.or(self.static_limit.as_ref()) else { return };
        if let Some(bucket) = Bucket::new(limit.kind(), self.share) {
            let key = key_of(limit, asked);
            self.lock().charge(&key, bucket, asked.cost, self.now());
        }
    }

    fn decide_by_bucket(&self, asked: &Counted<'_>) -> Decision {
        // Middleware without a limit to decide by is refused at the start.
        let Some(limit) = asked.limit.or(self.static_limit.as_ref()) else {
            return open(asked.cost);
        };
        match (limit.kind(), Bucket::new(limit.kind(), self.share)) {
            (_, Some(bucket)) => {
                let (key, now) = (key_of(limit, asked), self.now());
                let taken = if asked.takes {
                    self.lock().take(&key, bucket, asked.cost, now)
                } else {
                    self.lock().peek(&key, bucket, asked.cost, now)
                };
                by_bucket(&taken, bucket, asked.cost)
            }
            (Kind::Deny, _) => {
                let mut denied =
                    Decision::uncounted(false, asked.cost, Reason::DenyList, Source::Fallback);
                denied.retry_after_ms = None;
                denied
            }
            (Kind::Unlimited, _) => {
                Decision::uncounted(true, asked.cost, Reason::Ok, Source::Fallback)
            }
            _ => open(asked.cost),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Buckets> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two limits on one key are two buckets. Clients may have chosen the key, so it is never long.
fn key_of(limit: &Limit, asked: &Counted<'_>) -> String {
    let key = shortened(asked.key.as_bytes());
    [limit.text(), "|", &String::from_utf8_lossy(&key)].concat()
}

fn open(cost: u64) -> Decision {
    Decision::uncounted(true, cost, Reason::StoreFailure, Source::Open)
}

fn closed(cost: u64) -> Decision {
    let mut decision = Decision::uncounted(false, cost, Reason::StoreFailure, Source::Closed);
    decision.retry_after_ms = Some(1000);
    decision.reset_after_ms = 1000;
    decision
}

fn by_bucket(taken: &Taken, bucket: Bucket, cost: u64) -> Decision {
    let reason = match (taken.allowed, taken.retry_after) {
        (true, _) => Reason::Ok,
        (false, Some(_)) => Reason::Limited,
        (false, None) => Reason::NeverFits,
    };
    let mut decision = Decision::uncounted(taken.allowed, cost, reason, Source::Fallback);
    decision.limit = bucket.burst;
    decision.remaining = taken.remaining;
    decision.retry_after_ms = taken.retry_after.map(milliseconds);
    decision.reset_after_ms = milliseconds(taken.reset_after);
    decision
}

/// Rounded up: nobody comes back too early.
fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What an HTTP client should be told of a decision that was made here.
pub(crate) fn answer(decision: &Decision, form: HttpForm) -> HttpAnswer {
    if decision.allowed {
        return HttpAnswer { status: 200, headers: Bytes::new(), body: Bytes::new() };
    }
    let status = if decision.reason == Reason::DenyList { 403 } else { 429 };
    let (content_type, body) = match form {
        HttpForm::Json => ("application/json", json(decision)),
        HttpForm::Problem => ("application/problem+json", problem(decision, status)),
    };
    let retry_after = retry_seconds(decision)
        .map_or_else(String::new, |seconds| format!("Retry-After: {seconds}\r\n"));
    let headers =
        format!("Content-Type: {content_type}\r\n{retry_after}Cache-Control: no-store\r\n");
    HttpAnswer { status, headers: headers.into(), body: body.into() }
}

fn retry_seconds(decision: &Decision) -> Option<u64> {
    decision.retry_after_ms.map(|ms| ms.div_ceil(1000).max(1))
}

fn json(decision: &Decision) -> String {
    let error = if decision.reason == Reason::DenyList { "forbidden" } else { "rate_limited" };
    format!(r#"{{"error":"{error}","message":"{}",{}}}"#, message(decision), fields(decision))
}

fn problem(decision: &Decision, status: u16) -> String {
    let base = "https://iana.org/assignments/http-problem-types#";
    let (kind, title) = match decision.reason {
        Reason::StoreFailure => {
            (format!("{base}temporary-reduced-capacity"), "Temporarily reduced capacity")
        }
        Reason::DenyList => ("about:blank".to_string(), "Forbidden"),
        _ => (format!("{base}quota-exceeded"), "Quota exceeded"),
    };
    format!(
        r#"{{"type":"{kind}","title":"{title}","status":{status},"detail":"{}",{}}}"#,
        message(decision),
        fields(decision)
    )
}

fn message(decision: &Decision) -> String {
    let text = match decision.reason {
        Reason::NeverFits => return "This request costs more than its limit can ever hold.".into(),
        Reason::DenyList => return "This request is not allowed.".into(),
        Reason::StoreFailure => "The limit cannot be checked at the moment.",
        _ => "Too many requests.",
    };
    match retry_seconds(decision) {
        None => text.into(),
        Some(1) => format!("{text} Retry after 1 second."),
        Some(seconds) => format!("{text} Retry after {seconds} seconds."),
    }
}

fn fields(decision: &Decision) -> String {
    let or_null = |number: Option<u64>| number.map_or("null".to_string(), |n| n.to_string());
    let reset_after = decision.reset_after_ms.div_ceil(1000);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!(
        r#""allowed":{},"rule":null,"limit":{},"remaining":{},"cost":{},"retry_after":{},"retry_after_ms":{},"reset_after":{reset_after},"reset_after_ms":{},"reset_at":{},"delay_ms":0,"reason":"{}","source":"{}""#,
        decision.allowed,
        decision.limit,
        decision.remaining,
        decision.cost,
        or_null(decision.retry_after_ms.map(|ms| ms.div_ceil(1000))),
        or_null(decision.retry_after_ms),
        decision.reset_after_ms,
        now + reset_after,
        decision.reason.as_str(),
        decision.source.as_str(),
    )
}
