//! What passes through a bridge whatever its rules say, beside what goes to its controllers
//! (ovs-vswitchd.conf.db(5), Manager, `connection_mode`, and Bridge, `other_config:in-band-queue`).

use std::fmt;
use std::net::SocketAddrV4;

use base::QueueId;

/// Whom the database speaks with through a bridge, and by which queue what passes so leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBandSettings {
    /// Managers that may be met through it.
    pub managers: Vec<SocketAddrV4>,
    /// The queue; the usual one, if absent.
    pub queue: Option<QueueId>,
}

impl fmt::Display for InBandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.managers.iter().map(ToString::to_string).collect();
        write!(f, "managers in band [{}]", words.join(" "))?;
        match self.queue {
            Some(QueueId(queue)) => write!(f, " by queue {queue}"),
            None => Ok(()),
        }
    }
}
