//! Asynchronous configuration: the messages that a controller receives without a request (OF 1.3.5,
//! 7.3.10; OF 1.4.1, 7.3.10, where each mask is a property; Nicira's `nx_async_config` before 1.3,
//! in the layout of 1.3, and its form with properties before 1.4).

use flow::{FlowRemovedReason, PacketInReason, PortReason, Refusal, TableReason};

use super::controller_status::{self, ControllerReason};
use super::request_forward::ForwardedRequest;
use super::role::{self, RoleReason};
use super::{WireFormat, flow_removed, packet_in, port_status, property, table_mod};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::kinds::MessageKind;
use crate::version::Version;

/// Masks: bit `n` enables the reason with the number `n`. A request with properties may set only
/// bits of known reasons; a reply and the older form may have any bits.
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
    /// Kinds of forwarded requests (1.4, and Nicira's form with properties).
    pub request_forward: u32,
    /// Reasons of controller-status messages (1.5).
    pub controller_status: u32,
}

impl AsyncMasks {
    /// Returns true if a packet-in for this reason is enabled for a controller of this version.
    #[must_use]
    pub const fn wants_packet_in(self, reason: PacketInReason, version: Version) -> bool {
        self.packet_in >> packet_in::reason_number(reason, version) & 1 == 1
    }

    /// Enables or disables packet-ins for an invalid TTL (`OFPC_INVALID_TTL_TO_CONTROLLER`).
    pub const fn set_invalid_ttl(&mut self, is_enabled: bool) {
        let bit = 1 << packet_in::reason_number(PacketInReason::InvalidTtl, Version::V13);
        self.packet_in = match is_enabled {
            true => self.packet_in | bit,
            false => self.packet_in & !bit,
        };
    }

    /// Returns true if a port-status for this reason is enabled.
    #[must_use]
    pub const fn wants_port_status(self, reason: PortReason) -> bool {
        self.port_status >> port_status::reason_number(reason) & 1 == 1
    }

    /// Returns true if a role-status for this reason is enabled.
    #[must_use]
    pub const fn wants_role_status(self, reason: RoleReason) -> bool {
        self.role_status >> role::reason_number(reason) & 1 == 1
    }

    /// Returns true if a table-status for this reason is enabled.
    #[must_use]
    pub const fn wants_table_status(self, reason: TableReason) -> bool {
        self.table_status >> table_mod::reason_number(reason) & 1 == 1
    }

    /// Returns true if a controller-status for this reason is enabled.
    #[must_use]
    pub const fn wants_controller_status(self, reason: ControllerReason) -> bool {
        self.controller_status >> controller_status::reason_number(reason) & 1 == 1
    }

    /// Returns true if this request of another controller is to be forwarded.
    #[must_use]
    pub const fn wants_request(self, request: &ForwardedRequest) -> bool {
        self.request_forward >> request.reason_number() & 1 == 1
    }

    /// Returns true if a flow-removed for this reason is enabled for a controller of this version.
    #[must_use]
    pub const fn wants_flow_removed(self, reason: FlowRemovedReason, version: Version) -> bool {
        self.flow_removed >> flow_removed::reason_number(reason, version) & 1 == 1
    }
}

/// The asynchronous configuration of a controller, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// The masks of a master or equal.
    pub active: AsyncMasks,
    /// The masks of a slave.
    pub slave: AsyncMasks,
}

impl AsyncConfig {
    /// The initial configuration for a controller of this version (OF 1.3.5, 7.3.10; OF 1.5.1,
    /// 7.3.10). A master or equal receives packet-ins except those for an invalid TTL, port-status
    /// and flow-removed, but neither role-status nor forwarded requests. A slave receives
    /// port-status only. Both receive controller-status (1.5).
    ///
    /// The specification gives no initial mask of table-status. A table sends it only if a
    /// controller enabled it in the table, so that a master or equal receives it.
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

    /// The configuration after `change`.
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

/// A change of the asynchronous configuration. Until 1.3 it has all masks; from 1.4 on the masks
/// that it lacks remain unchanged (OF 1.4.1, 7.3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncChange {
    /// The new masks of a master or equal.
    pub active: MaskChange,
    /// The new masks of a slave.
    pub slave: MaskChange,
}

/// The masks that a change sets.
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
    /// Kinds of forwarded requests (1.4).
    pub request_forward: Option<u32>,
    /// Reasons of controller-status messages (1.5).
    pub controller_status: Option<u32>,
}

impl From<AsyncConfig> for AsyncChange {
    /// The change that sets every mask of 1.3.
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

/// A mask, identified by its property type: `OFPACPT_*`, odd for a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskProperty(u16);

/// The masks of 1.3 in wire order; for each message, the master's and then the slave's.
const MASKS_V13: [MaskProperty; 6] = [
    MaskProperty(1),
    MaskProperty(0),
    MaskProperty(3),
    MaskProperty(2),
    MaskProperty(5),
    MaskProperty(4),
];

/// All masks. The missing types belong to a message of 1.5 that this switch never sends:
/// flow-statistics triggers.
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
    /// All masks in the order of the property types.
    fn masks(&self) -> impl Iterator<Item = (MaskProperty, Option<u32>)> {
        let mut change = *self;
        MASKS
            .map(MaskProperty)
            .into_iter()
            .map(move |property| (property, *property.changed_mask(&mut change)))
    }
}

/// Returns true if the masks are properties.
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
            w.u32(mask.ok_or_else(|| w.unsupported("a partial asynchronous configuration"))?);
        }
        Ok(())
    }
}

/// The message type of a change. Before 1.4, Nicira's form with properties is used if the basic
/// form cannot express the change.
pub(crate) fn kind(change: &AsyncChange, version: Version) -> MessageKind {
    let is_basic =
        |(property, mask): (MaskProperty, Option<u32>)| mask.is_some() == (property.0 < 6);
    match has_properties(version) || change.masks().all(is_basic) {
        true => MessageKind::SetAsync,
        false => MessageKind::SetAsyncProperties,
    }
}

/// Decodes the properties of a request.
pub(crate) fn decode_properties(r: &mut Reader<'_>) -> Result<AsyncChange, Malformed> {
    read_properties(r, known_reasons)
}

/// The mask of all reasons of the message with this property type: `OFPR_*`, `OFPPR_*` and so on.
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
            // This switch never sends the message, so it cannot be enabled.
            return Err(property.fail(Refusal::AsyncUnsupported));
        }
    }
    Ok(change)
}

/// Appends the masks that the change sets, as properties.
pub(crate) fn encode_properties(
    change: &AsyncChange,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    for (MaskProperty(kind), mask) in change.masks() {
        let Some(mask) = mask else { continue };
        if kind >= kinds_end(w.version()) {
            return Err(w.unsupported("the mask of this asynchronous message"));
        }
        property::put_u32(kind, mask, w)?;
    }
    Ok(())
}

/// One more than the last property type of the version; before 1.4, of Nicira's form.
const fn kinds_end(version: Version) -> u16 {
    match version {
        Version::V15 => 16,
        _ => 12,
    }
}
