//! What is logged: a word when something begins and one when it ends, never one for each request.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::failure::OnFailure;

/// Texts that were told are remembered, but not without end.
const MOST_TEXTS: usize = 256;
/// What comes and goes by the millisecond is told no more often.
const OCCASIONALLY: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Notices {
    /// The server that is asked.
    current: AtomicUsize,
    alone: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    alone: Option<Alone>,
    moved: Option<Instant>,
    overloaded: Option<Instant>,
    told: HashSet<String>,
}

struct Alone {
    since: Instant,
    decided: u64,
}

impl Notices {
    /// A service answered. `preferred` says which is the first that is not down.
    pub(crate) fn answered(
        &self,
        server: usize,
        addresses: &[Address],
        preferred: impl Fn() -> (Option<usize>, String),
    ) {
        let current = self.current.load(Ordering::Relaxed);
        if server == current && !self.alone.load(Ordering::Relaxed) {
            return;
        }
        let (first, why) = preferred();
        let mut state = self.lock();
        if let Some(alone) = state.alone.take() {
            self.alone.store(false, Ordering::Relaxed);
            tracing::warn!(
                "weir: {} answers again after {:.1} s; {} requests were decided without it",
                addresses[server],
                alone.since.elapsed().as_secs_f64(),
                alone.decided
            );
            // Which one it is has been said.
            self.current.store(server, Ordering::Relaxed);
            state.moved = (server != 0).then(Instant::now);
            return;
        }
        let current = self.current.load(Ordering::Relaxed);
        // Those who were on their way when that changed say nothing about it.
        if first != Some(server) || server == current {
            return;
        }
        self.current.store(server, Ordering::Relaxed);
        if server > current {
            state.moved.get_or_insert_with(Instant::now);
            tracing::warn!(
                "weir: {} is gone ({why}): asking {}",
                addresses[current],
                addresses[server]
            );
        } else {
            let since = state.moved.unwrap_or_else(Instant::now);
            if server == 0 {
                state.moved = None;
            }
            tracing::warn!(
                "weir: {} is back after {:.1} s, and asked again",
                addresses[server],
                since.elapsed().as_secs_f64()
            );
        }
    }

    /// No service answered, and it is decided here.
    pub(crate) fn unanswered(&self, why: &str, mode: OnFailure) {
        let mut state = self.lock();
        if let Some(alone) = &mut state.alone {
            alone.decided += 1;
            return;
        }
        state.alone = Some(Alone { since: Instant::now(), decided: 1 });
        self.alone.store(true, Ordering::Relaxed);
        tracing::warn!(
            "weir: {why}; on_failure is {}: {} until it is back",
            mode.as_str(),
            mode.in_words()
        );
    }

    /// There is a service, but not for this question.
    pub(crate) fn overloaded(&self, why: &str, mode: OnFailure) {
        let mut state = self.lock();
        if state.overloaded.is_some_and(|told| told.elapsed() < OCCASIONALLY) {
            return;
        }
        state.overloaded = Some(Instant::now());
        tracing::warn!(
            "weir: {why}; on_failure is {}: {} meanwhile",
            mode.as_str(),
            mode.in_words()
        );
    }

    /// The service refused a question as it was asked; each text is told once.
    pub(crate) fn refused(&self, text: &str, mode: OnFailure) {
        if self.is_new(text) {
            tracing::warn!(
                "weir: the service says {text:?}; on_failure is {}: {}",
                mode.as_str(),
                mode.in_words()
            );
        }
    }

    /// Anything that is worth a word, once.
    pub(crate) fn once(&self, text: &str) {
        if self.is_new(text) {
            tracing::warn!("weir: {text}");
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut state = self.lock();
        state.told.len() < MOST_TEXTS
            && !state.told.contains(text)
            && state.told.insert(text.into())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
