//! Receivers over https.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use webhooks::{SendError, Webhooks, ping, tls_with};

use crate::receiver::{Answer, Receiver};
use crate::source::Memory;
use crate::{options, set, webhook};

fn certified(name: &str) -> (TlsAcceptor, CertificateDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let certificate = certificate.der().clone();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

#[tokio::test]
async fn a_receiver_needs_a_certificate_for_its_name_by_a_known_authority() {
    let (acceptor, certificate) = certified("localhost");
    let (other_acceptor, other) = certified("other.example");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    roots.add(other).unwrap();
    let (known, unknown) = (tls_with(roots), tls_with(RootCertStore::empty()));

    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start_with(Some(acceptor)).await;
    let webhooks =
        Webhooks::new(folder.path().join("x"), source.clone(), Arc::clone(&known), options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    source.add(2);
    assert_eq!(receiver.until(2).await.concat(), [1, 2]);

    let sent = ping(&webhook(&receiver.url), Arc::clone(&known)).await;
    assert_eq!(sent.unwrap(), 200);
    let request = receiver.next().await;
    assert_eq!(request.json(), serde_json::json!({"type": "ping", "webhook": "search"}));
    let refused = ping(&webhook(&receiver.url), unknown).await.unwrap_err();
    assert!(matches!(refused, SendError::Connect(_)), "{refused}");
    receiver.answer([Answer::status(401)]);
    let refused = ping(&webhook(&receiver.url), Arc::clone(&known)).await.unwrap_err();
    assert_eq!(refused.to_string(), "the receiver answered 401");
    let wrong = Receiver::start_with(Some(other_acceptor)).await;
    let refused = ping(&webhook(&wrong.url), known).await.unwrap_err();
    assert!(matches!(refused, SendError::Connect(_)), "{refused}");
}
