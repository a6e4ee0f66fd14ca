//! Does what the conformance lists tell it: a line of JSON in, a line of JSON out.

mod app;
mod calls;
mod options;
mod readings;
mod warnings;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Mutex;

use serde_json::{json, Value};
use weir_limiter::{Error, OptionError, Reservation, Weir};

/// What was opened and has not been closed.
#[derive(Default)]
pub(crate) struct Driver {
    clients: Mutex<HashMap<String, Weir>>,
    apps: Mutex<HashMap<String, tokio::task::JoinHandle<()>>>,
    /// By their ids: which service has them is part of them.
    reservations: Mutex<HashMap<String, Reservation>>,
}

pub(crate) type Answer = Result<Value, Value>;

pub(crate) fn option_error(error: &OptionError) -> Value {
    json!({"code": "invalid_option", "option": error.option(), "message": error.message()})
}

pub(crate) fn call_error(error: &Error) -> Value {
    json!({"code": error.code().as_str(), "option": null, "message": error.message()})
}

#[tokio::main]
async fn main() {
    warnings::collect();
    let driver = Driver::default();
    let (lines, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = told.recv().await {
        let thing: Value = serde_json::from_str(&line).expect("a line of JSON");
        let answer = driver.answer(&thing).await;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).expect("somebody reads");
    }
}

impl Driver {
    async fn answer(&self, thing: &Value) -> Value {
        if thing["op"] == "together" {
            let calls = thing["calls"].as_array().expect("calls");
            let answers = calls.iter().map(|call| self.answer_one(call));
            return json!({"answers": join_all(answers).await});
        }
        self.answer_one(thing).await
    }

    async fn answer_one(&self, thing: &Value) -> Value {
        self.do_it(thing).await.unwrap_or_else(|error| json!({"error": error}))
    }

    async fn do_it(&self, thing: &Value) -> Answer {
        match thing["op"].as_str().expect("op") {
            "open" => {
                let weir = options::client(&thing["options"])?;
                self.clients.lock().unwrap().insert(name(thing, "client"), weir);
                Ok(json!({}))
            }
            "close" => {
                self.clients.lock().unwrap().remove(&name(thing, "client"));
                Ok(json!({}))
            }
            "serve" => {
                let (port, server) = app::serve(thing).await?;
                self.apps.lock().unwrap().insert(name(thing, "app"), server);
                Ok(json!({"port": port}))
            }
            "stop" => {
                if let Some(server) = self.apps.lock().unwrap().remove(&name(thing, "app")) {
                    server.abort();
                }
                Ok(json!({}))
            }
            "warnings" => Ok(json!({"warnings": warnings::take()})),
            "client_ip" => readings::client_ip(thing),
            "parse_limit" => readings::parse_limit(thing),
            "pacing" => Ok(readings::pacing(thing)),
            _ => self.call(thing).await,
        }
    }
}

pub(crate) fn name(thing: &Value, member: &str) -> String {
    thing[member].as_str().expect(member).to_string()
}

/// All at the same time, in their order.
async fn join_all<F: std::future::Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut missing = false;
        for (future, output) in &mut all {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => missing = true,
                }
            }
        }
        if missing {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    all.into_iter().filter_map(|(_, output)| output).collect()
}
