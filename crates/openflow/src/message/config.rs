//! Switch configuration (OF 1.3.5, 7.3.2), the same in all versions.

use flow::{FragmentHandling, Refusal, SwitchConfig};

use crate::codec::{Malformed, Reader, Writer};

/// `OFPC_FRAG_*` and Nicira's fourth mode.
const FRAGMENTS: [FragmentHandling; 4] = [
    FragmentHandling::Normal,
    FragmentHandling::Drop,
    FragmentHandling::Reassemble,
    FragmentHandling::NxMatch,
];

/// The bits of `flags` for the handling of fragments.
const FRAGMENT_BITS: u16 = 3;

/// Decodes the configuration in a reply. Unknown flags are ignored.
pub(crate) fn decode_reply(r: &mut Reader<'_>) -> Result<SwitchConfig, Malformed> {
    let flags = r.u16()?;
    Ok(SwitchConfig {
        fragments: FRAGMENTS[usize::from(flags & FRAGMENT_BITS)],
        miss_send_len: r.u16()?,
    })
}

/// Decodes the configuration to set. Unknown flags are refused.
pub(crate) fn decode_set(r: &mut Reader<'_>) -> Result<SwitchConfig, Malformed> {
    let unknown = r.fail(Refusal::ConfigBadFlags);
    if r.clone().u16()? & !FRAGMENT_BITS != 0 {
        return Err(unknown);
    }
    decode_reply(r)
}

/// Appends a configuration.
pub(crate) fn encode(config: &SwitchConfig, w: &mut Writer<'_>) {
    w.u16(match config.fragments {
        FragmentHandling::Normal => 0,
        FragmentHandling::Drop => 1,
        FragmentHandling::Reassemble => 2,
        FragmentHandling::NxMatch => 3,
    });
    w.u16(config.miss_send_len);
}
