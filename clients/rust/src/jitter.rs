//! Chance enough to keep those apart who would come at the same time. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Up to so much, evenly.
pub(crate) fn up_to(most: Duration) -> Duration {
    // Each RandomState has other keys.
    let chance = RandomState::new().build_hasher().finish() >> 32;
    let nanos = most.as_nanos() * u128::from(chance) / u128::from(u32::MAX);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_within_bounds_and_not_always_the_same() {
        let most = Duration::from_secs(1);
        let all: std::collections::HashSet<_> = (0..100).map(|_| up_to(most)).collect();
        assert!(all.len() > 50);
        assert!(all.iter().all(|some| *some <= most));
        assert!(all.iter().max() > Some(&(most / 2)) && all.iter().min() < Some(&(most / 2)));
    }
}
