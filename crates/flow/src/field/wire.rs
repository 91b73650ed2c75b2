//! Numbers of fields in OXM and NXM headers.

/// OXM or NXM header: class, field number and experimenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireId {
    /// The class: `0x8000` basic, `0x0000` and `0x0001` Nicira, `0x1000` Ericsson,
    /// `0xffff` experimenter.
    pub class: u16,
    /// The field's number in its class.
    pub number: u8,
    /// Experimenter in the class of experimenters, otherwise zero.
    pub experimenter: u32,
}

impl WireId {
    /// A field of a class that is somebody's own.
    #[must_use]
    pub const fn new(class: u16, number: u8) -> Self {
        Self {
            class,
            number,
            experimenter: 0,
        }
    }

    /// An experimenter's field.
    #[must_use]
    pub const fn of_experimenter(experimenter: u32, number: u8) -> Self {
        Self {
            class: EXPERIMENTER,
            number,
            experimenter,
        }
    }
}

/// Class of fields with an experimenter id (OF 1.3.5, 7.2.3.3).
pub const EXPERIMENTER: u16 = 0xffff;

/// The Open Networking Foundation.
pub const ONF: u32 = 0x4f4e_4600;

/// Nicira, the experimenter of Open vSwitch's fields.
const NICIRA: u32 = 0x0000_2320;

/// Experimenter that Open vSwitch assigns to the fields of the network service header
/// (`ovs-fields(7)`, NXOXM_NSH).
const NSH: u32 = 0x005a_d650;

pub(super) const fn oxm(number: u8) -> Option<WireId> {
    Some(WireId::new(0x8000, number))
}

pub(super) const fn onf(number: u8) -> Option<WireId> {
    Some(WireId::of_experimenter(ONF, number))
}

/// Open vSwitch's fields with an experimenter's header.
pub(super) const fn et(number: u8) -> Option<WireId> {
    Some(WireId::of_experimenter(NICIRA, number))
}

pub(super) const fn nsh(number: u8) -> Option<WireId> {
    Some(WireId::of_experimenter(NSH, number))
}

/// Fields that Ericsson added to Open vSwitch.
pub(super) const fn ericsson(number: u8) -> Option<WireId> {
    Some(WireId::new(0x1000, number))
}

/// The class of the packet registers (OF 1.5.1, 7.2.3.9).
pub(super) const fn xreg(number: u8) -> Option<WireId> {
    Some(WireId::new(0x8001, number))
}

pub(super) const fn of(number: u8) -> Option<WireId> {
    Some(WireId::new(0x0000, number))
}

pub(super) const fn nx(number: u8) -> Option<WireId> {
    Some(WireId::new(0x0001, number))
}
