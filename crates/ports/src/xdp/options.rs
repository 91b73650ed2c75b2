//! How an interface is to be opened by AF_XDP, and how it was.

use std::fmt;

use sys::xdp::XdpMode;
use sys::xsk::Transfer;

/// How an interface is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Options {
    /// Where the program is to run.
    pub hook: HookChoice,
    /// Who is to move the frames between the device and our memory.
    pub transfer: TransferChoice,
    /// Poll the device rather than wait for its interrupts.
    pub busy_poll: bool,
}

/// Where in the kernel frames are to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookChoice {
    /// In the driver, or else in the generic path.
    #[default]
    Best,
    /// In the driver, or not at all.
    Native,
    /// In the generic path.
    Generic,
}

/// Who moves frames between the device and our memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferChoice {
    /// The device itself, or else the kernel.
    #[default]
    Best,
    /// The kernel, which copies.
    Copy,
    /// The device itself, or it is not opened. It takes the driver's hook.
    ZeroCopy,
}

impl Options {
    /// The hooks to be tried, the better first.
    pub(super) const fn hooks(self) -> &'static [XdpMode] {
        match (self.hook, self.transfer) {
            (HookChoice::Generic, _) => &[XdpMode::Generic],
            (HookChoice::Native, _) | (HookChoice::Best, TransferChoice::ZeroCopy) => {
                &[XdpMode::Native]
            }
            (HookChoice::Best, _) => &[XdpMode::Native, XdpMode::Generic],
        }
    }

    /// The ways in which frames may move that were taken at this hook, the better first.
    pub(super) const fn transfers(self, hook: XdpMode) -> &'static [Transfer] {
        match (hook, self.transfer) {
            (_, TransferChoice::ZeroCopy) => &[Transfer::ZeroCopy],
            // The device's own access is for programs in its driver.
            (XdpMode::Generic, _) | (_, TransferChoice::Copy) => &[Transfer::Copy],
            (XdpMode::Native, TransferChoice::Best) => &[Transfer::ZeroCopy, Transfer::Copy],
        }
    }
}

/// How an interface was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) hook: XdpMode,
    pub(super) zero_copy: bool,
    pub(super) busy_poll: bool,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hook = match self.hook {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        };
        let transfer = if self.zero_copy {
            "zero-copy"
        } else {
            "copied"
        };
        write!(f, "AF_XDP, {hook}, {transfer}")?;
        f.write_str(if self.busy_poll { ", polled" } else { "" })
    }
}
