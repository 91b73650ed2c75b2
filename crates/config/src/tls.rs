//! What a switch shows peers that it speaks TLS with, and by what it knows them: files, which
//! are read when a connection is made, so that new ones need no word.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Files in PEM form, as `ovs-pki` makes them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// The switch's own key.
    pub private_key: PathBuf,
    /// Its certificate, which says that the key is a switch's.
    pub certificate: PathBuf,
    /// The certificate of those who sign controllers': a peer is let in if it has one of
    /// theirs, whatever its name is. `none` lets in all (ovs-vswitchd(8), `--ca-cert`).
    pub ca_cert: PathBuf,
    /// Whether that file is written from what the first peer says, if it is not there
    /// (ovs-vswitchd.conf.db(5), `bootstrap_ca_cert`): whoever is there first is believed.
    #[serde(default)]
    pub bootstrap: bool,
    /// Certificates that are shown beside its own (ovs-vswitchd(8), `--peer-ca-cert`): peers may
    /// learn an authority from them.
    #[serde(default)]
    pub peer_ca_cert: Option<PathBuf>,
}

/// What stands in the place of an authority where all peers are let in.
const ALL: &str = "none";

impl Tls {
    /// Where the authority of peers is; none, if all are let in.
    pub fn authority(&self) -> Option<&Path> {
        (self.ca_cert != Path::new(ALL)).then_some(&self.ca_cert)
    }
}
