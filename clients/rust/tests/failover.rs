//! A service that is killed under load: nobody who calls the application hears of it.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use axum::Router;
use support::{until, Service};
use tower::ServiceExt;
use weir_limiter::{Ask, Global, LimitAsk, OnFailure, Source, Weir, WeirLayer};

const RULES: &str = "rules:\n  - { name: all, key: method, limit: 1M/s }\n";
const DEADLINE: Duration = Duration::from_millis(500);
/// What a busy machine with two cores may add.
const SLACK: Duration = Duration::from_millis(400);

struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<(usize, Duration)>>,
}

impl Load {
    fn start(app: &Router) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let task = || {
            let (app, stop) = (app.clone(), stop.clone());
            tokio::spawn(async move {
                let (mut answered, mut slowest) = (0, Duration::ZERO);
                while !stop.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    let request = Request::get("/").body(Body::empty()).unwrap();
                    let status = app.clone().oneshot(request).await.unwrap().status().as_u16();
                    slowest = slowest.max(start.elapsed());
                    assert!(status == 200, "{status}");
                    answered += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                (answered, slowest)
            })
        };
        let tasks = (0..32).map(|_| task()).collect();
        Self { stop, tasks }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let (answered, slowest) = task.await.unwrap();
            assert!(answered > 10, "{answered}");
            assert!(slowest < DEADLINE + SLACK, "{slowest:?}");
        }
    }
}

fn application(servers: [String; 2]) -> (Weir, Router) {
    // Closed, so that whatever nobody answered would be a 429.
    let weir = Weir::builder()
        .servers(servers)
        .deadline(DEADLINE)
        .on_failure(OnFailure::Closed)
        .build()
        .unwrap();
    let app = Router::new().route("/", get(|| async { "hello" })).layer(WeirLayer::policy(&weir));
    (weir, app)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_takes_over_when_the_first_is_killed_and_gives_it_back() {
    let mut first = Service::start(RULES);
    let second = Service::start(RULES);
    let (weir, app) = application([first.address(), second.address()]);
    let load = Load::start(&app);
    tokio::time::sleep(Duration::from_millis(200)).await;
    first.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Counted by the second, so that room for another tells that the first is asked again.
    let limit = "1/h".parse().unwrap();
    let probe = LimitAsk::new("probe", &limit);
    assert!(weir.limit(&probe).await.allowed);
    assert!(!weir.limit(&probe).await.allowed);
    first.restart();
    until(|| async { weir.limit(&probe).await.allowed }).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_takes_over_within_the_deadline_when_the_first_hangs() {
    let first = Service::start(RULES);
    let second = Service::start(RULES);
    let (_, app) = application([first.address(), second.address()]);
    let load = Load::start(&app);
    tokio::time::sleep(Duration::from_millis(200)).await;
    first.signal("-STOP");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    first.signal("-CONT");
    tokio::time::sleep(Duration::from_millis(500)).await;
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_service_the_application_goes_on() {
    let mut first = Service::start(RULES);
    let mut second = Service::start(RULES);
    let weir = Weir::builder()
        .servers([first.address(), second.address()])
        .deadline(DEADLINE)
        .build()
        .unwrap();
    let layer = WeirLayer::limit(&weir, "1M/s".parse().unwrap()).key(Global);
    let app = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let load = Load::start(&app);
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.kill();
    second.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(weir.check(&Ask::new()).await.source, Source::Open);
    second.restart();
    until(|| async { weir.check(&Ask::new()).await.source == Source::Memory }).await;
    load.end().await;
}
