//! Requests and responses as pacing sees them.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Empty, Full};

/// A request that can be sent again, if its body can.
pub trait PacedRequest: Sized {
    /// Scheme, host and port: what shares a pace.
    fn origin(&self) -> String;

    /// The same again; `None` if its body cannot be sent twice.
    fn try_clone(&self) -> Option<Self>;
}

/// A response, as far as it says something about pace.
pub trait PacedResponse {
    /// Its status.
    fn status(&self) -> StatusCode;

    /// Its headers.
    fn headers(&self) -> &HeaderMap;
}

/// A body that can perhaps be sent twice.
pub trait ReplayBody: Sized {
    /// The same again, or `None`.
    fn replay(&self) -> Option<Self>;
}

macro_rules! cloned {
    ($($body:ty),*) => {$(
        impl ReplayBody for $body {
            fn replay(&self) -> Option<Self> {
                Some(self.clone())
            }
        }
    )*};
}

cloned!((), Bytes, String, Vec<u8>, Full<Bytes>, Empty<Bytes>);

/// A body that can be sent once only, such as a stream: its request is not sent again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Once<B>(
    /// The body.
    pub B,
);

impl<B> ReplayBody for Once<B> {
    fn replay(&self) -> Option<Self> {
        None
    }
}

impl<B: Body + Unpin> Body for Once<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl<B: ReplayBody> PacedRequest for Request<B> {
    fn origin(&self) -> String {
        let scheme = self.uri().scheme_str().unwrap_or("http");
        let host = match self.uri().authority() {
            Some(authority) => authority.as_str(),
            None => self
                .headers()
                .get(http::header::HOST)
                .map_or("", |host| host.to_str().unwrap_or_default()),
        };
        let host = host.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let default = if scheme == "https" { ":443" } else { ":80" };
        format!("{scheme}://{host}{}", if port { "" } else { default })
    }

    fn try_clone(&self) -> Option<Self> {
        let mut request = Request::new(self.body().replay()?);
        *request.method_mut() = self.method().clone();
        *request.uri_mut() = self.uri().clone();
        *request.version_mut() = self.version();
        *request.headers_mut() = self.headers().clone();
        *request.extensions_mut() = self.extensions().clone();
        Some(request)
    }
}

impl<B> PacedResponse for Response<B> {
    fn status(&self) -> StatusCode {
        Response::status(self)
    }

    fn headers(&self) -> &HeaderMap {
        Response::headers(self)
    }
}

#[cfg(feature = "axum")]
impl ReplayBody for axum::body::Body {
    fn replay(&self) -> Option<Self> {
        None
    }
}

#[cfg(feature = "reqwest")]
impl PacedRequest for reqwest::Request {
    fn origin(&self) -> String {
        self.url().origin().ascii_serialization()
    }

    fn try_clone(&self) -> Option<Self> {
        reqwest::Request::try_clone(self)
    }
}

#[cfg(feature = "reqwest")]
impl PacedResponse for reqwest::Response {
    fn status(&self) -> StatusCode {
        reqwest::Response::status(self)
    }

    fn headers(&self) -> &HeaderMap {
        reqwest::Response::headers(self)
    }
}
