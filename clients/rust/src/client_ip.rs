//! Who the client is: the peer, or whom a proxy that is trusted says it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, HeaderName};

use crate::error::{quoted, OptionError};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Which header says who the client is. One, never both: a client could write the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`. The default.
    #[default]
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// Who may say in a header who the client is. By default nobody.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Proxies {
    trust: Trust,
    header: ForwardedHeader,
}

#[derive(Debug, Clone, Default)]
enum Trust {
    #[default]
    Nobody,
    Networks(Vec<Network>),
    Hops(usize),
}

impl Proxies {
    /// The client is who is connected, whatever headers say.
    pub fn none() -> Self {
        Self::default()
    }

    /// Proxies at these addresses and networks (`10.0.0.0/8`): the client is the rightmost address
    /// in the header that is not one of them.
    ///
    /// # Errors
    /// If one is no address and no network.
    pub fn behind<I>(trusted: I) -> Result<Self, OptionError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let networks: Vec<_> = trusted
            .into_iter()
            .map(|text| Network::parse(text.as_ref()))
            .collect::<Result<_, _>>()?;
        if networks.is_empty() {
            let message = "is empty; write addresses or networks such as 10.0.0.0/8";
            return Err(OptionError::new("trusted_proxies", message));
        }
        Ok(Self { trust: Trust::Networks(networks), header: ForwardedHeader::default() })
    }

    /// So many proxies whose addresses are not known: the client is the address that the first of
    /// them has written. With 0 it is who is connected.
    pub fn hops(hops: usize) -> Self {
        let trust = if hops == 0 { Trust::Nobody } else { Trust::Hops(hops) };
        Self { trust, header: ForwardedHeader::default() }
    }

    /// Which header these proxies write.
    pub fn header(mut self, header: ForwardedHeader) -> Self {
        self.header = header;
        self
    }

    /// Who the client is, given who is connected.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = plain(peer);
        match &self.trust {
            Trust::Nobody => peer,
            Trust::Networks(networks) => {
                let trusted = |ip: IpAddr| networks.iter().any(|network| network.contains(ip));
                let mut client = peer;
                for element in self.elements(headers).iter().rev() {
                    if !trusted(client) {
                        break;
                    }
                    let Some(ip) = element else { break };
                    client = *ip;
                }
                client
            }
            Trust::Hops(hops) => {
                let elements = self.elements(headers);
                let nth = elements.len().checked_sub(*hops).and_then(|at| elements[at]);
                nth.unwrap_or(peer)
            }
        }
    }

    /// Whether there seems to be a proxy, and nobody is trusted.
    pub(crate) fn ignores(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let private = |ip| match ip {
            IpAddr::V4(ip) => ip.is_private() || ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
        };
        matches!(self.trust, Trust::Nobody)
            && headers.contains_key(X_FORWARDED_FOR)
            && private(plain(peer))
    }

    /// The addresses in the header, in order; `None` for what is none.
    fn elements(&self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        let name = match self.header {
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
            ForwardedHeader::Forwarded => http::header::FORWARDED,
        };
        let mut elements = Vec::new();
        for line in headers.get_all(name) {
            let Ok(line) = line.to_str() else {
                elements.push(None);
                continue;
            };
            match self.header {
                ForwardedHeader::XForwardedFor => {
                    elements.extend(line.split(',').map(parse_element));
                }
                // Nobody knows where its elements end.
                ForwardedHeader::Forwarded if !is_whole(line) => return Vec::new(),
                ForwardedHeader::Forwarded => {
                    elements.extend(split_outside_quotes(line, ',').map(forwarded_for));
                }
            }
        }
        elements
    }
}

/// Whether every quote is closed: one that a client leaves open makes what proxies append a part of
/// the client's own element.
fn is_whole(line: &str) -> bool {
    split_outside_quotes(line, ',').flat_map(|element| split_outside_quotes(element, ';')).all(
        |pair| {
            let value = pair.trim().split_once('=').map_or(pair, |(_, value)| value);
            unquoted(value).is_some_and(|value| !value.contains('"'))
        },
    )
}

/// `None` if it has a quote at its beginning and none at its end.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(value),
    }
}

/// The `for` of an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut found = None;
    for pair in split_outside_quotes(element, ';') {
        let (name, value) = pair.trim().split_once('=')?;
        if name.eq_ignore_ascii_case("for") {
            if found.is_some() {
                return None;
            }
            found = Some(unquoted(value)?);
        }
    }
    parse_element(found?)
}

fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// `1.2.3.4`, `1.2.3.4:5678`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:443`.
fn parse_element(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches([' ', '\t']);
    if let Some(rest) = text.strip_prefix('[') {
        let (inner, port) = rest.split_once(']')?;
        let has_port = port.strip_prefix(':').is_some_and(is_port);
        return (port.is_empty() || has_port).then(|| v6(inner))?;
    }
    if let Some((host, port)) = text.split_once(':') {
        if !port.contains(':') {
            let ip: Ipv4Addr = host.parse().ok()?;
            return is_port(port).then_some(ip.into());
        }
    }
    parse_address(text)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Reads an address on its own: zones are dropped, and `::ffff:192.0.2.1` is `192.0.2.1`.
#[must_use]
pub fn parse_address(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv4Addr>().ok().map(IpAddr::from).or_else(|| v6(text))
}

fn v6(text: &str) -> Option<IpAddr> {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.parse::<Ipv6Addr>().ok().map(|ip| plain(ip.into()))
}

/// `::ffff:192.0.2.1` is `192.0.2.1`.
pub(crate) fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// As what an address counts under a limit in code: IPv6 by its prefix, `2001:db8:1:2::/64`.
#[must_use]
pub fn key_of(ip: IpAddr, ipv6_prefix: u8) -> String {
    match ip {
        IpAddr::V6(ip) if ipv6_prefix < 128 => {
            let mask = u128::MAX << (128 - u32::from(ipv6_prefix));
            format!("{}/{ipv6_prefix}", Ipv6Addr::from(u128::from(ip) & mask))
        }
        ip => ip.to_string(),
    }
}

#[derive(Debug, Clone)]
struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    fn parse(text: &str) -> Result<Self, OptionError> {
        let wrong = || {
            let message =
                format!("{}: write an address or a network such as 10.0.0.0/8", quoted(text));
            OptionError::new("trusted_proxies", message)
        };
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => {
                let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
                (address, Some(prefix.parse::<u8>().ok().filter(|_| digits).ok_or_else(wrong)?))
            }
            None => (text.trim(), None),
        };
        let raw: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = plain(raw);
        // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
        let mapped = raw.is_ipv6() && address.is_ipv4();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(prefix) if mapped => prefix.checked_sub(96).ok_or_else(wrong)?,
            Some(prefix) => prefix,
        };
        if prefix > most {
            return Err(wrong());
        }
        Ok(Self { address, prefix })
    }

    fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let shift = 32 - u32::from(self.prefix);
                let difference = u32::from(network) ^ u32::from(ip);
                difference.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let shift = 128 - u32::from(self.prefix);
                let difference = u128::from(network) ^ u128::from(ip);
                difference.checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_a_client_leaves_open_does_not_hide_what_a_proxy_appends() {
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        for proxies in [Proxies::behind(["10.0.0.0/8"]).unwrap(), Proxies::hops(1)] {
            let proxies = proxies.header(ForwardedHeader::Forwarded);
            for forged in
                ["for=192.0.2.66;x=\"", "for=192.0.2.66;x=\"\\", "x=\";for=192.0.2.66;y=\""]
            {
                for appended in
                    ["for=203.0.113.9", "for=\"[2001:db8::9]\"", "for=\"203.0.113.9:80\""]
                {
                    let mut headers = HeaderMap::new();
                    let line = format!("{forged}, {appended}");
                    headers.insert(http::header::FORWARDED, line.parse().unwrap());
                    let client = proxies.client(peer, &headers);
                    assert_ne!(client.to_string(), "192.0.2.66", "{line}");
                }
            }
        }
    }

    #[test]
    fn a_quote_that_a_client_leaves_open_does_not_move_what_proxies_append() {
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        let proxies = Proxies::hops(2).header(ForwardedHeader::Forwarded);
        for forged in ["for=192.0.2.66, x=\"", "for=192.0.2.66, \"", "for=192.0.2.66, for=\"x"] {
            let mut headers = HeaderMap::new();
            let line = format!("{forged}, for=203.0.113.9, for=\"[2001:db8::9]\"");
            headers.insert(http::header::FORWARDED, line.parse().unwrap());
            assert_eq!(proxies.client(peer, &headers), peer, "{line}");
        }
    }
}
