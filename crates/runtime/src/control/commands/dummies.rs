//! Commands for tests, which exist only if dummies are enabled (ovs-vswitchd(8), `--enable-dummy`):
//! inject frames into dummies, change and show their state.

use std::net::IpAddr;

use base::PortNo;
use packet::Frame;
use ports::dummy::{ConnectionState, DummyHandle};

use super::Answer::Immediate;
use super::routes::prefix;
use super::tracing::frame;
use super::{Command, MANY};
use crate::control::Control;
use crate::control::datapath_ports::DatapathName;
use config::PortKind;
use dataplane::program::BridgeId;
use switch::odp::OdpFlow;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 6] = [
    Command { name: "dpif-dummy/change-port-number", usage: "dp port new-number", least: 3, most: 3, answer: Immediate(change_number) },
    Command { name: "netdev-dummy/conn-state", usage: "[netdev]", least: 0, most: 1, answer: Immediate(connection) },
    Command { name: "netdev-dummy/ip4addr", usage: "[netdev] ipaddr/mask-prefix-len", least: 2, most: 2, answer: Immediate(add_ipv4) },
    Command { name: "netdev-dummy/ip6addr", usage: "[netdev] ip6addr", least: 2, most: 2, answer: Immediate(add_ipv6) },
    Command { name: "netdev-dummy/receive", usage: "name [--qid queue_id] packet|flow [--len packet_len]", least: 2, most: MANY, answer: Immediate(receive) },
    Command { name: "netdev-dummy/set-admin-state", usage: "[netdev] up|down", least: 1, most: 2, answer: Immediate(set_up) },
];

/// The payload length of a frame that is composed from a flow, as in Open vSwitch.
const PAYLOAD_LEN: usize = 64;

/// The minimum of `--len`: an Ethernet frame without its checksum.
const LEN_MIN: usize = 60;

/// Returns the dummy with this name.
fn find(control: &Control, name: &str) -> Option<(BridgeId, PortNo, DummyHandle)> {
    let sites = control.sites.iter();
    let mut ports = sites.flat_map(|(id, site)| site.ports.iter().map(|port| (*id, port)));
    ports.find_map(|(id, (number, port))| {
        if port.spec.name != name {
            return None;
        }
        Some((id, *number, port.device.as_ref()?.dummy()?))
    })
}

/// Answers the state of the connection of one dummy, or of all that connect actively.
fn connection(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let line = |name: &str, state| {
        let state = match state {
            ConnectionState::Connected => "connected",
            ConnectionState::Disconnected => "disconnected",
            ConnectionState::Unknown => "unknown",
        };
        format!("{name}: {state}\n")
    };
    if let [name] = arguments {
        let found = find(control, name);
        let state = found.map(|(_, _, dummy)| dummy.connection_state());
        return Ok(line(name, state.unwrap_or(ConnectionState::Unknown)));
    }
    let lines = control.dummies.handles().iter().filter_map(|(key, dummy)| {
        let port = control.sites.get(&key.bridge)?.ports.get(&key.port)?;
        let state = dummy.connection_state();
        (state != ConnectionState::Unknown).then(|| line(&port.spec.name, state))
    });
    Ok(lines.collect())
}

/// Changes the number of a port in the datapath; its OpenFlow number stays.
fn change_number(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (datapath, name) = (&arguments[0], &arguments[1]);
    DatapathName::parse(datapath).ok_or("unknown datapath")?;
    let number = arguments[2].parse().ok().filter(|number| *number > 0);
    let number = number.ok_or("bad port number")?;
    control.datapath_ports();
    let ports = &mut control.devices.datapath_ports;
    ports.renumber(name, number)?;
    Ok(String::new())
}

fn receive(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (name, words) = arguments.split_first().ok_or("name a dummy")?;
    let (_, _, dummy) = find(control, name).ok_or("no such dummy netdev")?;
    let queues = usize::from(dummy.options().rx_queues.get());
    let mut queue = 0;
    let mut words = words.iter().map(String::as_str).peekable();
    let mut frames = Vec::new();
    while let Some(word) = words.next() {
        if word == "--qid" {
            let number = words.next().and_then(|number| number.parse().ok());
            let number = number.filter(|number| *number < queues);
            queue = number.ok_or("bad rx queue id.")?;
            continue;
        }
        let mut length = None;
        if words.peek() == Some(&"--len") {
            words.next();
            let read = words.next().and_then(|length| length.parse().ok());
            length = Some(read.ok_or("packet_len must be a number")?);
        }
        frames.push(read(word, length)?);
    }
    // A full queue or a dummy that is down loses frames, like a wire.
    let lost = frames
        .into_iter()
        .filter(|frame| !dummy.inject(queue, frame.clone()));
    let lost = lost.count();
    // As in Open vSwitch, the frames meet the tables of this moment.
    control.settle_flows();
    if lost > 0 {
        tracing::debug!(
            dummy = name,
            lost,
            "frames were dropped before they were received"
        );
    }
    Ok(String::new())
}

/// Parses a frame: hexadecimal bytes, or a datapath flow, of which a frame is composed. The
/// `in_port` of the flow is ignored, because the command names the dummy.
fn read(word: &str, length: Option<usize>) -> Result<Frame, String> {
    if let Ok(frame) = frame(word) {
        return Ok(frame);
    }
    let flow = OdpFlow::parse(word, |_| Some(1)).map_err(|error| error.to_string())?;
    let fields = flow.frame_fields();
    match length {
        None => Ok(fields.frame(PAYLOAD_LEN)),
        Some(length) if length < LEN_MIN => Err("too small packet len".to_owned()),
        Some(length) => {
            let frame = fields.frame_of_len(length);
            frame.ok_or_else(|| format!("no frame of these headers has {length} bytes"))
        }
    }
}

fn set_up(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (names, state): (Vec<String>, &String) = match arguments {
        [name, state] => (vec![name.clone()], state),
        [state] => {
            let ports = control.sites.values().flat_map(|site| site.ports.values());
            let dummies = ports.filter(|port| matches!(port.spec.kind, PortKind::Dummy(_)));
            (dummies.map(|port| port.spec.name.clone()).collect(), state)
        }
        _ => return Err("Invalid Admin State".to_owned()),
    };
    let up = match state.as_str() {
        "up" => true,
        "down" => false,
        _ => return Err("Invalid Admin State".to_owned()),
    };
    for name in names {
        let found = find(control, &name);
        let (bridge, port, _) = found.ok_or("Unknown Dummy Interface")?;
        control.set_dummy_up(bridge, port, up);
    }
    Ok("OK".to_owned())
}

fn add_ipv4(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    add_address(control, arguments, IpAddr::is_ipv4)
}

fn add_ipv6(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    add_address(control, arguments, IpAddr::is_ipv6)
}

/// Adds an address to a dummy, as a source of tunnel packets. Routes and neighbours need commands
/// of their own: a dummy resolves no neighbours.
fn add_address(
    control: &mut Control,
    arguments: &[String],
    fits: impl Fn(&IpAddr) -> bool,
) -> Result<String, String> {
    let (name, text) = (&arguments[0], &arguments[1]);
    find(control, name).ok_or("Unknown Dummy Interface")?;
    let read = prefix(text).ok().map(|(address, _)| address);
    let wrong = || format!("{text}: invalid IP address");
    let address = read.filter(fits).ok_or_else(wrong)?;
    let addresses = control.underlay.addresses.entry(name.clone()).or_default();
    if !addresses.contains(&address) {
        addresses.push(address);
    }
    control.update_underlay();
    Ok("OK".to_owned())
}
