//! Interfaces by name, and the instrument's ends at them.

use std::time::Duration;

use testbed::{BadNicName, Clock, Namespace, NicName};
use trafficgen::{TestPort, TestPortNo};

use super::ByHandError;

/// An interface: `eth0`, or `NAMESPACE:eth0` of one that ip-netns(8) names.
pub type PortName = NicName;

/// By which way frames go and come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// They go by AF_XDP where that can be had, by sendmmsg(2) else, and come by a ring of packet
    /// sockets, stamped by the kernel.
    #[default]
    PacketSockets,
    /// Both by AF_XDP; stamped by the program when it looks.
    Xdp,
}

/// Interfaces, each once.
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

    /// The number of the end at an interface that is among them.
    pub(super) fn number(&self, name: &PortName) -> TestPortNo {
        let place = self.names.iter().position(|one| one == name);
        TestPortNo(place.expect("it is among them"))
    }

    pub(super) fn names(&self) -> &[PortName] {
        &self.names
    }

    /// Opens all of them; those that `hears` does not name only send.
    pub(super) fn open(
        &self,
        by: By,
        longest: u16,
        hears: &[PortName],
        clock: &Clock,
    ) -> Result<Vec<TestPort>, ByHandError> {
        let open = |name: &PortName| match hears.contains(name) {
            true => open(name, by, longest, clock),
            false => {
                let (namespace, interface) = enter(name)?;
                Ok(match by {
                    By::PacketSockets => TestPort::sending(&namespace, interface, longest)?,
                    By::Xdp => TestPort::xdp(&namespace, interface, *clock)?,
                })
            }
        };
        self.names.iter().map(open).collect()
    }
}

/// An end that sends and receives.
pub(super) fn open(
    name: &PortName,
    by: By,
    longest: u16,
    clock: &Clock,
) -> Result<TestPort, ByHandError> {
    let (namespace, interface) = enter(name)?;
    Ok(match by {
        By::PacketSockets => TestPort::packet(&namespace, interface, longest, *clock)?,
        By::Xdp => TestPort::xdp(&namespace, interface, *clock)?,
    })
}

/// How long an interface that was just set up may take to carry frames.
const READY: Duration = Duration::from_secs(5);

/// The namespace of an interface that is up, and what it is called there.
fn enter(name: &PortName) -> Result<(Namespace, &str), ByHandError> {
    let namespace = match &name.namespace {
        None => Namespace::current()?,
        Some(path) => Namespace::open(path)?,
    };
    let interface = name.interface.as_str();
    if !namespace.is_up(interface)? {
        return Err(ByHandError::Down(name.clone()));
    }
    let what = format!("{name} to have a carrier");
    let carries = || Ok(namespace.carries(interface)?.then_some(()));
    Clock::start().wait_for(&what, READY, carries)?;
    Ok((namespace, interface))
}

/// The same interface in a named namespace, if it says none itself.
///
/// # Errors
/// There can be no namespace of this name.
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
