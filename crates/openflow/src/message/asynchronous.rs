//! Which messages a controller is told unasked (OF 1.3.5, 7.3.10; OF 1.4.1, 7.3.10,
//! where each mask is a property; Nicira's `nx_async_config` before 1.3, laid out as
//! 1.3 has it, and its form with properties before 1.4).

use flow::{FlowRemovedReason, PacketInReason, PortReason, Refusal, TableReason};

use super::controller_status::{self, ControllerReason};
use super::request_forward::ForwardedRequest;
use super::role::{self, RoleReason};
use super::{WireFormat, flow_removed, packet_in, port_status, property, table_mod};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::kinds::MessageKind;
use crate::version::Version;

/// Masks: bit `n` stands for the reason with the number `n`. As properties, nobody may ask
/// for reasons that there are not; in a reply their bits survive, and in the older form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncMasks {
    /// Reasons of packet-in messages.
    pub packet_in: u32,
    /// Reasons of port-status messages.
    pub port_status: u32,
    /// Reasons of flow-removed messages.
    pub flow_removed: u32,
    /// Reasons of role-status messages (1.4).
    pub role_status: u32,
    /// Reasons of table-status messages (1.4).
    pub table_status: u32,
    /// Kinds of requests by others (1.4, and Nicira's form with properties).
    pub request_forward: u32,
    /// Reasons of controller-status messages (1.5).
    pub controller_status: u32,
}

impl AsyncMasks {
    /// Whether a packet-in for this reason is wanted by a controller of this version.
    #[must_use]
    pub const fn wants_packet_in(self, reason: PacketInReason, version: Version) -> bool {
        self.packet_in >> packet_in::reason_number(reason, version) & 1 == 1
    }

    /// Whether a port-status for this reason is wanted.
    #[must_use]
    pub const fn wants_port_status(self, reason: PortReason) -> bool {
        self.port_status >> port_status::reason_number(reason) & 1 == 1
    }

    /// Whether a role-status for this reason is wanted.
    #[must_use]
    pub const fn wants_role_status(self, reason: RoleReason) -> bool {
        self.role_status >> role::reason_number(reason) & 1 == 1
    }

    /// Whether a table-status for this reason is wanted.
    #[must_use]
    pub const fn wants_table_status(self, reason: TableReason) -> bool {
        self.table_status >> table_mod::reason_number(reason) & 1 == 1
    }

    /// Whether news of a controller for this reason are wanted.
    #[must_use]
    pub const fn wants_controller_status(self, reason: ControllerReason) -> bool {
        self.controller_status >> controller_status::reason_number(reason) & 1 == 1
    }

    /// Whether such a request of another controller is wanted.
    #[must_use]
    pub const fn wants_request(self, request: &ForwardedRequest) -> bool {
        self.request_forward >> request.reason_number() & 1 == 1
    }

    /// Whether a flow-removed for this reason is wanted by a controller of this version.
    #[must_use]
    pub const fn wants_flow_removed(self, reason: FlowRemovedReason, version: Version) -> bool {
        self.flow_removed >> flow_removed::reason_number(reason, version) & 1 == 1
    }
}

/// What a controller is told unasked, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// As master or equal.
    pub active: AsyncMasks,
    /// As slave.
    pub slave: AsyncMasks,
}

impl AsyncConfig {
    /// What holds until a controller of this version says otherwise (OF 1.3.5, 7.3.10;
    /// OF 1.5.1, 7.3.10): a master or equal hears of all frames but those whose TTL ran
    /// out, of ports, and of rules that end; not of its role, and not of what others ask. A
    /// slave hears of ports only; and both of the status of other controllers (1.5).
    ///
    /// Of the status of tables the specification says nothing there; a table tells of it
    /// only when it was configured to, and so whoever did that is told.
    #[must_use]
    pub const fn initial(version: Version) -> Self {
        let (packet_in, flow_removed) = match version {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => (0b011, 0b1111),
            Version::V14 | Version::V15 => (0b11_1011, 0b11_1111),
        };
        let port_status = 0b111;
        let table_status = match version {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => 0,
            Version::V14 | Version::V15 => 0b1_1000,
        };
        let controller_status = match version {
            Version::V15 => 0b11_1111,
            _ => 0,
        };
        Self {
            active: AsyncMasks {
                packet_in,
                port_status,
                flow_removed,
                role_status: 0,
                table_status,
                request_forward: 0,
                controller_status,
            },
            slave: AsyncMasks {
                packet_in: 0,
                port_status,
                flow_removed: 0,
                role_status: 0,
                table_status: 0,
                request_forward: 0,
                controller_status,
            },
        }
    }

    /// What holds after `change`.
    #[must_use]
    pub fn after(self, change: &AsyncChange) -> Self {
        let mut next = self;
        for (property, mask) in change.masks() {
            if let Some(mask) = mask {
                *property.mask(&mut next) = mask;
            }
        }
        next
    }
}

impl Default for AsyncConfig {
    /// [`Self::initial`] of 1.3.
    fn default() -> Self {
        Self::initial(Version::V13)
    }
}

/// What a controller wants changed of what it is told unasked. Until 1.3 it names
/// all of it; from 1.4 on what it does not name stays as it is (OF 1.4.1, 7.3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncChange {
    /// As master or equal: the masks that are named.
    pub active: MaskChange,
    /// As slave: the masks that are named.
    pub slave: MaskChange,
}

/// The masks that a change names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaskChange {
    /// Reasons of packet-in messages.
    pub packet_in: Option<u32>,
    /// Reasons of port-status messages.
    pub port_status: Option<u32>,
    /// Reasons of flow-removed messages.
    pub flow_removed: Option<u32>,
    /// Reasons of role-status messages (1.4).
    pub role_status: Option<u32>,
    /// Reasons of table-status messages (1.4).
    pub table_status: Option<u32>,
    /// Kinds of requests by others (1.4).
    pub request_forward: Option<u32>,
    /// Reasons of controller-status messages (1.5).
    pub controller_status: Option<u32>,
}

impl From<AsyncConfig> for AsyncChange {
    /// The change that names every mask which 1.3 has.
    fn from(AsyncConfig { active, slave }: AsyncConfig) -> Self {
        let masks = |masks: AsyncMasks| MaskChange {
            packet_in: Some(masks.packet_in),
            port_status: Some(masks.port_status),
            flow_removed: Some(masks.flow_removed),
            ..MaskChange::default()
        };
        Self {
            active: masks(active),
            slave: masks(slave),
        }
    }
}

/// One of the masks, by the number of its property: `OFPACPT_*`, odd for a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskProperty(u16);

/// The masks that 1.3 has, in its order; each is that of a master, then of a slave.
const MASKS_V13: [MaskProperty; 6] = [
    MaskProperty(1),
    MaskProperty(0),
    MaskProperty(3),
    MaskProperty(2),
    MaskProperty(5),
    MaskProperty(4),
];

/// All masks. The numbers that are left out are those of a message of 1.5 that this
/// switch never sends: of triggers by statistics.
const MASKS: [u16; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15];

impl MaskProperty {
    fn mask(self, config: &mut AsyncConfig) -> &mut u32 {
        let masks = if self.0 % 2 == 1 {
            &mut config.active
        } else {
            &mut config.slave
        };
        match self.0 / 2 {
            0 => &mut masks.packet_in,
            1 => &mut masks.port_status,
            2 => &mut masks.flow_removed,
            3 => &mut masks.role_status,
            4 => &mut masks.table_status,
            5 => &mut masks.request_forward,
            _ => &mut masks.controller_status,
        }
    }

    fn changed_mask(self, change: &mut AsyncChange) -> &mut Option<u32> {
        let masks = if self.0 % 2 == 1 {
            &mut change.active
        } else {
            &mut change.slave
        };
        match self.0 / 2 {
            0 => &mut masks.packet_in,
            1 => &mut masks.port_status,
            2 => &mut masks.flow_removed,
            3 => &mut masks.role_status,
            4 => &mut masks.table_status,
            5 => &mut masks.request_forward,
            _ => &mut masks.controller_status,
        }
    }
}

impl AsyncChange {
    /// Every mask, in the order of the properties' numbers.
    fn masks(&self) -> impl Iterator<Item = (MaskProperty, Option<u32>)> {
        let mut change = *self;
        MASKS
            .map(MaskProperty)
            .into_iter()
            .map(move |property| (property, *property.changed_mask(&mut change)))
    }
}

/// Whether the masks are properties.
const fn has_properties(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => false,
        Version::V14 | Version::V15 => true,
    }
}

impl WireFormat for AsyncConfig {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let nothing = Self {
            active: AsyncMasks::default(),
            slave: AsyncMasks::default(),
        };
        let change = match has_properties(r.version()) {
            true => read_properties(r, |_, _| u32::MAX)?,
            false => AsyncChange::decode(r)?,
        };
        Ok(nothing.after(&change))
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut change = AsyncChange::from(*self);
        if has_properties(w.version()) {
            let mut config = *self;
            let known = MASKS.map(MaskProperty).into_iter();
            for property in known.filter(|property| property.0 < kinds_end(w.version())) {
                *property.changed_mask(&mut change) = Some(*property.mask(&mut config));
            }
        }
        change.encode(w)
    }
}

impl WireFormat for AsyncChange {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if has_properties(r.version()) {
            return decode_properties(r);
        }
        let mut change = Self::default();
        for property in MASKS_V13 {
            *property.changed_mask(&mut change) = Some(r.u32()?);
        }
        Ok(change)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if has_properties(w.version()) {
            return encode_properties(self, w);
        }
        let mut change = *self;
        for property in MASKS_V13 {
            let mask = *property.changed_mask(&mut change);
            w.u32(mask.ok_or_else(|| w.unsupported("a part of what is told unasked"))?);
        }
        Ok(())
    }
}

/// Which message says it: before 1.4 the form with properties is Nicira's, and is for
/// what the other has no place for.
pub(crate) fn kind(change: &AsyncChange, version: Version) -> MessageKind {
    let is_basic =
        |(property, mask): (MaskProperty, Option<u32>)| mask.is_some() == (property.0 < 6);
    match has_properties(version) || change.masks().all(is_basic) {
        true => MessageKind::SetAsync,
        false => MessageKind::SetAsyncProperties,
    }
}

/// Reads masks as properties, by which reasons are asked for.
pub(crate) fn decode_properties(r: &mut Reader<'_>) -> Result<AsyncChange, Malformed> {
    read_properties(r, known_reasons)
}

/// The reasons that there are for the messages of the property of this number: `OFPR_*`,
/// `OFPPR_*` and so on.
pub(crate) const fn known_reasons(kind: u16, version: Version) -> u32 {
    match (kind / 2, has_properties(version)) {
        (0, false) => 0b111,
        (0 | 2, _) => 0b11_1111,
        (1 | 3, _) => 0b111,
        (4, _) => 0b1_1000,
        (5, _) => 0b11,
        _ => 0b11_1111,
    }
}

fn read_properties(
    r: &mut Reader<'_>,
    known: impl Fn(u16, Version) -> u32,
) -> Result<AsyncChange, Malformed> {
    let mut change = AsyncChange::default();
    while !r.is_empty() {
        let mut property = property::next(r)?;
        if property.kind == property::EXPERIMENTER || property.kind == property::EXPERIMENTER - 1 {
            return Err(property.fail(Refusal::PropertyBadExperimenter));
        }
        let mask = property
            .value
            .clone()
            .on_short(Refusal::PropertyBadLength)
            .u32()?;
        property.value.skip(4)?;
        if !property.value.is_empty() {
            return Err(property.fail(Refusal::PropertyBadLength));
        }
        if property.kind >= kinds_end(r.version()) {
            return Err(property.fail(Refusal::PropertyBadType));
        }
        if MASKS.contains(&property.kind) {
            if mask & !known(property.kind, r.version()) != 0 {
                return Err(property.fail(Refusal::AsyncInvalid));
            }
            *MaskProperty(property.kind).changed_mask(&mut change) = Some(mask);
        } else if mask != 0 {
            // Messages that this switch never sends cannot be asked for.
            return Err(property.fail(Refusal::AsyncUnsupported));
        }
    }
    Ok(change)
}

/// Appends the masks that are named, as properties.
pub(crate) fn encode_properties(
    change: &AsyncChange,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    for (MaskProperty(kind), mask) in change.masks() {
        let Some(mask) = mask else { continue };
        if kind >= kinds_end(w.version()) {
            return Err(w.unsupported("a mask of such messages"));
        }
        property::put_u32(kind, mask, w)?;
    }
    Ok(())
}

/// The number behind that of the last property that a version has.
/// Before 1.4 that is of Nicira's form.
const fn kinds_end(version: Version) -> u16 {
    match version {
        Version::V15 => 16,
        _ => 12,
    }
}
