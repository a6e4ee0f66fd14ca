//! The answer to a question: allowed or not, and all that is known besides.

use bytes::Bytes;

/// What was decided, by the service or in its place.
///
/// In a handler: `Extension(decision): Extension<Decision>`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request may go ahead.
    pub allowed: bool,
    /// The rule that is nearest to exhaustion, or that denied.
    pub rule: Option<String>,
    /// The capacity of the rule.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// What the request cost.
    pub cost: u64,
    /// When this very request would pass; `None` if it never will.
    pub retry_after_ms: Option<u64>,
    /// When the key is as good as new.
    pub reset_after_ms: u64,
    /// How long an admitted request should wait before it goes ahead.
    pub delay_ms: u64,
    /// Why.
    pub reason: Reason,
    /// Who decided.
    pub source: Source,
    /// A place or an amount that is to be given back or settled.
    pub reservation: Option<Reservation>,
    /// What an HTTP client should be told; only where that was asked for.
    pub http: Option<HttpAnswer>,
}

/// What an HTTP server should tell its client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// 200 if allowed.
    pub status: u16,
    /// Whole lines, `Name: value`, each with its line end.
    pub headers: Bytes,
    /// That of a denial, else empty.
    pub body: Bytes,
}

impl HttpAnswer {
    /// The headers, one by one.
    pub fn header_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = std::str::from_utf8(&self.headers).unwrap_or_default();
        text.split("\r\n").filter_map(|line| line.split_once(": "))
    }
}

/// Names something reserved, and remembers which service has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub(crate) id: String,
    pub(crate) server: Option<usize>,
}

impl Reservation {
    /// The id that the service gave it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// One whose service is not known: the first that is well is asked.
impl From<&str> for Reservation {
    fn from(id: &str) -> Self {
        Self { id: id.to_string(), server: None }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$item_doc])* $item,)*
            /// A word that this version does not know.
            Other,
        }

        impl $name {
            /// The word that the service uses.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$item => $word,)*
                    Self::Other => "other",
                }
            }

            pub(crate) fn from_word(word: &[u8]) -> Self {
                $(if word == $word.as_bytes() { return Self::$item; })*
                Self::Other
            }
        }
    };
}

words! {
    /// Why it was decided so.
    Reason {
        /// There was room.
        Ok = "ok",
        /// There was no room.
        Limited = "limited",
        /// The cost is above what the limit can ever hold.
        NeverFits = "never_fits",
        /// Denied for a while because of what came before.
        Banned = "banned",
        /// Always allowed.
        AllowList = "allow_list",
        /// Never allowed.
        DenyList = "deny_list",
        /// No rule matched.
        NoRule = "no_rule",
        /// Too many wait, or hold places.
        Overload = "overload",
        /// It could not be counted.
        StoreFailure = "store_failure",
    }
}

words! {
    /// Who decided.
    Source {
        /// The service's memory.
        Memory = "memory",
        /// The service's store.
        Store = "store",
        /// A part of the store's count that the service holds.
        Lease = "lease",
        /// A bucket in place of what could not be asked.
        Fallback = "fallback",
        /// Let through without counting.
        Open = "open",
        /// Refused without counting.
        Closed = "closed",
    }
}

impl Decision {
    /// One that nobody counted, to be filled in.
    pub(crate) fn uncounted(allowed: bool, cost: u64, reason: Reason, source: Source) -> Self {
        Self {
            allowed,
            rule: None,
            limit: 0,
            remaining: 0,
            cost,
            retry_after_ms: Some(0),
            reset_after_ms: 0,
            delay_ms: 0,
            reason,
            source,
            reservation: None,
            http: None,
        }
    }
}
