//! The real service, as tests start it: on sockets in a folder of its own, stopped by its process
//! id whatever becomes of the test.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Far more than anything takes; what waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Service {
    folder: PathBuf,
    child: Child,
    address: String,
}

impl Service {
    /// Under these rules, and whatever else the policy says, on a unix socket.
    pub fn start(policy: &str) -> Self {
        Self::start_at("\"unix:{folder}/resp.sock\"", policy)
    }

    /// Where it listens for RESP; `{folder}` stands for a folder of its own.
    pub fn start_at(listen: &str, policy: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("weir-rust-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let listen = listen.replace("{folder}", &folder.display().to_string());
        let policy = format!("listen: {{ http: \"127.0.0.1:0\", resp: {listen} }}\n{policy}");
        std::fs::write(folder.join("weir.yaml"), policy).expect("a policy");
        let (child, address) = run(&folder);
        Self { folder, child, address }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([name, &pid]).status().expect("kill");
        assert!(status.success());
    }

    /// At the same address, after it was killed.
    pub fn restart(&mut self) {
        let _ = std::fs::remove_file(self.folder.join("resp.sock"));
        (self.child, self.address) = run(&self.folder);
    }
}

fn run(folder: &std::path::Path) -> (Child, String) {
    let program = std::env::var("WEIR_PROGRAM")
        .expect("these tests need the service: WEIR_PROGRAM=path/to/weir cargo test");
    let mut child = Command::new(program)
        .args(["serve", "-c"])
        .arg(folder.join("weir.yaml"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("WEIR_PROGRAM is the service");
    let mut log = BufReader::new(child.stderr.take().expect("piped"));
    let line = line_with(&mut log, "listening protocol=resp address=");
    let address = line.trim().rsplit("address=").next().expect("an address").to_string();
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    line_with(&mut out, "ready");
    std::thread::spawn(move || out.read_to_end(&mut Vec::new()));
    (child, address)
}

fn line_with(lines: &mut impl BufRead, words: &str) -> String {
    let mut all = String::new();
    loop {
        let start = all.len();
        let count = lines.read_line(&mut all).expect("its output");
        assert!(count > 0, "the service did not start:\n{all}");
        if all[start..].contains(words) {
            return all.split_off(start);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Does something until it is so.
pub async fn until<F: std::future::Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    let start = std::time::Instant::now();
    while !holds().await {
        assert!(start.elapsed() < PATIENCE, "it never came to be");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What this thread logs as warnings from now on.
pub fn warnings() -> (tracing::subscriber::DefaultGuard, &'static Mutex<Vec<String>>) {
    let told: &'static Mutex<Vec<String>> = Box::leak(Box::default());
    (tracing::subscriber::set_default(Collector(told)), told)
}

struct Collector(&'static Mutex<Vec<String>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
