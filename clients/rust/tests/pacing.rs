//! A caller that is paced: never early, never more than there is room for, first come first served.

mod support;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};
use weir_limiter::{Once, Paced, PacedLayer};

/// Answers what it is told, one after the other, then 200; each answer takes a while.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    script: Vec<Response<()>>,
    asked: Vec<(String, Instant)>,
    under_way: usize,
    most: usize,
    slow: Duration,
}

impl Server {
    fn new(script: &[(u16, &[(&str, &str)])]) -> Self {
        let server = Self::default();
        server.0.lock().unwrap().script = script
            .iter()
            .rev()
            .map(|(status, headers)| {
                let response = Response::builder().status(*status);
                let response = headers.iter().fold(response, |r, (n, v)| r.header(*n, *v));
                response.body(()).unwrap()
            })
            .collect();
        server
    }

    fn asked(&self) -> Vec<(String, Instant)> {
        self.0.lock().unwrap().asked.clone()
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        let slow = {
            let mut state = server.lock().unwrap();
            state.asked.push((request.uri().path().to_string(), Instant::now()));
            state.under_way += 1;
            state.most = state.most.max(state.under_way);
            state.slow
        };
        Box::pin(async move {
            tokio::time::sleep(slow).await;
            let mut state = server.lock().unwrap();
            state.under_way -= 1;
            Ok(state.script.pop().unwrap_or_default())
        })
    }
}

fn request(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://shop.example{path}")).body(Full::default()).unwrap()
}

async fn send(client: &Paced<Server>, path: &str) -> u16 {
    client.clone().oneshot(request(path)).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_sent_again_when_the_server_says_and_not_earlier() {
    let server = Server::new(&[(429, &[("retry-after", "7")]), (200, &[])]);
    let client = PacedLayer::default().layer(server.clone());
    assert_eq!(send(&client, "/").await, 200);
    let asked = server.asked();
    let waited = asked[1].1 - asked[0].1;
    assert!(waited >= Duration::from_secs(7), "{waited:?}");
    assert!(waited <= Duration::from_millis(7760), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn others_wait_behind_and_go_one_after_the_other_in_their_order() {
    let server = Server::new(&[(429, &[("retry-after", "2")])]);
    server.0.lock().unwrap().slow = Duration::from_millis(10);
    let client = PacedLayer::default().layer(server.clone());
    let first = tokio::spawn({
        let client = client.clone();
        async move { send(&client, "/first").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut others = Vec::new();
    for number in 0..5 {
        let client = client.clone();
        others.push(tokio::spawn(async move { send(&client, &format!("/{number}")).await }));
        tokio::task::yield_now().await;
    }
    // One that is given up must not take anybody's turn.
    others.remove(2).abort();
    assert_eq!(first.await.unwrap(), 200);
    for other in others {
        assert_eq!(other.await.unwrap(), 200);
    }
    let paths: Vec<_> = server.asked().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/first", "/first", "/0", "/1", "/3", "/4"]);
    assert_eq!(server.0.lock().unwrap().most, 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_request_to_a_server_goes_alone() {
    let left: &[(&str, &str)] = &[("ratelimit", "\"a\";r=5;t=9")];
    let server = Server::new(&[(200, left)]);
    server.0.lock().unwrap().slow = Duration::from_secs(1);
    let client = PacedLayer::default().layer(server.clone());
    let all = (0..6).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, &format!("/{number}")).await })
    });
    for task in all.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), 200);
    }
    let asked = server.asked();
    // The others together when it was answered.
    assert_eq!(asked[1].1 - asked[0].1, Duration::from_secs(1));
    assert_eq!(asked[5].1, asked[1].1);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_the_server_has_left() {
    let three: &[(&str, &str)] = &[("ratelimit", "\"a\";r=3;t=1")];
    let server = Server::new(&[(200, three); 21]);
    let client = PacedLayer::default().layer(server.clone());
    send(&client, "/").await;
    server.0.lock().unwrap().slow = Duration::from_millis(10);
    let all: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { send(&client, "/").await })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), 200);
    }
    assert_eq!(server.0.lock().unwrap().most, 3);
}

#[tokio::test(start_paused = true)]
async fn when_nothing_is_left_nothing_is_sent_before_its_time() {
    let server = Server::new(&[(200, &[("ratelimit", "\"a\";r=0;t=5")])]);
    let client = PacedLayer::default().layer(server.clone());
    send(&client, "/").await;
    send(&client, "/").await;
    let asked = server.asked();
    assert!(asked[1].1 - asked[0].1 >= Duration::from_secs(5));
    let other = Request::get("https://other.example/").body(Full::default()).unwrap();
    let start = Instant::now();
    client.clone().oneshot(other).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "another origin has a pace of its own");
}

#[tokio::test(start_paused = true)]
async fn who_must_wait_while_others_are_under_way_is_not_forgotten() {
    let zero: &[(&str, &str)] = &[("ratelimit", "\"a\";r=0;t=3")];
    let server = Server::new(&[(200, &[("ratelimit", "\"a\";r=1;t=3")]), (200, zero)]);
    let client = PacedLayer::default().layer(server.clone());
    send(&client, "/").await;
    server.0.lock().unwrap().slow = Duration::from_millis(10);
    let start = Instant::now();
    let (second, third) = tokio::join!(send(&client, "/2"), send(&client, "/3"));
    assert_eq!((second, third), (200, 200));
    let took = start.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(4)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn waits_that_are_too_long_are_not_waited_for() {
    let server = Server::new(&[(429, &[("retry-after", "61")])]);
    let client = PacedLayer::default().layer(server.clone());
    assert_eq!(send(&client, "/").await, 429);
    assert_eq!(server.asked().len(), 1);
    let start = Instant::now();
    assert_eq!(send(&client, "/").await, 200);
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn attempts_end_and_waits_without_a_word_grow() {
    let none: &[(&str, &str)] = &[];
    let server = Server::new(&[(429, none); 9]);
    let client = PacedLayer::default().layer(server.clone());
    assert_eq!(send(&client, "/").await, 429);
    let at: Vec<_> = server.asked().into_iter().map(|(_, at)| at).collect();
    let waits: Vec<_> = at.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_can_be_sent_once_is_sent_once() {
    let server = Server::new(&[(429, &[("retry-after", "1")])]);
    let client = PacedLayer::default().layer(server.clone());
    let request =
        Request::post("http://shop.example/").body(Once(Full::<Bytes>::default())).unwrap();
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(server.asked().len(), 1);
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn reqwest_with_rate_limit_headers_earns_no_429() {
    use axum::{routing::get, Router};
    use std::net::SocketAddr;
    use weir_limiter::{Weir, WeirLayer};

    let service =
        support::Service::start("rules:\n  - { name: per-ip, key: ip, limit: 20/s burst 5 }\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let refused = Arc::new(Mutex::new(0));
    let counted = refused.clone();
    let layer = WeirLayer::policy(&weir).on_denied(move |_, _| {
        *counted.lock().unwrap() += 1;
        Response::builder().status(429).body(Full::<Bytes>::default()).unwrap()
    });
    let app = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });

    let client = PacedLayer::default().layer(reqwest::Client::new());
    let first = reqwest::Request::new(reqwest::Method::GET, url.parse().unwrap());
    assert_eq!(client.clone().oneshot(first).await.unwrap().status(), 200);
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let request = reqwest::Request::new(reqwest::Method::GET, url.parse().unwrap());
            tokio::spawn(client.clone().oneshot(request))
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(*refused.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_end_can_be_asked_for() {
    let server = Server::new(&[(429, &[("retry-after", "7200")])]);
    let layer = PacedLayer::default().max_wait(Duration::MAX);
    let request = Request::get("http://shop/").body(()).unwrap();
    let response = layer.layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let asked = server.asked();
    assert!(asked[1].1 - asked[0].1 >= Duration::from_secs(7200));
}
