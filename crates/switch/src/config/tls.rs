//! What a switch shows peers that it speaks TLS with, and by what it knows them: files, which
//! are read when a connection is made, so that new ones need no word.

use std::path::PathBuf;

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
    /// theirs, whatever its name is.
    pub ca_cert: PathBuf,
    /// Whether that file is written from what the first peer says, if it is not there
    /// (ovs-vswitchd.conf.db(5), `bootstrap_ca_cert`): whoever is there first is believed.
    #[serde(default)]
    pub bootstrap: bool,
}
