//! Which messages a controller is told unasked (OF 1.3.5, 7.3.10; OF 1.4.1, 7.3.10,
//! where each mask is a property; Nicira's `nx_async_config` before 1.3, laid out as
//! 1.3 has it).

use flow::{FlowRemovedReason, PacketInReason, PortReason, Refusal};

use super::role::{self, RoleReason};
use super::{Body, flow_removed, packet_in, port_status, property};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::version::Version;

/// Masks: bit `n` stands for the reason with the number `n`. Bits of reasons that we
/// do not know survive.
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
    /// OF 1.4.1, 7.3.10): all but frames whose TTL ran out; a slave hears of ports
    /// and of its role only.
    #[must_use]
    pub const fn initial(version: Version) -> Self {
        let (packet_in, flow_removed, role_status) = match version {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => (0b011, 0b1111, 0),
            Version::V14 | Version::V15 => (0b11_1011, 0b11_1111, 0b11),
        };
        let port_status = 0b111;
        Self {
            active: AsyncMasks {
                packet_in,
                port_status,
                flow_removed,
                role_status,
            },
            slave: AsyncMasks {
                packet_in: 0,
                port_status,
                flow_removed: 0,
                role_status,
            },
        }
    }

    /// What holds after `change`.
    #[must_use]
    pub fn after(self, change: &AsyncChange) -> Self {
        let mut next = self;
        for (place, mask) in change.masks() {
            if let Some(mask) = mask {
                *place.of(&mut next) = mask;
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
}

impl From<AsyncConfig> for AsyncChange {
    /// The change that names every mask which 1.3 has.
    fn from(AsyncConfig { active, slave }: AsyncConfig) -> Self {
        let masks = |masks: AsyncMasks| MaskChange {
            packet_in: Some(masks.packet_in),
            port_status: Some(masks.port_status),
            flow_removed: Some(masks.flow_removed),
            role_status: None,
        };
        Self {
            active: masks(active),
            slave: masks(slave),
        }
    }
}

/// One of the masks, by the number of its property: `OFPACPT_*`, odd for a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u16);

/// The masks that 1.3 has, in its order; each is that of a master, then of a slave.
const PLACES_V13: [Place; 6] = [Place(1), Place(0), Place(3), Place(2), Place(5), Place(4)];

/// The number behind that of the last mask that we know.
const PLACES: u16 = 8;

impl Place {
    fn of(self, config: &mut AsyncConfig) -> &mut u32 {
        let masks = if self.0 % 2 == 1 {
            &mut config.active
        } else {
            &mut config.slave
        };
        match self.0 / 2 {
            0 => &mut masks.packet_in,
            1 => &mut masks.port_status,
            2 => &mut masks.flow_removed,
            _ => &mut masks.role_status,
        }
    }

    fn of_change(self, change: &mut AsyncChange) -> &mut Option<u32> {
        let masks = if self.0 % 2 == 1 {
            &mut change.active
        } else {
            &mut change.slave
        };
        match self.0 / 2 {
            0 => &mut masks.packet_in,
            1 => &mut masks.port_status,
            2 => &mut masks.flow_removed,
            _ => &mut masks.role_status,
        }
    }
}

impl AsyncChange {
    /// Every mask, in the order of the properties' numbers.
    fn masks(&self) -> impl Iterator<Item = (Place, Option<u32>)> {
        let mut change = *self;
        (0..PLACES)
            .map(Place)
            .map(move |place| (place, *place.of_change(&mut change)))
    }
}

/// Whether the masks are properties.
const fn has_properties(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => false,
        Version::V14 | Version::V15 => true,
    }
}

impl Body for AsyncConfig {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let nothing = Self {
            active: AsyncMasks::default(),
            slave: AsyncMasks::default(),
        };
        AsyncChange::decode(r).map(|change| nothing.after(&change))
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let mut change = AsyncChange::from(*self);
        if has_properties(w.version()) {
            change.active.role_status = Some(self.active.role_status);
            change.slave.role_status = Some(self.slave.role_status);
        }
        change.encode(w)
    }
}

impl Body for AsyncChange {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut change = Self::default();
        if !has_properties(r.version()) {
            for place in PLACES_V13 {
                *place.of_change(&mut change) = Some(r.u32()?);
            }
            return Ok(change);
        }
        while !r.is_empty() {
            let mut property = property::next(r)?;
            if property.kind == property::EXPERIMENTER
                || property.kind == property::EXPERIMENTER - 1
            {
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
            if property.kind < PLACES {
                *Place(property.kind).of_change(&mut change) = Some(mask);
            } else if property.kind >= last_kind(r.version()) {
                return Err(property.fail(Refusal::PropertyBadType));
            } else if mask != 0 {
                // Messages that this switch never sends cannot be asked for.
                return Err(property.fail(Refusal::AsyncUnsupported));
            }
        }
        Ok(change)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        if has_properties(w.version()) {
            for (Place(kind), mask) in self.masks() {
                if let Some(mask) = mask {
                    property::put_u32(kind, mask, w)?;
                }
            }
            return Ok(());
        }
        let mut change = *self;
        for place in PLACES_V13 {
            let mask = *place.of_change(&mut change);
            w.u32(mask.ok_or_else(|| w.cannot("a part of what is told unasked"))?);
        }
        if self.active.role_status.is_some() || self.slave.role_status.is_some() {
            return Err(w.cannot("a role-status message"));
        }
        Ok(())
    }
}

/// The number behind that of the last property that a version has.
const fn last_kind(version: Version) -> u16 {
    match version {
        Version::V15 => 16,
        _ => 12,
    }
}
