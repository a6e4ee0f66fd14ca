//! The structured field `RateLimit`: a list of items with parameters.
//!
//! ```text
//! "per-user";r=3;t=12, "daily";r=50
//! ```
//!
//! A field with any error is as good as none.

/// What one item says: what is left, and for how many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) left: Option<u64>,
    pub(crate) seconds: Option<u64>,
}

pub(crate) fn parse(text: &str) -> Option<Vec<Item>> {
    let mut reader = Reader { rest: text.trim_matches(' ') };
    let mut items = Vec::new();
    loop {
        items.push(reader.item()?);
        reader.skip_blanks();
        if reader.rest.is_empty() {
            return Some(items);
        }
        reader.expect(',')?;
        reader.skip_blanks();
    }
}

struct Reader<'a> {
    rest: &'a str,
}

enum Bare {
    Number(Option<u64>),
    Other,
}

impl<'a> Reader<'a> {
    fn item(&mut self) -> Option<Item> {
        self.bare()?;
        let mut item = Item { left: None, seconds: None };
        while self.take(';') {
            self.rest = self.rest.trim_start_matches(' ');
            let name = self.key()?;
            let value = if self.take('=') { self.bare()? } else { Bare::Other };
            let number = match value {
                // Below nothing is no number of requests, nor of seconds.
                Bare::Number(number) => number,
                Bare::Other => None,
            };
            match name {
                "r" => item.left = Some(number?),
                "t" => item.seconds = Some(number?),
                _ => {}
            }
        }
        Some(item)
    }

    fn bare(&mut self) -> Option<Bare> {
        match self.rest.chars().next()? {
            '"' => self.string(),
            ':' => self.until_after(':'),
            '?' => {
                self.rest =
                    self.rest.strip_prefix("?0").or_else(|| self.rest.strip_prefix("?1"))?;
                Some(Bare::Other)
            }
            '-' | '0'..='9' => self.number(),
            c if c.is_ascii_alphabetic() || c == '*' => {
                self.run(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(c));
                Some(Bare::Other)
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Bare> {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if !(' '..='~').contains(&c) => return None,
                '"' | '\\' if escaped => escaped = false,
                _ if escaped => return None,
                '\\' => escaped = true,
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(Bare::Other);
                }
                _ => {}
            }
        }
        None
    }

    fn until_after(&mut self, end: char) -> Option<Bare> {
        let (inner, rest) = self.rest[1..].split_once(end)?;
        self.rest = rest;
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        inner.chars().all(is_base64).then_some(Bare::Other)
    }

    fn number(&mut self) -> Option<Bare> {
        let negative = self.take('-');
        let digits = self.run(|c| c.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.take('.') {
            let decimals = self.run(|c| c.is_ascii_digit());
            return (1..=3).contains(&decimals.len()).then_some(Bare::Number(None));
        }
        Some(Bare::Number(digits.parse().ok().filter(|_| !negative)))
    }

    fn key(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let allowed = first.is_ascii_lowercase() || first == '*';
        let is_key = |c: char| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | '*')
        };
        allowed.then(|| self.run(is_key))
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn take(&mut self, c: char) -> bool {
        let after = self.rest.strip_prefix(c);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, c: char) -> Option<()> {
        self.take(c).then_some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_and_without_parameters_are_read() {
        let items = parse(r#""a, b;r=9";r=4;pk=:dHI=:;t=1, token;acme-burst;r=2;x=1.5;y=?1"#);
        let expected =
            [Item { left: Some(4), seconds: Some(1) }, Item { left: Some(2), seconds: None }];
        assert_eq!(items.unwrap(), expected);
    }

    #[test]
    fn any_error_makes_the_whole_field_void() {
        for text in [
            "",
            "\"a;r=3",
            "\"a\";r=-3",
            "limit=100",
            "\"a\";r=1,",
            "\"a\" r=1",
            "\"a\";R=1",
            "\"a\";r=1234567890123456",
            "\"a\";r=x",
            "\"é\";r=1",
            "\"a\\b\";r=1",
            "\"a\";r=1.5",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
