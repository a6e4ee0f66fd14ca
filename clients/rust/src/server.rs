//! One service of the list: connected or not, up or down, and looked for while it is down.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, Instant};

use crate::address::Address;
use crate::connection::{Connection, Lost, Question};
use crate::jitter;
use crate::resp::{self, Command, Reply};
use crate::transport::{Stream, TlsSettings};

const FIRST_LOOK: Duration = Duration::from_millis(500);
const LAST_LOOK: Duration = Duration::from_secs(5);
/// A handshake takes longer than a question, and nobody waits for it longer than they would.
const TO_CONNECT: Duration = Duration::from_secs(1);

/// After which a question looks for its reply by itself; each time it waits twice as long.
const PATIENCE: Duration = Duration::from_millis(5);

/// A timer that fires so late says that this program was held up, and what it sends only then gets
/// a little time to be answered.
const HELD_UP: Duration = Duration::from_millis(10);
const AFTER_HOLD_UP: Duration = Duration::from_millis(25);

/// What all servers of a client share.
pub(crate) struct Credentials {
    pub(crate) token: Option<String>,
    pub(crate) tls: TlsSettings,
    /// For connecting in the background.
    pub(crate) deadline: Duration,
}

pub(crate) struct Server {
    pub(crate) address: Address,
    credentials: Arc<Credentials>,
    state: Mutex<State>,
    changed: Notify,
}

enum State {
    /// Not asked yet, or its connection has ended by itself.
    Idle,
    Connecting,
    Up(Arc<Connection>),
    Down(Arc<str>),
}

/// Why a server did not answer.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// It is down now.
    Down(Arc<str>),
    /// It has enough to do with what it was asked.
    Full,
}

impl Server {
    pub(crate) fn new(address: Address, credentials: Arc<Credentials>) -> Arc<Self> {
        let state = Mutex::new(State::Idle);
        Arc::new(Self { address, credentials, state, changed: Notify::new() })
    }

    pub(crate) fn is_down(&self) -> bool {
        matches!(*self.lock(), State::Down(_))
    }

    pub(crate) fn why_down(&self) -> Option<Arc<str>> {
        match &*self.lock() {
            State::Down(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// The reply to a command, before `until`.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        command: &Command,
        until: Instant,
    ) -> Result<Bytes, Failure> {
        for fresh in [false, true] {
            let connection = self.connection(until).await?;
            if connection.has_rested() {
                tokio::task::yield_now().await;
            }
            match ask_on(&connection, command.bytes(), until, Some(self)).await {
                Ok(reply) => return Ok(reply),
                Err(Lost::Full) => return Err(Failure::Full),
                Err(Lost::Idle) if !fresh => self.forget(&connection),
                Err(Lost::Idle) => {
                    return Err(self.fail(&connection, "it closed the connection".into()))
                }
                Err(Lost::Failed(why)) => return Err(self.fail(&connection, why)),
            }
        }
        unreachable!("the second time ends it")
    }

    /// It answered, but not as a service that can be asked does.
    pub(crate) fn turn_down(self: &Arc<Self>, why: &str) {
        let connection = match &*self.lock() {
            State::Up(connection) => Some(connection.clone()),
            _ => None,
        };
        if let Some(connection) = connection {
            connection.lose(why);
            self.fail(&connection, why.into());
        }
    }

    async fn connection(self: &Arc<Self>, until: Instant) -> Result<Arc<Connection>, Failure> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            {
                let mut state = self.lock();
                match &*state {
                    State::Up(connection) => return Ok(connection.clone()),
                    State::Down(why) => return Err(Failure::Down(why.clone())),
                    State::Connecting => {}
                    State::Idle => {
                        *state = State::Connecting;
                        tokio::spawn(self.clone().connect());
                    }
                }
                changed.as_mut().enable();
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                let why: Arc<str> = "it cannot be reached in time".into();
                let mut state = self.lock();
                if matches!(*state, State::Connecting) {
                    self.go_down(&mut state, why.clone());
                }
                return Err(Failure::Down(why));
            }
        }
    }

    async fn connect(self: Arc<Self>) {
        let opened = open(&self.address, &self.credentials, false).await;
        let mut state = self.lock();
        // If it took too long, it is down already and looked for.
        if matches!(*state, State::Connecting) {
            match opened {
                Ok(connection) => *state = State::Up(connection),
                Err(why) => self.go_down(&mut state, why.into()),
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The connection has ended and nothing was lost by it.
    fn forget(&self, connection: &Arc<Connection>) {
        let mut state = self.lock();
        if matches!(&*state, State::Up(current) if Arc::ptr_eq(current, connection)) {
            *state = State::Idle;
        }
    }

    fn fail(self: &Arc<Self>, connection: &Arc<Connection>, why: Arc<str>) -> Failure {
        let mut state = self.lock();
        if matches!(&*state, State::Up(current) if Arc::ptr_eq(current, connection)) {
            self.go_down(&mut state, why.clone());
        }
        Failure::Down(why)
    }

    fn go_down(self: &Arc<Self>, state: &mut State, why: Arc<str>) {
        *state = State::Down(why);
        self.changed.notify_waiters();
        tokio::spawn(look_for(Arc::downgrade(self)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it answers, or the client has gone.
async fn look_for(server: Weak<Server>) {
    let mut pause = FIRST_LOOK;
    loop {
        sleep(pause + jitter::up_to(pause)).await;
        pause = (pause * 2).min(LAST_LOOK / 2);
        let Some(server) = server.upgrade() else { return };
        if let Ok(connection) = open(&server.address, &server.credentials, true).await {
            *server.lock() = State::Up(connection);
            server.changed.notify_waiters();
            return;
        }
    }
}

async fn open(
    address: &Address,
    credentials: &Credentials,
    ping: bool,
) -> Result<Arc<Connection>, String> {
    let until = Instant::now() + credentials.deadline.max(TO_CONNECT);
    let opening = async {
        let stream = Stream::connect(address, &credentials.tls).await.map_err(|e| e.to_string())?;
        let connection = Arc::new(Connection::new(stream));
        if let Some(token) = &credentials.token {
            greet(&connection, &["AUTH", token], until).await?;
        }
        if ping {
            // As fast as a question has to be.
            greet(&connection, &["PING"], Instant::now() + credentials.deadline).await?;
        }
        Ok(connection)
    };
    match tokio::time::timeout_at(until, opening).await {
        Ok(opened) => opened,
        Err(_) => Err("it cannot be reached in time".into()),
    }
}

/// What is answered by a word when all is well.
async fn greet(connection: &Arc<Connection>, words: &[&str], until: Instant) -> Result<(), String> {
    let mut command = Command::new(words[0]);
    words[1..].iter().for_each(|word| command.push(word.as_bytes()));
    let command = command.finish();
    match ask_on(connection, command.bytes(), until, None).await {
        Ok(reply) => match resp::read(&reply) {
            Ok(Reply::Word) => Ok(()),
            Ok(Reply::Error(text)) => Err(text),
            _ => Err("it answers nonsense".into()),
        },
        Err(Lost::Failed(why)) => Err(why.to_string()),
        Err(_) => Err("it closed the connection".into()),
    }
}

/// Asks, and closes the connection when time is up: a reply that comes later would be taken for
/// that to another question.
async fn ask_on(
    connection: &Arc<Connection>,
    command: &[u8],
    until: Instant,
    server: Option<&Arc<Server>>,
) -> Result<Bytes, Lost> {
    let mut asked = Asked { question: connection.ask(command), until, server };
    reply_to(&mut asked.question, until).await
}

async fn reply_to(question: &mut Question<'_>, until: Instant) -> Result<Bytes, Lost> {
    let mut patience = PATIENCE;
    let mut latest = until;
    let timer = sleep_until(until.min(Instant::now() + patience));
    tokio::pin!(timer);
    std::future::poll_fn(|cx| loop {
        if let Poll::Ready(reply) = Pin::new(&mut *question).poll(cx) {
            return Poll::Ready(reply);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // Whoever reads, or all of this program, may have been busy with something else, and the
        // reply may be there all the same.
        question.take_over();
        if let Poll::Ready(reply) = Pin::new(&mut *question).poll(cx) {
            return Poll::Ready(reply);
        }
        let now = Instant::now();
        if timer.deadline() >= latest {
            if latest > until || now < until + HELD_UP {
                question.connection().lose("it did not answer in time");
                return Poll::Ready(Err(Lost::Failed("it did not answer in time".into())));
            }
            latest = now + AFTER_HOLD_UP;
        }
        patience *= 2;
        timer.as_mut().reset(latest.min(now + patience));
    })
    .await
}

/// A question whose asker may go away before it is answered. The reply is then waited for all the
/// same: it may give a place that has to be given back.
struct Asked<'a> {
    question: Question<'a>,
    until: Instant,
    /// Whose connection it is, once it is one that all use.
    server: Option<&'a Arc<Server>>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.question.is_under_way() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let question = self.question.hand_over();
            runtime.spawn(give_back(question, self.until, self.server.cloned()));
        }
    }
}

async fn give_back(mut question: Question<'static>, until: Instant, server: Option<Arc<Server>>) {
    let connection = question.connection();
    let reply = reply_to(&mut question, until).await;
    if let (Err(Lost::Failed(why)), Some(server)) = (&reply, server) {
        // Or the next who asks would have to find that out.
        server.fail(&connection, why.clone());
    }
    let Some(Reply::Decision(decision)) = reply.ok().and_then(|reply| resp::read(&reply).ok())
    else {
        return;
    };
    if let Some(reservation) = decision.reservation {
        let mut command = Command::new("WEIR.RELEASE");
        command.push(reservation.id.as_bytes());
        let command = command.finish();
        let _ = tokio::time::timeout_at(until, connection.ask(command.bytes())).await;
    }
}
