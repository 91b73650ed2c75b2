//! Changes of the interfaces behind the ports: state, removal and return.

use std::io;
use std::time::Duration;

use base::{Instant, PortNo};

use super::Control;
use super::bridge_runtime::PortRuntime;
use config::PortKind;
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use ports::OpenError;
use switch::link::{Link, LinkEvent};

/// The longest interval of checks for TAP interfaces in other network namespaces and devices unknown
/// to the kernel, which netlink does not report, and of attempts to reopen ports.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest interval, after a TAP interface has left for another namespace.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The reciprocal of the interval as a part of the time since an interface left. A container is
/// usually configured within milliseconds; an interface that is set up later waits for at most this
/// part of the time until then.
const POLLS_PER_AGE: u32 = 10;

/// The times of status checks.
#[derive(Debug, Default)]
pub(super) struct PollSchedule {
    last: Instant,
    /// The last time at which a TAP interface left for another namespace.
    departure: Option<Instant>,
}

impl PollSchedule {
    /// Returns the time of the next check.
    fn next(&self) -> Instant {
        let interval = self.departure.map_or(POLL_INTERVAL, |departure| {
            let part = self.last.since(departure) / POLLS_PER_AGE;
            part.clamp(POLL_INTERVAL_MIN, POLL_INTERVAL)
        });
        self.last + interval
    }

    /// Starts frequent checks.
    fn hasten(&mut self, now: Instant) {
        self.last = now;
        self.departure = Some(now);
    }
}

impl Control {
    /// Handles a change of an interface.
    pub(super) fn handle_link(&mut self, event: LinkEvent) {
        self.tools.facts_changed.notify_one();
        match event {
            LinkEvent::Present(link) => self.handle_present(&link),
            LinkEvent::Gone { index } => self.handle_gone(|port| port.index == Some(index)),
            LinkEvent::All(links) => {
                let there = |index| links.iter().any(|link| Some(link.index) == index);
                self.handle_gone(|port| port.index.is_some() && !there(port.index));
                links.iter().for_each(|link| self.handle_present(link));
            }
        }
    }

    /// Handles the end of a queue whose device is gone.
    pub(super) fn handle_queue_gone(&mut self, key: PortKey, error: &io::Error) {
        if error.kind() == io::ErrorKind::NotFound {
            tracing::debug!(port = %key.port, %error, "a queue has ended");
        } else {
            tracing::warn!(port = %key.port, "{error}");
        }
        let site = self.sites.get(&key.bridge);
        if site.is_some_and(|site| is_open(site.ports.get(&key.port))) {
            self.lose_port(key.bridge, key.port);
        }
    }

    /// Sets an interface up or down, at a controller's request.
    pub(super) fn set_port_up(&mut self, bridge: BridgeId, number: PortNo, up: bool) {
        let site = self.sites.get_mut(&bridge);
        let Some(port) = site.and_then(|site| site.ports.get_mut(&number)) else {
            return;
        };
        let is_dummy = matches!(port.spec.kind, PortKind::Dummy(_));
        if let Some(device) = &mut port.device
            && let Err(error) = device.set_up(up)
        {
            tracing::warn!(port = port.spec.name, %error, "cannot apply a port-mod to the interface");
        }
        // Nothing else reports the new state of a dummy.
        if is_dummy {
            self.poll_port(bridge, number);
        }
    }

    fn handle_present(&mut self, link: &Link) {
        // The name now belongs to another interface: the old one is removed.
        self.handle_gone(|port| {
            port.spec.name == link.name && port.index.is_some_and(|index| index != link.index)
        });
        for (bridge, port) in self.find_ports(|port| port.index == Some(link.index)) {
            let mut effects = Vec::new();
            if let Some(site) = self.sites.get_mut(&bridge) {
                if let Some(port) = site.ports.get_mut(&port) {
                    port.record_carrier(link.carrier);
                }
                site.bridge.handle_port_link(port, link, &mut effects);
            }
            self.apply_effects(bridge, effects, &mut None);
        }
        let is_awaited = |port: &PortRuntime| is_closed(port) && port.spec.name == link.name;
        for (bridge, port) in self.find_ports(is_awaited) {
            match self.open_port(bridge, port) {
                Ok(()) => tracing::info!(interface = link.name, %port, "the interface is back"),
                Err(error) => {
                    tracing::warn!("{error}");
                    self.note_problem(bridge, port, open_problem(&error));
                }
            }
        }
    }

    fn handle_gone(&mut self, is_gone: impl Fn(&PortRuntime) -> bool) {
        let now = self.now();
        for (bridge, number) in self.find_ports(is_gone) {
            let site = self.sites.get_mut(&bridge);
            let port = site.and_then(|site| site.ports.get_mut(&number));
            match port {
                // Our TAP interface is removed only if its queues report it: the user may have
                // moved it to another namespace.
                Some(port) if port.spec.kind == PortKind::Tap => {
                    port.index = None;
                    self.devices.polls.hasten(now);
                }
                _ => self.lose_port(bridge, number),
            }
        }
    }

    fn lose_port(&mut self, bridge: BridgeId, port: PortNo) {
        let site = self.sites.get(&bridge);
        let name = site
            .and_then(|site| site.ports.get(&port))
            .map(|port| &port.spec.name);
        tracing::warn!(interface = name, %port, "the interface is gone");
        self.close_port(bridge, port);
        self.note_problem(bridge, port, "the interface is gone".to_owned());
    }

    fn find_ports(&self, is_configured: impl Fn(&PortRuntime) -> bool) -> Vec<(BridgeId, PortNo)> {
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(id, site)| site.ports.iter().map(|port| (*id, port)));
        let found = ports.filter(|(_, (_, port))| is_configured(port));
        found.map(|(id, (number, _))| (id, *number)).collect()
    }

    /// Checks the ports that netlink does not report.
    pub(super) fn poll_ports(&mut self, now: Instant) {
        if self.next_poll().is_none_or(|due| now < due) {
            return;
        }
        self.devices.polls.last = now;
        self.poll_unreported();
        self.try_closed_ports();
    }

    /// Reopens closed ports whose interface may exist: the first attempt may have failed, or a
    /// queue may have ended without a removal.
    fn try_closed_ports(&mut self) {
        for (bridge, port) in self.find_ports(is_closed) {
            match self.open_port(bridge, port) {
                Ok(()) => tracing::info!(%port, "the port is open again"),
                Err(error) => {
                    tracing::debug!(%port, "{error}");
                    self.note_problem(bridge, port, open_problem(&error));
                }
            }
        }
    }

    /// Reads the status of ports that netlink does not report.
    fn poll_unreported(&mut self) {
        for (bridge, number) in self.find_ports(is_unreported) {
            self.poll_port(bridge, number);
        }
    }

    /// Reads the status of a port.
    fn poll_port(&mut self, bridge: BridgeId, number: PortNo) {
        let Some(site) = self.sites.get_mut(&bridge) else {
            return;
        };
        let device = site
            .ports
            .get(&number)
            .and_then(|port| port.device.as_ref());
        let Some(status) = device.map(|device| device.status()) else {
            return;
        };
        let link = Link {
            index: 0,
            name: status.name,
            up: status.up,
            carrier: status.carrier,
            hw_addr: Some(status.address),
        };
        let mut effects = Vec::new();
        site.bridge.handle_port_link(number, &link, &mut effects);
        self.apply_effects(bridge, effects, &mut None);
    }

    /// Sets a dummy up or down, on behalf of the test.
    pub(super) fn set_dummy_up(&mut self, bridge: BridgeId, port: PortNo, up: bool) {
        self.set_port_up(bridge, port, up);
        self.tools.facts_changed.notify_one();
    }

    /// Returns the time of the next [`Control::poll_ports`].
    pub(super) fn next_poll(&self) -> Option<Instant> {
        let any = self.sites.values().any(|site| {
            site.ports
                .values()
                .any(|port| is_unreported(port) || is_closed(port))
        });
        any.then(|| self.devices.polls.next())
    }
}

fn is_open(port: Option<&PortRuntime>) -> bool {
    port.is_some_and(|port| port.device.is_some())
}

/// Returns true if the port is closed, and the switch does not create its device.
fn is_closed(port: &PortRuntime) -> bool {
    port.device.is_none() && port.spec.kind.is_external()
}

/// Returns true for a TAP interface in another network namespace, and for a DPDK device without an
/// interface.
fn is_unreported(port: &PortRuntime) -> bool {
    let may_be = matches!(port.spec.kind, PortKind::Tap | PortKind::Dpdk(_));
    may_be && port.device.is_some() && port.index.is_none()
}

/// Returns the reason why a port is closed, as the database has it: a missing device in the words of
/// `ovs-vswitchd`, other reasons with the remedy.
pub(super) fn open_problem(error: &OpenError) -> String {
    match error {
        OpenError::Unknown { name } => {
            format!("could not open network device {name} (No such device)")
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_interval_grows_with_the_time_since_departure() {
        let mut polls = PollSchedule::default();
        assert_eq!(polls.next(), Instant::START + POLL_INTERVAL);
        let departure = Instant::START + Duration::from_secs(5);
        polls.hasten(departure);
        assert_eq!(polls.next(), departure + POLL_INTERVAL_MIN);
        polls.last = departure + Duration::from_millis(500);
        assert_eq!(polls.next(), polls.last + Duration::from_millis(50));
        polls.last = departure + Duration::from_secs(3600);
        assert_eq!(polls.next(), polls.last + POLL_INTERVAL);
    }
}
