//! TLS with a certificate of the client's own.
#![cfg(feature = "tls")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::Service;
use weir_limiter::{Ask, OnFailure, Source, Tls, Weir};

fn openssl(folder: &Path, words: &str) {
    let output = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
    let output = output.expect("these tests need openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn make_certificates(folder: &Path) {
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(folder, &format!("req -x509 {curve} -keyout ca.key -out ca.crt -subj /CN=ca -days 3"));
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    for name in ["server", "client"] {
        openssl(
            folder,
            &format!("req -new {curve} -keyout {name}.key -out {name}.csr -subj /CN=x"),
        );
        openssl(
            folder,
            &format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
                 -out {name}.crt -days 3 -extfile names"
            ),
        );
    }
}

#[tokio::test]
async fn a_certificate_is_shown_where_one_is_asked_for() {
    let folder = std::env::temp_dir().join(format!("weir-rust-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    make_certificates(&folder);
    let at = |name: &str| folder.join(name).display().to_string();
    let listen = format!(
        "{{ address: \"127.0.0.1:0\", tls: {{ certificate: {}, key: {}, client_ca: {} }} }}",
        at("server.crt"),
        at("server.key"),
        at("ca.crt")
    );
    let service = Service::start_at(&listen, "rules: []\n");
    let client = |tls: Tls| {
        Weir::builder()
            .servers([format!("tls://{}", service.address())])
            .tls(tls)
            .deadline(Duration::from_secs(10))
            .on_failure(OnFailure::Closed)
            .build()
            .unwrap()
    };
    let ca = Tls::default().ca(at("ca.crt"));
    let shown = client(ca.clone().certificate(at("client.crt"), at("client.key")));
    for _ in 0..3 {
        assert_eq!(shown.check(&Ask::new()).await.source, Source::Memory);
    }
    assert_eq!(client(ca).check(&Ask::new()).await.source, Source::Closed);
    let stranger = client(Tls::default());
    assert_eq!(stranger.check(&Ask::new()).await.source, Source::Closed);
    let wrong = Tls::default().ca(at("names"));
    let error = Weir::builder().servers(["tls://a:1"]).tls(wrong).build().unwrap_err();
    assert_eq!(error.option(), "tls");
    let _ = std::fs::remove_dir_all(&folder);
}
