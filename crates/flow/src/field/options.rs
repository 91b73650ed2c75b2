//! The fields of tunnel options (`ovs-fields(7)`, "Tunnel Metadata"): the only ones whose
//! values have as many bytes on the wire as somebody gave them.

use super::Field;

/// How many fields there are for options of tunnels.
pub const OPTIONS: usize = 32;

/// Bytes of such a field's value where it is told whole: those that Geneve has room for.
pub(super) const OPTION_BYTES: usize = 124;

impl Field {
    /// The number of the tunnel option that the field holds.
    #[must_use]
    pub const fn option(self) -> Option<usize> {
        let (number, first) = (self as usize, Self::TunMetadata0 as usize);
        if number >= first && number < first + OPTIONS {
            Some(number - first)
        } else {
            None
        }
    }

    /// The fields of tunnel options, in order.
    pub(crate) fn of_options() -> &'static [Self] {
        let first = Self::TunMetadata0 as usize;
        &Self::ALL[first..first + OPTIONS]
    }

    /// Whole bytes that these bits of the field take on the wire: of a tunnel option's, those
    /// that are not zero, which may be none.
    #[must_use]
    pub fn bytes_of(self, bits: u128) -> usize {
        if self.option().is_none() {
            return self.bytes();
        }
        let used = (u128::BITS - bits.leading_zeros()).div_ceil(8);
        used.try_into().expect("sixteen at most")
    }
}
