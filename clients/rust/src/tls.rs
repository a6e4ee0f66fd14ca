//! TLS to a service: whom to trust, and what to show.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{crypto, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::error::OptionError;
use crate::transport::TlsSettings;

/// For `tls://` addresses. By default the authorities of the system are trusted, and no certificate
/// is shown. All files are PEM.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Tls {
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Trusts the authorities in this file instead of the system's.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Shows this certificate, for services that ask for one.
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    pub(crate) fn settings(&self) -> Result<TlsSettings, OptionError> {
        let wrong = |message: String| OptionError::new("tls", message);
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "certificate")?;
                let private = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| wrong(format!("key: {}: {error}", key.display())))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| wrong(format!("certificate and key: {error}")))?
            }
        };
        Ok(TlsSettings { config: Some(Arc::new(config)) })
    }

    fn roots(&self) -> Result<RootCertStore, OptionError> {
        let mut roots = RootCertStore::empty();
        let found = match &self.ca {
            Some(file) => certificates(file, "ca")?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(found);
        Ok(roots)
    }
}

fn certificates(file: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, OptionError> {
    let wrong = |why: String| {
        OptionError::new(
            "tls",
            format!("{what}: {}: {why}; write the path of a PEM file", file.display()),
        )
    };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("there is no certificate in it".into()));
    }
    Ok(found)
}

pub(crate) async fn handshake(
    settings: &TlsSettings,
    host: &str,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let config = settings.config.clone().ok_or_else(|| io::Error::other("no TLS settings"))?;
    let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
    TlsConnector::from(config).connect(name, stream).await
}
