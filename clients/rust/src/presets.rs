//! Limits that are a sensible beginning.
//!
//! ```
//! use weir_limiter::{presets, PeerIp, Weir, WeirLayer};
//!
//! # fn layer(weir: &Weir) -> WeirLayer<weir_limiter::ByLimit> {
//! WeirLayer::limit(weir, presets::login()).key(PeerIp)
//! # }
//! ```

use crate::limit::{concurrent, hour, minute, rate, Limit};

/// What a busy client of an API needs: 600 a minute, 100 at once.
#[must_use]
pub fn api() -> Limit {
    rate(600).per(minute).burst(100)
}

/// Attempts to log in: 5 a minute.
#[must_use]
pub fn login() -> Limit {
    rate(5).per(minute)
}

/// What sends a mail or makes an account: 10 an hour, 3 at once.
#[must_use]
pub fn signup() -> Limit {
    rate(10).per(hour).burst(3)
}

/// What takes long, such as an export: 2 at the same time.
#[must_use]
pub fn expensive() -> Limit {
    concurrent(2)
}
