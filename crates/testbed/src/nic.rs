//! Network cards of the machine, borrowed for a test setup: moved out of their namespace, and
//! returned in their original state.
//!
//! When a namespace is deleted, the kernel moves its cards to the initial namespace, down.
//! [`NicState::recover`] restores the rest from a recorded state.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{DeviceOffload, Failure, Namespace};

/// The directory of named namespaces (ip-netns(8)).
const NAMED: &str = "/run/netns";

/// A card as the user writes it: `INTERFACE`, `NAMESPACE:INTERFACE` or `/PATH:INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicName {
    /// The file of its namespace; `None` for that of this process.
    pub namespace: Option<PathBuf>,
    /// The interface there.
    pub interface: String,
}

/// The text is not the name of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an interface name: expected INTERFACE or NAMESPACE:INTERFACE")]
pub struct BadNicName(String);

impl FromStr for NicName {
    type Err = BadNicName;

    fn from_str(text: &str) -> Result<Self, BadNicName> {
        let bad = || BadNicName(text.to_owned());
        let (namespace, interface) = match text.rsplit_once(':') {
            None => (None, text),
            Some((place, interface)) if place.starts_with('/') => {
                (Some(PathBuf::from(place)), interface)
            }
            Some((name, _)) if name.is_empty() || name.contains('/') => return Err(bad()),
            Some((name, interface)) => (Some(Path::new(NAMED).join(name)), interface),
        };
        crate::interface::name(interface).map_err(|_| bad())?;
        Ok(Self {
            namespace,
            interface: interface.to_owned(),
        })
    }
}

impl fmt::Display for NicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            None => f.write_str(&self.interface),
            Some(path) => {
                let name = path.strip_prefix(NAMED).unwrap_or(path);
                write!(f, "{}:{}", name.display(), self.interface)
            }
        }
    }
}

/// The state of a card before it was borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicState {
    /// Name and namespace.
    pub name: NicName,
    /// The MAC address, which identifies the card.
    pub mac: [u8; 6],
    /// Its MTU, in bytes above Ethernet.
    pub mtu: u32,
    /// True if it was up.
    pub up: bool,
    /// True if transmit checksum offload was on.
    pub sums: bool,
}

/// The result of restoring a card that an earlier run borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicRecovery {
    /// The card was in its namespace and state.
    Untouched,
    /// The card's namespace or state was restored.
    Restored,
    /// No card has this MAC address, in this namespace or the original one.
    Missing,
}

impl NicState {
    /// Reads the current state of a card.
    ///
    /// # Errors
    /// There is no card of this name.
    pub fn of(name: &NicName) -> Result<Self, Failure> {
        Self::read(name, &original_namespace(name)?)
    }

    fn read(name: &NicName, place: &Namespace) -> Result<Self, Failure> {
        let interface = &name.interface;
        Ok(Self {
            name: name.clone(),
            mac: place.mac(interface)?,
            mtu: place.mtu(interface)?,
            up: place.is_up(interface)?,
            sums: place.offload(interface, DeviceOffload::TxChecksum)?,
        })
    }

    /// Finds the card in its original namespace or in that of this process, and restores namespace
    /// and state.
    ///
    /// # Errors
    /// The card exists and cannot be moved or configured.
    pub fn recover(&self) -> Result<NicRecovery, Failure> {
        let original_namespace = match original_namespace(&self.name) {
            Ok(original_namespace) => original_namespace,
            // The original namespace has been deleted; the kernel has moved a physical card here.
            Err(_) => Namespace::current()?,
        };
        let interface = &self.name.interface;
        if original_namespace
            .mac(interface)
            .is_ok_and(|mac| mac == self.mac)
        {
            let now = Self::read(&self.name, &original_namespace)?;
            if now == *self {
                return Ok(NicRecovery::Untouched);
            }
            self.restore(&original_namespace)?;
            return Ok(NicRecovery::Restored);
        }
        let here = Namespace::current()?;
        let names = here.interfaces_here()?;
        let is_it = |name: &String| here.mac(name).is_ok_and(|mac| mac == self.mac);
        let Some(found) = names.into_iter().find(is_it) else {
            return Ok(NicRecovery::Missing);
        };
        // Another interface may have its name here, so it is renamed in its original namespace.
        here.hand_over(&found, &original_namespace)?;
        if found != *interface {
            original_namespace.set_down(&found)?;
            original_namespace.rename(&found, interface)?;
        }
        self.restore(&original_namespace)?;
        Ok(NicRecovery::Restored)
    }

    /// Restores the settings that may have changed.
    fn restore(&self, place: &Namespace) -> Result<(), Failure> {
        let interface = &self.name.interface;
        place.set_mtu(interface, self.mtu)?;
        if place.offload(interface, DeviceOffload::TxChecksum)? != self.sums {
            place.set_offload(interface, DeviceOffload::TxChecksum, self.sums)?;
        }
        match self.up {
            true => place.set_up(interface),
            false => place.set_down(interface),
        }
    }
}

/// A borrowed card. Dropping it returns the card.
#[derive(Debug)]
pub(crate) struct Nic {
    state: NicState,
    original_namespace: Namespace,
    lent_to: Namespace,
}

impl Nic {
    /// Moves a card to the namespace `to`, with the same name.
    pub(crate) fn lend(name: &NicName, to: &Namespace) -> Result<Self, Failure> {
        let original_namespace = original_namespace(name)?;
        let state = NicState::read(name, &original_namespace)?;
        if original_namespace.has_routes(&name.interface)? {
            let text = "the machine has routes by it: a card for the lab must have no address";
            return Err(Failure::to(format!("borrow {name}"))(io::Error::other(
                text,
            )));
        }
        let lent_to = to.again()?;
        original_namespace.hand_over(&name.interface, to)?;
        Ok(Self {
            state,
            original_namespace,
            lent_to,
        })
    }

    /// The original state of the card.
    pub(crate) const fn state(&self) -> &NicState {
        &self.state
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let interface = &self.state.name.interface;
        // A drop cannot report an error; `NicState::recover` can repair the state later.
        let _ = self
            .lent_to
            .hand_over(interface, &self.original_namespace)
            .and_then(|()| self.state.restore(&self.original_namespace));
    }
}

/// Opens the original namespace of a card.
fn original_namespace(name: &NicName) -> Result<Namespace, Failure> {
    match &name.namespace {
        None => Namespace::current(),
        Some(path) => Namespace::open(path),
    }
}

impl Namespace {
    /// Returns true if the interface has an address and thus routes.
    fn has_routes(&self, interface: &str) -> Result<bool, Failure> {
        let text = self
            .run(|| fs::read_to_string("/proc/thread-self/net/route"))?
            .map_err(Failure::to("read the routes"))?;
        let of_it = |line: &str| line.split_whitespace().next() == Some(interface);
        Ok(text.lines().skip(1).any(of_it))
    }

    /// The names of all interfaces in the namespace.
    fn interfaces_here(&self) -> Result<Vec<String>, Failure> {
        let text = self
            .run(|| fs::read_to_string("/proc/thread-self/net/dev"))?
            .map_err(Failure::to("list the interfaces"))?;
        let names = text.lines().filter_map(|line| line.split_once(':'));
        Ok(names.map(|(name, _)| name.trim().to_owned()).collect())
    }
}

impl From<BadNicName> for Failure {
    fn from(bad: BadNicName) -> Self {
        Self::to("find a network card")(io::Error::new(ErrorKind::InvalidInput, bad))
    }
}

#[cfg(test)]
mod tests;
