// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encrypted connections. With `sslmode=require` the server must also prove its identity, by the
//! roots that this machine trusts or those in the file that `PGSSLROOTCERT` names. Without it, a
//! connection is encrypted if the server offers that, and nothing is proved, as with `psql`.

use std::env;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes the connector for encrypted connections.
pub fn connector(mode: SslMode) -> io::Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = if mode == SslMode::Require {
        config.with_root_certificates(roots()?)
    } else {
        config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = env::var_os("PGSSLROOTCERT").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let wrong =
            |error: String| io::Error::other(format!("PGSSLROOTCERT {}: {error}", path.display()));
        for root in CertificateDer::pem_file_iter(&path).map_err(|e| wrong(e.to_string()))? {
            let root = root.map_err(|e| wrong(e.to_string()))?;
            roots.add(root).map_err(|e| wrong(e.to_string()))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    Ok(roots)
}

/// Accepts any certificate as that of the server.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
