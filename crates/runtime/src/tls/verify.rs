//! Verification of a peer's certificate by its CA, without a check of its name.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Accepts certificates that one of these CAs signed; any certificate if no CA is known yet.
#[derive(Debug)]
pub(super) struct AnyName {
    authorities: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyName {
    pub(super) fn new(authorities: Option<RootCertStore>, provider: &CryptoProvider) -> Self {
        Self {
            authorities,
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                authorities,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the CA certificate of a chain: the last one, which signed those before it.
///
/// # Errors
/// There is none, or it did not sign them.
pub(super) fn authority_of<'a>(
    chain: &'a [CertificateDer<'static>],
    provider: &CryptoProvider,
) -> Result<&'a CertificateDer<'static>, Error> {
    let [own, between @ .., authority] = chain else {
        return Err(CertificateError::UnknownIssuer.into());
    };
    let mut store = RootCertStore::empty();
    store.add(authority.clone())?;
    verify_server_cert_signed_by_trust_anchor(
        &ParsedCertificate::try_from(own)?,
        &store,
        between,
        UnixTime::now(),
        provider.signature_verification_algorithms.all,
    )?;
    Ok(authority)
}
