//! Roles: the rights of a controller at the switch (OF 1.3.5, 7.3.9; OF 1.4.1, 7.4.4), its short id
//! (OF 1.5.1, 7.3.9), and Nicira's form in OpenFlow 1.0 and 1.1, which has no master election.

use flow::{Refusal, Role, RoleRequest, ShortId};

use super::WireFormat;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::version::Version;

/// The generation id before any master election.
const GENERATION_NONE: u64 = u64::MAX;

/// The role of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleReply {
    /// The role.
    pub role: Role,
    /// The generation id of the last master election, if there was one.
    pub generation: Option<u64>,
    /// The short id, by which other controllers identify it, if it has one (1.5).
    pub short_id: Option<ShortId>,
}

/// Returns true if the version uses Nicira's form.
const fn is_nicira(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 => true,
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => false,
    }
}

/// Decodes a role; none is "no change".
pub(super) fn decode_role(r: &mut Reader<'_>) -> Result<Option<Role>, Malformed> {
    let bad = r.fail(Refusal::RoleBad);
    match (is_nicira(r.version()), r.u32()?) {
        (false, 0) => Ok(None),
        (true, 0) | (false, 1) => Ok(Some(Role::Equal)),
        (true, 1) | (false, 2) => Ok(Some(Role::Master)),
        (true, 2) | (false, 3) => Ok(Some(Role::Slave)),
        (true | false, _) => Err(bad),
    }
}

/// Decodes a short id and padding; before 1.5 all of it is padding.
fn decode_short_id(r: &mut Reader<'_>) -> Result<Option<ShortId>, Malformed> {
    let number = r.u16()?;
    r.skip(2)?;
    let has_ids = r.version() >= Version::V15;
    Ok(ShortId::new(number).filter(|_| has_ids))
}

fn encode_short_id(short_id: Option<ShortId>, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if w.version() < Version::V15 {
        encode_no_short_id(short_id, w)?;
    }
    w.u16(short_number(short_id));
    w.zeros(2);
    Ok(())
}

fn encode_no_short_id(short_id: Option<ShortId>, w: &Writer<'_>) -> Result<(), EncodeError> {
    short_id.map_or(Ok(()), |_| Err(w.unsupported("a short id of a controller")))
}

/// The number of a short id on the wire.
pub(crate) fn short_number(short_id: Option<ShortId>) -> u16 {
    short_id.map_or(0, ShortId::number)
}

pub(super) fn encode_role(role: Role, w: &mut Writer<'_>) {
    let number = match role {
        Role::Equal => 0,
        Role::Master => 1,
        Role::Slave => 2,
    };
    w.u32(if is_nicira(w.version()) {
        number
    } else {
        number + 1
    });
}

impl WireFormat for RoleRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let role = decode_role(r)?;
        if is_nicira(r.version()) {
            return Ok(Self {
                role,
                ..Self::default()
            });
        }
        let short_id = decode_short_id(r)?;
        let generation = r.u64()?;
        Ok(Self {
            role,
            short_id,
            // The other roles take part in no election.
            generation: match role {
                Some(Role::Master | Role::Slave) => Some(generation),
                Some(Role::Equal) | None => None,
            },
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match (is_nicira(w.version()), self.role) {
            (true, None) => return Err(w.unsupported("a role request of \"no change\"")),
            (true, Some(role)) => {
                encode_role(role, w);
                if self.generation.is_some() {
                    return Err(w.unsupported("a generation id"));
                }
                return encode_no_short_id(self.short_id, w);
            }
            (false, None) => w.u32(0),
            (false, Some(role)) => encode_role(role, w),
        }
        encode_short_id(self.short_id, w)?;
        let elected = matches!(self.role, Some(Role::Master | Role::Slave));
        if elected && self.generation.is_none() {
            return Err(w.unsupported("this role without a generation id"));
        }
        w.u64(self.generation.unwrap_or(0));
        Ok(())
    }
}

impl WireFormat for RoleReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = r.fail(Refusal::RoleBad);
        let role = decode_role(r)?.ok_or(bad)?;
        let (short_id, generation) = if is_nicira(r.version()) {
            (None, None)
        } else {
            let short_id = decode_short_id(r)?;
            let generation = Some(r.u64()?).filter(|generation| *generation != GENERATION_NONE);
            (short_id, generation)
        };
        Ok(Self {
            role,
            generation,
            short_id,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_role(self.role, w);
        if is_nicira(w.version()) {
            return encode_no_short_id(self.short_id, w);
        }
        encode_short_id(self.short_id, w)?;
        w.u64(self.generation.unwrap_or(GENERATION_NONE));
        Ok(())
    }
}

/// The reason for a change of role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleReason {
    /// Another controller requested the master role.
    MasterRequest,
    /// The configuration of the switch changed.
    Config,
    /// An experimenter's reason.
    Experimenter,
}

/// Role-status: a change of the controller's role (1.4 and later; in 1.3 an extension of the ONF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleStatus {
    /// The new role.
    pub role: Role,
    /// The reason.
    pub reason: RoleReason,
    /// The generation id of the last master election, if there was one.
    pub generation: Option<u64>,
}

const REASONS: [RoleReason; 3] = [
    RoleReason::MasterRequest,
    RoleReason::Config,
    RoleReason::Experimenter,
];

/// The number of a reason, also used in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: RoleReason) -> u8 {
    match reason {
        RoleReason::MasterRequest => 0,
        RoleReason::Config => 1,
        RoleReason::Experimenter => 2,
    }
}

impl WireFormat for RoleStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = r.fail(Refusal::RoleBad);
        let role = decode_role(r)?.ok_or(bad)?;
        let unknown = r.fail(Refusal::RequestBadType);
        let reason = *REASONS.get(usize::from(r.u8()?)).ok_or(unknown)?;
        r.skip(3)?;
        let generation = Some(r.u64()?).filter(|generation| *generation != GENERATION_NONE);
        // Only experimenters define properties here.
        r.rest();
        Ok(Self {
            role,
            reason,
            generation,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_role(self.role, w);
        w.u8(reason_number(self.reason));
        w.zeros(3);
        w.u64(self.generation.unwrap_or(GENERATION_NONE));
        Ok(())
    }
}
