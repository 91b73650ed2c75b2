//! In-band control: traffic that passes a bridge regardless of its rules, in addition to that of
//! its controllers (ovs-vswitchd.conf.db(5), Manager, `connection_mode`, and Bridge,
//! `other_config:in-band-queue`).

use std::fmt;
use std::net::SocketAddrV4;

use base::QueueId;

/// Managers that are reached through a bridge, and the queue of in-band traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBandSettings {
    /// OVSDB managers that may be reached through the bridge.
    pub managers: Vec<SocketAddrV4>,
    /// The egress queue; the default queue if absent.
    pub queue: Option<QueueId>,
}

impl fmt::Display for InBandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.managers.iter().map(ToString::to_string).collect();
        write!(f, "in-band managers [{}]", words.join(" "))?;
        match self.queue {
            Some(QueueId(queue)) => write!(f, ", queue {queue}"),
            None => Ok(()),
        }
    }
}
