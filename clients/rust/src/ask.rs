//! What is asked: attributes of a request for a policy, or a key and its limit.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::failure::HttpForm;
use crate::limit::{Algorithm, Limit};
use crate::resp::Command;
use crate::sha256;

/// The service closes the connection, which all share, on a command above 64 KiB; and what is in a
/// command, clients can choose. So names count by their hash, other values are cut, and what would
/// be too much is left out.
const LONGEST_NAME: usize = 1024;
const LONGEST_PATH: usize = 16 * 1024;
const LONGEST_VALUE: usize = 4 * 1024;
const MOST_BYTES: usize = 48 * 1024;
/// The service refuses a question that costs more, and with that would let it pass. No limit holds
/// so much.
const MOST_COST: u64 = 1_000_000_000_000_000;

/// What is known of a request, for the policy to decide.
///
/// ```
/// use weir_limiter::Ask;
///
/// let ask = Ask::new().user("ann").set("path", "/orders").cost(3);
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Ask {
    /// Names and values as they are sent.
    pairs: Vec<u8>,
    count: usize,
    rule: Option<String>,
    /// Who it is, for buckets in this process: rank and place in `pairs`.
    who: Option<(u8, usize, usize)>,
    cost: Option<u64>,
    ttl_ms: Option<u64>,
    http: Option<HttpForm>,
}

impl Ask {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self { pairs: Vec::with_capacity(192), ..Self::default() }
    }

    /// The client's address.
    pub fn ip(mut self, ip: IpAddr) -> Self {
        use std::io::Write;
        let mut text = [0u8; 48];
        let mut rest = &mut text[..];
        // The longest address has 45 characters.
        let _ = write!(rest, "{ip}");
        let left = rest.len();
        self.put("ip", &text[..48 - left]);
        self
    }

    /// Who is logged in.
    pub fn user(self, user: &str) -> Self {
        self.set("user", user)
    }

    /// The key that the caller showed.
    pub fn api_key(self, api_key: &str) -> Self {
        self.set("api_key", api_key)
    }

    /// Any attribute: `user`, `path`, `header.x-plan`, `descriptor.plan`. An empty value counts as
    /// absent, and so does an `ip` that is no address. A `user`, `org`, `tier` or `api_key` of more
    /// than 1 KiB counts by its hash; other values are cut at 4 KiB, paths at 16.
    pub fn set(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        if name == "ip" {
            let text = std::str::from_utf8(value).ok();
            return match text.and_then(crate::client_ip::parse_address) {
                Some(ip) => self.ip(ip),
                None => self,
            };
        }
        self.put(name, value);
        self
    }

    /// Only this rule, instead of all that match.
    pub fn rule(mut self, rule: &str) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// What the request costs; 1 unless said.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Of a reservation: after which time it lapses.
    pub fn ttl(mut self, ttl: std::time::Duration) -> Self {
        self.ttl_ms = Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Also says what an HTTP client should be told.
    pub fn http(mut self, form: HttpForm) -> Self {
        self.http = Some(form);
        self
    }

    pub(crate) fn put(&mut self, name: &str, value: &[u8]) {
        let value = match name {
            "user" | "org" | "tier" | "api_key" => shortened(value),
            "path" => value[..value.len().min(LONGEST_PATH)].into(),
            _ => value[..value.len().min(LONGEST_VALUE)].into(),
        };
        if value.is_empty() || self.pairs.len() + name.len() + value.len() > MOST_BYTES {
            return;
        }
        self.count += 2;
        crate::resp::push_text(&mut self.pairs, name.as_bytes());
        crate::resp::push_text(&mut self.pairs, &value);
        let rank = match name {
            "api_key" => 0,
            "user" => 1,
            "ip" => 2,
            _ => return,
        };
        if self.who.is_none_or(|(best, ..)| rank < best) {
            let end = self.pairs.len() - 2;
            self.who = Some((rank, end - value.len(), end));
        }
    }

    pub(crate) fn set_cost(&mut self, cost: u64) {
        self.cost = Some(cost.min(MOST_COST));
    }

    pub(crate) fn set_http(&mut self, form: HttpForm) {
        self.http = Some(form);
    }

    /// The first of `api_key`, `user` and `ip`.
    pub(crate) fn who(&self) -> Cow<'_, str> {
        match self.who {
            Some((rank, from, to)) => {
                let text = String::from_utf8_lossy(&self.pairs[from..to]);
                format!("{rank}{text}").into()
            }
            None => "unknown".into(),
        }
    }

    pub(crate) fn cost_or_one(&self) -> u64 {
        self.cost.unwrap_or(1)
    }

    pub(crate) fn form(&self) -> Option<HttpForm> {
        self.http
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(verb);
        command.push(self.rule.as_deref().unwrap_or("*").as_bytes());
        command.append(&self.pairs, self.count);
        push_option(&mut command, "@cost", self.cost);
        push_option(&mut command, "@ttl_ms", self.ttl_ms);
        push_form(&mut command, self.http);
        command.finish()
    }
}

/// A key and its limit.
///
/// ```
/// use weir_limiter::{minute, rate, LimitAsk};
///
/// let ask = LimitAsk::new("login|ann", &rate(5).per(minute)).cost(2);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct LimitAsk<'a> {
    pub(crate) key: &'a str,
    pub(crate) limit: &'a Limit,
    algorithm: Algorithm,
    cost: Option<u64>,
    http: Option<HttpForm>,
}

impl<'a> LimitAsk<'a> {
    /// Counts one for the key.
    pub fn new(key: &'a str, limit: &'a Limit) -> Self {
        Self { key, limit, algorithm: Algorithm::TokenBucket, cost: None, http: None }
    }

    /// How it is counted; by a token bucket unless said.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// What the request costs; 1 unless said.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Also says what an HTTP client should be told.
    pub fn http(mut self, form: HttpForm) -> Self {
        self.http = Some(form);
        self
    }

    pub(crate) fn set_cost(&mut self, cost: u64) {
        self.cost = Some(cost.min(MOST_COST));
    }

    pub(crate) fn cost_or_one(&self) -> u64 {
        self.cost.unwrap_or(1)
    }

    pub(crate) fn form(&self) -> Option<HttpForm> {
        self.http
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("WEIR.LIMIT");
        command.push(&shortened(self.key.as_bytes()));
        command.push(self.limit.text().as_bytes());
        if self.algorithm != Algorithm::TokenBucket {
            command.push(self.algorithm.as_str().as_bytes());
        }
        push_option(&mut command, "@cost", self.cost);
        push_form(&mut command, self.http);
        command.finish()
    }
}

/// Cut off, many would be one.
pub(crate) fn shortened(name: &[u8]) -> Cow<'_, [u8]> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    format!("sha256:{}", sha256::hex(name)).into_bytes().into()
}

fn push_option(command: &mut Command, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        command.push(name.as_bytes());
        command.push_number(value);
    }
}

fn push_form(command: &mut Command, form: Option<HttpForm>) {
    if let Some(form) = form {
        command.push(b"@http");
        command.push(form.as_str().as_bytes());
    }
}
