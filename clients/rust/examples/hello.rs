//! The smallest application: `weir serve` with any policy, then `cargo run --example hello`.

use std::net::SocketAddr;

use axum::{routing::get, Router};
use weir_limiter::{Weir, WeirLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weir = Weir::from_env()?;
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(WeirLayer::policy(&weir))
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await?;
    Ok(())
}
