//! The network service header. No checksum covers it.

use super::checksum_update::Coverage;
use super::{Packet, TtlExpired};
use crate::headers::Network;
use crate::wire::nsh::{self, Nsh};

impl Packet<'_> {
    /// Sets the flags to the lower two bits of `flags`.
    pub fn set_nsh_flags(&mut self, flags: u8) {
        self.change_nsh(|header| header.flags = flags & 3);
    }

    /// Sets the time to live to the lower six bits of `ttl`.
    pub fn set_nsh_ttl(&mut self, ttl: u8) {
        self.change_nsh(|header| header.ttl = ttl & 0x3f);
    }

    /// Sets the service path to the lower twenty-four bits of `path`.
    pub fn set_nsh_path(&mut self, path: u32) {
        self.change_nsh(|header| header.path = path & 0x00ff_ffff);
    }

    /// Sets the service index.
    pub fn set_nsh_index(&mut self, index: u8) {
        self.change_nsh(|header| header.index = index);
    }

    /// Sets one of the four words of the context, if the header has one.
    pub fn set_nsh_context(&mut self, index: usize, word: u32) {
        if let Network::Nsh(header) = &mut self.headers.network
            && header.md_type == nsh::MD_TYPE1
            && let Some(context) = header.context.get_mut(index)
        {
            *context = word;
            let at = self.headers.network_at() + nsh::CONTEXT + index * 4;
            self.write(at, word.to_be_bytes(), Coverage::Nothing);
        }
    }

    /// Decrements the time to live.
    ///
    /// # Errors
    /// The time to live was one or zero.
    pub fn dec_nsh_ttl(&mut self) -> Result<(), TtlExpired> {
        if let Network::Nsh(header) = &self.headers.network {
            let ttl = super::ttl::decremented(header.ttl)?;
            self.set_nsh_ttl(ttl);
        }
        Ok(())
    }

    /// Writes the changed header; unassigned bits become zero.
    fn change_nsh(&mut self, change: impl FnOnce(&mut Nsh)) {
        if let Network::Nsh(header) = &mut self.headers.network {
            change(header);
            let bytes = header.emit();
            self.write(self.headers.network_at(), bytes, Coverage::Nothing);
        }
    }
}
