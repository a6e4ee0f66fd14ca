//! The layer around axum applications and plain tower services.

mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::connect_info::MockConnectInfo;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http_body_util::{BodyExt, Full};
use support::{until, warnings, Service};
use tower::{service_fn, Layer, ServiceExt};
use weir_limiter::{
    concurrent, hour, rate, Algorithm, Decision, ForwardedIp, Global, HeaderKey, OnFailure, PeerIp,
    Weir, WeirLayer,
};

const PER_IP: &str = "rules:\n  - { name: per-ip, key: ip, limit: 2/h }\n";

async fn hello() -> &'static str {
    "hello"
}

fn from(address: &str) -> MockConnectInfo<SocketAddr> {
    MockConnectInfo(SocketAddr::new(address.parse().unwrap(), 4711))
}

async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

fn path(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

async fn status(app: &Router, at: &str) -> u16 {
    ask(app, path(at)).await.0.as_u16()
}

#[tokio::test]
async fn a_policy_decides_and_the_handler_is_told() {
    let service = Service::start(PER_IP);
    let weir = Weir::connect([service.address()]).unwrap();
    let told = |Extension(decision): Extension<Decision>| async move {
        format!("{} of {}", decision.remaining, decision.limit)
    };
    let app = Router::new()
        .route("/", get(told))
        .layer(WeirLayer::policy(&weir))
        .layer(from("203.0.113.9"));
    let (status, headers, body) = ask(&app, path("/")).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "1 of 2"));
    assert_eq!(headers["x-ratelimit-remaining"], "1");
    ask(&app, path("/")).await;
    let (status, headers, body) = ask(&app, path("/")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["content-type"], "application/json");
    assert!(headers.contains_key("retry-after"));
    assert!(body.starts_with("{\"error\":\"rate_limited\""), "{body}");
}

#[tokio::test]
async fn without_connect_info_all_count_as_one_and_one_warning_names_the_fix() {
    let (_guard, told) = warnings();
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let app =
        Router::new().route("/", get(hello)).layer(WeirLayer::limit(&weir, rate(2).per(hour)));
    let statuses = [status(&app, "/").await, status(&app, "/").await, status(&app, "/").await];
    assert_eq!(statuses, [200, 200, 429]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("into_make_service_with_connect_info"), "{told:?}");
}

#[tokio::test]
async fn each_route_counts_for_itself_unless_they_share_a_scope() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let own = WeirLayer::limit(&weir, rate(1).per(hour)).key(Global);
    let shared = own.clone().scope("shared");
    let app = Router::new()
        .route("/a/{id}", get(hello).layer(own.clone()))
        .route("/b", get(hello).layer(own))
        .route("/c", get(hello).layer(shared.clone()))
        .route("/d", get(hello).layer(shared));
    let mut statuses = Vec::new();
    for at in ["/a/1", "/a/2", "/b", "/c", "/d"] {
        statuses.push(status(&app, at).await);
    }
    assert_eq!(statuses, [200, 429, 200, 200, 429]);
}

#[tokio::test]
async fn two_limits_on_one_route_count_apart() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let app = Router::new()
        .route("/", get(hello))
        .layer(WeirLayer::limit(&weir, rate(3).per(hour)).key(Global))
        .layer(WeirLayer::limit(&weir, rate(100).per(hour)).key(Global));
    for _ in 0..3 {
        assert_eq!(status(&app, "/").await, 200);
    }
    let (status, headers, _) = ask(&app, path("/")).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["x-ratelimit-limit"], "3");
}

#[tokio::test]
async fn keys_are_what_the_extractor_says() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let limit = rate(1).per(hour);
    let layer = |name: &str| WeirLayer::limit(&weir, limit.clone()).scope(name);
    let app = Router::new()
        .route("/peer", get(hello).layer(layer("peer").key(PeerIp)))
        .route("/pair", get(hello).layer(layer("pair").key((PeerIp, HeaderKey("x-tenant")))))
        .route("/hops", get(hello).layer(layer("hops").key(ForwardedIp::hops(1))))
        .route(
            "/own",
            get(hello).layer(
                layer("own")
                    .algorithm(Algorithm::SlidingLog)
                    .key(|request: &http::request::Parts| request.uri.query().map(str::to_owned)),
            ),
        )
        .layer(from("203.0.113.9"));
    let with = |at: &str, name: &'static str, value: &'static str| {
        Request::get(at).header(name, value).body(Body::empty()).unwrap()
    };
    for (expected, request) in [
        (200, with("/peer", "x-forwarded-for", "198.51.100.1")),
        (429, with("/peer", "x-forwarded-for", "198.51.100.2")),
        (200, with("/pair", "x-tenant", "a")),
        (200, with("/pair", "x-tenant", "b")),
        (429, with("/pair", "x-tenant", "a")),
        (200, with("/hops", "x-forwarded-for", "9.9.9.9, 198.51.100.1")),
        (429, with("/hops", "x-forwarded-for", "198.51.100.1")),
        (200, path("/own?ann")),
        (200, path("/own?bob")),
        (429, path("/own?ann")),
    ] {
        let uri = request.uri().clone();
        assert_eq!(ask(&app, request).await.0.as_u16(), expected, "{uri}");
    }
}

#[tokio::test]
async fn nested_routers_tell_the_whole_path() {
    let service = Service::start(
        "rules:\n  - { name: deep, match: { path: /api/x }, key: ip, limit: 1/h }\n",
    );
    let weir = Weir::connect([service.address()]).unwrap();
    let inner = Router::new().route("/x", post(hello)).layer(WeirLayer::policy(&weir));
    let app = Router::new().nest("/api", inner).layer(from("203.0.113.9"));
    let request = || Request::post("/api/x").body(Body::empty()).unwrap();
    assert_eq!(ask(&app, request()).await.0, StatusCode::OK);
    assert_eq!(ask(&app, request()).await.0, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn nothing_that_a_client_sends_is_too_long_for_the_service() {
    let service = Service::start(PER_IP);
    let weir =
        Weir::builder().servers([service.address()]).on_failure(OnFailure::Closed).build().unwrap();
    let mut layer = WeirLayer::policy(&weir).user(|request| Some(request.uri.path().repeat(2)));
    for number in 0..20 {
        layer = layer.pass_header(&format!("x-{number}"));
    }
    let app = Router::new()
        .route("/", get(hello))
        .fallback(hello)
        .layer(layer)
        .layer(from("203.0.113.9"));
    let long = "/x".repeat(30_000);
    let mut request = Request::get(&long).header("host", &long);
    for number in 0..20 {
        request = request.header(format!("x-{number}"), &long);
    }
    let (status, headers, _) = ask(&app, request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["x-ratelimit-remaining"], "1");
    let (_, headers, _) = ask(&app, path("/")).await;
    assert_eq!(headers["x-ratelimit-remaining"], "0", "the connection was not lost");
}

#[tokio::test]
async fn a_denial_can_be_answered_in_your_own_way() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let layer =
        WeirLayer::limit(&weir, rate(1).per(hour)).key(Global).on_denied(|request, decision| {
            let text = format!("{} is too much: {:?}", request.uri, decision.reason);
            (StatusCode::IM_A_TEAPOT, [("retry-after", "99")], text).into_response()
        });
    let app = Router::new().route("/", get(hello)).layer(layer);
    ask(&app, path("/")).await;
    let (status, headers, body) = ask(&app, path("/")).await;
    assert_eq!(status, StatusCode::IM_A_TEAPOT);
    assert_eq!(body, "/ is too much: Limited");
    assert_eq!(headers["retry-after"], "99");
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert!(headers.contains_key("ratelimit"));
}

#[tokio::test]
async fn any_tower_service_can_be_limited() {
    let service = Service::start(PER_IP);
    let weir = Weir::connect([service.address()]).unwrap();
    let plain = service_fn(|_: Request<Full<bytes::Bytes>>| async {
        Ok::<_, Infallible>(Response::new(Full::new(bytes::Bytes::from("hello"))))
    });
    let layer = WeirLayer::policy(&weir).peer(|_| Some("203.0.113.9".parse().unwrap()));
    let limited = layer.layer(plain);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = Request::new(Full::default());
        statuses.push(limited.clone().oneshot(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn a_place_is_held_until_the_body_is_done_or_dropped() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let app = Router::new()
        .route("/", get(hello))
        .layer(WeirLayer::limit(&weir, concurrent(1)).key(Global));
    let first = app.clone().oneshot(path("/")).await.unwrap();
    assert_eq!(status(&app, "/").await, 429, "the body has not been read");
    let read = first.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(read, "hello");
    until(|| async { app.clone().oneshot(path("/")).await.unwrap().status() == 200 }).await;
    // The last one was dropped without reading its body.
    until(|| async { status(&app, "/").await == 200 }).await;
}

#[tokio::test]
async fn a_place_is_given_back_when_the_client_goes_before_the_answer() {
    let service = Service::start("rules: []\n");
    let weir = Weir::connect([service.address()]).unwrap();
    let app = Router::new()
        .route("/", get(hello))
        .layer(WeirLayer::limit(&weir, concurrent(1).lease(hour)).key(Global));
    for _ in 0..50 {
        let mut asked = Box::pin(app.clone().oneshot(path("/")));
        // Asked, and given up before the answer is there.
        let _ = tokio::time::timeout(Duration::ZERO, &mut asked).await;
    }
    until(|| async { status(&app, "/").await == 200 }).await;
}

#[tokio::test]
#[should_panic(expected = "static_limit: is missing")]
async fn a_policy_that_could_not_be_decided_here_is_refused_at_the_start() {
    let weir = Weir::builder().servers(["a:1"]).on_failure(OnFailure::Static).build().unwrap();
    let _ = WeirLayer::policy(&weir);
}

#[tokio::test]
async fn options_that_cannot_be_are_errors_that_name_them() {
    let weir = Weir::builder().servers(["a:1"]).on_failure(OnFailure::Static).build().unwrap();
    let error = WeirLayer::try_limit(&weir, concurrent(2)).unwrap_err();
    assert_eq!(error.option(), "on_failure");
    assert_eq!(ForwardedIp::behind(["10.0.0.0/33"]).unwrap_err().option(), "trusted_proxies");
    assert_eq!(Weir::connect(["localhost"]).unwrap_err().option(), "servers");
}

#[tokio::test]
async fn proxies_that_are_not_named_are_not_believed_and_one_warning_says_so() {
    let (_guard, told) = warnings();
    let service = Service::start(PER_IP);
    let weir = Weir::connect([service.address()]).unwrap();
    let app = Router::new()
        .route("/", get(hello))
        .layer(WeirLayer::policy(&weir))
        .layer(from("10.0.0.1"));
    let mut statuses = Vec::new();
    for client in ["198.51.100.1", "198.51.100.2", "198.51.100.3"] {
        let request =
            Request::get("/").header("x-forwarded-for", client).body(Body::empty()).unwrap();
        statuses.push(ask(&app, request).await.0.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("trusted_proxies"), "{told:?}");
}

#[tokio::test]
async fn a_cost_above_what_can_be_asked_is_too_much_and_no_way_around_the_limit() {
    let service = Service::start(PER_IP);
    let weir = Weir::connect([service.address()]).unwrap();
    let by_policy = WeirLayer::policy(&weir).cost(|_| u64::MAX);
    let by_limit = WeirLayer::limit(&weir, rate(100).per(hour)).cost(|_| u64::MAX);
    let app = Router::new()
        .route("/policy", get(hello).layer(by_policy))
        .route("/limit", get(hello).layer(by_limit))
        .layer(from("203.0.113.9"));
    assert_eq!(status(&app, "/policy").await, 429);
    assert_eq!(status(&app, "/limit").await, 429);
}

#[tokio::test]
async fn a_place_is_given_back_by_a_body_that_is_dropped_on_any_thread() {
    let service = Service::start(PER_IP);
    let weir = Weir::connect([service.address()]).unwrap();
    // It is not time that gives it back.
    let limit = concurrent(1).lease(Duration::from_secs(600));
    let app = Router::new()
        .route("/", get(hello).layer(WeirLayer::limit(&weir, limit)))
        .layer(from("203.0.113.9"));
    let response = app.clone().oneshot(path("/")).await.unwrap();
    assert_eq!(status(&app, "/").await, 429);
    std::thread::spawn(move || drop(response)).join().unwrap();
    until(|| async { status(&app, "/").await == 200 }).await;
}

#[tokio::test]
async fn an_attribute_that_is_said_twice_is_the_last() {
    let policy = "rules:\n  - { name: by-path, key: [user, path], limit: 1/h }\n";
    let service = Service::start(policy);
    let weir = Weir::connect([service.address()]).unwrap();
    let layer = WeirLayer::policy(&weir)
        .user(|_| None)
        .user(|_| Some("ann".into()))
        .attribute("path", |_| Some("/one".into()))
        .pass_header("x-plan")
        .pass_header("X-Plan");
    let app = Router::new().fallback(hello).layer(layer).layer(from("203.0.113.9"));
    let request = |at| Request::get(at).header("x-plan", "a").body(Body::empty()).unwrap();
    assert_eq!(ask(&app, request("/a")).await.0, StatusCode::OK);
    assert_eq!(ask(&app, request("/b")).await.0, StatusCode::TOO_MANY_REQUESTS);
}
