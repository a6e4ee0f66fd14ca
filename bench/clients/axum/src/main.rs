//! What `./bench.sh clients` asks: an application of axum, without a limiter or with one.
//!
//! ```text
//! weir-bench-axum PORT none
//! weir-bench-axum PORT weir SOCKET
//! weir-bench-axum PORT tower-governor
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::{routing::get, Json, Router};
use tower_governor::{governor::GovernorConfigBuilder, GovernorLayer};
use weir_limiter::{OnFailure, Weir, WeirLayer};

fn bare() -> Router {
    Router::new().route("/", get(|| async { Json([("hello", "world")]) }))
}

fn with_weir(path: &str) -> Router {
    let weir = Weir::builder()
        .servers([format!("unix:{path}")])
        .on_failure(OnFailure::Closed)
        .build()
        .expect("options");
    bare().layer(WeirLayer::policy(&weir))
}

fn with_governor() -> Router {
    let config = GovernorConfigBuilder::default()
        .per_nanosecond(1)
        .burst_size(1_000_000_000)
        .use_headers()
        .finish()
        .expect("options");
    bare().layer(GovernorLayer::new(Arc::new(config)))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let app = match words[1].as_str() {
        "none" => bare(),
        "weir" => with_weir(&words[2]),
        "tower-governor" => with_governor(),
        other => panic!("no such limiter: {other}"),
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", words[0].parse().expect("a port")))
        .await
        .expect("the port is free");
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())
        .await
        .expect("it serves");
}
