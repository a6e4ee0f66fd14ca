//! Limits: how much per what. Made in code, or read from the text that policies have.
//!
//! Whatever exists as a [`Limit`] is within the ranges of the service, so that nothing is refused
//! there that was accepted here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::OptionError;
use crate::limit_text;

/// One second, for [`Count::per`].
#[allow(non_upper_case_globals)]
pub const second: Duration = Duration::from_secs(1);
/// One minute, for [`Count::per`].
#[allow(non_upper_case_globals)]
pub const minute: Duration = Duration::from_secs(60);
/// One hour, for [`Count::per`].
#[allow(non_upper_case_globals)]
pub const hour: Duration = Duration::from_secs(3600);
/// One day, for [`Count::per`].
#[allow(non_upper_case_globals)]
pub const day: Duration = Duration::from_secs(86_400);

pub(crate) const MOST: u64 = 1_000_000_000_000_000;
pub(crate) const MOST_CONCURRENT: u64 = 65_536;
pub(crate) const LONGEST: Duration = Duration::from_secs(366 * 86_400);
pub(crate) const LEASE: Duration = Duration::from_secs(30);
const MOST_PER_SECOND: u128 = 10_000_000;

/// How much per what: `100/min burst 50`.
///
/// ```
/// use weir_limiter::{minute, rate, Limit};
///
/// let limit = rate(100).per(minute).burst(50);
/// assert_eq!(limit, "100/min burst 50".parse()?);
/// # Ok::<(), weir_limiter::OptionError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Limit {
    kind: Kind,
    text: Arc<str>,
}

/// What a [`Limit`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `count` per `period`, at most `burst` at once.
    Rate {
        /// How much in each period.
        count: u64,
        /// The period.
        period: Duration,
        /// How much at once, if that is not the count.
        burst: Option<u64>,
    },
    /// So many at the same time.
    Concurrent {
        /// How many.
        count: u64,
        /// After which time a holder is taken for dead.
        lease: Duration,
    },
    /// Always allowed.
    Unlimited,
    /// Never allowed.
    Deny,
}

/// How a rate is counted. What each does is in the service's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// Smooth, with a burst. The default.
    #[default]
    TokenBucket,
    /// The same by another name, for queues.
    LeakyBucket,
    /// A count in each period since 1970.
    FixedWindow,
    /// An estimate over the last period.
    SlidingWindow,
    /// Exact over the last period.
    SlidingLog,
}

impl Algorithm {
    /// As the service calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::LeakyBucket => "leaky_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingLog => "sliding_log",
        }
    }

    fn is_bucket(self) -> bool {
        matches!(self, Self::TokenBucket | Self::LeakyBucket)
    }
}

/// How much, before it is said per what: see [`rate`].
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Count(u64);

/// `rate(100).per(minute)`: so much in each period.
pub fn rate(count: u64) -> Count {
    Count(count)
}

/// `concurrent(20)`: so many at the same time.
///
/// # Panics
/// If it is not 1 to 65,536. For numbers that are not known when the program is written, parse
/// text.
#[track_caller]
#[must_use]
pub fn concurrent(count: u64) -> Limit {
    or_panic(Limit::new(Kind::Concurrent { count, lease: LEASE }))
}

impl Count {
    /// The period: `minute`, `30 * second`, any [`Duration`].
    ///
    /// # Panics
    /// If the count is 0 or the rate is above what the service takes, 10,000,000 a second. For
    /// numbers that are not known when the program is written, parse text.
    #[track_caller]
    #[must_use]
    pub fn per(self, period: Duration) -> Limit {
        or_panic(Limit::new(Kind::Rate { count: self.0, period, burst: None }))
    }
}

impl Limit {
    /// How much may come at once, if that is not the count.
    ///
    /// # Panics
    /// If it is 0, takes more than 366 days to fill, or the limit is no rate.
    #[track_caller]
    #[must_use]
    pub fn burst(self, burst: u64) -> Self {
        let Kind::Rate { count, period, .. } = self.kind else {
            panic!("burst: {} takes none; rate(..).per(..) does", self.text)
        };
        or_panic(Self::new(Kind::Rate { count, period, burst: Some(burst) }))
    }

    /// After which time the holder of a place is taken for dead; 30 seconds unless said.
    ///
    /// # Panics
    /// If it is no time or above 366 days, or the limit is not [`concurrent`].
    #[track_caller]
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        let Kind::Concurrent { count, .. } = self.kind else {
            panic!("lease: {} takes none; concurrent(..) does", self.text)
        };
        or_panic(Self::new(Kind::Concurrent { count, lease }))
    }

    /// Reads text such as `100/min burst 50`, also as `"…".parse()`.
    ///
    /// # Errors
    /// If it is no limit, or out of range. The message says where, and what to write.
    pub fn parse(text: &str) -> Result<Self, OptionError> {
        let kind = limit_text::parse(text).map_err(|m| OptionError::new("limit", m))?;
        Self::new(kind).map_err(|error| {
            OptionError::new(
                "limit",
                format!("{}: {}", crate::error::quoted(text), error.message()),
            )
        })
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// As text, as the service reads it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn new(kind: Kind) -> Result<Self, OptionError> {
        check(kind, Algorithm::TokenBucket)?;
        Ok(Self { kind, text: limit_text::write(kind).into() })
    }

    /// Whether it can be counted so.
    pub(crate) fn check_with(&self, algorithm: Algorithm) -> Result<(), OptionError> {
        if algorithm != Algorithm::TokenBucket && !matches!(self.kind, Kind::Rate { .. }) {
            let message =
                format!("{} is only for rates, not for {}", algorithm.as_str(), self.text);
            return Err(OptionError::new("algorithm", message));
        }
        check(self.kind, algorithm)
    }
}

fn check(kind: Kind, algorithm: Algorithm) -> Result<(), OptionError> {
    match kind {
        Kind::Rate { count, period, burst } => check_rate(count, period, burst, algorithm),
        Kind::Concurrent { count, lease } => {
            in_range("count", count, MOST_CONCURRENT)?;
            check_length("lease", lease)
        }
        Kind::Unlimited | Kind::Deny => Ok(()),
    }
}

fn check_rate(
    count: u64,
    period: Duration,
    burst: Option<u64>,
    algorithm: Algorithm,
) -> Result<(), OptionError> {
    if count == 0 {
        let message = format!("0 is not allowed; write 1 to {MOST}, or the limit \"deny\"");
        return Err(OptionError::new("count", message));
    }
    in_range(
        "count",
        count,
        if algorithm == Algorithm::SlidingLog { MOST_CONCURRENT } else { MOST },
    )?;
    check_length("period", period)?;
    if !algorithm.is_bucket() {
        return match burst {
            Some(_) => {
                let message =
                    format!("{} takes none; token_bucket and leaky_bucket do", algorithm.as_str());
                Err(OptionError::new("burst", message))
            }
            None => Ok(()),
        };
    }
    if u128::from(count) * 1_000_000_000 > period.as_nanos() * MOST_PER_SECOND {
        let message = format!(
            "{count} in {} is not allowed; write at most {MOST_PER_SECOND} in 1s",
            limit_text::length(period)
        );
        return Err(OptionError::new("count", message));
    }
    let burst = burst.unwrap_or(count);
    in_range("burst", burst, MOST)?;
    let most = LONGEST.as_nanos() * u128::from(count) / period.as_nanos();
    if u128::from(burst) > most {
        let message = format!(
            "{burst} is not allowed; write 1 to {most}, which takes at most 366day to fill"
        );
        return Err(OptionError::new("burst", message));
    }
    Ok(())
}

fn in_range(option: &'static str, value: u64, most: u64) -> Result<(), OptionError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(OptionError::new(option, format!("{value} is not allowed; write 1 to {most}")))
}

/// Text has no unit below the millisecond.
fn check_length(option: &'static str, value: Duration) -> Result<(), OptionError> {
    let least = Duration::from_millis(1);
    if (least..=LONGEST).contains(&value) && value.subsec_nanos() % 1_000_000 == 0 {
        return Ok(());
    }
    let value = limit_text::length(value);
    let message = format!("{value} is not allowed; write whole milliseconds, 1ms to 366day");
    Err(OptionError::new(option, message))
}

/// Limits in code are the programmer's, and what is wrong with them is wrong from the start.
#[track_caller]
fn or_panic(limit: Result<Limit, OptionError>) -> Limit {
    match limit {
        Ok(limit) => limit,
        Err(error) => panic!("{error}"),
    }
}

impl std::str::FromStr for Limit {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        Self::parse(text)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({})", self.text)
    }
}
