//! Whom a limit in code counts: the client's address, a header, all together, or your own.

use std::net::IpAddr;

use http::request::Parts;

use crate::client_ip::{self, Proxies};
use crate::error::OptionError;

pub(crate) const IPV6_PREFIX: u8 = 64;

/// Says whom a request counts for.
///
/// Closures that take the request's head and return an `Option<String>` are extractors, and so are
/// pairs and triples of extractors, which count for each combination.
///
/// ```
/// use http::request::Parts;
/// use weir_limiter::KeyExtractor;
///
/// struct Tenant;
///
/// impl KeyExtractor for Tenant {
///     fn key(&self, request: &Parts) -> Option<String> {
///         request.uri.path().split('/').nth(1).map(str::to_owned)
///     }
/// }
/// ```
pub trait KeyExtractor: Send + Sync + 'static {
    /// Whom the request counts for. Those for whom it is `None` count together, as `unknown`.
    fn key(&self, request: &Parts) -> Option<String>;
}

impl<F> KeyExtractor for F
where
    F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
{
    fn key(&self, request: &Parts) -> Option<String> {
        self(request)
    }
}

impl<A: KeyExtractor, B: KeyExtractor> KeyExtractor for (A, B) {
    fn key(&self, request: &Parts) -> Option<String> {
        Some(format!("{}|{}", part(&self.0, request)?, part(&self.1, request)?))
    }
}

impl<A: KeyExtractor, B: KeyExtractor, C: KeyExtractor> KeyExtractor for (A, B, C) {
    fn key(&self, request: &Parts) -> Option<String> {
        let (first, second) = (part(&self.0, request)?, part(&self.1, request)?);
        Some(format!("{first}|{second}|{}", part(&self.2, request)?))
    }
}

/// One of several in a key. Nobody can write what stands between them.
fn part(extractor: &impl KeyExtractor, request: &Parts) -> Option<String> {
    let key = extractor.key(request)?;
    Some(if key.contains(['|', '%']) { key.replace('%', "%25").replace('|', "%7C") } else { key })
}

/// The address of who is connected, IPv6 by its /64. Whatever headers say.
#[derive(Debug, Clone, Copy)]
pub struct PeerIp;

impl KeyExtractor for PeerIp {
    fn key(&self, request: &Parts) -> Option<String> {
        peer_of(request).map(|ip| client_ip::key_of(client_ip::plain(ip), IPV6_PREFIX))
    }
}

/// The client's address as proxies that are trusted tell it, IPv6 by its /64.
#[derive(Debug, Clone)]
pub struct ForwardedIp(Proxies);

impl ForwardedIp {
    /// Proxies at these addresses and networks are believed: see [`Proxies::behind`].
    ///
    /// # Errors
    /// If one is no address and no network.
    pub fn behind<I>(trusted: I) -> Result<Self, OptionError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Proxies::behind(trusted).map(Self)
    }

    /// So many proxies are believed: see [`Proxies::hops`].
    #[must_use]
    pub fn hops(hops: usize) -> Self {
        Self(Proxies::hops(hops))
    }
}

impl From<Proxies> for ForwardedIp {
    fn from(proxies: Proxies) -> Self {
        Self(proxies)
    }
}

impl KeyExtractor for ForwardedIp {
    fn key(&self, request: &Parts) -> Option<String> {
        let client = self.0.client(peer_of(request)?, &request.headers);
        Some(client_ip::key_of(client, IPV6_PREFIX))
    }
}

/// The value of a header. Only for one that a gateway of yours sets: anybody can send any other.
#[derive(Debug, Clone, Copy)]
pub struct HeaderKey(
    /// Its name.
    pub &'static str,
);

impl KeyExtractor for HeaderKey {
    fn key(&self, request: &Parts) -> Option<String> {
        let value = request.headers.get(self.0)?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// All requests together.
#[derive(Debug, Clone, Copy)]
pub struct Global;

impl KeyExtractor for Global {
    fn key(&self, _: &Parts) -> Option<String> {
        Some(String::new())
    }
}

/// Who is connected, for servers other than axum's: put it into the request's extensions, or say
/// it by [`WeirLayer::peer`](crate::WeirLayer::peer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(
    /// The address.
    pub IpAddr,
);

pub(crate) fn peer_of(request: &Parts) -> Option<IpAddr> {
    if let Some(Peer(ip)) = request.extensions.get::<Peer>() {
        return Some(*ip);
    }
    #[cfg(feature = "axum")]
    {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
        use std::net::SocketAddr;
        if let Some(ConnectInfo(peer)) = request.extensions.get::<ConnectInfo<SocketAddr>>() {
            return Some(peer.ip());
        }
        // What tests put in its place.
        let mocked = request.extensions.get::<MockConnectInfo<SocketAddr>>();
        if let Some(MockConnectInfo(peer)) = mocked {
            return Some(peer.ip());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_key_cannot_be_made_to_look_like_others() {
        let header = |name: &'static str| {
            move |parts: &Parts| Some(parts.headers.get(name)?.to_str().ok()?.to_owned())
        };
        let key = |a: &str, b: &str| {
            let request = http::Request::builder().header("a", a).header("b", b).body(());
            (header("a"), header("b")).key(&request.unwrap().into_parts().0).unwrap()
        };
        assert_eq!(key("x", "y"), "x|y");
        assert_ne!(key("x|y", "z"), key("x", "y|z"));
        assert_ne!(key("x%7Cy", "z"), key("x|y", "z"));
    }
}
