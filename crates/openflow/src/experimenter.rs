//! The experimenter ids that this crate supports.

/// Nicira's experimenter id, and its OpenFlow 1.0 vendor id.
pub(crate) const NICIRA: u32 = 0x0000_2320;

/// Experimenter id of the Open Networking Foundation.
pub(crate) const ONF: u32 = 0x4f4e_4600;
