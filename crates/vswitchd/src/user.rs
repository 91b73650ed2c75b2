//! The change from root to another user that keeps the capabilities of a switch: `--user` of
//! ovs-vswitchd(8).

use std::io;

use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups,
    set_thread_uid,
};
use sys::users;

use crate::error::DaemonError;
use crate::logging::LogFile;

/// The kept capabilities: locked memory, low ports, and network administration.
const CAPABILITIES: CapabilitySet = CapabilitySet::IPC_LOCK
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_BROADCAST)
    .union(CapabilitySet::NET_RAW);

/// The capability that AF_XDP ports need beside those of Open vSwitch: to load the program that
/// feeds them.
const FOR_AF_XDP: CapabilitySet = CapabilitySet::BPF;

/// Returns the capabilities to keep: those of a switch, as far as this process has the one for
/// AF_XDP. A kernel before 5.8 does not know it, and a container may not have it.
fn capabilities_to_keep() -> Result<CapabilitySet, Errno> {
    let present = capabilities(None)?.permitted;
    Ok(CAPABILITIES.union(FOR_AF_XDP.intersection(present)))
}

/// Removes capabilities from the set that no later program exceeds.
fn drop_from_bounding_set(capabilities: CapabilitySet) -> Result<(), Errno> {
    for capability in capabilities.iter() {
        match remove_capability_from_bounding_set(capability) {
            // The kernel is older than the capability.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A user and a group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUser {
    uid: u32,
    gid: u32,
}

impl ProcessUser {
    /// Parses `USER[:GROUP]` or `:GROUP`, the argument of `--user`.
    ///
    /// # Errors
    /// There is no such user or group, the user is not in the group, or this process may not change
    /// to them.
    pub fn read(text: &str) -> Result<Self, DaemonError> {
        let wrong = |problem: String| DaemonError::User {
            text: text.to_owned(),
            problem,
        };
        let failed = |error: io::Error| wrong(error.to_string());
        let (own_uid, own_gid) = (getuid(), getgid());
        if !own_uid.is_root() || !own_gid.is_root() {
            return Err(wrong("only root may change the user".to_owned()));
        }
        let text = text.trim_start();
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        let mut person = Self {
            uid: own_uid.as_raw(),
            gid: own_gid.as_raw(),
        };
        if !user.is_empty() {
            let found = users::user(user).map_err(failed)?;
            let found = found.ok_or_else(|| wrong(format!("user {user} not found")))?;
            person = Self {
                uid: found.uid,
                gid: found.gid,
            };
        }
        if group.is_empty() {
            return Ok(person);
        }
        let found = users::group(group).map_err(failed)?;
        let found = found.ok_or_else(|| wrong(format!("group {group} not found")))?;
        let is_in = found.gid == person.gid || found.members.iter().any(|member| member == user);
        if !user.is_empty() && !is_in {
            return Err(wrong(format!("user {user} is not in group {group}")));
        }
        Ok(Self {
            gid: found.gid,
            ..person
        })
    }

    /// Changes to this user, for all threads that start later.
    ///
    /// # Errors
    /// The system refuses.
    pub fn become_this(self) -> Result<(), DaemonError> {
        let done = || {
            let kept = capabilities_to_keep()?;
            // A container may keep the right to do so from its root.
            if let Err(error) = drop_from_bounding_set(kept.complement()) {
                tracing::warn!(%error, "cannot reduce the bounding set of capabilities");
            }
            set_keep_capabilities(true)?;
            set_thread_groups(&[])?;
            set_thread_gid(rustix::process::Gid::from_raw(self.gid))?;
            set_thread_uid(rustix::process::Uid::from_raw(self.uid))?;
            let kept = CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, kept)?;
            // No program that this process starts has more rights than itself.
            set_no_new_privs(true)
        };
        done().map_err(|error| DaemonError::System {
            what: "changing the user",
            error: error.into(),
        })
    }

    /// Changes the owner of the log file to this user, who must be able to reopen it.
    pub fn take_over(self, log: &LogFile) {
        if let Err(error) = log.change_owner(self.uid, self.gid) {
            tracing::warn!(%error, "cannot change the owner of the log");
        }
    }
}
