//! Options of an AF_XDP port, and the mode in which it was opened.

use std::fmt;

use sys::xdp::XdpMode;
use sys::xsk::Transfer;

/// Options of an AF_XDP port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct XdpOptions {
    /// XDP mode.
    pub mode: XdpModeChoice,
    /// Transfer between the device and the UMEM.
    pub transfer: TransferChoice,
    /// Poll the device instead of waiting for interrupts.
    pub busy_poll: bool,
}

/// Requested XDP mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum XdpModeChoice {
    /// Native if available, otherwise generic.
    #[default]
    Best,
    /// Native only.
    Native,
    /// Generic only.
    Generic,
}

/// Requested transfer between the device and the UMEM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferChoice {
    /// Zero copy if available, otherwise copies by the kernel.
    #[default]
    Best,
    /// Copies by the kernel.
    Copy,
    /// Zero copy only, which requires native mode.
    ZeroCopy,
}

impl XdpOptions {
    /// Returns the modes to try, the best first.
    pub(super) const fn modes(self) -> &'static [XdpMode] {
        match (self.mode, self.transfer) {
            (XdpModeChoice::Generic, _) => &[XdpMode::Generic],
            (XdpModeChoice::Native, _) | (XdpModeChoice::Best, TransferChoice::ZeroCopy) => {
                &[XdpMode::Native]
            }
            (XdpModeChoice::Best, _) => &[XdpMode::Native, XdpMode::Generic],
        }
    }

    /// Returns the transfers to try in this mode, the best first.
    pub(super) const fn transfers(self, mode: XdpMode) -> &'static [Transfer] {
        match (mode, self.transfer) {
            (_, TransferChoice::ZeroCopy) => &[Transfer::ZeroCopy],
            // Zero copy requires native mode.
            (XdpMode::Generic, _) | (_, TransferChoice::Copy) => &[Transfer::Copy],
            (XdpMode::Native, TransferChoice::Best) => &[Transfer::ZeroCopy, Transfer::Copy],
        }
    }
}

/// Mode in which an interface was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct XdpDataPath {
    pub(super) mode: XdpMode,
    pub(super) zero_copy: bool,
    pub(super) busy_poll: bool,
}

impl fmt::Display for XdpDataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        };
        let transfer = if self.zero_copy {
            "zero-copy"
        } else {
            "copied"
        };
        write!(f, "AF_XDP, {mode}, {transfer}")?;
        f.write_str(if self.busy_poll { ", polled" } else { "" })
    }
}
