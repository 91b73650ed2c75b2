//! Roles: a controller's standing with the switch (OF 1.3.5, 7.3.9), and
//! Nicira's form of it in OpenFlow 1.0, which knows no elections.

use flow::{Refusal, Role, RoleRequest};

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::version::Version;

/// The election that nobody knows of.
const GENERATION_NONE: u64 = u64::MAX;

/// The role that a controller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleReply {
    /// The role.
    pub role: Role,
    /// The election that the controllers are at, if there was one.
    pub generation: Option<u64>,
}

/// The role with this number in the version; none for "as it is".
fn decode_role(r: &mut Reader<'_>) -> Result<Option<Role>, Malformed> {
    let bad = r.fail(Refusal::RoleBad);
    match (r.version(), r.u32()?) {
        (Version::V13, 0) => Ok(None),
        (Version::V10, 0) | (Version::V13, 1) => Ok(Some(Role::Equal)),
        (Version::V10, 1) | (Version::V13, 2) => Ok(Some(Role::Master)),
        (Version::V10, 2) | (Version::V13, 3) => Ok(Some(Role::Slave)),
        (Version::V10 | Version::V13, _) => Err(bad),
    }
}

fn encode_role(role: Role, w: &mut Writer<'_>) {
    let number = match role {
        Role::Equal => 0,
        Role::Master => 1,
        Role::Slave => 2,
    };
    w.u32(match w.version() {
        Version::V10 => number,
        Version::V13 => number + 1,
    });
}

impl Body for RoleRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let role = decode_role(r)?;
        if r.version() == Version::V10 {
            let generation = None;
            return Ok(Self { role, generation });
        }
        r.skip(4)?;
        let generation = r.u64()?;
        Ok(Self {
            role,
            // The others take part in no election.
            generation: match role {
                Some(Role::Master | Role::Slave) => Some(generation),
                Some(Role::Equal) | None => None,
            },
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        match (w.version(), self.role) {
            (Version::V10, None) => return Err(w.cannot("a question after the role")),
            (Version::V10, Some(role)) => {
                encode_role(role, w);
                if self.generation.is_some() {
                    return Err(w.cannot("an election among controllers"));
                }
                return Ok(());
            }
            (Version::V13, None) => w.u32(0),
            (Version::V13, Some(role)) => encode_role(role, w),
        }
        w.zeros(4);
        let elected = matches!(self.role, Some(Role::Master | Role::Slave));
        if elected && self.generation.is_none() {
            return Err(w.cannot("this role without an election"));
        }
        w.u64(self.generation.unwrap_or(0));
        Ok(())
    }
}

impl Body for RoleReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = r.fail(Refusal::RoleBad);
        let role = decode_role(r)?.ok_or(bad)?;
        let generation = match r.version() {
            Version::V10 => None,
            Version::V13 => {
                r.skip(4)?;
                Some(r.u64()?).filter(|generation| *generation != GENERATION_NONE)
            }
        };
        Ok(Self { role, generation })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        encode_role(self.role, w);
        if w.version() == Version::V13 {
            w.zeros(4);
            w.u64(self.generation.unwrap_or(GENERATION_NONE));
        }
        Ok(())
    }
}
