//! The services of the list: asks the first that is well, and the next if it goes.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use crate::address::Address;
use crate::decision::Decision;
use crate::error::{Error, ErrorCode};
use crate::resp::{self, Command, Reply};
use crate::server::{Credentials, Failure, Server};

/// Programs have one runtime, or one for each core; tests have many, one after the other.
const MOST_RUNTIMES: usize = 256;

/// A connection belongs to the runtime that it was made on, so each has its own.
pub(crate) struct Fleets {
    pub(crate) addresses: Vec<Address>,
    credentials: Arc<Credentials>,
    all: Mutex<Vec<(Id, Arc<Fleet>)>>,
}

pub(crate) struct Fleet {
    servers: Vec<Arc<Server>>,
}

/// Why there is no decision.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The service refused the question as it was asked: another would as well.
    Refused(String),
    /// Nobody could be asked; the last who was, and why.
    Nobody(String),
    /// Those who are well have too much to do.
    Overloaded(String),
}

/// An answer, and who gave it.
pub(crate) struct Answered {
    pub(crate) decision: Box<Decision>,
    pub(crate) server: usize,
}

impl Fleets {
    pub(crate) fn new(addresses: Vec<Address>, credentials: Credentials) -> Self {
        Self { addresses, credentials: Arc::new(credentials), all: Mutex::default() }
    }

    /// `None` outside of a runtime.
    pub(crate) fn here(&self) -> Option<Arc<Fleet>> {
        let id = Handle::try_current().ok()?.id();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fleet)) = all.iter().find(|(runtime, _)| *runtime == id) {
            return Some(fleet.clone());
        }
        if all.len() == MOST_RUNTIMES {
            all.remove(0);
        }
        let server = |address: &Address| Server::new(address.clone(), self.credentials.clone());
        let fleet = Arc::new(Fleet { servers: self.addresses.iter().map(server).collect() });
        all.push((id, fleet.clone()));
        Some(fleet)
    }
}

impl Fleet {
    /// Asks until one answers or time is up.
    pub(crate) async fn ask(
        &self,
        command: &Command,
        until: Instant,
    ) -> Result<Answered, Unanswered> {
        let mut from = 0;
        let mut last = None;
        let mut busy = false;
        while let Some(index) = self.first_from(from) {
            let server = &self.servers[index];
            let left = until.saturating_duration_since(Instant::now());
            let others = (index..self.servers.len()).filter(|&i| !self.servers[i].is_down());
            let share = u32::try_from(others.count().max(1)).unwrap_or(u32::MAX);
            let budget = if share == 1 { until } else { Instant::now() + left / share };
            let why = match server.ask(command, budget).await {
                Ok(reply) => match judge(&reply, server) {
                    Judged::Decision(decision) => return Ok(Answered { decision, server: index }),
                    Judged::Refused(text) => return Err(Unanswered::Refused(text)),
                    Judged::Unfit(why) => why,
                },
                Err(Failure::Down(why)) => why.to_string(),
                Err(Failure::Full) => {
                    let why = format!("{}: too many questions are under way", server.address);
                    return Err(Unanswered::Overloaded(why));
                }
            };
            busy |= !server.is_down();
            last = Some(format!("{}: {why}", server.address));
            from = index + 1;
        }
        let why = last.unwrap_or_else(|| self.why());
        Err(if busy { Unanswered::Overloaded(why) } else { Unanswered::Nobody(why) })
    }

    /// Asks one, once: the one named, else the first that is well.
    pub(crate) async fn ask_once(
        &self,
        command: &Command,
        server: Option<usize>,
        until: Instant,
    ) -> Result<Box<Decision>, Error> {
        let unavailable = |why| Err(Error::new(ErrorCode::Unavailable, why));
        let known = server.filter(|&index| index < self.servers.len());
        let Some(index) = known.or_else(|| self.first_from(0)) else {
            return unavailable(self.why());
        };
        let server = &self.servers[index];
        let reply = match server.ask(command, until).await {
            Ok(reply) => reply,
            Err(Failure::Down(why)) => return unavailable(format!("{}: {why}", server.address)),
            Err(Failure::Full) => {
                return unavailable(format!("{}: too many questions are under way", server.address))
            }
        };
        match resp::read(&reply) {
            Ok(Reply::Decision(decision)) => Ok(decision),
            Ok(Reply::Error(text)) => Err(Error::new(code_of(&text), text)),
            _ => {
                server.turn_down("it answers nonsense");
                unavailable(format!("{}: it answers nonsense", server.address))
            }
        }
    }

    /// The first that is not down, and why the first of all is.
    pub(crate) fn preferred(&self) -> (Option<usize>, String) {
        let why = self.servers[0].why_down().map_or_else(String::new, |why| why.to_string());
        (self.first_from(0), why)
    }

    fn first_from(&self, from: usize) -> Option<usize> {
        (from..self.servers.len()).find(|&index| !self.servers[index].is_down())
    }

    fn why(&self) -> String {
        let server = &self.servers[0];
        match server.why_down() {
            Some(why) => format!("{}: {why}", server.address),
            None => format!("{} cannot be asked", server.address),
        }
    }
}

enum Judged {
    Decision(Box<Decision>),
    Refused(String),
    /// Another may do better.
    Unfit(String),
}

fn judge(reply: &bytes::Bytes, server: &Arc<Server>) -> Judged {
    match resp::read(reply) {
        Ok(Reply::Decision(decision)) => Judged::Decision(decision),
        Ok(Reply::Error(text)) => {
            if is_unfit(&text) {
                server.turn_down(&text);
                Judged::Unfit(text)
            } else if text.starts_with("BUSY") {
                Judged::Unfit(text)
            } else {
                Judged::Refused(text)
            }
        }
        _ => {
            server.turn_down("it answers nonsense");
            Judged::Unfit("it answers nonsense".into())
        }
    }
}

/// Errors that are about the service, not about the question.
fn is_unfit(text: &str) -> bool {
    ["NOAUTH", "WRONGPASS", "NOPERM", "LOADING", "ERR unknown command", "ERR max number of clients"]
        .iter()
        .any(|beginning| text.starts_with(beginning))
}

/// Over RESP several codes are `ERR`; the text tells the one that matters apart.
fn code_of(text: &str) -> ErrorCode {
    match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" => ErrorCode::Unauthenticated,
        "NOPERM" => ErrorCode::Forbidden,
        "BUSY" => ErrorCode::Overloaded,
        "TIMEOUT" => ErrorCode::Deadline,
        "LOADING" => ErrorCode::Unavailable,
        _ if text.starts_with("ERR reservation: unknown") => ErrorCode::NotFound,
        _ => ErrorCode::InvalidArgument,
    }
}
