//! The gate before one origin: lets requests through as the server has room for them, first come,
//! first served, those that were refused before all others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, Notify};
use tokio::time::Instant;

use super::reading::Reading;
use crate::jitter;

const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// Those who wait look again until when.
    blocked: Notify,
}

#[derive(Debug, Default)]
struct State {
    blocked_until: Option<Instant>,
    /// Whether there was a response at all; before that one request goes alone.
    answered: bool,
    /// How many may be under way; unknown before a response has said it.
    budget: Option<u64>,
    under_way: u64,
    /// The number of the request that goes next.
    next: u64,
    /// Requests from this one on were sent when the budget was known: what their responses say is
    /// newer. Of the others only what is less counts.
    known_since: u64,
    backoff: Option<Duration>,
    refused: VecDeque<oneshot::Sender<Pass>>,
    waiting: VecDeque<oneshot::Sender<Pass>>,
}

/// The right to have one request under way.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    number: u64,
    open: bool,
}

impl Gate {
    /// Waits for its turn, until `deadline` at most.
    pub(crate) async fn enter(self: &Arc<Self>, again: bool, deadline: Instant) -> Pass {
        let (sender, mut turn) = oneshot::channel();
        {
            let mut state = self.lock();
            let queue = if again { &mut state.refused } else { &mut state.waiting };
            queue.push_back(sender);
        }
        loop {
            let blocked = self.blocked.notified();
            tokio::pin!(blocked);
            blocked.as_mut().enable();
            let until = self.open().map_or(deadline, |blocked| blocked.min(deadline));
            tokio::select! {
                biased;
                Ok(pass) = &mut turn => return pass,
                () = blocked => {}
                () = tokio::time::sleep_until(until) => {
                    if until == deadline {
                        // Nobody waits longer than that; its place in the queue is void.
                        return self.pass(&mut self.lock());
                    }
                }
            }
        }
    }

    /// Lets through whom there is room for. Until when nobody is, if that is known.
    fn open(self: &Arc<Self>) -> Option<Instant> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let blocked = state.blocked_until.filter(|until| *until > now);
            let room = state.answered && state.budget.is_none_or(|budget| state.under_way < budget);
            // One is always let through, or nobody would ever say that there is room again.
            if blocked.is_some() || !(room || state.under_way == 0) {
                break blocked;
            }
            let Some(turn) = state.take_first() else { break None };
            let pass = self.pass(&mut state);
            if let Err(mut pass) = turn.send(pass) {
                // Its request was given up.
                state.under_way -= 1;
                pass.open = false;
            }
        }
    }

    fn pass(self: &Arc<Self>, state: &mut State) -> Pass {
        let number = state.next;
        state.next += 1;
        state.under_way += 1;
        Pass { gate: self.clone(), number, open: true }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody needs it.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        let blocked = state.blocked_until.is_some_and(|until| until > Instant::now());
        state.under_way == 0 && !blocked && state.waiting.is_empty() && state.refused.is_empty()
    }
}

impl State {
    fn take_first(&mut self) -> Option<oneshot::Sender<Pass>> {
        self.refused.pop_front().or_else(|| self.waiting.pop_front())
    }

    fn block(&mut self, wait: Duration) {
        let until = Instant::now() + wait + jitter::up_to(wait / 10 + Duration::from_millis(50));
        self.blocked_until = Some(self.blocked_until.map_or(until, |other| other.max(until)));
    }

    /// How long a request that was refused has to wait.
    fn note(&mut self, number: u64, reading: &Reading) -> Option<Duration> {
        self.answered = true;
        if let Some(remaining) = reading.remaining {
            let newer = number >= self.known_since;
            if newer || self.budget.is_none_or(|budget| remaining < budget) {
                self.budget = Some(remaining);
                self.known_since = self.next;
            }
        }
        if !reading.refused {
            self.backoff = None;
            if let Some(wait) = reading.wait {
                self.block(wait);
            }
            return None;
        }
        let wait = reading.wait.unwrap_or_else(|| {
            let wait = self.backoff.unwrap_or(FIRST_BACKOFF);
            self.backoff = Some((wait * 2).min(LONGEST_BACKOFF));
            wait
        });
        self.block(wait);
        Some(wait)
    }
}

impl Pass {
    /// The response has come. How long its request has to wait before it is sent again, if it was
    /// refused.
    pub(crate) fn note(&self, reading: &Reading) -> Option<Duration> {
        let wait = self.gate.lock().note(self.number, reading);
        if reading.wait.is_some() || wait.is_some() {
            self.gate.blocked.notify_waiters();
        }
        wait
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.open {
            self.gate.lock().under_way -= 1;
            self.gate.open();
        }
    }
}
