//! The application of `serve`.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request};
use axum::http::request::Parts;
use axum::http::StatusCode;
use axum::middleware::{from_fn, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Json, Router};
use serde_json::{json, Value};
use tokio::task::JoinHandle;
use weir_limiter::{Decision, Limit, WeirLayer};

use crate::{option_error, options, readings};

pub(crate) async fn serve(thing: &Value) -> Result<(u16, JoinHandle<()>), Value> {
    let app =
        limited(thing)?.layer(from_fn(survive)).into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let server = tokio::spawn(async move {
        axum::serve(listener, app).await.expect("it never fails");
    });
    Ok((port, server))
}

fn limited(thing: &Value) -> Result<Router, Value> {
    let weir = options::client(&thing["options"])?;
    let told = &thing["middleware"];
    let proxies = readings::proxies(told)?;
    let shown = told["rate_limit_headers"] != false;
    let exempt = told["exempt"].as_str().map(String::from);
    let exempt = move |parts: &Parts| exempt.as_deref() == Some(parts.uri.path());
    let cost = reader(&told["cost"]);
    let cost = move |parts: &Parts| cost(parts).and_then(|text| text.parse().ok()).unwrap_or(1);
    if let Some(text) = told["limit"].as_str() {
        let limit = Limit::parse(text).map_err(|error| option_error(&error))?;
        let mut layer = WeirLayer::try_limit(&weir, limit).map_err(|error| option_error(&error))?;
        if told["key"].is_string() {
            layer = layer.key(reader(&told["key"]));
        }
        let layer = layer.proxies(proxies).exempt(exempt).cost(cost).rate_limit_headers(shown);
        // One route for all: a limit in code counts each by itself.
        return Ok(Router::new()
            .route("/", any(hello))
            .route("/{*path}", any(hello))
            .layer(layer.scope("app")));
    }
    let mut layer = WeirLayer::try_policy(&weir).map_err(|error| option_error(&error))?;
    for name in told["headers"].as_array().into_iter().flatten() {
        layer = layer.pass_header(name.as_str().expect("text"));
    }
    let layer = layer
        .user(reader(&told["user"]))
        .tier(reader(&told["tier"]))
        .api_key(reader(&told["api_key"]))
        .cost(cost)
        .exempt(exempt)
        .proxies(proxies)
        .rate_limit_headers(shown);
    Ok(routes().layer(layer))
}

/// Reads the header of that name, in place of a login; nothing without a name.
fn reader(name: &Value) -> impl Fn(&Parts) -> Option<String> + Send + Sync + 'static {
    let name = name.as_str().map(String::from);
    move |parts| Some(parts.headers.get(name.as_deref()?)?.to_str().ok()?.to_string())
}

fn routes() -> Router {
    Router::new()
        .route("/status/{code}", any(status))
        .route("/boom", any(boom))
        .route("/slow", any(slow))
        .route("/own-headers", any(own_headers))
        .route("/client", any(client))
        .fallback(hello)
}

async fn hello() -> &'static str {
    "hello"
}

async fn status(Path(code): Path<u16>) -> Response {
    StatusCode::from_u16(code).unwrap_or(StatusCode::NOT_FOUND).into_response()
}

async fn boom() {
    // Not panic!, whose trace would be taken for a fault of the driver.
    std::panic::resume_unwind(Box::new("as it was told"));
}

async fn slow(Query(query): Query<Vec<(String, String)>>) -> &'static str {
    let ms = query.iter().find(|(name, _)| name == "ms").and_then(|(_, ms)| ms.parse().ok());
    tokio::time::sleep(Duration::from_millis(ms.unwrap_or(300))).await;
    "hello"
}

async fn own_headers() -> impl IntoResponse {
    ([("RateLimit", "\"mine\";r=1;t=1")], "hello")
}

async fn client(decision: Option<Extension<Decision>>) -> Json<Value> {
    let decision = decision.map(|Extension(decision)| decision);
    let (allowed, remaining) =
        decision.map_or((None, None), |d| (Some(d.allowed), Some(d.remaining)));
    Json(json!({"allowed": allowed, "remaining": remaining}))
}

/// A handler that panics is 500, as with `CatchPanic` of tower-http.
async fn survive(request: Request, next: Next) -> Response {
    let done = tokio::spawn(next.run(request)).await;
    done.unwrap_or_else(|_| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}
