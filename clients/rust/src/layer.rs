//! The layer and its options.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tower_layer::Layer;

use crate::body::{BoxBody, BoxError};
use crate::client::Weir;
use crate::client_ip::Proxies;
use crate::decision::Decision;
use crate::error::OptionError;
use crate::key::{KeyExtractor, IPV6_PREFIX};
use crate::limit::{Algorithm, Limit};
use crate::service::WeirService;

pub(crate) type Function<T> = Arc<dyn Fn(&Parts) -> T + Send + Sync>;
type Denied = Arc<dyn Fn(&Parts, &Decision) -> Response<BoxBody> + Send + Sync>;

/// Limits the requests to a service: a tower layer for axum's `Router::layer` and `route_layer`, and
/// for every other service of `http::Request`.
///
/// Errors are those of the service inside, so that no `HandleErrorLayer` is needed. Handlers find
/// the [`Decision`] in the request's extensions.
#[derive(Clone)]
#[must_use]
pub struct WeirLayer<K = ByPolicy> {
    pub(crate) config: Arc<Config<K>>,
}

#[derive(Clone)]
pub(crate) struct Config<K> {
    pub(crate) weir: Weir,
    pub(crate) by: K,
    pub(crate) cost: Option<Function<u64>>,
    pub(crate) exempt: Option<Function<bool>>,
    pub(crate) on_denied: Option<Denied>,
    pub(crate) proxies: Proxies,
    pub(crate) peer: Option<Function<Option<IpAddr>>>,
    pub(crate) rate_limit_headers: bool,
}

/// Of a [`WeirLayer`]: the service's policy decides.
#[derive(Clone, Default)]
pub struct ByPolicy {
    pub(crate) attributes: Vec<(Arc<str>, Function<Option<String>>)>,
    pub(crate) headers: Vec<(HeaderName, Arc<str>)>,
}

/// Of a [`WeirLayer`]: a limit in code decides.
#[derive(Clone)]
pub struct ByLimit {
    pub(crate) limit: Limit,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: Option<Arc<dyn KeyExtractor>>,
    pub(crate) scope: Option<Arc<str>>,
    pub(crate) ipv6_prefix: u8,
}

impl WeirLayer<ByPolicy> {
    /// The service's policy decides. It is told the client's address, the method, the path and the
    /// host, and what the functions below say.
    ///
    /// # Panics
    /// If the client's options do not go with it; [`try_policy`](Self::try_policy) does not.
    #[track_caller]
    pub fn policy(weir: &Weir) -> Self {
        or_panic(Self::try_policy(weir))
    }

    /// As [`policy`](Self::policy).
    ///
    /// # Errors
    /// If the client is to decide by itself while no service answers, and has no
    /// [`static_limit`](crate::WeirBuilder::static_limit).
    pub fn try_policy(weir: &Weir) -> Result<Self, OptionError> {
        weir.check_policy()?;
        Ok(Self::new(weir, ByPolicy::default()))
    }

    /// Who is logged in: what your login says, never a bare header.
    pub fn user<F>(self, user: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        self.attribute("user", user)
    }

    /// The key that the caller showed.
    pub fn api_key<F>(self, api_key: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        self.attribute("api_key", api_key)
    }

    /// The organisation of who is logged in.
    pub fn org<F>(self, org: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        self.attribute("org", org)
    }

    /// The plan of who is logged in.
    pub fn tier<F>(self, tier: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        self.attribute("tier", tier)
    }

    /// Any other attribute, such as `descriptor.plan`. What is said last counts, also instead of what
    /// is known of the request by itself.
    pub fn attribute<F>(mut self, name: &str, value: F) -> Self
    where
        F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        // The service takes each only once.
        let attributes = &mut self.edit().by.attributes;
        attributes.retain(|(other, _)| **other != *name);
        attributes.push((name.into(), Arc::new(value)));
        self
    }

    /// Passes a header on, as `header.NAME`, for policies that read it.
    ///
    /// # Panics
    /// If that is no name of a header.
    #[track_caller]
    pub fn pass_header(mut self, name: &str) -> Self {
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            panic!("pass_header: {name:?} is no name of a header")
        };
        let attribute = format!("header.{header}").into();
        let headers = &mut self.edit().by.headers;
        headers.retain(|(other, _)| *other != header);
        headers.push((header, attribute));
        self
    }
}

impl WeirLayer<ByLimit> {
    /// A limit in code decides, for each client's address unless [`key`](Self::key) says
    /// otherwise, and for each route unless [`scope`](Self::scope) does.
    ///
    /// # Panics
    /// If the client's options do not go with it; [`try_limit`](Self::try_limit) does not.
    #[track_caller]
    pub fn limit(weir: &Weir, limit: Limit) -> Self {
        or_panic(Self::try_limit(weir, limit))
    }

    /// As [`limit`](Self::limit).
    ///
    /// # Errors
    /// If the client is to decide by itself while no service answers, and the limit is a
    /// concurrency limit, which it cannot count.
    pub fn try_limit(weir: &Weir, limit: Limit) -> Result<Self, OptionError> {
        weir.check_limit(&limit)?;
        let by = ByLimit {
            limit,
            algorithm: Algorithm::TokenBucket,
            key: None,
            scope: None,
            ipv6_prefix: IPV6_PREFIX,
        };
        Ok(Self::new(weir, by))
    }

    /// Whom it counts.
    pub fn key(mut self, key: impl KeyExtractor) -> Self {
        self.edit().by.key = Some(Arc::new(key));
        self
    }

    /// What it counts: limits with the same scope share it. The route unless said.
    pub fn scope(mut self, scope: &str) -> Self {
        self.edit().by.scope = Some(scope.into());
        self
    }

    /// How it counts.
    ///
    /// # Panics
    /// If the limit cannot be counted so.
    #[track_caller]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        let by = &mut self.edit().by;
        by.algorithm = algorithm;
        if let Err(error) = by.limit.check_with(algorithm) {
            panic!("{error}")
        }
        self
    }

    /// By which prefix IPv6 addresses count, 64 unless said.
    ///
    /// # Panics
    /// If it is not 32 to 128.
    #[track_caller]
    pub fn ipv6_prefix(mut self, prefix: u8) -> Self {
        assert!(
            (32..=128).contains(&prefix),
            "ipv6_prefix: {prefix} is not allowed; write 32 to 128"
        );
        self.edit().by.ipv6_prefix = prefix;
        self
    }
}

impl<K: Clone> WeirLayer<K> {
    fn new(weir: &Weir, by: K) -> Self {
        let config = Config {
            weir: weir.clone(),
            by,
            cost: None,
            exempt: None,
            on_denied: None,
            proxies: Proxies::none(),
            peer: None,
            rate_limit_headers: true,
        };
        Self { config: Arc::new(config) }
    }

    fn edit(&mut self) -> &mut Config<K> {
        Arc::make_mut(&mut self.config)
    }

    /// What a request costs; 1 unless said.
    pub fn cost<F>(mut self, cost: F) -> Self
    where
        F: Fn(&Parts) -> u64 + Send + Sync + 'static,
    {
        self.edit().cost = Some(Arc::new(cost));
        self
    }

    /// Requests that are not counted. CORS preflights never are.
    pub fn exempt<F>(mut self, exempt: F) -> Self
    where
        F: Fn(&Parts) -> bool + Send + Sync + 'static,
    {
        self.edit().exempt = Some(Arc::new(exempt));
        self
    }

    /// Your own response to a denial. Headers that it lacks (`Retry-After`, `RateLimit`) are added.
    pub fn on_denied<F, B>(mut self, respond: F) -> Self
    where
        F: Fn(&Parts, &Decision) -> Response<B> + Send + Sync + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.edit().on_denied = Some(Arc::new(move |parts, decision| {
            respond(parts, decision).map(|body| body.map_err(Into::into).boxed_unsync())
        }));
        self
    }

    /// The proxies in front, by address and network (`10.0.0.0/8`): they may say in
    /// `X-Forwarded-For` who the client is.
    ///
    /// # Panics
    /// If one is no address and no network. For those that are not known when the program is
    /// written there are [`Proxies::behind`] and [`proxies`](Self::proxies).
    #[track_caller]
    pub fn trusted_proxies<I>(self, trusted: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        match Proxies::behind(trusted) {
            Ok(proxies) => self.proxies(proxies),
            Err(error) => panic!("{error}"),
        }
    }

    /// Who may say in a header who the client is; nobody unless said.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.edit().proxies = proxies;
        self
    }

    /// Who is connected, for servers other than axum's.
    pub fn peer<F>(mut self, peer: F) -> Self
    where
        F: Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static,
    {
        self.edit().peer = Some(Arc::new(peer));
        self
    }

    /// Whether responses say what is left (`RateLimit`, `X-RateLimit-*`). They do unless said.
    pub fn rate_limit_headers(mut self, added: bool) -> Self {
        self.edit().rate_limit_headers = added;
        self
    }
}

#[track_caller]
fn or_panic<T>(made: Result<T, OptionError>) -> T {
    match made {
        Ok(made) => made,
        Err(error) => panic!("{error}"),
    }
}

impl<S, K> Layer<S> for WeirLayer<K> {
    type Service = WeirService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        WeirService { inner, config: self.config.clone() }
    }
}

impl<K> std::fmt::Debug for WeirLayer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeirLayer").field("weir", &self.config.weir).finish_non_exhaustive()
    }
}
