//! The client: asks a service, and decides in its place when none answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::address::Address;
use crate::ask::{Ask, LimitAsk};
use crate::decision::{Decision, Reservation};
use crate::error::{Error, ErrorCode, OptionError};
use crate::failure::{Counted, Fallback, OnFailure};
use crate::fleet::{Fleets, Unanswered};
use crate::limit::{Kind, Limit};
use crate::notices::Notices;
use crate::resp::Command;
use crate::server::Credentials;
use crate::transport::TlsSettings;

const DEADLINE: Duration = Duration::from_millis(200);
const LONGEST_DEADLINE: Duration = Duration::from_secs(60);
const DEFAULT_SERVER: &str = "127.0.0.1:6380";

/// A client of one or several running services. Cheap to clone, and safe to share.
///
/// Connects when it is first asked something, on the tokio runtime it is asked on, whose timers and
/// I/O must be enabled (they are with `#[tokio::main]`).
#[derive(Clone)]
pub struct Weir(Arc<Inner>);

struct Inner {
    fleets: Fleets,
    fallback: Fallback,
    deadline: Duration,
    notices: Notices,
}

/// Makes a [`Weir`].
#[derive(Clone, Default)]
#[must_use]
pub struct WeirBuilder {
    servers: Option<Vec<String>>,
    token: Option<String>,
    #[cfg(feature = "tls")]
    tls: crate::tls::Tls,
    deadline: Option<Duration>,
    on_failure: OnFailure,
    static_limit: Option<Limit>,
    share: Option<u64>,
}

impl Weir {
    /// A client of these services; the first that is well is asked. Nothing is sent yet.
    ///
    /// # Errors
    /// If an address is none.
    pub fn connect<I>(servers: I) -> Result<Self, OptionError>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self::builder().servers(servers).build()
    }

    /// A client of the services that the variable `WEIR_SERVERS` names, comma-separated, else of
    /// `127.0.0.1:6380`.
    ///
    /// # Errors
    /// If an address is none.
    pub fn from_env() -> Result<Self, OptionError> {
        Self::builder().build()
    }

    /// For more than addresses.
    pub fn builder() -> WeirBuilder {
        WeirBuilder::default()
    }

    /// The policy decides. Never fails: see [`OnFailure`].
    pub async fn check(&self, ask: &Ask) -> Decision {
        self.decide_by_policy("WEIR.CHECK", ask, true).await
    }

    /// What [`check`](Self::check) would say; takes nothing.
    pub async fn peek(&self, ask: &Ask) -> Decision {
        self.decide_by_policy("WEIR.PEEK", ask, false).await
    }

    /// Takes an estimate, to be settled by [`commit`](Self::commit) or [`cancel`](Self::cancel).
    /// Without a service there is no reservation.
    pub async fn reserve(&self, ask: &Ask) -> Decision {
        self.decide_by_policy("WEIR.RESERVE", ask, true).await
    }

    /// The limit comes with the call. Never fails: see [`OnFailure`].
    pub async fn limit(&self, ask: &LimitAsk<'_>) -> Decision {
        let counted = Counted {
            limit: Some(ask.limit),
            key: ask.key,
            cost: ask.cost_or_one(),
            takes: true,
            http: ask.form(),
        };
        self.decide(ask.command(), &counted).await
    }

    /// Settles a reservation, at what was reserved if there is no cost.
    ///
    /// # Errors
    /// If the service refuses it or cannot be asked. It is never sent twice.
    pub async fn commit(&self, held: &Reservation, cost: Option<u64>) -> Result<Decision, Error> {
        self.settle("WEIR.COMMIT", held, cost).await
    }

    /// Gives all of a reservation back.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn cancel(&self, held: &Reservation) -> Result<Decision, Error> {
        self.settle("WEIR.CANCEL", held, None).await
    }

    /// Gives back a place under a concurrency limit.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn release(&self, held: &Reservation) -> Result<Decision, Error> {
        self.settle("WEIR.RELEASE", held, None).await
    }

    /// Gives back what was taken. Needs a [`rule`](Ask::rule), and the right to manage.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn refund(&self, ask: &Ask) -> Result<Decision, Error> {
        self.send_once(ask.command("WEIR.REFUND"), None).await
    }

    /// Takes without asking. Needs a [`rule`](Ask::rule), and the right to manage.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn penalize(&self, ask: &Ask) -> Result<Decision, Error> {
        self.send_once(ask.command("WEIR.PENALIZE"), None).await
    }

    /// Makes a key fresh. Needs a [`rule`](Ask::rule), and the right to manage.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn reset(&self, ask: &Ask) -> Result<Decision, Error> {
        self.send_once(ask.command("WEIR.RESET"), None).await
    }

    /// Whether it can decide for a policy while no service answers.
    pub(crate) fn check_policy(&self) -> Result<(), OptionError> {
        if self.0.fallback.mode == OnFailure::Static && self.0.fallback.static_limit.is_none() {
            let message =
                "is missing: with on_failure static a policy needs it; write a limit such \
                           as rate(100).per(minute)";
            return Err(OptionError::new("static_limit", message));
        }
        Ok(())
    }

    /// Whether it can decide by the limit while no service answers.
    pub(crate) fn check_limit(&self, limit: &Limit) -> Result<(), OptionError> {
        let concurrent = matches!(limit.kind(), Kind::Concurrent { .. });
        if self.0.fallback.mode == OnFailure::Static && concurrent {
            let message = format!("static cannot count {:?}; write open or closed", limit.text());
            return Err(OptionError::new("on_failure", message));
        }
        Ok(())
    }

    pub(crate) fn warn_once(&self, text: &str) {
        self.0.notices.once(text);
    }

    async fn decide_by_policy(&self, verb: &str, ask: &Ask, takes: bool) -> Decision {
        let key = match self.0.fallback.mode {
            OnFailure::Static => ask.who(),
            // Nobody looks at it.
            _ => "".into(),
        };
        let (cost, http) = (ask.cost_or_one(), ask.form());
        let counted = Counted { limit: None, key: &key, cost, takes, http };
        self.decide(ask.command(verb), &counted).await
    }

    async fn decide(&self, command: Command, counted: &Counted<'_>) -> Decision {
        let inner = &*self.0;
        let answer = match inner.fleets.here() {
            Some(fleet) => match fleet.ask(&command, Instant::now() + inner.deadline).await {
                Ok(answered) => {
                    let preferred = || fleet.preferred();
                    inner.notices.answered(answered.server, &inner.fleets.addresses, preferred);
                    Ok(answered)
                }
                Err(unanswered) => Err(unanswered),
            },
            None => Err(Unanswered::Nobody("this is not called on a tokio runtime".into())),
        };
        match answer {
            Ok(answered) => {
                let mut decision = *answered.decision;
                if let Some(reservation) = &mut decision.reservation {
                    reservation.server = Some(answered.server);
                }
                inner.fallback.feed(counted, &decision);
                return decision;
            }
            Err(Unanswered::Refused(text)) => inner.notices.refused(&text, inner.fallback.mode),
            Err(Unanswered::Overloaded(why)) => inner.notices.overloaded(&why, inner.fallback.mode),
            Err(Unanswered::Nobody(why)) => inner.notices.unanswered(&why, inner.fallback.mode),
        }
        inner.fallback.decide(counted)
    }

    async fn settle(
        &self,
        verb: &str,
        held: &Reservation,
        cost: Option<u64>,
    ) -> Result<Decision, Error> {
        let mut command = Command::new(verb);
        command.push(held.id.as_bytes());
        if let Some(cost) = cost {
            command.push(b"@cost");
            command.push_number(cost);
        }
        self.send_once(command.finish(), held.server).await
    }

    async fn send_once(&self, command: Command, server: Option<usize>) -> Result<Decision, Error> {
        let Some(fleet) = self.0.fleets.here() else {
            let why = "this is not called on a tokio runtime";
            return Err(Error::new(ErrorCode::Unavailable, why));
        };
        let until = Instant::now() + self.0.deadline;
        fleet.ask_once(&command, server, until).await.map(|decision| *decision)
    }
}

impl std::fmt::Debug for Weir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<_> = self.0.fleets.addresses.iter().map(ToString::to_string).collect();
        f.debug_struct("Weir").field("servers", &servers).finish_non_exhaustive()
    }
}

impl WeirBuilder {
    /// `127.0.0.1:6380`, `[::1]:6380`, `tls://weir.example:6380`, `unix:/run/weir/resp.sock`. The
    /// first that is well is asked.
    pub fn servers<I>(mut self, servers: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.servers = Some(servers.into_iter().map(Into::into).collect());
        self
    }

    /// What the services ask for.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Whom to trust, and what to show, at `tls://` addresses.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::Tls) -> Self {
        self.tls = tls;
        self
    }

    /// How long a request waits for its answer at most; 200 ms unless said.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What decides while no service answers.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// By which limit [`OnFailure::Static`] decides for a policy, for each API key, user or
    /// address.
    pub fn static_limit(mut self, limit: Limit) -> Self {
        self.static_limit = Some(limit);
        self
    }

    /// How many processes there are: each takes its part of a static limit.
    pub fn share(mut self, processes: u64) -> Self {
        self.share = Some(processes);
        self
    }

    /// # Errors
    /// If an option cannot be; the error names it and says what to write.
    pub fn build(self) -> Result<Weir, OptionError> {
        let addresses = self.addresses()?;
        let deadline = self.deadline.unwrap_or(DEADLINE);
        if deadline < Duration::from_millis(1) || deadline > LONGEST_DEADLINE {
            let message = format!("{deadline:?} is not allowed; write 1 ms to 60 s");
            return Err(OptionError::new("deadline", message));
        }
        let share = self.share.unwrap_or(1);
        if !(1..=1_000_000).contains(&share) {
            let message = format!("{share} is not allowed; write how many processes there are");
            return Err(OptionError::new("share", message));
        }
        if let Some(limit) = &self.static_limit {
            if matches!(limit.kind(), Kind::Concurrent { .. }) {
                let message = format!("{:?} cannot be counted so; write a rate", limit.text());
                return Err(OptionError::new("static_limit", message));
            }
        }
        if self.token.as_deref() == Some("") {
            return Err(OptionError::new("token", "is empty; write it, or leave it out"));
        }
        let tls = self.tls_settings(&addresses)?;
        let credentials = Credentials { token: self.token, tls, deadline };
        Ok(Weir(Arc::new(Inner {
            fleets: Fleets::new(addresses, credentials),
            fallback: Fallback::new(self.on_failure, self.static_limit, share),
            deadline,
            notices: Notices::default(),
        })))
    }

    fn addresses(&self) -> Result<Vec<Address>, OptionError> {
        let named = match &self.servers {
            Some(servers) => servers.clone(),
            None => match std::env::var("WEIR_SERVERS") {
                Ok(text) if !text.trim().is_empty() => text.split(',').map(String::from).collect(),
                _ => vec![DEFAULT_SERVER.into()],
            },
        };
        if named.is_empty() {
            let message = "is empty; write at least one, such as 127.0.0.1:6380";
            return Err(OptionError::new("servers", message));
        }
        named.iter().map(|text| Address::parse(text)).collect()
    }

    #[cfg(feature = "tls")]
    fn tls_settings(&self, addresses: &[Address]) -> Result<TlsSettings, OptionError> {
        if addresses.iter().any(|address| matches!(address, Address::Tls { .. })) {
            return self.tls.settings();
        }
        Ok(TlsSettings::default())
    }

    #[cfg(not(feature = "tls"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn tls_settings(&self, _: &[Address]) -> Result<TlsSettings, OptionError> {
        Ok(TlsSettings::default())
    }
}
