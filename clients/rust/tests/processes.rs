//! Eight processes share one limit, and together let exactly as many through as it says.

mod support;

use std::process::{Command, Stdio};

use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use axum::Router;
use support::Service;
use tower::ServiceExt;
use weir_limiter::{Global, OnFailure, Weir, WeirLayer};

const SERVER: &str = "WEIR_TEST_SERVER";
const REQUESTS: usize = 100;

/// One of the eight. Not a test by itself: the test below runs this program again.
#[tokio::test]
#[ignore = "run by the test below"]
async fn worker() {
    let server = std::env::var(SERVER).expect("the test below says it");
    let weir = Weir::builder()
        .servers([server])
        .deadline(std::time::Duration::from_secs(20))
        .on_failure(OnFailure::Closed)
        .build()
        .unwrap();
    let layer = WeirLayer::limit(&weir, "500/day".parse().unwrap()).key(Global);
    let app = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..REQUESTS {
        let request = Request::get("/").body(Body::empty()).unwrap();
        tasks.spawn(app.clone().oneshot(request));
    }
    let mut allowed = 0;
    while let Some(done) = tasks.join_next().await {
        allowed += usize::from(done.unwrap().unwrap().status() == 200);
    }
    println!("\nallowed={allowed}");
}

#[test]
fn eight_processes_share_one_limit_exactly() {
    let service = Service::start("rules: []\n");
    let program = std::env::current_exe().unwrap();
    let start = || {
        Command::new(&program)
            .args(["--ignored", "--exact", "worker", "--nocapture"])
            .env(SERVER, service.address())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let workers: Vec<_> = (0..8).map(|_| start()).collect();
    let mut total = 0;
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("allowed="));
        total += line.unwrap_or_else(|| panic!("{text}")).parse::<usize>().unwrap();
    }
    assert_eq!(total, 500);
}
