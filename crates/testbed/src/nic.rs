//! Network cards of the machine, lent to a bench: taken out of the namespace that they are
//! in, and given back as they were.
//!
//! A card whose namespace ends falls back to the first one, down, by the kernel's doing;
//! [`NicState::put_back`] does the rest from what was written down before.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{DeviceOffload, Failure, Namespace};

/// Where named namespaces are (ip-netns(8)).
const NAMED: &str = "/run/netns";

/// A card, as its user names it: `INTERFACE`, `NAMESPACE:INTERFACE` or `/PATH:INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicName {
    /// The file of the namespace it is in; this process's, if there is none.
    pub namespace: Option<PathBuf>,
    /// The interface there.
    pub interface: String,
}

/// The text names no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no interface: INTERFACE or NAMESPACE:INTERFACE is wanted")]
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

/// A card as it was before it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicState {
    /// Which, and where it belongs.
    pub name: NicName,
    /// Its hardware address, by which it is found again.
    pub mac: [u8; 6],
    /// Its MTU, in bytes above Ethernet.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Whether it summed what it sent.
    pub sums: bool,
}

/// What came of looking for a card that an ended run had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// It is where it belongs, as it was.
    Untouched,
    /// It was elsewhere, or otherwise, and is as it was.
    Restored,
    /// There is none of its address, here or where it belongs.
    Gone,
}

impl NicState {
    /// The card as it is now.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn of(name: &NicName) -> Result<Self, Failure> {
        Self::read(name, &home(name)?)
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

    /// Finds the card where it belongs or in this process's namespace, and leaves it where
    /// and as it was.
    ///
    /// # Errors
    /// It is there and cannot be moved or set.
    pub fn put_back(&self) -> Result<PutBack, Failure> {
        let home = match home(&self.name) {
            Ok(home) => home,
            // Where it belonged is no more: the kernel has brought it here, if it is real.
            Err(_) => Namespace::current()?,
        };
        let interface = &self.name.interface;
        if home.mac(interface).is_ok_and(|mac| mac == self.mac) {
            let now = Self::read(&self.name, &home)?;
            if now == *self {
                return Ok(PutBack::Untouched);
            }
            self.restore(&home)?;
            return Ok(PutBack::Restored);
        }
        let here = Namespace::current()?;
        let names = here.interfaces_here()?;
        let is_it = |name: &String| here.mac(name).is_ok_and(|mac| mac == self.mac);
        let Some(found) = names.into_iter().find(is_it) else {
            return Ok(PutBack::Gone);
        };
        // Its name may be another's here, so it gets that back where it belongs.
        here.hand_over(&found, &home)?;
        if found != *interface {
            home.set_down(&found)?;
            home.rename(&found, interface)?;
        }
        self.restore(&home)?;
        Ok(PutBack::Restored)
    }

    /// Sets what may have been changed.
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

/// A card that is lent. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Nic {
    state: NicState,
    home: Namespace,
    lent_to: Namespace,
}

impl Nic {
    /// Takes a card out of where it is, into `to`, where it keeps its name.
    pub(crate) fn lend(name: &NicName, to: &Namespace) -> Result<Self, Failure> {
        let home = home(name)?;
        let state = NicState::read(name, &home)?;
        if home.has_routes(&name.interface)? {
            let text = "the machine has routes by it: a card for the lab must have no address";
            return Err(Failure::to(format!("take {name}"))(io::Error::other(text)));
        }
        let lent_to = to.again()?;
        home.hand_over(&name.interface, to)?;
        Ok(Self {
            state,
            home,
            lent_to,
        })
    }

    /// The card as it was.
    pub(crate) const fn state(&self) -> &NicState {
        &self.state
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let interface = &self.state.name.interface;
        // What cannot be done here is left to `NicState::put_back`: nobody hears of it now.
        let _ = self
            .lent_to
            .hand_over(interface, &self.home)
            .and_then(|()| self.state.restore(&self.home));
    }
}

/// The namespace where a card belongs.
fn home(name: &NicName) -> Result<Namespace, Failure> {
    match &name.namespace {
        None => Namespace::current(),
        Some(path) => Namespace::open(path),
    }
}

impl Namespace {
    /// Whether packets are routed by `interface`: it has an address.
    fn has_routes(&self, interface: &str) -> Result<bool, Failure> {
        let text = self
            .run(|| fs::read_to_string("/proc/thread-self/net/route"))?
            .map_err(Failure::to("read the routes"))?;
        let of_it = |line: &str| line.split_whitespace().next() == Some(interface);
        Ok(text.lines().skip(1).any(of_it))
    }

    /// The names of all its interfaces.
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
