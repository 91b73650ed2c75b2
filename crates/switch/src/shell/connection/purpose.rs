//! What a connection is for, and how the bridge speaks by it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use openflow::{Options, Versions};

use crate::config::Tuning;
use crate::core::connection::Kind;
use crate::shell::snoop::{Ear, Talk};

/// Longer than any switch runs: a peer that is never asked whether it is there.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How a bridge speaks with those that come from now on.
#[derive(Clone)]
pub(crate) struct Speaking {
    options: Arc<ArcSwap<Options>>,
    /// Where those hear it who listen in.
    talk: Talk,
}

impl Speaking {
    /// It speaks like this.
    pub(crate) fn like(options: Options) -> Self {
        Self {
            options: Arc::new(ArcSwap::from_pointee(options)),
            talk: Talk::default(),
        }
    }

    /// It speaks these versions.
    pub(crate) fn versions(versions: Versions) -> Self {
        Self::like(Options {
            versions,
            ..Options::default()
        })
    }

    /// Goes over to these versions.
    pub(crate) fn set_versions(&self, versions: Versions) {
        let options = self.options();
        self.options.store(Arc::new(Options {
            versions,
            ..options
        }));
    }

    /// Where those hear it who listen in.
    pub(crate) fn talk(&self) -> Talk {
        self.talk.clone()
    }

    /// How it speaks now.
    pub(crate) fn options(&self) -> Options {
        **self.options.load()
    }
}

/// What a connection is for.
#[derive(Clone)]
pub(crate) struct Purpose {
    /// Its bridge, by name.
    pub(crate) bridge: Arc<str>,
    /// What the peer is to the bridge.
    pub(crate) kind: Kind,
    /// Where the peer is met, if the bridge goes there.
    pub(crate) uri: Option<Arc<str>>,
    /// How the bridge speaks with it.
    pub(crate) speaking: Speaking,
    /// What is particular to this peer.
    pub(crate) tuning: Tuning,
}

impl Purpose {
    /// How the bridge speaks with it now.
    pub(super) fn options(&self) -> Options {
        let probe = self.tuning.inactivity_probe.unwrap_or(NEVER);
        Options {
            echo_interval: probe,
            echo_timeout: probe,
            ..self.speaking.options()
        }
    }

    /// Who listens in on one way of the connection: on controllers, not on tools.
    pub(super) fn ear(&self) -> Option<Ear> {
        (self.kind == Kind::Primary).then(|| Ear::new(self.speaking.talk()))
    }
}
