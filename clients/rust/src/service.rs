//! The service that a layer makes: asks, then passes the request on or answers it itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use crate::body::{BoxError, Place, WeirBody};
use crate::decision::{Decision, HttpAnswer};
use crate::failure;
use crate::headers;
use crate::key::{self, Peer};
use crate::layer::{ByLimit, ByPolicy, Config};
use crate::question::Decides;

/// A service behind a [`WeirLayer`](crate::WeirLayer).
pub struct WeirService<S, K = ByPolicy> {
    pub(crate) inner: S,
    pub(crate) config: Arc<Config<K>>,
}

impl<S: Clone, K> Clone for WeirService<S, K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), config: self.config.clone() }
    }
}

impl<S, K> std::fmt::Debug for WeirService<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeirService").finish_non_exhaustive()
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The same for both kinds of layer, which are the only ones there can be.
macro_rules! implement_service {
    ($kind:ty) => {
        impl<S, B, R> Service<Request<B>> for WeirService<S, $kind>
        where
            S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
            S::Future: Send,
            B: Send + 'static,
            R: Body<Data = Bytes> + 'static,
            R::Error: Into<BoxError>,
        {
            type Response = Response<WeirBody<R>>;
            type Error = S::Error;
            type Future = Boxed<Result<Self::Response, S::Error>>;

            fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
                self.inner.poll_ready(cx)
            }

            fn call(&mut self, request: Request<B>) -> Self::Future {
                // The one that is ready is used up; its clone may not be ready yet.
                let clone = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, clone);
                Box::pin(handle(inner, self.config.clone(), request))
            }
        }
    };
}

implement_service!(ByPolicy);
implement_service!(ByLimit);

async fn handle<S, K, B, R>(
    mut inner: S,
    config: Arc<Config<K>>,
    request: Request<B>,
) -> Result<Response<WeirBody<R>>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    K: Decides,
{
    let (mut parts, body) = request.into_parts();
    if is_preflight(&parts) || config.exempt.as_ref().is_some_and(|exempt| exempt(&parts)) {
        let response = inner.call(Request::from_parts(parts, body)).await?;
        return Ok(response.map(|body| WeirBody::inner(body, None)));
    }
    if let Some(ip) = config.peer.as_ref().and_then(|peer| peer(&parts)) {
        parts.extensions.insert(Peer(ip));
    }
    let mut decision = K::decide(&config, &mut parts).await;
    let place =
        decision.reservation.take().map(|reservation| Place::new(&config.weir, reservation));
    let answer = decision.http.take();
    if !decision.allowed {
        return Ok(config.deny(&parts, &decision, answer));
    }
    if decision.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(decision.delay_ms)).await;
    }
    parts.extensions.insert(decision);
    let mut response = inner.call(Request::from_parts(parts, body)).await?;
    if let Some(answer) = answer {
        headers::add(response.headers_mut(), &answer.headers, config.rate_limit_headers);
    }
    Ok(response.map(|body| WeirBody::inner(body, place)))
}

/// A browser sends these by itself.
fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(http::header::ORIGIN)
        && parts.headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}

impl<K> Config<K> {
    /// The client's address, if there is any.
    pub(crate) fn client_ip(&self, parts: &Parts) -> Option<std::net::IpAddr> {
        let Some(peer) = key::peer_of(parts) else {
            self.weir.warn_once(
                "requests come without an address, and all count as one: write \
                 axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()), \
                 or say it by WeirLayer::peer",
            );
            return None;
        };
        if self.proxies.ignores(peer, &parts.headers) {
            self.weir.warn_once(
                "a request came from a private address with X-Forwarded-For, which is not believed; \
                 if a proxy is in front, name it by trusted_proxies",
            );
        }
        Some(self.proxies.client(peer, &parts.headers))
    }

    fn deny<R>(
        &self,
        parts: &Parts,
        decision: &Decision,
        answer: Option<HttpAnswer>,
    ) -> Response<WeirBody<R>> {
        let form = headers::accepted_form(&parts.headers);
        let answer = answer.unwrap_or_else(|| failure::answer(decision, form));
        let mut response = match &self.on_denied {
            Some(respond) => {
                let mut response = respond(parts, decision).map(WeirBody::boxed);
                // What the body is, only who wrote it knows.
                let content_type = response.headers_mut().remove(http::header::CONTENT_TYPE);
                headers::add(response.headers_mut(), &answer.headers, self.rate_limit_headers);
                match content_type {
                    Some(value) => response.headers_mut().insert(http::header::CONTENT_TYPE, value),
                    None => response.headers_mut().remove(http::header::CONTENT_TYPE),
                };
                return response;
            }
            None => Response::new(WeirBody::text(answer.body)),
        };
        *response.status_mut() =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        headers::add(response.headers_mut(), &answer.headers, self.rate_limit_headers);
        response
    }
}
