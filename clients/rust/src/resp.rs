//! Commands as they are sent, and replies as they are read: RESP2.
//!
//! ```text
//! *2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n      a command: an array of texts with their lengths
//! *2\r\n$7\r\nallowed\r\n:1\r\n            a decision: names and values, one after the other
//! -ERR what is wrong\r\n                   an error
//! ```
//!
//! A reply is first framed (where does it end?), under the lock of its connection, and read later
//! by who asked.

use bytes::Bytes;

use crate::decision::{Decision, HttpAnswer, Reason, Reservation, Source};

/// Replies above this are nonsense.
pub(crate) const LONGEST_REPLY: usize = 65_536;
/// An array of more is nonsense: a decision has 34 at most by now.
const MOST_ITEMS: usize = 1024;
/// Room for `*1024\r\n` before the first text.
const HEAD: usize = 8;

/// A command, encoded once however often it is sent.
#[derive(Debug)]
pub(crate) struct Command {
    bytes: Vec<u8>,
    count: usize,
    start: usize,
}

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        let mut bytes = Vec::with_capacity(320);
        bytes.resize(HEAD, 0);
        let mut command = Self { bytes, count: 0, start: HEAD };
        command.push(name.as_bytes());
        command
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.count += 1;
        push_text(&mut self.bytes, text);
    }

    pub(crate) fn push_number(&mut self, number: u64) {
        let mut text = Vec::with_capacity(20);
        push_number(&mut text, number);
        self.push(&text);
    }

    /// Texts that are encoded already.
    pub(crate) fn append(&mut self, texts: &[u8], count: usize) {
        self.count += count;
        self.bytes.extend_from_slice(texts);
    }

    /// Nothing may be pushed afterwards.
    pub(crate) fn finish(mut self) -> Self {
        let mut head = Vec::with_capacity(HEAD);
        head.push(b'*');
        push_number(&mut head, self.count as u64);
        head.extend_from_slice(b"\r\n");
        self.start = HEAD - head.len();
        self.bytes[self.start..HEAD].copy_from_slice(&head);
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

pub(crate) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'$');
    push_number(out, text.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// What was answered is not the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonsense;

/// How long the reply at the beginning of `input` is; `None` if it is not all there.
pub(crate) fn frame(input: &[u8]) -> Result<Option<usize>, Nonsense> {
    let Some((kind, line, mut at)) = line_at(input, 0)? else { return Ok(None) };
    match kind {
        b'+' | b'-' | b':' => return Ok(Some(at)),
        b'$' => return text_end(line, input, at),
        b'*' => {}
        _ => return Err(Nonsense),
    }
    let count = usize::try_from(number(line)?).map_err(|_| Nonsense)?;
    if count > MOST_ITEMS {
        return Err(Nonsense);
    }
    for _ in 0..count {
        if at > LONGEST_REPLY {
            return Err(Nonsense);
        }
        let Some((kind, line, after)) = line_at(input, at)? else { return Ok(None) };
        at = match kind {
            b'+' | b'-' | b':' => after,
            b'$' => match text_end(line, input, after)? {
                Some(end) => end,
                None => return Ok(None),
            },
            _ => return Err(Nonsense),
        };
    }
    Ok(Some(at))
}

/// The kind, the rest of the line, and where the next begins.
type Line<'a> = (u8, &'a [u8], usize);

fn line_at(input: &[u8], at: usize) -> Result<Option<Line<'_>>, Nonsense> {
    let rest = &input[at..];
    let Some(&kind) = rest.first() else { return Ok(None) };
    if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
        return Err(Nonsense);
    }
    match rest.iter().position(|&byte| byte == b'\n') {
        Some(end) if rest[end - 1] == b'\r' && end > 1 => {
            Ok(Some((kind, &rest[1..end - 1], at + end + 1)))
        }
        Some(_) => Err(Nonsense),
        None if input.len() > LONGEST_REPLY => Err(Nonsense),
        None => Ok(None),
    }
}

fn text_end(line: &[u8], input: &[u8], at: usize) -> Result<Option<usize>, Nonsense> {
    let length = number(line)?;
    if length == -1 {
        return Ok(Some(at));
    }
    let length = usize::try_from(length).map_err(|_| Nonsense)?;
    let end = at + length.min(LONGEST_REPLY) + 2;
    if length > LONGEST_REPLY || end > LONGEST_REPLY {
        return Err(Nonsense);
    }
    match input.get(end - 2..end) {
        Some(b"\r\n") => Ok(Some(end)),
        Some(_) => Err(Nonsense),
        None => Ok(None),
    }
}

fn number(line: &[u8]) -> Result<i64, Nonsense> {
    let text = std::str::from_utf8(line).map_err(|_| Nonsense)?;
    text.parse().map_err(|_| Nonsense)
}

/// A whole reply that was understood.
#[derive(Debug)]
pub(crate) enum Reply {
    Decision(Box<Decision>),
    /// `+OK`, `+PONG`.
    Word,
    Error(String),
}

/// Reads what [`frame`] has measured.
pub(crate) fn read(reply: &Bytes) -> Result<Reply, Nonsense> {
    match reply.first() {
        Some(b'+') => Ok(Reply::Word),
        Some(b'-') => {
            Ok(Reply::Error(String::from_utf8_lossy(&reply[1..reply.len() - 2]).into_owned()))
        }
        Some(b'*') => read_decision(reply).map(|decision| Reply::Decision(Box::new(decision))),
        _ => Err(Nonsense),
    }
}

enum Value {
    Null,
    Number(i64),
    Text(usize, usize),
}

/// Reads the items of a framed array one after the other.
struct Items<'a> {
    input: &'a [u8],
    at: usize,
}

impl Items<'_> {
    fn next(&mut self) -> Result<Value, Nonsense> {
        let (kind, line, after) = line_at(self.input, self.at)?.ok_or(Nonsense)?;
        self.at = after;
        match kind {
            b':' => Ok(Value::Number(number(line)?)),
            b'$' => {
                let length = number(line)?;
                let Ok(length) = usize::try_from(length) else { return Ok(Value::Null) };
                self.at = after + length + 2;
                Ok(Value::Text(after, after + length))
            }
            b'+' => Ok(Value::Text(after - 2 - line.len(), after - 2)),
            _ => Err(Nonsense),
        }
    }
}

fn read_decision(reply: &Bytes) -> Result<Decision, Nonsense> {
    let (_, line, at) = line_at(reply, 0)?.ok_or(Nonsense)?;
    let count = number(line)?;
    if count % 2 != 0 {
        return Err(Nonsense);
    }
    let mut items = Items { input: reply, at };
    let mut decision = Decision::uncounted(false, 0, Reason::Other, Source::Other);
    let mut http = HttpAnswer { status: 0, headers: Bytes::new(), body: Bytes::new() };
    let mut allowed = None;
    for _ in 0..count / 2 {
        let Value::Text(from, to) = items.next()? else { return Err(Nonsense) };
        let value = items.next()?;
        match &reply[from..to] {
            b"allowed" => allowed = Some(value.number()? != 0),
            b"limit" => decision.limit = value.count()?,
            b"remaining" => decision.remaining = value.count()?,
            b"cost" => decision.cost = value.count()?,
            b"retry_after_ms" => decision.retry_after_ms = value.count_or_null()?,
            b"reset_after_ms" => decision.reset_after_ms = value.count()?,
            b"delay_ms" => decision.delay_ms = value.count()?,
            b"status" => http.status = u16::try_from(value.number()?).map_err(|_| Nonsense)?,
            b"headers" => http.headers = value.bytes(reply),
            b"body" => http.body = value.bytes(reply),
            b"rule" => decision.rule = value.text(reply)?,
            b"reason" => decision.reason = Reason::from_word(&value.bytes(reply)),
            b"source" => decision.source = Source::from_word(&value.bytes(reply)),
            b"reservation" => {
                decision.reservation =
                    value.text(reply)?.map(|id| Reservation { id, server: None });
            }
            _ => {}
        }
    }
    decision.allowed = allowed.ok_or(Nonsense)?;
    decision.http = (http.status != 0).then_some(http);
    Ok(decision)
}

impl Value {
    fn number(&self) -> Result<i64, Nonsense> {
        match self {
            Self::Number(number) => Ok(*number),
            _ => Err(Nonsense),
        }
    }

    /// Debt is nothing left.
    fn count(&self) -> Result<u64, Nonsense> {
        Ok(u64::try_from(self.number()?).unwrap_or(0))
    }

    fn count_or_null(&self) -> Result<Option<u64>, Nonsense> {
        match self {
            Self::Null => Ok(None),
            _ => self.count().map(Some),
        }
    }

    fn bytes(&self, reply: &Bytes) -> Bytes {
        match self {
            Self::Text(from, to) => reply.slice(*from..*to),
            _ => Bytes::new(),
        }
    }

    /// An empty one is none.
    fn text(&self, reply: &Bytes) -> Result<Option<String>, Nonsense> {
        match self {
            Self::Text(from, to) if from < to => std::str::from_utf8(&reply[*from..*to])
                .map(|text| Some(text.to_string()))
                .map_err(|_| Nonsense),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[u8] =
        b"*6\r\n$7\r\nallowed\r\n:1\r\n$6\r\nfuture\r\n$2\r\nit\r\n$14\r\nretry_after_ms\r\n$-1\r\n";

    #[test]
    fn a_command_is_an_array_of_texts() {
        let mut command = Command::new("WEIR.CHECK");
        command.push(b"*");
        command.push_number(120);
        command.append(b"$4\r\nuser\r\n$3\r\nann\r\n", 2);
        assert_eq!(
            command.finish().bytes(),
            b"*5\r\n$10\r\nWEIR.CHECK\r\n$1\r\n*\r\n$3\r\n120\r\n$4\r\nuser\r\n$3\r\nann\r\n"
        );
    }

    #[test]
    fn a_reply_is_framed_only_when_all_of_it_is_there() {
        for end in 0..ALLOWED.len() {
            assert_eq!(frame(&ALLOWED[..end]), Ok(None), "{end}");
        }
        assert_eq!(frame(&[ALLOWED, b"+more"].concat()), Ok(Some(ALLOWED.len())));
    }

    #[test]
    fn unknown_names_are_ignored_and_null_is_never() {
        let Ok(Reply::Decision(decision)) = read(&Bytes::from_static(ALLOWED)) else { panic!() };
        assert!(decision.allowed);
        assert_eq!(decision.retry_after_ms, None);
    }

    #[test]
    fn what_is_not_the_protocol_is_nonsense() {
        for input in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"*2000000000\r\n",
            b"$999999999999\r\n",
            b"*-7\r\n",
            b"*-1\r\n",
            b"*1\r\n*1\r\n",
            b"$1\r\nab\r\n",
            b"$x\r\n",
            b"\r\n",
            b"+\n",
            b"*99999999999999999999\r\n",
        ] {
            assert_eq!(frame(input), Err(Nonsense), "{}", String::from_utf8_lossy(input));
        }
        assert_eq!(frame(&[b'+'].repeat(LONGEST_REPLY + 1)), Err(Nonsense));
        for input in [&b":1\r\n"[..], b"*2\r\n$4\r\nrule\r\n$1\r\nx\r\n", b"*1\r\n$1\r\nx\r\n"] {
            assert!(read(&Bytes::from_static(input)).is_err());
        }
    }

    #[test]
    fn no_bytes_make_the_reader_fail_otherwise() {
        // A walk over all single-byte changes of a good reply.
        for at in 0..ALLOWED.len() {
            for byte in [0, b'\r', b'\n', b'-', b'9', b'*', b'$', b':', 255] {
                let mut input = ALLOWED.to_vec();
                input[at] = byte;
                if let Ok(Some(end)) = frame(&input) {
                    let _ = read(&Bytes::copy_from_slice(&input[..end]));
                }
            }
        }
    }
}
