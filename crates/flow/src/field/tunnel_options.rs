//! Fields of tunnel options (`ovs-fields(7)`, "Tunnel Metadata"), the only fields with a variable
//! length on the wire.

use super::Field;

/// Number of fields for tunnel options.
pub const TUNNEL_OPTIONS: usize = 64;

/// Length of their values in bytes: the space for options in Geneve.
pub const TUNNEL_OPTION_BYTES: usize = 124;

impl Field {
    /// First tunnel option: all fields before it are ordinary, all after the last one are views.
    pub(crate) const FIRST_TUNNEL_OPTION: Self = Self::TunMetadata0;

    /// Returns the index of the tunnel option, or `None` for other fields.
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
