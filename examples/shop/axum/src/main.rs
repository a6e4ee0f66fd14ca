//! A small shop on axum, limited by the policy of the service beside it. See ../../README.md.

use std::{net::SocketAddr, time::Duration};

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::{header, request::Parts, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
    Json, Router,
};
use hmac::{Hmac, Mac};
use serde::Deserialize;
use serde_json::{json, Value};
use sha2::Sha256;
use weir_limiter::{rate, second, Weir, WeirLayer};

const PRODUCTS: [(u32, &str); 3] = [(1, "tea"), (2, "milk"), (3, "honey")];
const ACCOUNTS: [(&str, &str, &str); 2] = [("ann", "apple", "free"), ("pia", "pear", "pro")];

// --- Who is asking: what the shop has signed itself, and nothing that a client could make up ---

fn signature(text: &str) -> Hmac<Sha256> {
    let secret = std::env::var("SHOP_SECRET").unwrap_or_else(|_| "only for an example".into());
    let mut mac = Hmac::new_from_slice(secret.as_bytes()).expect("any length will do");
    mac.update(text.as_bytes());
    mac
}

fn sign(user: &str) -> String {
    let digest = signature(user).finalize().into_bytes();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{user}.{digits}")
}

fn same(text: &str, other: &str) -> bool {
    signature(text).verify(&signature(other).finalize().into_bytes()).is_ok()
}

fn account(parts: &Parts) -> Option<(&'static str, &'static str)> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let token = value.strip_prefix("Bearer ")?;
    let name = token.split('.').next()?;
    let (user, _, tier) = ACCOUNTS.iter().find(|(user, ..)| *user == name)?;
    same(token, &sign(user)).then_some((*user, *tier))
}

fn user(parts: &Parts) -> Option<String> {
    account(parts).map(|(user, _)| user.to_owned())
}

fn tier(parts: &Parts) -> Option<String> {
    account(parts).map(|(_, tier)| tier.to_owned())
}

struct LoggedIn {
    user: &'static str,
    tier: &'static str,
}

impl<S: Sync> FromRequestParts<S> for LoggedIn {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let (user, tier) = account(parts).ok_or_else(|| {
            let told = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, told, detail("Log in first")).into_response()
        })?;
        Ok(Self { user, tier })
    }
}

// --- The shop ---

fn detail(text: &str) -> Json<Value> {
    Json(json!({ "detail": text }))
}

fn told((id, name): (u32, &str)) -> Value {
    json!({ "id": id, "name": name })
}

async fn product(Path(number): Path<u32>) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let found = PRODUCTS.into_iter().find(|(id, _)| *id == number);
    found.map(|item| Json(told(item))).ok_or((StatusCode::NOT_FOUND, detail("There is no such product")))
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    q: String,
}

async fn search(Query(search): Query<Search>) -> Json<Vec<Value>> {
    Json(PRODUCTS.into_iter().filter(|(_, name)| name.contains(&search.q)).map(told).collect())
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

async fn log_in(Json(told): Json<Credentials>) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let account = ACCOUNTS.iter().find(|(user, ..)| *user == told.user);
    match account {
        Some((user, password, _)) if same(password, &told.password) => {
            Ok(Json(json!({ "token": sign(user) })))
        }
        _ => Err((StatusCode::UNAUTHORIZED, detail("Wrong name or password"))),
    }
}

async fn me(who: LoggedIn) -> Json<Value> {
    Json(json!({ "user": who.user, "tier": who.tier }))
}

#[derive(Deserialize)]
struct Order {
    product: u32,
}

async fn order(who: LoggedIn, Json(order): Json<Order>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "user": who.user, "product": order.product })))
}

async fn export(who: LoggedIn) -> impl IntoResponse {
    // It takes a while, and one at a time is enough for anybody.
    tokio::time::sleep(Duration::from_secs(1)).await;
    ([(header::CONTENT_TYPE, "text/csv")], format!("user,product\n{},tea\n", who.user))
}

fn shop(weir: &Weir) -> Router {
    // A limit in code, by address.
    let reviews = Router::new()
        .route("/reviews", get(|| async { Json(json!([{ "product": 1, "stars": 5 }])) }))
        .route_layer(WeirLayer::limit(weir, rate(3).per(second)));
    let limited = Router::new()
        .route("/products", get(|| async { Json(PRODUCTS.map(told)) }))
        .route("/products/{number}", get(product))
        .route("/search", get(search))
        .route("/auth/login", post(log_in))
        .route("/me", get(me))
        .route("/orders", post(order))
        .route("/exports", get(export))
        .merge(reviews)
        .layer(WeirLayer::policy(weir).user(user).tier(tier));
    Router::new().route("/healthz", get(|| async { Json("ok") })).merge(limited)
}

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().init();
    let weir = Weir::from_env().expect("WEIR_SERVERS names services");
    let port = std::env::var("SHOP_PORT").map_or(8000, |port| port.parse().expect("a port"));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    // Who is connected is told only to those who ask for it here.
    let app = shop(&weir).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await.expect("it serves until it is stopped");
}
