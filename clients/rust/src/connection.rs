//! One connection, with many questions under way on it at a time: replies come in the order of the
//! questions.
//!
//! There is no task that reads. One of those who wait reads for all of them, so that a question on
//! its own costs a write, a wait and a read, and no hop between tasks; when it has its own reply,
//! the next who waits takes over, and so does one who has waited for long: the one who reads may be
//! in a task that is busy with something else. A question that finds others under way first lets the other tasks
//! of this turn ask theirs, so that all of them leave in one write.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::resp;
use crate::transport::Stream;

/// Far above what a service takes up at a time, so that a flood waits rather than passes undecided.
pub(crate) const MOST_UNDER_WAY: usize = 16 * 1024;
const READ_SIZE: usize = 16 * 1024;
/// Who has not been asked for so long may have gone.
const REST: Duration = Duration::from_millis(100);

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was closed while nothing was under way, which is no failure of the service.
    Idle,
    /// Too many questions are under way already.
    Full,
    /// In words.
    Failed(Arc<str>),
}

#[derive(Debug)]
pub(crate) struct Connection {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stream: Stream,
    lost: Option<Lost>,
    /// Whether those who wait know that it is lost.
    told: bool,
    outgoing: Vec<u8>,
    /// Whether the stream itself keeps something back.
    unflushed: bool,
    incoming: Vec<u8>,
    filled: usize,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Whose reply comes next.
    order: VecDeque<usize>,
    /// Who reads.
    reader: Option<usize>,
    /// When it was asked last.
    asked: Instant,
}

#[derive(Debug)]
enum Slot {
    Free,
    Waiting(Waker),
    /// Nobody waits any more; the reply is dropped.
    Abandoned,
    Done(Bytes),
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            state: Mutex::new(State {
                stream,
                lost: None,
                told: false,
                outgoing: Vec::new(),
                unflushed: false,
                incoming: vec![0; READ_SIZE],
                filled: 0,
                slots: Vec::new(),
                free: Vec::new(),
                order: VecDeque::new(),
                reader: None,
                asked: Instant::now(),
            }),
        }
    }

    /// Nobody gets a reply any more; all who wait are told why.
    pub(crate) fn lose(&self, why: &str) {
        let mut wake = Vec::new();
        {
            let mut state = self.lock();
            state.lose(Lost::Failed(why.into()));
            state.tell(&mut wake);
        }
        wake.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost.is_some()
    }

    /// Whether nothing has happened here for a while, perhaps because the runtime stood still, which
    /// then does not know yet that it was closed.
    pub(crate) fn has_rested(&self) -> bool {
        let state = self.lock();
        state.order.is_empty() && state.asked.elapsed() > REST
    }

    pub(crate) fn ask<'a>(self: &Arc<Self>, command: &'a [u8]) -> Question<'a> {
        Question { connection: self.clone(), command, step: Step::New, takes_over: false }
    }

    /// Nothing panics while it holds the lock; and if it did, the connection would be as lost as
    /// any whose replies are not what was asked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lose(&mut self, why: Lost) {
        if self.lost.is_none() {
            self.lost = Some(why);
        }
    }

    /// Everybody who waits, once, if it is lost.
    fn tell(&mut self, wake: &mut Vec<Waker>) {
        if self.lost.is_some() && !std::mem::replace(&mut self.told, true) {
            wake.extend(self.waiting(None));
        }
    }

    /// The wakers of those who wait, in the order of their replies.
    fn waiting(&self, but: Option<usize>) -> impl Iterator<Item = Waker> + '_ {
        self.order.iter().filter_map(move |&index| match &self.slots[index] {
            Slot::Waiting(waker) if Some(index) != but => Some(waker.clone()),
            _ => None,
        })
    }

    fn take_slot(&mut self, slot: Slot) -> usize {
        if let Some(index) = self.free.pop() {
            self.slots[index] = slot;
            return index;
        }
        self.slots.push(slot);
        self.slots.len() - 1
    }

    fn free_slot(&mut self, index: usize) -> Slot {
        self.free.push(index);
        std::mem::replace(&mut self.slots[index], Slot::Free)
    }

    /// As much as the other side takes; the rest stays in `outgoing`.
    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) {
        let mut written = 0;
        if self.outgoing.is_empty() {
            while written < bytes.len() {
                match self.stream.poll_write(cx, &bytes[written..]) {
                    Poll::Ready(Ok(0)) => return self.lose(closed()),
                    Poll::Ready(Ok(count)) => written += count,
                    Poll::Ready(Err(error)) => return self.lose(failed(&error)),
                    Poll::Pending => break,
                }
            }
            self.flush_stream(cx);
        }
        self.outgoing.extend_from_slice(&bytes[written..]);
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        if self.unflushed {
            self.flush_stream(cx);
        }
        if !self.outgoing.is_empty() {
            let bytes = std::mem::take(&mut self.outgoing);
            self.write(cx, &bytes);
            if self.outgoing.is_empty() {
                self.outgoing = bytes;
                self.outgoing.clear();
            }
        }
    }

    /// Whether something is still to be written.
    fn keeps_back(&self) -> bool {
        !self.outgoing.is_empty() || self.unflushed
    }

    fn flush_stream(&mut self, cx: &mut Context<'_>) {
        let flushed = self.stream.poll_flush(cx);
        self.unflushed = flushed.is_pending();
        if let Poll::Ready(Err(error)) = flushed {
            self.lose(failed(&error));
        }
    }

    /// Takes what has arrived, and sees to it that the task of `cx` is woken when more does.
    fn read(&mut self, cx: &mut Context<'_>, wake: &mut Vec<Waker>) {
        let own = self.reader;
        while self.lost.is_none() {
            if self.filled == self.incoming.len() {
                self.incoming.resize(self.filled * 2, 0);
            }
            match self.stream.poll_read(cx, &mut self.incoming[self.filled..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(0) | Err(_)) if self.order.is_empty() => self.lose(Lost::Idle),
                Poll::Ready(Ok(0)) => self.lose(closed()),
                Poll::Ready(Err(error)) => self.lose(failed(&error)),
                Poll::Ready(Ok(count)) => {
                    self.filled += count;
                    if self.deliver(own, wake).is_err() {
                        self.lose(Lost::Failed("it answers nonsense".into()));
                    }
                }
            }
        }
    }

    /// All but `own` are woken, who is at work already.
    fn deliver(&mut self, own: Option<usize>, wake: &mut Vec<Waker>) -> Result<(), resp::Nonsense> {
        let mut at = 0;
        while at < self.filled {
            let rest = &self.incoming[at..self.filled];
            let Some(length) = resp::frame(rest)? else { break };
            let index = self.order.pop_front().ok_or(resp::Nonsense)?;
            match std::mem::replace(&mut self.slots[index], Slot::Free) {
                Slot::Waiting(waker) => {
                    let reply = Bytes::copy_from_slice(&rest[..length]);
                    self.slots[index] = Slot::Done(reply);
                    if own != Some(index) {
                        wake.push(waker);
                    }
                }
                _ => self.free.push(index),
            }
            at += length;
        }
        self.incoming.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }

    /// Somebody has to read while there are replies to come.
    fn pass_on_reading(&mut self, from: usize, wake: &mut Vec<Waker>) {
        if self.reader.is_some_and(|reader| reader != from) {
            return;
        }
        self.reader = None;
        let next = self.waiting(Some(from)).next();
        wake.extend(next);
    }
}

fn closed() -> Lost {
    Lost::Failed("it closed the connection".into())
}

fn failed(error: &io::Error) -> Lost {
    Lost::Failed(error.to_string().into())
}

/// A question, sent when it is first polled.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    connection: Arc<Connection>,
    command: &'a [u8],
    step: Step,
    /// Whether it reads even if somebody else does.
    takes_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    New,
    /// In `outgoing`, with what others of this turn will ask.
    Gathered(usize),
    Waiting(usize),
    Ended,
}

impl Question<'_> {
    /// Whether the service may have been asked, and has not answered.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.step, Step::Gathered(_) | Step::Waiting(_)) && !self.connection.is_lost()
    }

    pub(crate) fn connection(&self) -> Arc<Connection> {
        self.connection.clone()
    }

    /// The same, for somebody else to wait for.
    pub(crate) fn hand_over(&mut self) -> Question<'static> {
        let step = std::mem::replace(&mut self.step, Step::Ended);
        Question { connection: self.connection.clone(), command: &[], step, takes_over: false }
    }

    /// Reads by itself when it is polled next.
    pub(crate) fn take_over(&mut self) {
        self.takes_over = true;
    }

    fn begin(&mut self, state: &mut State, cx: &mut Context<'_>, wake: &mut Vec<Waker>) {
        let idle = state.order.is_empty();
        if idle {
            // Whether it was closed meanwhile; costs nothing if not.
            state.read(cx, wake);
        }
        if state.lost.is_some() {
            return;
        }
        if state.order.len() >= MOST_UNDER_WAY {
            self.step = Step::Ended;
            return;
        }
        let slot = state.take_slot(Slot::Waiting(cx.waker().clone()));
        state.order.push_back(slot);
        if idle {
            state.asked = Instant::now();
            state.write(cx, self.command);
            if state.lost.is_some() {
                // It was closed before this was sent.
                state.lost = Some(Lost::Idle);
                state.order.clear();
                state.free_slot(slot);
                return;
            }
            self.step = Step::Waiting(slot);
        } else {
            state.outgoing.extend_from_slice(self.command);
            cx.waker().wake_by_ref();
            self.step = Step::Gathered(slot);
        }
    }

    fn wait(
        &mut self,
        slot: usize,
        state: &mut State,
        cx: &mut Context<'_>,
        wake: &mut Vec<Waker>,
    ) -> Poll<Result<Bytes, Lost>> {
        self.step = Step::Waiting(slot);
        if state.lost.is_none() {
            state.flush(cx);
        }
        if matches!(state.slots[slot], Slot::Waiting(_))
            && state.lost.is_none()
            && (self.takes_over || state.reader.is_none_or(|reader| reader == slot))
        {
            self.takes_over = false;
            state.reader = Some(slot);
            state.read(cx, wake);
        }
        match &mut state.slots[slot] {
            Slot::Done(_) => {
                self.step = Step::Ended;
                let Slot::Done(reply) = state.free_slot(slot) else { unreachable!() };
                state.pass_on_reading(slot, wake);
                if state.keeps_back() {
                    // This one tried last, and would be woken when more can be written.
                    let next = state.waiting(None).next();
                    wake.extend(next);
                }
                Poll::Ready(Ok(reply))
            }
            Slot::Waiting(waker) => {
                if let Some(lost) = &state.lost {
                    self.step = Step::Ended;
                    return Poll::Ready(Err(lost.clone()));
                }
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Slot::Free | Slot::Abandoned => unreachable!("the slot is this question's"),
        }
    }
}

impl Future for Question<'_> {
    type Output = Result<Bytes, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let connection = this.connection.clone();
        let mut wake = Vec::new();
        let mut state = connection.lock();
        if this.step == Step::New {
            this.begin(&mut state, cx, &mut wake);
            if let Step::Gathered(_) = this.step {
                return Poll::Pending;
            }
        }
        let polled = match this.step {
            Step::Gathered(slot) | Step::Waiting(slot) => {
                this.wait(slot, &mut state, cx, &mut wake)
            }
            Step::Ended => Poll::Ready(Err(Lost::Full)),
            Step::New => Poll::Ready(Err(state.lost.clone().unwrap_or(Lost::Idle))),
        };
        state.tell(&mut wake);
        drop(state);
        wake.into_iter().for_each(Waker::wake);
        polled
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let (Step::Gathered(slot) | Step::Waiting(slot)) = self.step else { return };
        let mut wake = Vec::new();
        {
            let mut state = self.connection.lock();
            match &state.slots[slot] {
                Slot::Done(_) => {
                    state.free_slot(slot);
                }
                _ => state.slots[slot] = Slot::Abandoned,
            }
            state.pass_on_reading(slot, &mut wake);
            if state.keeps_back() {
                // Who was to be woken when more can be written may be this one.
                wake.extend(state.waiting(None));
            }
        }
        wake.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn what_waits_to_be_written_is_not_forgotten_by_one_who_has_its_reply() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let connection = Arc::new(Connection::new(Stream::Unix(ours)));
        // More than a socket takes at once.
        let long = vec![b'x'; 8 << 20];
        let commands = [&b"a"[..], &long, b"last"];
        let wakers: [Arc<Woken>; 3] = Default::default();
        let mut asked = commands.map(|command| connection.ask(command));
        let mut poll = |index: usize| {
            let waker = Waker::from(wakers[index].clone());
            Pin::new(&mut asked[index]).poll(&mut Context::from_waker(&waker))
        };
        for index in [0, 1, 2, 1] {
            assert!(poll(index).is_pending());
        }
        theirs.write_all(b"+a\r\n+b\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(poll(0).is_ready());
        // The last one reads, and the second, which has its reply, is the last who tried to write.
        assert!(poll(2).is_pending());
        wakers[2].0.store(0, Ordering::SeqCst);
        assert!(poll(1).is_ready());
        let mut taken = vec![0; 1 << 16];
        let waiting = Duration::from_millis(50);
        while let Ok(read) = tokio::time::timeout(waiting, theirs.read(&mut taken)).await {
            assert!(read.unwrap() > 0);
        }
        assert!(wakers[2].0.load(Ordering::SeqCst) > 0);
    }
}
