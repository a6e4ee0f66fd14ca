//! The layer around an HTTP client.

use std::collections::HashMap;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::gate::Gate;
use super::message::{PacedRequest, PacedResponse};
use super::reading;

/// Beyond so many, origins that nothing is known of any more are forgotten.
const MOST_ORIGINS: usize = 1024;
/// More than a century is as good as without end, and can be added to an instant.
const LONGEST_WAIT: Duration = Duration::from_secs(u32::MAX as u64);

/// Paces an HTTP client: `ServiceBuilder::new().layer(PacedLayer::default()).service(client)`.
///
/// All services that one layer makes share what they know of a server, and so do their clones.
#[derive(Debug, Clone)]
#[must_use]
pub struct PacedLayer {
    max_wait: Duration,
    max_retries: u32,
    gates: Arc<Mutex<HashMap<String, Arc<Gate>>>>,
}

impl Default for PacedLayer {
    fn default() -> Self {
        Self { max_wait: Duration::from_secs(60), max_retries: 3, gates: Arc::default() }
    }
}

impl PacedLayer {
    /// Waits longer than that are not waited for: the refusal is the answer. A minute unless said.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait.min(LONGEST_WAIT);
        self
    }

    /// How often a request is sent again, 3 unless said.
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    fn gate(&self, origin: String) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() >= MOST_ORIGINS && !gates.contains_key(&origin) {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1 || !gate.is_idle());
        }
        gates.entry(origin).or_default().clone()
    }
}

impl<S> Layer<S> for PacedLayer {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced { inner, layer: self.clone() }
    }
}

/// An HTTP client that is paced: see [`PacedLayer`].
#[derive(Debug, Clone)]
pub struct Paced<S> {
    inner: S,
    layer: PacedLayer,
}

impl<S, R> Service<R> for Paced<S>
where
    R: PacedRequest + Send + 'static,
    S: Service<R> + Clone + Send + 'static,
    S::Response: PacedResponse + Send,
    S::Error: Send,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(send(inner, self.layer.clone(), request))
    }
}

async fn send<S, R>(mut inner: S, layer: PacedLayer, request: R) -> Result<S::Response, S::Error>
where
    R: PacedRequest,
    S: Service<R>,
    S::Response: PacedResponse,
{
    let gate = layer.gate(request.origin());
    let mut request = request;
    for attempt in 0.. {
        let pass = gate.enter(attempt > 0, Instant::now() + layer.max_wait).await;
        let again = if attempt < layer.max_retries { request.try_clone() } else { None };
        if attempt > 0 {
            poll_fn(|cx| inner.poll_ready(cx)).await?;
        }
        let response = inner.call(request).await?;
        let reading = reading::read(response.status(), response.headers(), SystemTime::now());
        let wait = pass.note(&reading);
        match (wait, again) {
            (Some(wait), Some(again)) if wait <= layer.max_wait => request = again,
            _ => return Ok(response),
        }
    }
    unreachable!("there is an end to attempts")
}
