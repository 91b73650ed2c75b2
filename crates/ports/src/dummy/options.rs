//! The options of a dummy port. All of them change while the port exists.

use std::num::NonZeroU16;

use super::address::DummyConnection;
use super::pcap::DummyFiles;
use super::steering::TxSteering;

/// The maximum number of receive and of transmit queues, as in Open vSwitch's dummies.
pub const DUMMY_QUEUES_MAX: NonZeroU16 = NonZeroU16::new(1024).expect("1024 is not zero");

/// The interface type that a dummy port replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DummyType {
    /// Type `dummy`.
    #[default]
    Dummy,
    /// Type `internal` of a dummy bridge, and its `LOCAL` port.
    Internal,
    /// Type `dummy-pmd`.
    Pmd,
    /// Type `system`, with `--enable-dummy=system` or `=override`.
    System,
    /// Type `tap`, with `--enable-dummy=override`.
    Tap,
}

impl DummyType {
    /// Returns the type of Open vSwitch's device for an interface of type `interface_type`.
    #[must_use]
    pub fn of_interface(interface_type: &str) -> Self {
        match interface_type {
            "internal" | "dummy-internal" => Self::Internal,
            "dummy-pmd" => Self::Pmd,
            "" | "system" => Self::System,
            "tap" => Self::Tap,
            _ => Self::Dummy,
        }
    }

    /// Returns the name of the type, as in Open vSwitch.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dummy => "dummy",
            Self::Internal => "dummy-internal",
            Self::Pmd => "dummy-pmd",
            Self::System => "system",
            Self::Tap => "tap",
        }
    }
}

/// The options of a dummy port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DummyOptions {
    /// The capture files.
    pub files: DummyFiles,
    /// The connection to another dummy.
    pub connection: Option<DummyConnection>,
    /// The interface index to show.
    pub ifindex: Option<u32>,
    /// The number of receive queues.
    pub rx_queues: NonZeroU16,
    /// The number of transmit queues.
    pub tx_queues: NonZeroU16,
    /// The NUMA node.
    pub numa: u32,
    /// The choice of the transmit queue.
    pub steering: TxSteering,
}

impl Default for DummyOptions {
    fn default() -> Self {
        Self {
            files: DummyFiles::default(),
            connection: None,
            ifindex: None,
            rx_queues: NonZeroU16::MIN,
            tx_queues: NonZeroU16::MIN,
            numa: 0,
            steering: TxSteering::default(),
        }
    }
}
