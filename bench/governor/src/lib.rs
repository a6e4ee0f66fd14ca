//! governor's keyed limiter behind a C interface, so that it runs in the same process, in turn
//! with the others and on the same keys.
//!
//! The loop over the keys is on this side and governor is compiled into it, as in a Rust program:
//! one call from C stands for many checks.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, FakeRelativeClock, QuantaClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

/// The keys of many requests, in the order in which they come.
pub struct Queries {
    texts: Vec<String>,
    numbers: Vec<u64>,
}

/// What a key is to governor.
trait Key: Hash + Eq + Clone + Send + Sync + 'static {
    fn all(queries: &Queries) -> &[Self];
}

impl Key for String {
    fn all(queries: &Queries) -> &[Self] {
        &queries.texts
    }
}

impl Key for u64 {
    fn all(queries: &Queries) -> &[Self] {
        &queries.numbers
    }
}

/// A limiter whatever its key and clock are.
trait Peer: Send + Sync {
    /// Checks `count` keys from `from` on, beginning again after the last, and says how many were
    /// allowed.
    fn check(&self, queries: &Queries, from: usize, count: usize) -> usize;
    fn len(&self) -> usize;
}

type Dash<K, C> = RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

struct Keyed<K: Key, C: Clock>(Dash<K, C>);

impl<K: Key, C: Clock + Send + Sync> Peer for Keyed<K, C>
where
    C::Instant: Send + Sync,
{
    fn check(&self, queries: &Queries, from: usize, count: usize) -> usize {
        let keys = K::all(queries);
        let mut allowed = 0;
        let mut at = from;
        for _ in 0..count {
            allowed += usize::from(self.0.check_key(&keys[at]).is_ok());
            at += 1;
            if at == keys.len() {
                at = 0;
            }
        }
        allowed
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

pub struct Limiter(Box<dyn Peer>);

fn make<K: Key>(quota: Quota, reads_clock: bool) -> Limiter {
    if reads_clock {
        let limiter: Dash<K, QuantaClock> = RateLimiter::dashmap(quota);
        Limiter(Box::new(Keyed(limiter)))
    } else {
        let clock = FakeRelativeClock::default();
        let limiter: Dash<K, _> = RateLimiter::dashmap_with_clock(quota, clock);
        Limiter(Box::new(Keyed(limiter)))
    }
}

/// A limiter of `burst` a day, with its default clock or one that stands still, for keys that are
/// texts or numbers.
#[no_mangle]
pub extern "C" fn governor_make(burst: u32, reads_clock: bool, texts: bool) -> *mut Limiter {
    let burst = NonZeroU32::new(burst).expect("a burst above 0");
    let interval = Duration::from_secs(86_400) / burst.get();
    let quota = Quota::with_period(interval)
        .expect("an interval above 0")
        .allow_burst(burst);
    let make = if texts { make::<String> } else { make::<u64> };
    Box::into_raw(Box::new(make(quota, reads_clock)))
}

/// # Safety
/// `limiter` came from `governor_make` and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn governor_free(limiter: *mut Limiter) {
    drop(Box::from_raw(limiter));
}

/// Takes a copy of `count` texts of `bytes` bytes, `stride` apart, as the keys of requests. Their
/// last 16 bytes are hex digits, and are the key as a number.
///
/// # Safety
/// `texts` holds as many bytes as that.
#[no_mangle]
pub unsafe extern "C" fn governor_queries(
    texts: *const u8,
    bytes: usize,
    stride: usize,
    count: usize,
) -> *mut Queries {
    let text = |at: usize| {
        let raw = std::slice::from_raw_parts(texts.add(at * stride), bytes);
        std::str::from_utf8(raw).expect("a key in ASCII")
    };
    let number = |at: usize| u64::from_str_radix(&text(at)[bytes - 16..], 16).expect("hex digits");
    Box::into_raw(Box::new(Queries {
        texts: (0..count).map(|at| text(at).to_owned()).collect(),
        numbers: (0..count).map(number).collect(),
    }))
}

/// # Safety
/// `queries` came from `governor_queries` and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn governor_free_queries(queries: *mut Queries) {
    drop(Box::from_raw(queries));
}

/// # Safety
/// `limiter` and `queries` came from here.
#[no_mangle]
pub unsafe extern "C" fn governor_check(
    limiter: *const Limiter,
    queries: *const Queries,
    from: usize,
    count: usize,
) -> usize {
    (*limiter).0.check(&*queries, from, count)
}

/// How many keys the limiter holds.
///
/// # Safety
/// `limiter` came from `governor_make`.
#[no_mangle]
pub unsafe extern "C" fn governor_len(limiter: *const Limiter) -> usize {
    (*limiter).0.len()
}
