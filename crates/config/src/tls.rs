//! Keys and certificates for TLS. The files are read at each connection, so that replaced files
//! need no command.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Files in PEM form, as `ovs-pki` creates them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// The private key of the switch.
    pub private_key: PathBuf,
    /// The certificate of the switch.
    pub certificate: PathBuf,
    /// The CA certificate for controllers: a peer is accepted if this CA signed its certificate,
    /// regardless of its name. `none` accepts every peer (ovs-vswitchd(8), `--ca-cert`).
    pub ca_cert: PathBuf,
    /// Bootstrap: if the file does not exist, the CA certificate of the first peer is trusted and
    /// saved to it (ovs-vswitchd.conf.db(5), `bootstrap_ca_cert`).
    #[serde(default)]
    pub bootstrap: bool,
    /// A CA certificate that is sent in addition to the switch's own certificate (ovs-vswitchd(8),
    /// `--peer-ca-cert`); a bootstrapping peer learns the CA from it.
    #[serde(default)]
    pub peer_ca_cert: Option<PathBuf>,
}

/// The value of `ca_cert` that accepts every peer.
const ALL: &str = "none";

impl Tls {
    /// Returns the file of the CA certificate; `None` if every peer is accepted.
    pub fn authority(&self) -> Option<&Path> {
        (self.ca_cert != Path::new(ALL)).then_some(&self.ca_cert)
    }
}
