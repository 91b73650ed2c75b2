//! The purpose of a connection, and its channel options.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use openflow::{ChannelOptions, VersionSet};
use tokio::sync::watch;

use crate::message_log::{MessageDirection, MessageLog};
use crate::snoop::{SnoopDecoder, SnoopFeed};
use crate::stream_decoder::StreamDecoder;
use config::{ControllerOptions, DummyMode};
use switch::connection::ConnectionKind;

/// An interval longer than any uptime, for a peer that is never probed.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The channel options of a bridge for new connections.
#[derive(Clone)]
pub(crate) struct ChannelSettings {
    options: Arc<ArcSwap<ChannelOptions>>,
    /// The messages for snoop clients.
    feed: SnoopFeed,
}

impl ChannelSettings {
    /// Returns a value with these options.
    pub(crate) fn like(options: ChannelOptions) -> Self {
        Self {
            options: Arc::new(ArcSwap::from_pointee(options)),
            feed: SnoopFeed::default(),
        }
    }

    /// Returns a value with these versions and default options. Actions for tests are accepted if
    /// dummies are enabled, as in Open vSwitch.
    pub(crate) fn new(versions: VersionSet, dummies: DummyMode) -> Self {
        Self::like(ChannelOptions {
            versions,
            debug_actions: dummies.is_enabled(),
            ..ChannelOptions::default()
        })
    }

    /// Replaces the versions.
    pub(crate) fn set_versions(&self, versions: VersionSet) {
        let options = self.options();
        self.options.store(Arc::new(ChannelOptions {
            versions,
            ..options
        }));
    }

    /// Returns the messages for snoop clients.
    pub(crate) fn feed(&self) -> SnoopFeed {
        self.feed.clone()
    }

    /// Returns the current options.
    pub(crate) fn options(&self) -> ChannelOptions {
        **self.options.load()
    }
}

/// The purpose of a connection.
#[derive(Clone)]
pub(crate) struct Purpose {
    /// The bridge's name.
    pub(crate) bridge: Arc<str>,
    /// The peer's kind: controller or tool.
    pub(crate) kind: ConnectionKind,
    /// The peer's URI, if the bridge connects to it.
    pub(crate) uri: Option<Arc<str>>,
    /// The peer's name in logs, once it is connected.
    pub(crate) peer: Arc<str>,
    /// The bridge's channel options.
    pub(crate) channel_settings: ChannelSettings,
    /// The peer's own options, whose timing may change while it is connected.
    pub(crate) tuning: watch::Receiver<ControllerOptions>,
}

impl Purpose {
    /// Returns the channel options for this peer.
    pub(crate) fn options(&self) -> ChannelOptions {
        let probe = self.tuning.borrow().inactivity_probe.unwrap_or(NEVER);
        ChannelOptions {
            echo_interval: probe,
            echo_timeout: probe,
            ..self.channel_settings.options()
        }
    }

    /// Returns the log of one direction of the connection.
    pub(crate) fn message_log(&self, direction: MessageDirection) -> StreamDecoder<MessageLog> {
        MessageLog::decoder(Arc::clone(&self.peer), direction, self.options().versions)
    }

    /// Returns the snoop decoder for one direction of the connection; none for tools.
    pub(crate) fn snoop_decoder(&self) -> Option<SnoopDecoder> {
        (self.kind == ConnectionKind::Primary)
            .then(|| SnoopDecoder::new(self.channel_settings.feed()))
    }
}
