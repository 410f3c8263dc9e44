//! TLS of QUIC in the lab. A server has a raw public key (RFC 7250) that its process makes, and clients
//! accept any key: both ends are this program, in namespaces of this machine. So handshake and encryption are
//! real, and there are no certificates.

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::rustls;
use ring::rand::SystemRandom;
use ring::signature::{EcdsaKeyPair, ECDSA_P256_SHA256_ASN1_SIGNING};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::Resumption;
use rustls::crypto::{verify_tls13_signature_with_raw_key, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns the settings of servers, with a new key.
pub(super) fn server() -> Result<Arc<QuicServerConfig>, String> {
    let fault = |e: &dyn ToString| format!("TLS of QUIC: {}", e.to_string());
    let provider = provider();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
        .map_err(|e| fault(&e))?;
    let key = PrivatePkcs8KeyDer::from(key.as_ref().to_vec());
    let key = provider.key_provider.load_private_key(key.into()).map_err(|e| fault(&e))?;
    let public = key.public_key().ok_or("TLS of QUIC: the key has no public part")?.to_vec();
    let key = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| fault(&e))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    Ok(Arc::new(QuicServerConfig::try_from(config).map_err(|e| fault(&e))?))
}

/// Returns the settings of clients. Each connection has a whole handshake.
pub(super) fn client() -> Result<Arc<QuicClientConfig>, String> {
    let fault = |e: &dyn ToString| format!("TLS of QUIC: {}", e.to_string());
    let provider = provider();
    let mut config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| fault(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider)))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(QuicClientConfig::try_from(config).map_err(|e| fault(&e))?))
}

/// Verifier that accepts every raw public key whose owner signs the handshake.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    /// Refuses signatures of TLS 1.2, which QUIC lacks (RFC 9001 section 4.2).
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(CertificateError::BadSignature.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
