//! TLS with controllers and databases (RFC 5246, RFC 8446), as in Open vSwitch: a peer is
//! authenticated by the CA of its certificate, not by a name, and both sides present a certificate.
//! Keys and certificates are files, which are read again when they have changed.

mod verify;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use config::Tls;
use verify::AnyName;

/// The limit of bytes that are read of a key or certificate file: some hundred certificates.
const FILE_LEN_MAX: u64 = 1 << 20;

/// The number of base64 characters in a line of a PEM file (RFC 7468, 2).
const PEM_LINE_LEN: usize = 64;

/// The suffix of a certificate file while it is written.
const PARTIAL_SUFFIX: &str = ".partial";

/// Key and certificates of the switch. They may change at any time, for later connections.
#[derive(Clone, Default)]
pub struct Secrets {
    tls: Arc<ArcSwapOption<Tls>>,
    /// The configuration of the last handshake as the server.
    server: Arc<Mutex<Option<ServerCache>>>,
}

/// A configuration of the server, and the files that it was read from: peers that connect often do
/// not make the switch parse keys as often.
struct ServerCache {
    files: Vec<FileStamp>,
    config: Arc<ServerConfig>,
}

/// The identity and the time of the last change of a file.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    path: PathBuf,
    inode: (u64, u64),
    changed: (i64, i64),
    len: u64,
}

impl FileStamp {
    fn read(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| about(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            inode: (metadata.dev(), metadata.ino()),
            // The time of the change of the inode, which no program sets back.
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            len: metadata.len(),
        })
    }

    /// Returns the state of all files of a server.
    fn of_server(tls: &Tls) -> io::Result<Vec<Self>> {
        let own = [&*tls.private_key, &*tls.certificate];
        let others = [tls.authority(), tls.peer_ca_cert.as_deref()];
        let paths = own.into_iter().chain(others.into_iter().flatten());
        paths.map(Self::read).collect()
    }
}

impl Secrets {
    /// Replaces the key and certificates.
    pub fn set(&self, tls: Option<Tls>) {
        self.tls.store(tls.map(Arc::new));
    }

    /// Does the TLS handshake as the client.
    ///
    /// # Errors
    /// A file is invalid, or the handshake fails.
    pub async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let tls = self.current()?;
        let files = Arc::clone(&tls);
        let (config, bootstraps) = in_background(move || client(&files)).await?;
        let name = ServerName::IpAddress(stream.peer_addr()?.ip().into());
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        if bootstraps {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let chain: Vec<_> = chain.iter().map(|one| one.clone().into_owned()).collect();
            in_background(move || save_authority(&chain, &tls.ca_cert)).await?;
        }
        Ok(TlsStream::Client(stream))
    }

    /// Does the TLS handshake as the server.
    ///
    /// # Errors
    /// As for [`Secrets::connect`].
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let tls = self.current()?;
        let cache = Arc::clone(&self.server);
        let config = in_background(move || cached_server(&tls, &cache)).await?;
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        Ok(TlsStream::Server(stream))
    }

    fn current(&self) -> io::Result<Arc<Tls>> {
        let tls = self.tls.load_full();
        tls.ok_or_else(|| {
            io::Error::other(
                "TLS needs a private key, a certificate and a CA certificate: \
                 ovs-vsctl set-ssl, or --private-key, --certificate and --ca-cert",
            )
        })
    }
}

/// Runs file operations on a thread that may block.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Returns the configuration of a client, and true if the peer's CA certificate is still to be
/// bootstrapped from the connection.
fn client(tls: &Tls) -> io::Result<(ClientConfig, bool)> {
    let bootstraps = match tls.authority() {
        Some(path) => tls.bootstrap && !path.try_exists()?,
        None => false,
    };
    let provider = provider();
    let trusted = tls.authority().filter(|_| !bootstraps);
    let authorities = trusted.map(authorities).transpose()?;
    let verifier = AnyName::new(authorities, &provider);
    let (chain, key) = own_certificate(tls)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain, key);
    let mut config = config.map_err(|error| about(&tls.private_key, error))?;
    config.enable_sni = false;
    Ok((config, bootstraps))
}

/// Returns the configuration of a server, from the cache unless a file has changed.
fn cached_server(tls: &Tls, cache: &Mutex<Option<ServerCache>>) -> io::Result<Arc<ServerConfig>> {
    let files = FileStamp::of_server(tls)?;
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cached) = &*cache
        && cached.files == files
    {
        return Ok(Arc::clone(&cached.config));
    }
    let config = Arc::new(server(tls)?);
    *cache = Some(ServerCache {
        files,
        config: Arc::clone(&config),
    });
    Ok(config)
}

/// Returns the configuration of a server. It needs a CA certificate: a server does not bootstrap.
fn server(tls: &Tls) -> io::Result<ServerConfig> {
    let provider = provider();
    let verifier = match tls.authority() {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(path) => {
            let authorities = Arc::new(authorities(path)?);
            let provider = Arc::clone(&provider);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities, provider).build();
            verifier.map_err(|error| about(path, error))?
        }
    };
    let (chain, key) = own_certificate(tls)?;
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| about(&tls.private_key, error))
}

/// Returns the switch's certificate chain and private key.
fn own_certificate(
    tls: &Tls,
) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let mut chain = certificates(&tls.certificate)?;
    if let Some(additional) = &tls.peer_ca_cert {
        let additional = certificates(additional)?;
        chain.extend(
            additional
                .into_iter()
                .filter(|one| !chain.contains(one))
                .collect::<Vec<_>>(),
        );
    }
    let key = parse_key(&read(&tls.private_key)?);
    Ok((chain, key.map_err(|error| about(&tls.private_key, error))?))
}

/// Returns the CA certificates that authenticate peers.
fn authorities(path: &Path) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(|error| about(path, error))?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = read(path)?;
    let read = parse_certificates(&bytes).map_err(|error| about(path, error))?;
    match read.is_empty() {
        true => Err(about(path, "no certificate in the file")),
        false => Ok(read),
    }
}

/// Parses the certificates in a PEM file.
fn parse_certificates(file: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_slice_iter(file).collect()
}

/// Parses the private key in a PEM file.
fn parse_key(file: &[u8]) -> Result<PrivateKeyDer<'static>, pem::Error> {
    PrivateKeyDer::from_pem_slice(file)
}

/// Parses a file as authorities, as the peer's chain and as a private key.
#[cfg(any(all(test, not(feature = "model")), feature = "fuzzing"))]
pub(crate) fn parse_all(file: &[u8]) {
    let mut store = RootCertStore::empty();
    let certificates = parse_certificates(file).unwrap_or_default();
    for certificate in certificates.iter().cloned() {
        let _ = store.add(certificate);
    }
    let _ = verify::authority_of(&certificates, &provider());
    if let Ok(key) = parse_key(file) {
        let _ = provider().key_provider.load_private_key(key);
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| about(path, error))?;
    let read = file.take(FILE_LEN_MAX).read_to_end(&mut bytes);
    read.map_err(|error| about(path, error))?;
    Ok(bytes)
}

fn about(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// Writes a file that must not exist: it appears whole, or not at all. A partial file would be taken
/// for the certificate for ever.
fn save_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Several connections may bootstrap at once.
    static SAVING: Mutex<()> = Mutex::new(());
    let _saving = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut partial = path.as_os_str().to_owned();
    partial.push(PARTIAL_SUFFIX);
    let partial = PathBuf::from(partial);
    // A crash may have left one.
    drop(fs::remove_file(&partial));
    let written = File::create_new(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        // Unlike a rename, a link does not replace a file that another process has written.
        fs::hard_link(&partial, path)
    });
    drop(fs::remove_file(&partial));
    written?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

/// Saves the CA certificate from the peer's chain for all later connections, if it signed the
/// peer's own certificate.
fn save_authority(chain: &[CertificateDer<'static>], path: &Path) -> io::Result<()> {
    let authority = verify::authority_of(chain, &provider()).map_err(|error| {
        io::Error::other(format!(
            "cannot bootstrap the CA certificate from this peer: {error}"
        ))
    })?;
    let text = STANDARD.encode(authority);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(PEM_LINE_LEN) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    save_new(path, pem.as_bytes()).map_err(|error| about(path, error))?;
    tracing::warn!(file = %path.display(), "saved the CA certificate of the first peer");
    Ok(())
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    #[test]
    fn certificate_file_appears_whole_or_not_at_all() {
        let name = format!("comporta-bootstrap-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let path = directory.join("ca.pem");
        save_new(&path, b"one").expect_err("no directory");
        fs::create_dir(&directory).expect("a writable directory");
        let partial = directory.join("ca.pem.partial");
        // A directory in its place is one of the failures before the end of the file.
        fs::create_dir(&partial).expect("writable");
        save_new(&path, b"one").expect_err("the partial file cannot be created");
        assert!(!path.exists());
        fs::remove_dir(&partial).expect("removable");
        fs::write(&partial, "left by a crash").expect("writable");
        save_new(&path, b"one").expect("writable");
        assert_eq!(fs::read(&path).expect("readable"), b"one");
        assert!(!partial.exists());
        let error = save_new(&path, b"two").expect_err("it exists");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("readable"), b"one");
        fs::remove_dir_all(directory).expect("removable");
    }

    #[test]
    fn stamp_of_a_file_changes_with_the_file() {
        let name = format!("comporta-stamp-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        assert!(FileStamp::read(&path).is_err());
        fs::write(&path, "one").expect("a writable directory");
        let first = FileStamp::read(&path).expect("it exists");
        assert_eq!(FileStamp::read(&path).expect("it exists"), first);
        fs::write(&path, "three").expect("it exists");
        let second = FileStamp::read(&path).expect("it exists");
        assert_ne!(second, first);
        // A file that replaces another is another file, also with the same contents.
        let new = path.with_extension("new");
        fs::write(&new, "three").expect("a writable directory");
        fs::rename(&new, &path).expect("both exist");
        assert_ne!(FileStamp::read(&path).expect("it exists"), second);
        fs::remove_file(&path).expect("it exists");
    }
}
