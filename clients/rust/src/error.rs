//! What can go wrong, as values: options when a program starts, and calls that were not answered.

use std::fmt;

/// An option that cannot be. Names the option and says what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    option: &'static str,
    message: String,
}

impl OptionError {
    pub(crate) fn new(option: &'static str, message: impl Into<String>) -> Self {
        Self { option, message: message.into() }
    }

    /// The option that is wrong, e.g. `servers`.
    #[must_use]
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// What is wrong with it, and what to write.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.message)
    }
}

impl std::error::Error for OptionError {}

/// What became of a call that has no failure mode, by what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// Mend the call; the message names the field.
    InvalidArgument,
    /// Send the token.
    Unauthenticated,
    /// The right to manage is missing.
    Forbidden,
    /// The reservation was settled or has expired.
    NotFound,
    /// Try again later.
    Overloaded,
    /// Whether it took effect is unknown.
    Deadline,
    /// No service could be asked.
    Unavailable,
}

impl ErrorCode {
    /// The name that the service uses, e.g. `invalid_argument`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Overloaded => "overloaded",
            Self::Deadline => "deadline",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A call that was refused, or that nobody answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What to do about it.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// What the service said, or why it said nothing.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Error {}

/// Text from outside as it may stand in a message: cut, and printable.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 64;
    let mut out = String::from("\"");
    out.extend(text.chars().take(LONGEST).map(|c| if (' '..='~').contains(&c) { c } else { '?' }));
    out.push_str(if text.chars().nth(LONGEST).is_some() { "...\"" } else { "\"" });
    out
}
