//! The fields of tunnel options (`ovs-fields(7)`, "Tunnel Metadata"): the only ones whose
//! values have as many bytes on the wire as somebody gave them.

use super::Field;

/// How many fields there are for options of tunnels.
pub const TUNNEL_OPTIONS: usize = 64;

/// Bytes of such a field's value: those that Geneve has room for.
pub const TUNNEL_OPTION_BYTES: usize = 124;

impl Field {
    /// The first of them: all before it are ordinary fields, and behind them are views.
    pub(crate) const FIRST_TUNNEL_OPTION: Self = Self::TunMetadata0;

    /// The number of the tunnel option that the field holds.
    #[must_use]
    pub const fn option(self) -> Option<usize> {
        let (number, first) = (self as usize, Self::TunMetadata0 as usize);
        if number >= first && number < first + TUNNEL_OPTIONS {
            Some(number - first)
        } else {
            None
        }
    }

    /// The fields of tunnel options, in order.
    #[must_use]
    pub fn tunnel_options() -> &'static [Self] {
        let first = Self::TunMetadata0 as usize;
        &Self::ALL[first..first + TUNNEL_OPTIONS]
    }
}
