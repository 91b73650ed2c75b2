//! Interfaces by name, and the instrument's ends at them.

use std::time::Duration;

use testbed::{BadNicName, Clock, Namespace, NicName};
use trafficgen::{TestPort, TestPortNo};

use super::InstrumentError;

/// Name of an interface: `eth0`, or `NAMESPACE:eth0` in a namespace of ip-netns(8).
pub type PortName = NicName;

/// Transmit and receive method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMethod {
    /// Transmits by AF_XDP if available, otherwise by sendmmsg(2); receives by a packet socket
    /// ring, with kernel timestamps.
    #[default]
    PacketSockets,
    /// AF_XDP in both directions; the program takes the timestamps when it polls.
    Xdp,
}

/// Interfaces without duplicates.
pub(super) struct Ends {
    names: Vec<PortName>,
}

impl Ends {
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a PortName>) -> Self {
        let mut ends = Self { names: Vec::new() };
        for name in names {
            if !ends.names.contains(name) {
                ends.names.push(name.clone());
            }
        }
        ends
    }

    /// Returns the number of the end at one of the interfaces.
    pub(super) fn number(&self, name: &PortName) -> TestPortNo {
        let place = self.names.iter().position(|one| one == name);
        TestPortNo(place.expect("it is among them"))
    }

    pub(super) fn names(&self) -> &[PortName] {
        &self.names
    }

    /// Opens all ends; those that `receivers` does not list only send.
    pub(super) fn open(
        &self,
        by: IoMethod,
        longest: u16,
        receivers: &[PortName],
        clock: &Clock,
    ) -> Result<Vec<TestPort>, InstrumentError> {
        let open = |name: &PortName| match receivers.contains(name) {
            true => open(name, by, longest, clock),
            false => {
                let (namespace, interface) = enter(name)?;
                Ok(match by {
                    IoMethod::PacketSockets => TestPort::sending(&namespace, interface, longest)?,
                    IoMethod::Xdp => TestPort::xdp(&namespace, interface, *clock)?,
                })
            }
        };
        self.names.iter().map(open).collect()
    }
}

/// Opens an end that sends and receives.
pub(super) fn open(
    name: &PortName,
    by: IoMethod,
    longest: u16,
    clock: &Clock,
) -> Result<TestPort, InstrumentError> {
    let (namespace, interface) = enter(name)?;
    Ok(match by {
        IoMethod::PacketSockets => TestPort::packet(&namespace, interface, longest, *clock)?,
        IoMethod::Xdp => TestPort::xdp(&namespace, interface, *clock)?,
    })
}

/// Time limit for the carrier of an interface that was just set up.
const READY: Duration = Duration::from_secs(5);

/// Returns the namespace of an interface that is up, and its name there.
fn enter(name: &PortName) -> Result<(Namespace, &str), InstrumentError> {
    let namespace = match &name.namespace {
        None => Namespace::current()?,
        Some(path) => Namespace::open(path)?,
    };
    let interface = name.interface.as_str();
    if !namespace.is_up(interface)? {
        return Err(InstrumentError::Down(name.clone()));
    }
    let what = format!("{name} to have a carrier");
    let carries = || Ok(namespace.carries(interface)?.then_some(()));
    Clock::start().wait_for(&what, READY, carries)?;
    Ok((namespace, interface))
}

/// Returns the name with `namespace`, unless it has one already.
///
/// # Errors
/// The name of the namespace is invalid.
pub fn inside(name: PortName, namespace: Option<&str>) -> Result<PortName, BadNicName> {
    match (namespace, &name.namespace) {
        (Some(namespace), None) => format!("{namespace}:{}", name.interface).parse(),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_applies_to_interfaces_without_one() {
        let name = |text: &str| text.parse::<PortName>().unwrap();
        assert_eq!(inside(name("eth0"), Some("lab")), Ok(name("lab:eth0")));
        assert_eq!(inside(name("x:eth0"), Some("lab")), Ok(name("x:eth0")));
        assert_eq!(inside(name("eth0"), None), Ok(name("eth0")));
        assert!(inside(name("eth0"), Some("a/b")).is_err());
    }

    #[test]
    fn interface_is_opened_once() {
        let names: Vec<PortName> = ["a", "b", "a"].map(|one| one.parse().unwrap()).to_vec();
        let ends = Ends::new(&names);
        assert_eq!(ends.names().len(), 2);
        assert_eq!(ends.number(&names[2]), TestPortNo(0));
    }
}
