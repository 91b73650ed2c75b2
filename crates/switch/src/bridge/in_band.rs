//! In-band control: OpenFlow connections through the bridge's own ports.

use std::sync::Arc;

use base::Instant;

use super::Bridge;
use dataplane::in_band::{InBand, InBandConfig};

impl Bridge {
    /// Sets the in-band flows, which precede the tables.
    pub fn set_in_band(&mut self, config: InBandConfig, now: Instant) {
        let before = self.protocols.in_band.as_deref();
        let is_same = match before {
            Some(before) => *before.config() == config,
            None => config.remotes.is_empty(),
        };
        if !is_same {
            self.protocols.in_band = InBand::compile(config, before, now);
            self.publication.request();
        }
    }

    /// Returns the in-band flows; none if there are none.
    pub const fn in_band(&self) -> Option<&Arc<InBand>> {
        self.protocols.in_band.as_ref()
    }
}
