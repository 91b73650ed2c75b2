//! The way to a bridge's controllers, where it leads through the bridge itself.

use std::sync::Arc;

use base::Instant;

use super::Bridge;
use dataplane::in_band::{InBand, InBandConfig};

impl Bridge {
    /// Lets frames go that way from now on, whatever its tables say.
    pub fn set_in_band(&mut self, config: InBandConfig, now: Instant) {
        let before = self.in_band.as_deref();
        let is_same = match before {
            Some(before) => *before.config() == config,
            None => config.remotes.is_empty(),
        };
        if !is_same {
            self.in_band = InBand::compile(config, before, now);
            self.unpublished = true;
        }
    }

    /// That way; none if there is none.
    pub const fn in_band(&self) -> Option<&Arc<InBand>> {
        self.in_band.as_ref()
    }
}
