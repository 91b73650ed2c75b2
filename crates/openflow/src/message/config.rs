//! Switch configuration (OF 1.3.5, 7.3.2), the same in all versions.

use flow::{FragmentHandling, Refusal, SwitchConfig};

use crate::codec::{Malformed, Reader, Writer};
use crate::version::Version;

/// `OFPC_FRAG_*` and Nicira's fourth mode.
const FRAGMENTS: [FragmentHandling; 4] = [
    FragmentHandling::Normal,
    FragmentHandling::Drop,
    FragmentHandling::Reassemble,
    FragmentHandling::NxMatch,
];

/// The bits of `flags` for the handling of fragments.
const FRAGMENT_BITS: u16 = 3;

/// `OFPC_INVALID_TTL_TO_CONTROLLER` of 1.1 and 1.2, which Open vSwitch has in 1.0 too.
const INVALID_TTL: u16 = 1 << 2;

/// The flags of a version.
const fn known_flags(version: Version) -> u16 {
    match version {
        Version::V10 | Version::V11 | Version::V12 => FRAGMENT_BITS | INVALID_TTL,
        Version::V13 | Version::V14 | Version::V15 => FRAGMENT_BITS,
    }
}

/// Decodes the configuration in a reply. Unknown flags are ignored.
pub(crate) fn decode_reply(r: &mut Reader<'_>) -> Result<SwitchConfig, Malformed> {
    let flags = r.u16()? & known_flags(r.version());
    Ok(SwitchConfig {
        invalid_ttl: flags & INVALID_TTL != 0,
        fragments: FRAGMENTS[usize::from(flags & FRAGMENT_BITS)],
        miss_send_len: r.u16()?,
    })
}

/// Decodes the configuration to set. Unknown flags are refused.
pub(crate) fn decode_set(r: &mut Reader<'_>) -> Result<SwitchConfig, Malformed> {
    let unknown = r.fail(Refusal::ConfigBadFlags);
    if r.clone().u16()? & !known_flags(r.version()) != 0 {
        return Err(unknown);
    }
    decode_reply(r)
}

/// Appends a configuration.
pub(crate) fn encode(config: &SwitchConfig, w: &mut Writer<'_>) {
    let fragments = match config.fragments {
        FragmentHandling::Normal => 0,
        FragmentHandling::Drop => 1,
        FragmentHandling::Reassemble => 2,
        FragmentHandling::NxMatch => 3,
    };
    let invalid_ttl = u16::from(config.invalid_ttl) * INVALID_TTL;
    w.u16(fragments | invalid_ttl & known_flags(w.version()));
    w.u16(config.miss_send_len);
}
