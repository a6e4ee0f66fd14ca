//! Token buckets in this process, which decide while no service answers.
//!
//! Kept as the instant when a key's bucket will be full again (GCRA), in whole nanoseconds of the
//! monotonic clock. Bounded: when there are too many keys, those whose bucket is full go first,
//! then those that were not asked for longest.

use std::collections::HashMap;
use std::time::Duration;

use crate::limit::Kind;

const MOST_KEYS: usize = 65_536;
/// So many go at once when there is no room, so that looking for them is worth it.
const BATCH: usize = MOST_KEYS / 8;

/// A limit as a bucket counts it, or the part of it that one of several processes has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The time that one unit takes to come back.
    interval: u64,
    pub(crate) burst: u64,
}

/// What a bucket says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) allowed: bool,
    pub(crate) remaining: u64,
    /// `None`: it will never fit.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Duration,
}

impl Bucket {
    /// `None` for what is not counted by time.
    pub(crate) fn new(kind: Kind, share: u64) -> Option<Self> {
        let Kind::Rate { count, period, burst } = kind else { return None };
        // Rounded up, so that nothing is let through above the rate.
        let interval = (period.as_nanos() * u128::from(share)).div_ceil(u128::from(count));
        let burst = (burst.unwrap_or(count) / share).max(1);
        Some(Self { interval: u64::try_from(interval).unwrap_or(u64::MAX), burst })
    }

    fn time_for(self, units: u64) -> u64 {
        self.interval.saturating_mul(units)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Buckets {
    keys: HashMap<Box<str>, Entry>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    full_at: u64,
    /// When it was asked for last, in turns.
    touched: u64,
}

impl Buckets {
    /// Takes the cost if there is room for it. `now` is in nanoseconds.
    pub(crate) fn take(&mut self, key: &str, bucket: Bucket, cost: u64, now: u64) -> Taken {
        let taken = self.peek(key, bucket, cost, now);
        if taken.allowed && cost > 0 {
            self.charge(key, bucket, cost, now);
        }
        taken
    }

    /// What [`take`](Self::take) would say.
    pub(crate) fn peek(&self, key: &str, bucket: Bucket, cost: u64, now: u64) -> Taken {
        let full_at = self.keys.get(key).map_or(now, |entry| entry.full_at.max(now));
        let used = full_at - now;
        let capacity = bucket.time_for(bucket.burst);
        let after = used.saturating_add(bucket.time_for(cost));
        let allowed = cost <= bucket.burst && after <= capacity;
        let used = if allowed { after } else { used };
        let retry_after = match allowed {
            true => Some(Duration::ZERO),
            false if cost > bucket.burst => None,
            false => Some(Duration::from_nanos(after - capacity)),
        };
        Taken {
            allowed,
            remaining: capacity.saturating_sub(used) / bucket.interval.max(1),
            retry_after,
            reset_after: Duration::from_nanos(used),
        }
    }

    /// Charges what was let through by others, at most until the bucket is empty.
    pub(crate) fn charge(&mut self, key: &str, bucket: Bucket, cost: u64, now: u64) {
        self.turn += 1;
        let latest = now.saturating_add(bucket.time_for(bucket.burst));
        let charged =
            |full_at: u64| full_at.max(now).saturating_add(bucket.time_for(cost)).min(latest);
        if let Some(entry) = self.keys.get_mut(key) {
            *entry = Entry { full_at: charged(entry.full_at), touched: self.turn };
            return;
        }
        if self.keys.len() >= MOST_KEYS {
            self.make_room(now);
        }
        self.keys.insert(key.into(), Entry { full_at: charged(now), touched: self.turn });
    }

    fn make_room(&mut self, now: u64) {
        self.keys.retain(|_, entry| entry.full_at > now);
        if self.keys.len() > MOST_KEYS - BATCH {
            let mut turns: Vec<u64> = self.keys.values().map(|entry| entry.touched).collect();
            let (_, last, _) = turns.select_nth_unstable(BATCH);
            let last = *last;
            self.keys.retain(|_, entry| entry.touched > last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{minute, rate};

    const SECOND: u64 = 1_000_000_000;

    fn bucket(count: u64, burst: u64, share: u64) -> Bucket {
        Bucket::new(rate(count).per(minute).burst(burst).kind(), share).unwrap()
    }

    #[test]
    fn a_bucket_denies_one_more_than_its_burst_and_says_when_to_come_back() {
        let (mut buckets, bucket) = (Buckets::default(), bucket(60, 3, 1));
        for left in [2, 1, 0] {
            let taken = buckets.take("ann", bucket, 1, 7);
            assert!(taken.allowed);
            assert_eq!(taken.remaining, left);
        }
        let denied = buckets.take("ann", bucket, 1, 7);
        assert_eq!(denied.retry_after, Some(Duration::from_secs(1)));
        assert!(!denied.allowed);
        assert!(!buckets.take("ann", bucket, 1, 6 + SECOND).allowed);
        assert!(buckets.take("ann", bucket, 1, 7 + SECOND).allowed);
        assert!(buckets.take("bob", bucket, 1, 7).allowed);
    }

    #[test]
    fn a_share_is_a_part_of_rate_and_burst_and_at_least_one() {
        let (mut buckets, eighth) = (Buckets::default(), bucket(60, 3, 8));
        assert_eq!(eighth.burst, 1);
        assert!(buckets.take("ann", eighth, 1, 0).allowed);
        let denied = buckets.take("ann", eighth, 1, 0);
        assert_eq!(denied.retry_after, Some(Duration::from_secs(8)));
    }

    #[test]
    fn what_others_let_through_is_charged_and_never_above_the_burst() {
        let (mut buckets, bucket) = (Buckets::default(), bucket(60, 3, 1));
        buckets.charge("ann", bucket, 2, 0);
        assert_eq!(buckets.peek("ann", bucket, 0, 0).remaining, 1);
        buckets.charge("ann", bucket, 1_000_000_000_000_000, 0);
        assert_eq!(buckets.peek("ann", bucket, 0, 0).remaining, 0);
        assert!(buckets.take("ann", bucket, 1, SECOND).allowed);
    }

    #[test]
    fn a_cost_above_the_burst_never_fits() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.take("ann", bucket(60, 3, 1), 4, 0).retry_after, None);
    }

    #[test]
    fn keys_are_bounded_and_the_fresh_go_first_then_the_oldest() {
        let (mut buckets, slow) = (Buckets::default(), bucket(1, 1, 1));
        for number in 0..MOST_KEYS {
            // Every other one is fresh again after a second.
            let bucket = if number % 2 == 0 { slow } else { bucket(60, 1, 1) };
            buckets.charge(&number.to_string(), bucket, 1, 0);
        }
        buckets.charge("new", slow, 1, 2 * SECOND);
        assert_eq!(buckets.keys.len(), MOST_KEYS / 2 + 1);
        assert!(!buckets.peek("0", slow, 1, 2 * SECOND).allowed);
        for number in 0..MOST_KEYS {
            buckets.charge(&format!("more{number}"), slow, 1, 2 * SECOND);
        }
        assert!(buckets.keys.len() <= MOST_KEYS);
        assert!(buckets.peek("0", slow, 1, 2 * SECOND).allowed);
        assert!(!buckets.peek(&format!("more{}", MOST_KEYS - 1), slow, 1, 2 * SECOND).allowed);
    }
}
