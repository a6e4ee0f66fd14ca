//! Limit text, read and written:
//!
//! ```text
//! COUNT / PERIOD [burst COUNT]     100/min burst 50     5/30s
//! COUNT concurrent [lease LENGTH]  20 concurrent lease 30s
//! unlimited | deny
//! ```

use std::time::Duration;

use crate::error::quoted;
use crate::limit::{Kind, LEASE, LONGEST, MOST};

const UNITS: [(&str, u128); 6] = [
    ("week", 604_800_000_000_000),
    ("day", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

pub(crate) fn write(kind: Kind) -> String {
    match kind {
        Kind::Rate { count, period, burst: None } => format!("{count}/{}", length(period)),
        Kind::Rate { count, period, burst: Some(burst) } => {
            format!("{count}/{} burst {burst}", length(period))
        }
        Kind::Concurrent { count, lease } if lease == LEASE => format!("{count} concurrent"),
        Kind::Concurrent { count, lease } => format!("{count} concurrent lease {}", length(lease)),
        Kind::Unlimited => "unlimited".into(),
        Kind::Deny => "deny".into(),
    }
}

/// `1min`, or in the largest unit that it is a multiple of.
pub(crate) fn length(length: Duration) -> String {
    let nanos = length.as_nanos();
    let small = [("us", 1_000), ("ns", 1)];
    for (name, unit) in UNITS.into_iter().chain(small) {
        if nanos > 0 && nanos % unit == 0 {
            let number = nanos / unit;
            return if number == 1 && unit >= 1_000_000_000 {
                name.to_string()
            } else {
                format!("{number}{name}")
            };
        }
    }
    "0s".into()
}

pub(crate) fn parse(text: &str) -> Result<Kind, String> {
    Reader::new(text)
        .read()
        .map_err(|(at, problem)| format!("{}: column {}: {problem}", quoted(text), at + 1))
}

/// A run of digits, a run of letters, any other character, or the empty end.
#[derive(Clone, Copy, Default)]
struct Token<'a> {
    text: &'a str,
    at: usize,
    glued: bool,
}

impl Token<'_> {
    fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic())
    }
}

type Wrong = (usize, String);

struct Reader<'a> {
    text: &'a str,
    next: Token<'a>,
    taken_until: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let mut reader = Self { text, next: Token::default(), taken_until: 0 };
        reader.take();
        reader
    }

    fn read(&mut self) -> Result<Kind, Wrong> {
        if self.take_if("unlimited") {
            return self.end(Kind::Unlimited, "nothing more");
        }
        if self.take_if("deny") {
            return self.end(Kind::Deny, "nothing more");
        }
        if !self.next.is_number() {
            return Err(self.expected("a count, \"unlimited\" or \"deny\""));
        }
        let count = self.count(", or the limit \"deny\"")?;
        if self.take_if("/") {
            return self.rate(count);
        }
        if self.take_if("concurrent") {
            return self.concurrency(count);
        }
        Err(self.expected("\"/\" and a period, or \"concurrent\""))
    }

    fn rate(&mut self, count: u64) -> Result<Kind, Wrong> {
        let start = self.next.at;
        let number = if self.next.is_number() { self.number()? } else { 1 };
        if !self.next.is_word() {
            return Err(self.expected("a period such as s, min or 30s"));
        }
        let unit = self.take();
        let period = self.length_of(start, number, unit)?;
        if !self.take_if("burst") {
            let kind = Kind::Rate { count, period, burst: None };
            return self.end(kind, "\"burst\" and a count, or nothing more");
        }
        if !self.next.is_number() {
            return Err(self.expected("a count: how much may come at once"));
        }
        let burst = Some(self.count("")?);
        self.end(Kind::Rate { count, period, burst }, "nothing more")
    }

    fn concurrency(&mut self, count: u64) -> Result<Kind, Wrong> {
        if !self.take_if("lease") {
            let kind = Kind::Concurrent { count, lease: LEASE };
            return self.end(kind, "\"lease\" and a length of time, or nothing more");
        }
        let start = self.next.at;
        if !self.next.is_number() {
            return Err(self.expected("a length of time such as 30s"));
        }
        let number = self.number()?;
        if !UNITS.iter().any(|(name, _)| *name == self.next.text) {
            return Err(self.expected("a unit: ms, s, min, h, day or week"));
        }
        let unit = self.take();
        let lease = self.length_of(start, number, unit)?;
        self.end(Kind::Concurrent { count, lease }, "nothing more")
    }

    fn length_of(&self, start: usize, number: u64, unit: Token<'a>) -> Result<Duration, Wrong> {
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit.text) else {
            return Err((unit.at, unknown_period(unit.text)));
        };
        let longest = LONGEST.as_nanos();
        let all = u128::from(number) * nanos;
        match u64::try_from(all) {
            Ok(all) if all > 0 && u128::from(all) <= longest => Ok(Duration::from_nanos(all)),
            _ => {
                let text = quoted(&self.text[start..self.taken_until]);
                Err((start, format!("{text} is not allowed; write more than 0, up to 366day")))
            }
        }
    }

    fn count(&mut self, instead_of_zero: &str) -> Result<u64, Wrong> {
        let start = self.next.at;
        let mut count = self.number()?;
        if self.next.glued && self.next.is_word() && self.next.text != "concurrent" {
            let factor = match self.next.text {
                "k" => 1_000,
                "M" => 1_000_000,
                "G" => 1_000_000_000,
                other => {
                    let problem = format!("unknown ending of a count {}", quoted(other));
                    return Err((self.next.at, problem + "; allowed are k, M and G"));
                }
            };
            self.take();
            count = count.saturating_mul(factor);
        }
        if (1..=MOST).contains(&count) {
            return Ok(count);
        }
        let text = quoted(&self.text[start..self.taken_until]);
        Err((start, format!("{text} is not allowed; write 1 to {MOST}{instead_of_zero}")))
    }

    fn number(&mut self) -> Result<u64, Wrong> {
        let digits = self.take();
        if self.next.glued && matches!(self.next.text, "." | ",") {
            let found = quoted(self.next.text);
            return Err((self.next.at, format!("found {found}; write whole numbers, digits only")));
        }
        // What does not fit is above everything that is accepted.
        Ok(digits.text.parse().unwrap_or(u64::MAX))
    }

    fn end(&self, kind: Kind, expected: &str) -> Result<Kind, Wrong> {
        if self.next.text.is_empty() {
            return Ok(kind);
        }
        Err(self.expected(expected))
    }

    /// Returns the token at hand and moves on to the one after it.
    fn take(&mut self) -> Token<'a> {
        self.taken_until = self.next.at + self.next.text.len();
        let rest = &self.text[self.taken_until..];
        let at = self.taken_until + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
        let rest = &self.text[at..];
        let first = rest.chars().next();
        let same_kind = |c: char| {
            first.is_some_and(|f| {
                (f.is_ascii_digit() && c.is_ascii_digit())
                    || (f.is_ascii_alphabetic() && c.is_ascii_alphabetic())
            })
        };
        let run = rest.find(|c| !same_kind(c)).unwrap_or(rest.len());
        let length = run.max(first.map_or(0, char::len_utf8));
        let after = Token { text: &rest[..length], at, glued: at == self.taken_until };
        std::mem::replace(&mut self.next, after)
    }

    fn take_if(&mut self, expected: &str) -> bool {
        let found = self.next.text == expected;
        if found {
            self.take();
        }
        found
    }

    fn expected(&self, expected: &str) -> Wrong {
        let found =
            if self.next.text.is_empty() { "the end".into() } else { quoted(self.next.text) };
        (self.next.at, format!("found {found}, expected {expected}"))
    }
}

fn unknown_period(unit: &str) -> String {
    if matches!(unit, "month" | "year") {
        return format!(
            "{} is a period only of a policy's rule with align: calendar; allowed here are ms, s, \
             min, h, day, week",
            quoted(unit)
        );
    }
    format!("unknown period {}; allowed are ms, s, min, h, day, week", quoted(unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{concurrent, minute, rate, second, Limit};

    #[test]
    fn what_is_made_in_code_is_what_is_read_from_its_text() {
        for limit in [
            rate(100).per(minute),
            rate(5).per(30 * second).burst(2),
            rate(7).per(Duration::from_millis(1500)),
            concurrent(20),
            concurrent(3).lease(5 * minute),
        ] {
            assert_eq!(limit, limit.text().parse().unwrap(), "{limit}");
        }
        assert_eq!(rate(100).per(minute).text(), "100/min");
        assert_eq!(Limit::parse("100/60s").unwrap().text(), "100/min");
        assert_eq!(rate(100).per(30 * second).burst(50).text(), "100/30s burst 50");
    }

    #[test]
    fn errors_say_where_and_what_to_write() {
        for (text, message) in [
            (
                "100",
                r#""100": column 4: found the end, expected "/" and a period, or "concurrent""#,
            ),
            ("1.5/s", r#""1.5/s": column 2: found "."; write whole numbers, digits only"#),
            ("20M/s", r#""20M/s": 20000000 in s is not allowed; write at most 10000000 in 1s"#),
        ] {
            assert_eq!(Limit::parse(text).unwrap_err().message(), message);
        }
        for text in ["", "é", "1é/s", "0/s", "10/month", "1/0s", "70k concurrent", "1/s burst 9G"]
        {
            assert!(Limit::parse(text).is_err(), "{text}");
        }
    }
}
