//! Where a service listens: `127.0.0.1:6380`, `[::1]:6380`, `tls://weir.example:6380`,
//! `unix:/run/weir/resp.sock`.

use std::fmt;
use std::path::PathBuf;

use crate::error::{quoted, OptionError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix(PathBuf),
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, OptionError> {
        let text = text.trim();
        let wrong = |why: &str| {
            let message = format!(
                "{}: {why}; write host:port, [::1]:6380, tls://host:port or unix:/path",
                quoted(text)
            );
            Err(OptionError::new("servers", message))
        };
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return wrong("the path of a unix socket begins with /");
            }
            if path.len() > 107 || path.contains('\0') {
                return wrong("a path of a unix socket has 107 characters at most");
            }
            return Ok(Self::Unix(path.into()));
        }
        let (tls, rest) = match text.strip_prefix("tls://") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.contains("://") {
            return wrong("no such protocol");
        }
        let Some((host, port)) = rest.rsplit_once(':') else { return wrong("the port is missing") };
        let Some(port) = number(port) else { return wrong("the port is a number, 1 to 65535") };
        let Some(host) = plain_host(host) else { return wrong("that is no host") };
        if tls && !cfg!(feature = "tls") {
            let message = format!("{}: needs the feature \"tls\" of weir-limiter", quoted(text));
            return Err(OptionError::new("servers", message));
        }
        Ok(if tls { Self::Tls { host, port } } else { Self::Tcp { host, port } })
    }
}

fn number(port: &str) -> Option<u16> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|&port: &u16| digits && port != 0)
}

/// Without brackets, which only IPv6 addresses have, and must.
fn plain_host(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        return inner.parse::<std::net::Ipv6Addr>().ok().map(|_| inner.to_string());
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!host.is_empty() && host.bytes().all(is_name)).then(|| host.to_string())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } => ("", host, port),
            Self::Tls { host, port } => ("tls://", host, port),
        };
        if host.contains(':') {
            write!(f, "{scheme}[{host}]:{port}")
        } else {
            write!(f, "{scheme}{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for text in ["127.0.0.1:6380", "weir.example:1", "[::1]:6380", "unix:/run/weir/resp.sock"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_write() {
        for text in [
            "",
            "localhost",
            ":6380",
            "a:0",
            "a:65536",
            "a:+1",
            "::1:6380",
            "[::1]",
            "unix:",
            "unix:x",
            "http://a:1",
            "redis://a:1",
            "a b:1",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.option(), "servers", "{text}");
            assert!(error.message().contains("write host:port"), "{error}");
        }
    }
}
