//! What the layer adds to a request: the time that requests to an axum application take on loopback,
//! without it and with it.
//!
//! ```sh
//! WEIR_SERVERS=unix:/run/weir/resp.sock cargo run --release --example measure [REQUESTS]
//! ```

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::{routing::get, Router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weir_limiter::{minute, rate, Weir, WeirLayer};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// How long each request took, one after the other on a connection.
async fn ask(address: SocketAddr, requests: usize) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let mut buffer = vec![0; 4096];
    let mut taken = Vec::with_capacity(requests);
    for _ in 0..requests {
        let start = Instant::now();
        stream.write_all(REQUEST).await.expect("written");
        let mut filled = 0;
        while !buffer[..filled].ends_with(b"hello") {
            let count = stream.read(&mut buffer[filled..]).await.expect("read");
            assert!(count > 0, "{}", String::from_utf8_lossy(&buffer[..filled]));
            filled += count;
        }
        taken.push(start.elapsed());
    }
    taken
}

async fn measure(name: &str, address: SocketAddr, connections: usize, requests: usize) {
    ask(address, 1000).await;
    let start = Instant::now();
    let each = requests / connections;
    let tasks: Vec<_> = (0..connections).map(|_| tokio::spawn(ask(address, each))).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("it ran"));
    }
    let rate = f64::from(u32::try_from(all.len()).expect("few")) / start.elapsed().as_secs_f64();
    all.sort();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    println!(
        "{name:<22} {connections:>3} at a time: p50 {:>7.1} µs  p99 {:>7.1} µs  {rate:>8.0} a second",
        at(50),
        at(99)
    );
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests = std::env::args().nth(1).map_or(Ok(50_000), |text| text.parse())?;
    let weir = Weir::from_env()?;
    let bare = || Router::new().route("/", get(|| async { "hello" }));
    let limit = rate(1_000_000).per(minute).burst(100_000_000);
    let apps = [
        ("no layer", serve(bare()).await),
        ("policy", serve(bare().layer(WeirLayer::policy(&weir))).await),
        ("limit in code", serve(bare().layer(WeirLayer::limit(&weir, limit))).await),
    ];
    for connections in [1, 8, 64] {
        for (name, address) in apps {
            measure(name, address, connections, requests).await;
        }
    }
    Ok(())
}
