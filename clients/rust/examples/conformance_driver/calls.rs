//! The verbs of the client.

use std::time::{Duration, Instant};

use serde_json::{json, Value};
use weir_limiter::{Algorithm, Ask, Decision, HttpForm, Limit, LimitAsk, Reservation};

use crate::{call_error, name, option_error, Answer, Driver};

impl Driver {
    pub(crate) async fn call(&self, thing: &Value) -> Answer {
        let weir = self.clients.lock().unwrap()[&name(thing, "client")].clone();
        let ask = ask(thing);
        let start = Instant::now();
        let decided = match thing["op"].as_str().expect("op") {
            "check" => Ok(weir.check(&ask).await),
            "peek" => Ok(weir.peek(&ask).await),
            "reserve" => Ok(weir.reserve(&ask).await),
            "limit" => {
                let limit = Limit::parse(thing["limit"].as_str().expect("limit"))
                    .map_err(|error| option_error(&error))?;
                let key = name(thing, "key");
                Ok(weir.limit(&limit_ask(thing, &key, &limit)).await)
            }
            "commit" => weir.commit(&self.reservation(thing), thing["cost"].as_u64()).await,
            "cancel" => weir.cancel(&self.reservation(thing)).await,
            "release" => weir.release(&self.reservation(thing)).await,
            "refund" => weir.refund(&ask).await,
            "penalize" => weir.penalize(&ask).await,
            "reset" => weir.reset(&ask).await,
            other => panic!("no such op: {other}"),
        };
        let elapsed_ms = start.elapsed().as_secs_f64() * 1000.0;
        let decision = decided.map_err(|error| call_error(&error))?;
        if let Some(reservation) = &decision.reservation {
            let id = reservation.id().to_string();
            self.reservations.lock().unwrap().insert(id, reservation.clone());
        }
        Ok(json!({"decision": tell(&decision), "elapsed_ms": elapsed_ms}))
    }

    fn reservation(&self, thing: &Value) -> Reservation {
        let id = name(thing, "reservation");
        let held = self.reservations.lock().unwrap().get(&id).cloned();
        held.unwrap_or_else(|| id.as_str().into())
    }
}

fn ask(thing: &Value) -> Ask {
    let mut ask = Ask::new();
    for (name, value) in thing["attributes"].as_object().into_iter().flatten() {
        ask = ask.set(name, value.as_str().expect("text"));
    }
    if let Some(rule) = thing["rule"].as_str() {
        ask = ask.rule(rule);
    }
    if let Some(cost) = thing["cost"].as_u64() {
        ask = ask.cost(cost);
    }
    if let Some(ttl) = thing["ttl_ms"].as_u64() {
        ask = ask.ttl(Duration::from_millis(ttl));
    }
    match form(thing) {
        Some(form) => ask.http(form),
        None => ask,
    }
}

fn limit_ask<'a>(thing: &Value, key: &'a str, limit: &'a Limit) -> LimitAsk<'a> {
    let mut ask = LimitAsk::new(key, limit);
    let all = [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ];
    if let Some(named) = all.into_iter().find(|one| thing["algorithm"] == one.as_str()) {
        ask = ask.algorithm(named);
    }
    if let Some(cost) = thing["cost"].as_u64() {
        ask = ask.cost(cost);
    }
    match form(thing) {
        Some(form) => ask.http(form),
        None => ask,
    }
}

fn form(thing: &Value) -> Option<HttpForm> {
    match thing["http"].as_str()? {
        "problem" => Some(HttpForm::Problem),
        _ => Some(HttpForm::Json),
    }
}

fn tell(decision: &Decision) -> Value {
    let http = decision.http.as_ref();
    let headers = http.map(|http| http.header_lines().map(|(n, v)| [n, v]).collect::<Vec<_>>());
    json!({
        "allowed": decision.allowed,
        "rule": decision.rule,
        "limit": decision.limit,
        "remaining": decision.remaining,
        "cost": decision.cost,
        "retry_after_ms": decision.retry_after_ms,
        "reset_after_ms": decision.reset_after_ms,
        "delay_ms": decision.delay_ms,
        "reason": decision.reason.as_str(),
        "source": decision.source.as_str(),
        "reservation": decision.reservation.as_ref().map(Reservation::id),
        "status": http.map(|http| http.status),
        "headers": headers,
        "body": http.map(|http| String::from_utf8_lossy(&http.body).into_owned()),
    })
}
