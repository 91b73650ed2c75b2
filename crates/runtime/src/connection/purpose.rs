//! What a connection is for, and how the bridge speaks by it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use openflow::{ChannelOptions, VersionSet};

use crate::snoop::{Ear, Talk};
use config::ControllerOptions;
use switch::connection::ConnectionKind;

/// Longer than any switch runs: a peer that is never asked whether it is there.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How a bridge speaks with those that come from now on.
#[derive(Clone)]
pub(crate) struct Speaking {
    options: Arc<ArcSwap<ChannelOptions>>,
    /// Where those hear it who listen in.
    talk: Talk,
}

impl Speaking {
    /// It speaks like this.
    pub(crate) fn like(options: ChannelOptions) -> Self {
        Self {
            options: Arc::new(ArcSwap::from_pointee(options)),
            talk: Talk::default(),
        }
    }

    /// It speaks these versions.
    pub(crate) fn versions(versions: VersionSet) -> Self {
        Self::like(ChannelOptions {
            versions,
            ..ChannelOptions::default()
        })
    }

    /// Goes over to these versions.
    pub(crate) fn set_versions(&self, versions: VersionSet) {
        let options = self.options();
        self.options.store(Arc::new(ChannelOptions {
            versions,
            ..options
        }));
    }

    /// Where those hear it who listen in.
    pub(crate) fn talk(&self) -> Talk {
        self.talk.clone()
    }

    /// How it speaks now.
    pub(crate) fn options(&self) -> ChannelOptions {
        **self.options.load()
    }
}

/// What a connection is for.
#[derive(Clone)]
pub(crate) struct Purpose {
    /// Its bridge, by name.
    pub(crate) bridge: Arc<str>,
    /// What the peer is to the bridge.
    pub(crate) kind: ConnectionKind,
    /// Where the peer is met, if the bridge goes there.
    pub(crate) uri: Option<Arc<str>>,
    /// How the bridge speaks with it.
    pub(crate) speaking: Speaking,
    /// What is particular to this peer.
    pub(crate) tuning: ControllerOptions,
}

impl Purpose {
    /// How the bridge speaks with it now.
    pub(super) fn options(&self) -> ChannelOptions {
        let probe = self.tuning.inactivity_probe.unwrap_or(NEVER);
        ChannelOptions {
            echo_interval: probe,
            echo_timeout: probe,
            ..self.speaking.options()
        }
    }

    /// Who listens in on one way of the connection: on controllers, not on tools.
    pub(super) fn ear(&self) -> Option<Ear> {
        (self.kind == ConnectionKind::Primary).then(|| Ear::new(self.speaking.talk()))
    }
}
